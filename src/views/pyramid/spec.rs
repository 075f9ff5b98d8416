//! [`PyramidSpec`]: how a pyramid is built, parsed from the segments of a URL.
//!
//! The first segment is a method, such as `auto` or `mean`, optionally with `;axes=`, `;factors=`, `;levels=direct` and
//! `;range=`, in any order. The others are those of a rechunk recipe. Specs of the same meaning have the same text.

use std::fmt;

use crate::error::{Classify, ErrorClass};
use crate::reduce::Method;
use crate::views::rechunk::{RechunkSpec, RechunkSpecError};

/// Most axes that a spec names.
const MAX_AXES: usize = 5;
/// Most bytes of the name of an axis.
const MAX_NAME_BYTES: usize = 64;
/// The largest number of a range.
const MAX_NUMBER: f64 = 1e30;

/// How a pyramid is built.
#[derive(Clone, Debug, PartialEq)]
pub struct PyramidSpec {
    /// The method; `None` if it follows from the array.
    pub(super) method: Option<Method>,
    /// The dimensions that are halved, by name or number; `None` if they follow from the array.
    pub(super) axes: Option<Vec<String>>,
    /// For each of these axes, or else of the last dimensions, whether it is halved.
    pub(super) factors: Option<Vec<bool>>,
    /// Whether levels are left out whose chunks are not computed on request.
    pub(super) only_direct: bool,
    /// The stored numbers that viewers draw darkest and brightest; `None` if they follow from the array.
    pub(super) range: Option<(f64, f64)>,
    /// The chunks of the levels.
    pub(super) recipe: RechunkSpec,
}

/// Why segments do not say how a pyramid is built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PyramidSpecError {
    /// An invalid method.
    #[error(
        "the segment after the mount must begin with a method: `auto`, `mean`, `mode`, `min`, `max` or `stride`"
    )]
    Method,
    /// An invalid option of the method.
    #[error(
        "after the method there can be `;levels=direct`, `;factors=` with a 1 or 2 for each of the last dimensions, such as \
         `;factors=1,2,2`, `;axes=` with dimensions by name or number, such as `;axes=y,x`, and `;range=` with the numbers \
         that viewers draw darkest and brightest, such as `;range=0,4000`; each once"
    )]
    Option,
    /// The rest is not a recipe.
    #[error(transparent)]
    Recipe(#[from] RechunkSpecError),
}

impl Classify for PyramidSpecError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Method | Self::Option => ErrorClass::InvalidRequest,
            Self::Recipe(error) => error.class(),
        }
    }
}

impl PyramidSpec {
    /// Parses the segments of a pyramid.
    ///
    /// # Errors
    /// [`PyramidSpecError`], which lists the valid segments.
    pub fn parse(
        method: &str,
        chunks: &str,
        codec: &str,
        data_type: Option<&str>,
    ) -> Result<Self, PyramidSpecError> {
        let mut words = method.split(';');
        let method = match words.next().unwrap_or_default() {
            "auto" => None,
            name => Some(Method::from_name(name).ok_or(PyramidSpecError::Method)?),
        };
        let (mut axes, mut factors, mut only_direct, mut range) = (None, None, false, None);
        for word in words {
            let is_new = match word.split_once('=') {
                Some(("axes", list)) => axes.replace(names(list).ok_or(PyramidSpecError::Option)?).is_none(),
                Some(("factors", list)) => {
                    factors.replace(halvings(list).ok_or(PyramidSpecError::Option)?).is_none()
                }
                Some(("levels", "direct")) => !std::mem::replace(&mut only_direct, true),
                Some(("range", ends)) => {
                    range.replace(numbers(ends).ok_or(PyramidSpecError::Option)?).is_none()
                }
                _ => false,
            };
            if !is_new {
                return Err(PyramidSpecError::Option);
            }
        }
        if let (Some(axes), Some(factors)) = (&axes, &factors)
            && axes.len() != factors.len()
        {
            return Err(PyramidSpecError::Option);
        }
        let recipe = RechunkSpec::parse(chunks, codec, data_type)?;
        Ok(Self { method, axes, factors, only_direct, range, recipe })
    }
}

