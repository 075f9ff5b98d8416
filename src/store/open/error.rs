//! [`OpenError`]: why a store could not be opened.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Classify, ErrorClass};
use crate::key::KeyError;
use crate::store::{AllowedPrefixError, Shared, StoreError};

/// Why a store could not be opened. For the operator: it names what the configuration names, but no secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// No backend has this scheme.
    #[error("`{scheme}://` is not a kind of store; there are {known}")]
    UnknownScheme {
        /// The scheme, without `://`.
        scheme: String,
        /// All schemes that backends have, as a sentence lists them.
        known: String,
    },
    /// The URL is not one.
    #[error("the URL is not valid: {0}")]
    InvalidUrl(&'static str),
    /// The path after the bucket or host is not a valid prefix of keys.
    #[error("the prefix in the URL is not valid: {0}")]
    InvalidPrefix(#[from] KeyError),
    /// There is no such directory.
    #[error("there is no directory `{}`", .0.display())]
    NoDirectory(PathBuf),
    /// The path leads to something that is no directory.
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The directory could not be opened.
    #[error("the directory `{}` cannot be opened", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// Options that do not go together, or one that is missing.
    #[error("the options do not fit: {0}")]
    Options(&'static str),
    /// What an option, a variable or a profile names as an endpoint is not one.
    #[error("the endpoint of {origin} {reason}")]
    Endpoint {
        /// What names it.
        origin: &'static str,
        /// Why it is none, as the end of a sentence.
        reason: &'static str,
    },
    /// The profile or the variables that name credentials cannot be used.
    #[error("the credentials cannot be used: {0}")]
    Credentials(String),
    /// A prefix that references may lead to is not one.
    #[error(transparent)]
    Prefix(#[from] AllowedPrefixError),
    /// The store of a prefix that references may lead to could not be opened.
    #[error("the prefix `{prefix}`: {source}")]
    AtPrefix {
        /// The prefix.
        prefix: String,
        /// Why not.
        source: Box<OpenError>,
    },
    /// The client could not be built.
    #[error("the client of the backend cannot be built")]
    Client(#[source] Shared),
}

impl Classify for OpenError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::UnknownScheme { .. }
            | Self::InvalidUrl(_)
            | Self::InvalidPrefix(_)
            | Self::NoDirectory(_)
            | Self::NotADirectory(_)
            | Self::Endpoint { .. }
            | Self::Credentials(_)
            | Self::Prefix(_)
            | Self::Options(_) => ErrorClass::InvalidRequest,
            Self::Directory { source, .. } => source.class(),
            Self::AtPrefix { source, .. } => source.class(),
            Self::Client(_) => ErrorClass::BackendFailed,
        }
    }
}

impl OpenError {
    /// The failure to build a client.
    pub(super) fn from_client(error: object_store::Error) -> Self {
        Self::Client(Arc::new(error))
    }
}
