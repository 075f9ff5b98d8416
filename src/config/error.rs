//! [`ConfigError`]: why a configuration is refused.
//!
//! Every message says where the setting was written and which key it is; none repeats the value, which may be a
//! secret.

use std::path::PathBuf;

use super::Origin;
use crate::error::{Classify, ErrorClass};

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: the configuration file cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML, or a variable is not UTF-8.
    #[error("{origin}: {reason}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What the parser says.
        reason: String,
    },
    /// A key no section has.
    #[error("{origin}: unknown key `{key}`; {hint}")]
    UnknownKey {
        /// Where.
        origin: Origin,
        /// The key, from the root, with dots.
        key: String,
        /// The nearest known key, or all there are.
        hint: String,
    },
    /// A variable of the environment that is meant for this program and means nothing to it.
    #[error("environment variable {name}: there is no setting of this name; {hint}")]
    UnknownVariable {
        /// Its name.
        name: String,
        /// The nearest known name, or how they are made.
        hint: String,
    },
    /// A value of the wrong type, or out of its range.
    #[error("{origin}: `{key}`: {reason}")]
    InvalidValue {
        /// Where.
        origin: Origin,
        /// The key, from the root, with dots.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Two mounts of one name.
    #[error("{origin}: there is a mount named `{name}` already; give this one another name, as in NAME=URL")]
    DuplicateMount {
        /// Where the second was written.
        origin: Origin,
        /// The name.
        name: String,
    },
}

impl Classify for ConfigError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable { .. }
            | Self::Syntax { .. }
            | Self::UnknownKey { .. }
            | Self::UnknownVariable { .. }
            | Self::InvalidValue { .. }
            | Self::DuplicateMount { .. } => ErrorClass::InvalidRequest,
        }
    }
}
