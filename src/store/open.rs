//! (stand-in until the store room opens URLs itself)

use serde::{Deserialize, Serialize};

use super::SharedStore;

/// What a backend needs to know.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreOptions {
    /// Region of the bucket.
    pub region: Option<String>,
    /// Endpoint of an S3-compatible service.
    pub endpoint: Option<String>,
    /// Access key.
    pub access_key_id: Option<String>,
    /// Secret key.
    pub secret_access_key: Option<Secret>,
    /// Plain HTTP is allowed.
    pub allow_http: bool,
}

/// A text that is never shown.
#[derive(Clone, Deserialize)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not built yet.
    #[error("stores cannot be opened yet")]
    Unsupported,
}

impl crate::error::Classify for OpenError {
    fn class(&self) -> crate::error::ErrorClass {
        match self {
            Self::Unsupported => crate::error::ErrorClass::Unsupported,
        }
    }
}

/// Opens the store at a URL.
///
/// # Errors
/// [`OpenError`].
pub fn open(_url: &str, _options: &StoreOptions) -> Result<SharedStore, OpenError> {
    Err(OpenError::Unsupported)
}
