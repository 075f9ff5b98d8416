//! [`Separator`]: the character between the coordinates in a chunk's key.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::MetadataError;

/// The character between the coordinates in a chunk's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Separator {
    /// `/`
    #[serde(rename = "/")]
    Slash,
    /// `.`
    #[serde(rename = ".")]
    Dot,
}

impl Separator {
    /// The character.
    #[must_use]
    pub const fn as_char(self) -> char {
        match self {
            Self::Slash => '/',
            Self::Dot => '.',
        }
    }

    /// Parses the value of `member`; `default` if there is none.
    pub(super) fn parse(value: Option<&Value>, member: &str, default: Self) -> Result<Self, MetadataError> {
        match value.map(Value::as_str) {
            None => Ok(default),
            Some(Some("/")) => Ok(Self::Slash),
            Some(Some(".")) => Ok(Self::Dot),
            Some(_) => Err(MetadataError::invalid(member, "must be \"/\" or \".\"")),
        }
    }
}
