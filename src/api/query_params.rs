//! [`QueryParams`]: query parameters, each known and given at most once.
//!
//! A struct of parameters documents them (`IntoParams`), and what it documents is what the server accepts, lists and
//! suggests. A query is made of one struct or of several: each takes the parameters that it knows. An unknown parameter
//! is an error: a misspelt `slice` would otherwise return a whole array.

use std::fmt::{self, Display, Formatter};

use axum::extract::Query;
use axum::http::Uri;
use utoipa::IntoParams;

use crate::chunk::SelectionError;
use crate::error::{Classify, ErrorClass, nearest};
use crate::labels::LabelError;

/// Longest part of a name or a value that an error repeats, in characters.
const SHOWN_CHARACTERS: usize = 40;

/// The parameters of the page alone. Other routes ignore them, so that the URL of a page is also that of what it shows. Those
/// that also mean something to a route are its own parameters there.
const OF_PAGE: [&str; 12] =
    ["tab", "at", "grid", "lock", "play", "pin", "theme", "load", "box", "level", "labels", "opacity"];

/// Documented query parameters.
pub(crate) trait QueryParams: IntoParams {
    /// Other names, each with the documented name that it stands for.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];

    /// The documented name of a parameter.
    fn canonical(name: &str) -> &str {
        Self::ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
    }
}

/// Query parameters that are parsed one by one.
pub(crate) trait ParseParams: QueryParams {
    /// Takes a parameter by its documented name; `false` if it is not one of these.
    ///
    /// # Errors
    /// [`ParamError`] if the value is invalid, or the parameter was given before.
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError>;

    /// Takes a parameter by any of its names; `false` if it is not one of these.
    ///
    /// # Errors
    /// As [`ParseParams::parse_param`].
    fn take(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        self.parse_param(Self::canonical(name), value)
    }
}

/// The names of query parameters.
#[derive(Debug, Default)]
pub(crate) struct KnownParams {
    /// The documented names.
    names: Vec<String>,
    aliases: Vec<(&'static str, &'static str)>,
}

impl KnownParams {
    /// These and the parameters of a struct.
    pub(crate) fn and<T: QueryParams>(mut self) -> Self {
        self.names.extend(T::into_params(|| None).into_iter().map(|param| param.name));
        self.aliases.extend(T::ALIASES);
        self
    }

    /// These and others, which are no query parameters.
    pub(crate) fn and_names(mut self, names: &[&str]) -> Self {
        self.names.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    /// Whether a parameter of this name is known.
    #[cfg(any(feature = "vectors", test))]
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.all().any(|known| known == name)
    }

    /// The documented name of a parameter.
    #[cfg(feature = "vectors")]
    pub(crate) fn canonical<'n>(&self, name: &'n str) -> &'n str {
        self.aliases.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).chain(self.aliases.iter().map(|(alias, _)| *alias))
    }
}

/// The names, as an error lists them: `slice (or select), isel.NAME`.
impl Display for KnownParams {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (place, name) in self.names.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(formatter, "{comma}{name}")?;
            for (alias, _) in self.aliases.iter().filter(|(_, known)| known == name) {
                write!(formatter, " (or {alias})")?;
            }
        }
        Ok(())
    }
}

/// Why a query is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParamError {
    /// The query is not a list of names and values.
    #[error("{0}")]
    Unreadable(String),
    /// The parameter is unknown.
    #[error("`{name}` is not a parameter here;{hint} there is: {known}")]
    Unknown {
        /// The parameter, shortened.
        name: String,
        /// A suggestion of the nearest known parameter, or an empty text.
        hint: String,
        /// The known parameters.
        known: String,
    },
    /// A parameter occurs twice, or under both its names.
    #[error("`{0}` is given more than once")]
    Twice(&'static str),
    /// A parameter has an invalid value.
    #[error("`{name}={value}` is not understood; it takes {takes}{hint}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The invalid value, shortened.
        value: String,
        /// The valid values.
        takes: &'static str,
        /// A suggestion of the nearest valid value, or an empty text.
        hint: String,
    },
    /// The query selects by position and by name at once.
    #[error(
        "`slice` cannot be mixed with `isel.NAME` or `sel.NAME`: select in the order of dimensions or by their names"
    )]
    SliceAndNames,
    /// Parameters exclude each other.
    #[error("{0} cannot be mixed: use one of them")]
    Exclusive(&'static str),
    /// The selection is invalid.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The label is invalid.
    #[error(transparent)]
    Label(#[from] LabelError),
}

impl Classify for ParamError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable(_)
            | Self::Unknown { .. }
            | Self::Twice(_)
            | Self::SliceAndNames
            | Self::Exclusive(_)
            | Self::Value { .. } => ErrorClass::InvalidRequest,
            Self::Selection(error) => error.class(),
            Self::Label(error) => error.class(),
        }
    }
}

impl ParamError {
    /// The error of a parameter that is not one of `known`.
    pub(crate) fn unknown(name: &str, known: &KnownParams) -> Self {
        let hint = nearest(name, known.all()).map(|known| format!(" did you mean `{known}`?"));
        let name = name.chars().take(SHOWN_CHARACTERS).collect();
        Self::Unknown { name, hint: hint.unwrap_or_default(), known: known.to_string() }
    }

    /// The error of a value that a parameter does not take.
    pub(crate) fn value(name: &'static str, value: &str, takes: &'static str) -> Self {
        Self::value_with_hint(name, value, takes, String::new())
    }

    /// The same with a suggestion after the valid values.
    pub(crate) fn value_with_hint(
        name: &'static str,
        value: &str,
        takes: &'static str,
        hint: String,
    ) -> Self {
        Self::Value { name, value: value.chars().take(SHOWN_CHARACTERS).collect(), takes, hint }
    }
}

/// Puts the value of a parameter that may be given once.
///
/// # Errors
/// [`ParamError::Twice`].
pub(crate) fn once<T>(name: &'static str, place: &mut Option<T>, value: T) -> Result<bool, ParamError> {
    if place.replace(value).is_some() { Err(ParamError::Twice(name)) } else { Ok(true) }
}

/// Whether a parameter is of the page alone.
pub(crate) fn is_of_page(name: &str) -> bool {
    OF_PAGE.contains(&name)
}

/// The decoded names and values of the query of a URL.
///
/// # Errors
/// [`ParamError::Unreadable`].
pub(crate) fn pairs(uri: &Uri) -> Result<Vec<(String, String)>, ParamError> {
    let Query(pairs) = Query::try_from_uri(uri).map_err(|error| ParamError::Unreadable(error.body_text()))?;
    Ok(pairs)
}
