//! [`DimensionList`]: the dimensions that a parameter names, by their names or numbers.

use crate::chunk::Subset;
use crate::error::{Classify, ErrorClass};
use crate::metadata::ArrayMetadata;

/// Longest part of a name that an error repeats, in characters.
const SHOWN_CHARACTERS: usize = 40;

/// Dimensions by their names or numbers, with commas between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DimensionList(String);

/// Why an array does not have such dimensions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DimensionError {
    /// No dimension, or several, have the name.
    #[error("{}; {choices}", called(*.count, .name))]
    Unknown {
        /// The name.
        name: String,
        /// How many dimensions have it.
        count: usize,
        /// What the dimensions are called.
        choices: String,
    },
    /// No dimension is named.
    #[error("no dimension of the array is given; {choices}")]
    Unnamed {
        /// What the dimensions are called.
        choices: String,
    },
    /// The array has no dimensions.
    #[error("the array has no dimensions")]
    None,
    /// A dimension is named twice.
    #[error("the dimension `{0}` is named twice")]
    Twice(String),
    /// A dimension is dropped by an integer index.
    #[error(
        "the dimension `{0}` has one selected element and is dropped; select it as a slice, such as `3:4`"
    )]
    Dropped(String),
}

impl Classify for DimensionError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unknown { .. } | Self::Unnamed { .. } | Self::None | Self::Twice(_) | Self::Dropped(_) => {
                ErrorClass::InvalidRequest
            }
        }
    }
}

impl DimensionList {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Sets the dimensions of the list in `is_listed`, which has a value for each dimension of the array.
    ///
    /// # Errors
    /// [`DimensionError`]; also for a dimension that is set already, or that a selection drops.
    pub(crate) fn mark(
        &self,
        metadata: &ArrayMetadata,
        subset: &Subset,
        is_listed: &mut [bool],
    ) -> Result<(), DimensionError> {
        let names = metadata.dimension_names.as_deref().unwrap_or_default();
        // A name may have a comma itself.
        let is_name = names.iter().flatten().any(|known| *known == self.0);
        let listed: Vec<&str> =
            if is_name { vec![&self.0] } else { self.0.split(',').map(str::trim).collect() };
        for name in listed {
            let shown = || name.chars().take(SHOWN_CHARACTERS).collect::<String>();
            let dimension = dimension(name, names, metadata.shape.len())?;
            if subset.axes().get(dimension).is_some_and(|axis| !axis.keep) {
                return Err(DimensionError::Dropped(shown()));
            }
            match is_listed.get_mut(dimension) {
                Some(is_listed) if !*is_listed => *is_listed = true,
                _ => return Err(DimensionError::Twice(shown())),
            }
        }
        Ok(())
    }
}

/// The dimension with a name, else with a number.
pub(crate) fn dimension(name: &str, names: &[Option<String>], rank: usize) -> Result<usize, DimensionError> {
    let called: Vec<usize> = names
        .iter()
        .enumerate()
        .filter(|(_, known)| known.as_deref() == Some(name))
        .map(|(dimension, _)| dimension)
        .collect();
    if let [dimension] = called[..] {
        return Ok(dimension);
    }
    let number = name.parse().ok().filter(|&number: &usize| called.is_empty() && number < rank);
    let Some(last) = rank.checked_sub(1) else { return Err(DimensionError::None) };
    number.ok_or_else(|| {
        let numbers = if last == 0 { "0".to_owned() } else { format!("0 to {last}") };
        let choices = match known_names(names) {
            None => format!("they have no names, and are given by their numbers, {numbers}"),
            Some(known) => format!("they are {known}, or their numbers, {numbers}"),
        };
        if name.is_empty() {
            return DimensionError::Unnamed { choices };
        }
        let name = name.chars().take(SHOWN_CHARACTERS).collect();
        DimensionError::Unknown { name, count: called.len(), choices }
    })
}

/// How many dimensions have a name, for an error.
pub(crate) fn called(count: usize, name: &str) -> String {
    match count {
        0 => format!("no dimension of the array is called `{name}`"),
        _ => format!("{count} dimensions of the array are called `{name}`"),
    }
}

/// The names of dimensions, for an error; `None` if none has one.
pub(crate) fn known_names(names: &[Option<String>]) -> Option<String> {
    let known: Vec<&str> = names.iter().map(|name| name.as_deref().unwrap_or("(unnamed)")).collect();
    names.iter().any(Option::is_some).then(|| known.join(", "))
}
