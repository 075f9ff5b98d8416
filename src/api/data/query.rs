//! [`DataQuery`]: the query parameters of the data routes, parsed once.
//!
//! An unknown parameter is an error: a misspelt `slice` would otherwise return a whole array. Store routes ignore unknown
//! parameters, since clients and caches add their own.

use super::reduction_query::{ReductionError, ReductionQuery};
use crate::chunk::{Selection, SelectionError, Subset};
use crate::error::{Classify, ErrorClass, nearest};
use crate::http::problem::Problem;
use crate::http::switch::is_on;
use crate::metadata::{ArrayMetadata, Endianness};
use crate::render::NanMode;

/// The known parameters, for error details.
const KNOWN: &str = "slice (or select), isel.NAME, downsample, downsample.NAME, fit, method, format (or f), fields, endian, nan, \
    header, expected_shape, strict, allow_collision";

/// The names that are suggested for a misspelt parameter.
const NAMES: [&str; 13] = [
    "slice",
    "select",
    "downsample",
    "fit",
    "method",
    "format",
    "fields",
    "endian",
    "nan",
    "header",
    "expected_shape",
    "strict",
    "allow_collision",
];

/// Prefix of a parameter that selects along a named dimension.
const BY_NAME: &str = "isel.";

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataQuery {
    selection: Option<Selection>,
    /// Dimension names, each with its selection.
    named: Vec<(String, String)>,
    /// How the selected elements are reduced.
    pub(crate) reduction: ReductionQuery,
    pub(crate) format: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) endian: Endianness,
    pub(crate) nan: NanMode,
    /// Whether CSV starts with a header line.
    pub(crate) header: bool,
    pub(crate) expected_shape: Option<Vec<u64>>,
    /// Whether declarations of dependent arrays are read strictly.
    pub(crate) strict: bool,
    /// Whether chunks are read that another array also claims.
    pub(crate) allow_collision: bool,
}

/// Why a query is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    /// The query is not a list of names and values.
    #[error("{0}")]
    Unreadable(String),
    /// The parameter is unknown.
    #[error("`{name}` is not a parameter here;{hint} there is: {KNOWN}", name = .0, hint = hint(.0))]
    Unknown(String),
    /// A parameter occurs twice, or under both its names.
    #[error("`{0}` is given more than once")]
    Twice(&'static str),
    /// A parameter has an invalid value.
    #[error("`{name}={value}` is not understood; it takes {takes}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The invalid value, shortened.
        value: String,
        /// The valid values.
        takes: &'static str,
    },
    /// The query selects by position and by name at once.
    #[error("`slice` and `isel.NAME` cannot be mixed: select by position or by name")]
    SliceAndNames,
    /// The parameters of downsampling are invalid.
    #[error(transparent)]
    Reduction(#[from] ReductionError),
    /// The selection is invalid.
    #[error(transparent)]
    Selection(#[from] SelectionError),
}

impl Classify for QueryError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable(_)
            | Self::Unknown(_)
            | Self::Twice(_)
            | Self::SliceAndNames
            | Self::Value { .. } => ErrorClass::InvalidRequest,
            Self::Selection(error) => error.class(),
            Self::Reduction(error) => error.class(),
        }
    }
}

impl DataQuery {
    /// Parses the decoded pairs of a query.
    pub(crate) fn parse(pairs: &[(String, String)]) -> Result<Self, QueryError> {
        let mut query = Self::default();
        let (mut endian, mut nan, mut header) = (None, None, None);
        let (mut strict, mut allow_collision) = (None, None);
        for (name, value) in pairs {
            match name.as_str() {
                "slice" | "select" => once("slice", &mut query.selection, Selection::parse(value)?)?,
                "format" | "f" => once("format", &mut query.format, value.clone())?,
                "fields" => once("fields", &mut query.fields, value.clone())?,
                "endian" => once("endian", &mut endian, endian_of(value)?)?,
                "nan" => once("nan", &mut nan, nan_of(value)?)?,
                "header" => once("header", &mut header, header_of(value)?)?,
                "expected_shape" => once("expected_shape", &mut query.expected_shape, shape_of(value)?)?,
                "strict" => once("strict", &mut strict, is_on(value))?,
                "allow_collision" => once("allow_collision", &mut allow_collision, is_on(value))?,
                name if query.reduction.take(name, value)? => {}
                name => match name.strip_prefix(BY_NAME) {
                    Some(dimension) => query.named.push((dimension.to_owned(), value.clone())),
                    None => return Err(QueryError::Unknown(name.chars().take(40).collect())),
                },
            }
        }
        if query.selection.is_some() && !query.named.is_empty() {
            return Err(QueryError::SliceAndNames);
        }
        query.reduction.check()?;
        query.endian = endian.unwrap_or_default();
        query.nan = nan.unwrap_or_default();
        query.header = header.unwrap_or(true);
        query.strict = strict.unwrap_or_default();
        query.allow_collision = allow_collision.unwrap_or_default();
        Ok(query)
    }