/// The names in a list, none of them twice.
fn names(list: &str) -> Option<Vec<String>> {
    let names: Vec<String> = list.split(',').take(MAX_AXES + 1).map(str::to_owned).collect();
    let is_name = |name: &String| !name.is_empty() && name.len() <= MAX_NAME_BYTES;
    let is_repeated =
        names.iter().enumerate().any(|(at, name)| names.iter().take(at).any(|other| other == name));
    (names.len() <= MAX_AXES && names.iter().all(is_name) && !is_repeated).then_some(names)
}

/// The factors in a list, each 1 or 2.
fn halvings(list: &str) -> Option<Vec<bool>> {
    let factor = |text: &str| match text {
        "1" => Some(false),
        "2" => Some(true),
        _ => None,
    };
    let factors: Vec<bool> = list.split(',').take(MAX_AXES + 1).map(factor).collect::<Option<_>>()?;
    (factors.len() <= MAX_AXES).then_some(factors)
}

/// Two numbers, the smaller one first.
fn numbers(ends: &str) -> Option<(f64, f64)> {
    // Adding zero gives both zeros one text.
    let number =
        |text: &str| text.parse::<f64>().ok().filter(|end| end.abs() <= MAX_NUMBER).map(|end| end + 0.0);
    let (low, high) = ends.split_once(',')?;
    let (low, high) = number(low).zip(number(high))?;
    (low < high).then_some((low, high))
}

impl fmt::Display for PyramidSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.method.map_or("auto", Method::name))?;
        if let Some(axes) = &self.axes {
            write!(out, ";axes={}", axes.join(","))?;
        }
        if let Some(factors) = &self.factors {
            let factors: Vec<&str> =
                factors.iter().map(|is_halved| if *is_halved { "2" } else { "1" }).collect();
            write!(out, ";factors={}", factors.join(","))?;
        }
        if self.only_direct {
            out.write_str(";levels=direct")?;
        }
        if let Some((low, high)) = self.range {
            write!(out, ";range={low},{high}")?;
        }
        write!(out, "/{}", self.recipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(segments: &str) -> Result<String, PyramidSpecError> {
        let mut segments = segments.split('/');
        let [method, chunks, codec] = std::array::from_fn(|_| segments.next().unwrap());
        PyramidSpec::parse(method, chunks, codec, segments.next()).map(|spec| spec.to_string())
    }

    #[test]
    fn specs_of_the_same_meaning_have_the_same_text() {
        for (segments, expected) in [
            ("auto/auto/raw", "auto/auto/raw"),
            ("mean/64,64/zstd", "mean/64,64/zstd-3"),
            (
                "max;levels=direct;axes=y,x/auto/raw/dtype=safe",
                "max;axes=y,x;levels=direct/auto/raw/dtype=safe",
            ),
            ("auto;factors=2,2,1/auto/raw/dtype=stored", "auto;factors=2,2,1/auto/raw"),
            ("mode;factors=1,2;axes=z,x/auto/raw", "mode;axes=z,x;factors=1,2/auto/raw"),
            ("auto;range=-0,4e3;levels=direct/auto/raw", "auto;levels=direct;range=0,4000/auto/raw"),
            ("auto;range=-0.50,1/auto/raw", "auto;range=-0.5,1/auto/raw"),
        ] {
            assert_eq!(parsed(segments).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn invalid_segments_are_rejected_with_the_valid_ones() {
        for method in ["", "Auto", "median", "mean ", "2"] {
            assert_eq!(parsed(&format!("{method}/auto/raw")), Err(PyramidSpecError::Method), "{method}");
        }
        let long = format!("axes={}", "x".repeat(65));
        let option = |option: &str| parsed(&format!("auto;{option}/auto/raw"));
        for text in [
            "",
            "levels",
            "levels=all",
            "levels=direct;levels=direct",
            "factors=",
            "factors=0",
            "factors=3",
            "factors=2,",
            "factors=02",
            "factors=2;factors=2",
            "factors=1,1,1,1,1,2",
            "axes=",
            "axes=x,x",
            "axes=a,b,c,d,e,f",
            "axes=y,x;factors=2",
            "range=",
            "range=1",
            "range=1,1",
            "range=2,1",
            "range=0,nan",
            "range=0,inf",
            "range=0,1e31",
            "range=0,1,2",
            "range=0,1;range=0,1",
            "other=1",
            &long,
        ] {
            assert_eq!(option(text), Err(PyramidSpecError::Option), "{text}");
        }
        assert_eq!(parsed("auto/x/raw"), Err(PyramidSpecError::Recipe(RechunkSpecError::Chunks)));
    }
}
