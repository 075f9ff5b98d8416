//! [`LabelQuery`]: what a request selects by label.
//!
//! ```text
//! query  := "latest" | [method "::"] label | [label] ".." [label]
//! method := ("nearest" | "ffill" | "pad" | "bfill" | "backfill") ["(" tolerance ")"]
//! ```
//! What a label is depends on the coordinate: a number, a date in ISO 8601, or text, which may be empty.

use super::error::LabelError;

/// The longest query, in bytes.
pub(super) const MAX_BYTES: usize = 512;
/// Characters of a label that an error repeats.
const SHOWN_CHARACTERS: usize = 60;

/// What to select if no element has the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillMethod {
    /// The nearest label; of two that are as near, the larger.
    Nearest,
    /// The label before, in stored order.
    Forward,
    /// The label after, in stored order.
    Backward,
}

impl FillMethod {
    /// The method with this name, or another name of it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "nearest" => Some(Self::Nearest),
            "ffill" | "pad" => Some(Self::Forward),
            "bfill" | "backfill" => Some(Self::Backward),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::Forward => "ffill",
            Self::Backward => "bfill",
        }
    }
}

/// What a request selects along a dimension by label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelQuery {
    /// The last label: of numbers and times the largest.
    Latest,
    /// The elements with this label. A date is a period.
    Exact(String),
    /// One element at or near a label.
    Near {
        /// Which.
        method: FillMethod,
        /// How far away it may be, in the unit of the labels or as a duration; `None` without a limit in the request.
        tolerance: Option<String>,
        /// The label.
        label: String,
    },
    /// The elements from one label to another, with both, in stored order whatever the order of the two.
    Range {
        /// One end; `None` for that of the coordinate.
        start: Option<String>,
        /// The other end.
        end: Option<String>,
    },
}

impl LabelQuery {
    /// Whether it asks for the latest label, where labels are no texts: blanks around a number or a date do not count.
    pub(super) fn is_latest(&self) -> bool {
        match self {
            Self::Latest => true,
            Self::Exact(label) => label.trim() == "latest",
            Self::Near { .. } | Self::Range { .. } => false,
        }
    }

    /// Parses the value of `sel.NAME` for the dimension with this name.
    ///
    /// # Errors
    /// [`LabelError::Syntax`].
    pub fn parse(dimension: &str, text: &str) -> Result<Self, LabelError> {
        let fault = |takes| {
            let (dimension, label) = (shortened(dimension), shortened(text));
            Err(LabelError::Syntax { dimension, label, takes })
        };
        let trimmed = text.trim();
        if text.len() > MAX_BYTES {
            return fault("it takes at most 512 bytes");
        }
        // A text may begin or end with blanks.
        if text == "latest" {
            return Ok(Self::Latest);
        }
        if let Some((method, label)) = trimmed.split_once("::") {
            let (name, tolerance) = match method.split_once('(') {
                None => (method, None),
                Some((name, rest)) => match rest.strip_suffix(')') {
                    Some(tolerance) => (name, Some(tolerance.trim().to_owned())),
                    None => return fault("a tolerance is in brackets: `nearest(0.3)::45.2`"),
                },
            };
            let Some(method) = FillMethod::from_name(name.trim()) else {
                return fault(
                    "the methods are `nearest`, `ffill` (or `pad`) and `bfill`, as in `nearest::45.2`",
                );
            };
            let label = label.trim();
            if label.is_empty() || label.contains("..") {
                return fault("after a method there is one label, as in `nearest::45.2`");
            }
            return Ok(Self::Near { method, tolerance, label: label.to_owned() });
        }
        if let Some((start, end)) = trimmed.split_once("..") {
            let end_of = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
            return Ok(Self::Range { start: end_of(start), end: end_of(end) });
        }
        Ok(Self::Exact(text.to_owned()))
    }
}

/// The query in the grammar.
impl std::fmt::Display for LabelQuery {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Latest => out.write_str("latest"),
            Self::Exact(label) => out.write_str(label),
            Self::Near { method, tolerance, label } => {
                out.write_str(method.name())?;
                if let Some(tolerance) = tolerance {
                    write!(out, "({tolerance})")?;
                }
                write!(out, "::{label}")
            }
            Self::Range { start, end } => {
                write!(
                    out,
                    "{}..{}",
                    start.as_deref().unwrap_or_default(),
                    end.as_deref().unwrap_or_default()
                )
            }
        }
    }
}

/// The beginning of a text that an error repeats.
pub(super) fn shortened(text: &str) -> String {
    let mut characters = text.chars();
    let mut shown: String = characters.by_ref().take(SHOWN_CHARACTERS).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_grammar_is_parsed() {
        let text = |text: &str| Some(text.to_owned());
        let near =
            |method, tolerance, label: &str| LabelQuery::Near { method, tolerance, label: label.to_owned() };
        let range = |start, end| LabelQuery::Range { start, end };
        for (written, query) in [
            ("45.2", LabelQuery::Exact("45.2".to_owned())),
            ("", LabelQuery::Exact(String::new())),
            (" KSEA ", LabelQuery::Exact(" KSEA ".to_owned())),
            ("2020-01-15T06:30:00", LabelQuery::Exact("2020-01-15T06:30:00".to_owned())),
            ("latest", LabelQuery::Latest),
            ("nearest::45.2", near(FillMethod::Nearest, None, "45.2")),
            ("nearest(0.3)::45.2", near(FillMethod::Nearest, text("0.3"), "45.2")),
            ("nearest(inf)::-1", near(FillMethod::Nearest, text("inf"), "-1")),
            ("ffill::2", near(FillMethod::Forward, None, "2")),
            ("pad(6h)::2020-01", near(FillMethod::Forward, text("6h"), "2020-01")),
            ("bfill::2", near(FillMethod::Backward, None, "2")),
            ("60..30", range(text("60"), text("30"))),
            ("-10..10.5", range(text("-10"), text("10.5"))),
            ("2020-01..", range(text("2020-01"), None)),
            ("..2020-01", range(None, text("2020-01"))),
            ("..", range(None, None)),
        ] {
            let parsed = LabelQuery::parse("x", written).unwrap();
            assert_eq!(parsed, query, "{written}");
            assert_eq!(LabelQuery::parse("x", &parsed.to_string()), Ok(query), "{written}");
        }
    }

    #[test]
    fn what_is_no_query_is_named_with_what_would_be_right() {
        for (written, says) in [
            ("neerest::3", "`nearest`, `ffill`"),
            ("nearest(3::4", "in brackets"),
            ("nearest::", "one label"),
            ("nearest::1..2", "one label"),
            (&"x".repeat(513), "at most 512 bytes"),
        ] {
            let error = LabelQuery::parse("lat", written).unwrap_err().to_string();
            assert!(error.starts_with("`sel.lat=") && error.contains(says) && error.len() < 300, "{error}");
        }
    }
}
