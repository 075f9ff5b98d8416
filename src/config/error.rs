//! [`ConfigError`]: why a configuration is rejected.
//!
//! Every message gives the origin and the key of the setting; none repeats a text, which may be a secret.

use std::path::PathBuf;

use super::origin::Origin;
use crate::error::{Classify, ErrorClass};

/// Why a configuration is rejected.
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
        /// The message of the parser.
        reason: String,
    },
    /// A key that the section does not have.
    #[error("{origin}: unknown key `{key}`; {hint}")]
    UnknownKey {
        /// Where.
        origin: Origin,
        /// The key, from the root, with dots.
        key: String,
        /// The nearest known key, or all known keys.
        hint: String,
    },
    /// An environment variable with the prefix of this program that is not a setting.
    #[error("environment variable {name}: there is no setting of this name; {hint}")]
    UnknownVariable {
        /// Its name.
        name: String,
        /// The nearest known name, or the form of names.
        hint: String,
    },
    /// A value of the wrong type, or out of its range.
    #[error("{origin}: `{key}`: {reason}")]
    InvalidValue {
        /// Where.
        origin: Origin,
        /// The key, from the root, with dots.
        key: String,
        /// Why it is rejected.
        reason: String,
    },
    /// An argument of the command line that is no setting.
    #[error("{argument}: {reason}")]
    InvalidArgument {
        /// The name of the argument, as the help gives it.
        argument: &'static str,
        /// Why it is rejected.
        reason: String,
    },
    /// Two mounts with the same name.
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
            | Self::InvalidArgument { .. }
            | Self::DuplicateMount { .. } => ErrorClass::InvalidRequest,
        }
    }
}
