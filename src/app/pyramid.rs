//! [`write_pyramid`]: writes what `/pyramid` shows of a mount into a directory.

use std::path::Path;

use super::error::AppError;
use super::server::App;
use crate::config::{Config, PYRAMID_SOURCE};
use crate::error::{Classify, ErrorClass};
use crate::services::pyramid_target;
use crate::store::{Durability, LocalOptions, StoreError, StoreOptions, open};
use crate::views::pyramid::{PyramidSpec, WrittenNode};

/// The folder that the store keeps for itself in a directory that it writes to; of no use once all is written.
pub const STORE_FOLDER: &str = crate::store::RESERVED;

/// Why a pyramid cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum PyramidError {
    /// The source cannot be opened.
    #[error(transparent)]
    Source(#[from] AppError),
    /// There is no source.
    #[error("there is no mount `{PYRAMID_SOURCE}`")]
    NoSource,
    /// The source cannot be read, or the destination cannot be written.
    #[error("the pyramid cannot be written")]
    Store(#[from] StoreError),
}

impl Classify for PyramidError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Source(error) => error.class(),
            Self::NoSource => ErrorClass::InvalidRequest,
            Self::Store(error) => error.class(),
        }
    }
}

/// Writes what `/pyramid` shows of the mount [`PYRAMID_SOURCE`] of a configuration into an empty directory, and calls `report` after each
/// array.
///
/// # Errors
/// [`PyramidError`]; what was written by then stays.
pub async fn write_pyramid(
    mut config: Config,
    spec: PyramidSpec,
    destination: &Path,
    report: impl Fn(WrittenNode) + Sync,
) -> Result<(), PyramidError> {
    // A server may use its directory, and a source is read once.
    config.cache.disk.path = None;
    let app = App::build(config).await?;
    let pyramids = app.state.mounts.pyramids(PYRAMID_SOURCE).ok_or(PyramidError::NoSource)?;
    let local = LocalOptions { durability: Durability::Rename, ..LocalOptions::default() };
    let options = StoreOptions { writable: true, local, ..StoreOptions::default() };
    let url = destination.to_string_lossy();
    let store = open(&url, &options, &app.state.engine.cpu)
        .map_err(|source| AppError::Mount { name: url.into_owned(), source })?;
    let target = pyramid_target(&app.state.engine, store);
    target.write(&pyramids.store(spec), &report).await?;
    Ok(())
}