    /// Whether the query has a selection.
    pub(crate) fn selects(&self) -> bool {
        self.selection.is_some() || !self.named.is_empty()
    }

    /// The selected subset of an array; without a selection, the whole array.
    pub(crate) fn subset(&self, array: &ArrayMetadata) -> Result<Subset, SelectionError> {
        let named;
        let selection = match &self.selection {
            Some(selection) => selection,
            None if self.named.is_empty() => &Selection::default(),
            None => {
                let unnamed = || vec![None; array.shape.len()];
                let names = array.dimension_names.clone().unwrap_or_else(unnamed);
                named = Selection::by_name(&self.named, &names)?;
                &named
            }
        };
        selection.resolve(&array.shape)
    }

    /// Rejects the request if the array does not have the shape in `expected_shape`.
    pub(crate) fn check_shape(&self, shape: &[u64]) -> Result<(), Problem> {
        match &self.expected_shape {
            Some(expected) if expected != shape => Err(Problem::from_class(ErrorClass::Conflict)
                .detail(format!("the array has the shape {shape:?} now; `expected_shape` is {expected:?}"))
                .extension("shape", shape.to_vec())),
            _ => Ok(()),
        }
    }
}

/// A suggestion of the nearest known parameter, or an empty text.
fn hint(name: &str) -> String {
    match nearest(name, NAMES) {
        None => String::new(),
        Some(known) => format!(" did you mean `{known}`?"),
    }
}

fn once<T>(name: &'static str, place: &mut Option<T>, value: T) -> Result<(), QueryError> {
    if place.replace(value).is_some() { Err(QueryError::Twice(name)) } else { Ok(()) }
}

fn endian_of(value: &str) -> Result<Endianness, QueryError> {
    match value {
        "little" => Ok(Endianness::Little),
        "big" => Ok(Endianness::Big),
        _ => Err(not_understood("endian", value, "`little` or `big`")),
    }
}

fn nan_of(value: &str) -> Result<NanMode, QueryError> {
    match value {
        "null" => Ok(NanMode::Null),
        "string" => Ok(NanMode::String),
        _ => Err(not_understood("nan", value, "`null` or `string`")),
    }
}

fn header_of(value: &str) -> Result<bool, QueryError> {
    match value {
        "present" | "yes" => Ok(true),
        "absent" | "no" => Ok(false),
        _ => Err(not_understood("header", value, "`present` (or `yes`) or `absent` (or `no`)")),
    }
}

fn shape_of(value: &str) -> Result<Vec<u64>, QueryError> {
    let lengths = value.trim_matches(['[', ']', '(', ')']).split(',').map(str::trim);
    let lengths: Option<Vec<u64>> =
        lengths.filter(|length| !length.is_empty()).map(|length| length.parse().ok()).collect();
    lengths.ok_or_else(|| {
        not_understood("expected_shape", value, "lengths with commas between, such as `10,20`")
    })
}

fn not_understood(name: &'static str, value: &str, takes: &'static str) -> QueryError {
    QueryError::Value { name, value: value.chars().take(40).collect(), takes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<DataQuery, QueryError> {
        DataQuery::parse(
            &pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn a_misspelt_parameter_is_rejected_with_a_suggestion() {
        assert_eq!(parse(&[("slcie", "0")]).unwrap_err(), QueryError::Unknown("slcie".to_owned()));
        assert_eq!(parse(&[("slice", "0"), ("select", "1")]).unwrap_err(), QueryError::Twice("slice"));
        assert_eq!(parse(&[("slice", "0"), ("isel.x", "1")]).unwrap_err(), QueryError::SliceAndNames);
        let error = parse(&[("slcie", "0")]).unwrap_err().to_string();
        assert!(error.contains("did you mean `slice`?") && error.contains("isel.NAME"), "{error}");
        let error = parse(&[("wavelength", "0")]).unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
        for (name, value) in [
            ("header", "maybe"),
            ("endian", "middle"),
            ("nan", "0"),
            ("expected_shape", "1,x"),
            ("slice", "1:2:3:4"),
        ] {
            assert!(parse(&[(name, value)]).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn a_query_is_parsed_into_its_parameters() {
        let query = parse(&[("f", "npy"), ("endian", "big"), ("expected_shape", "[3, 4]")]).unwrap();
        assert_eq!((query.format.as_deref(), query.endian), (Some("npy"), Endianness::Big));
        assert_eq!(query.expected_shape, Some(vec![3, 4]));
        assert!(query.header && !parse(&[("header", "no")]).unwrap().header);
        assert!(!parse(&[("header", "absent")]).unwrap().header);
        assert_eq!(parse(&[("expected_shape", "")]).unwrap().expected_shape, Some(vec![]));
    }
}
