//! [`LabelError`]: why a label selects nothing.

use super::calendar::Calendar;
use crate::error::{Classify, ErrorClass};

/// Why labels of a coordinate cannot be selected. Each names the dimension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The text is no label, method or range.
    #[error("`sel.{dimension}={label}` is not understood: {takes}")]
    Syntax {
        /// The dimension.
        dimension: String,
        /// The text, shortened.
        label: String,
        /// What would be right.
        takes: &'static str,
    },
    /// The label has not the type of the coordinate.
    #[error("`sel.{dimension}={label}`: labels of `{dimension}` are {are}, such as `{example}`{hint}")]
    NotOfType {
        /// The dimension.
        dimension: String,
        /// The label, shortened.
        label: String,
        /// What labels are, in the plural.
        are: &'static str,
        /// A label of the coordinate.
        example: String,
        /// What may be meant, after a semicolon; or empty.
        hint: String,
    },
    /// The calendar of the coordinate has no such date.
    #[error("`sel.{dimension}={label}`: the calendar of `{dimension}`, `{}`, has no such date", calendar.name())]
    NoSuchDate {
        /// The dimension.
        dimension: String,
        /// The label, shortened.
        label: String,
        /// The calendar.
        calendar: Calendar,
    },
    /// No element has the label, or it is too far from all of them.
    #[error("{0}")]
    NoSuchLabel(Box<NoSuchLabel>),
    /// The labels are in no order, which the request needs.
    #[error(
        "labels of `{dimension}` are not sorted: only an exact label can be selected, not a range or the nearest one; select by \
         position, with `isel.{dimension}`"
    )]
    Unsorted {
        /// The dimension.
        dimension: String,
    },
    /// More elements have the label, at irregular positions, than a list has.
    #[error(
        "`sel.{dimension}={label}` selects {count} elements at irregular positions; select by position, with \
         `isel.{dimension}`: the first are {first}"
    )]
    Scattered {
        /// The dimension.
        dimension: String,
        /// The label, shortened.
        label: String,
        /// The number of elements.
        count: usize,
        /// The first positions.
        first: String,
    },
    /// A method needs distances, which the labels have not.
    #[error(
        "`sel.{dimension}={label}`: labels of `{dimension}` are text, and only exact labels and ranges of text can be selected"
    )]
    TextHasNoDistance {
        /// The dimension.
        dimension: String,
        /// The label, shortened.
        label: String,
    },
    /// The elements of the coordinate are of a type that labels are not of.
    #[error(
        "the elements of the coordinate `{dimension}` have the type {data_type}, by which nothing can be selected; select by \
         position, with `isel.{dimension}`"
    )]
    NoLabels {
        /// The dimension.
        dimension: String,
        /// The type.
        data_type: String,
    },
    /// A label of a point selects no element or several.
    #[error(
        "`{label}` selects {count} elements along `{dimension}`, and a point has one: give the label of a single element"
    )]
    NotOnePlace {
        /// The dimension.
        dimension: String,
        /// The label, shortened.
        label: String,
        /// The number of elements.
        count: u64,
    },
    /// A text is no condition on labels.
    #[error(
        "`{text}` is no condition on the labels of `{dimension}`; it takes `<`, `<=`, `>`, `>=`, `==` or `!=`, and a label: `>= 60`"
    )]
    Condition {
        /// The dimension.
        dimension: String,
        /// The text, shortened.
        text: String,
    },
    /// Too many conditions.
    #[error("`{dimension}` has {given} conditions on its labels, and at most {most} are taken")]
    TooManyConditions {
        /// The dimension.
        dimension: String,
        /// The conditions.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// Too many labels for a coordinate that is not sorted.
    #[error(
        "labels of `{dimension}` are not sorted, so that each of the {labels} labels is compared with all of them; at most {most} can be \
         in one request"
    )]
    TooManyLabels {
        /// The dimension.
        dimension: String,
        /// The labels of the request.
        labels: u64,
        /// How many there may be.
        most: u64,
    },
    /// The labels of a list select too many elements.
    #[error(
        "the labels of `{dimension}` select more than {limit} elements together; ask for fewer in one request"
    )]
    TooManyElements {
        /// The dimension.
        dimension: String,
        /// The limit.
        limit: u64,
    },
    /// The coordinate has more labels than are held in memory.
    #[error(
        "the coordinate `{dimension}` has {length} labels, more than the {limit} that can be searched; select by position, with \
         `isel.{dimension}`"
    )]
    TooLong {
        /// The dimension.
        dimension: String,
        /// Its length.
        length: u64,
        /// The limit.
        limit: u64,
    },
}

/// A label that no element has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`sel.{dimension}={label}`: no element has this label{}{}{hint}", near_text(near), extent_text(extent.as_ref()))]
pub struct NoSuchLabel {
    /// The dimension.
    pub dimension: String,
    /// The label, shortened.
    pub label: String,
    /// The nearest labels, at most two.
    pub near: Vec<String>,
    /// The first and the last label, and the step from one to the next where it is regular; `None` without labels.
    pub extent: Option<(String, String, Option<String>)>,
    /// What else may be wrong, after a semicolon; or empty.
    pub hint: String,
}

fn near_text(near: &[String]) -> String {
    match near {
        [] => String::new(),
        [one] => format!("; the nearest is `{one}`"),
        [one, other, ..] => format!("; the nearest are `{one}` and `{other}`"),
    }
}

fn extent_text(extent: Option<&(String, String, Option<String>)>) -> String {
    match extent {
        None => "; the coordinate is empty".to_owned(),
        Some((first, last, None)) => format!("; labels go from `{first}` to `{last}`"),
        Some((first, last, Some(step))) => format!("; labels go from `{first}` to `{last}` by {step}"),
    }
}

impl Classify for LabelError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Syntax { .. }
            | Self::NotOfType { .. }
            | Self::NoSuchDate { .. }
            | Self::NoSuchLabel(_)
            | Self::Unsorted { .. }
            | Self::Scattered { .. }
            | Self::TextHasNoDistance { .. }
            | Self::NotOnePlace { .. }
            | Self::Condition { .. }
            | Self::NoLabels { .. } => ErrorClass::InvalidRequest,
            Self::TooLong { .. }
            | Self::TooManyConditions { .. }
            | Self::TooManyLabels { .. }
            | Self::TooManyElements { .. } => ErrorClass::TooLarge,
        }
    }
}
