//! Opens a directory of this machine: a path, or `file://` with an absolute path.

use std::path::Path;
use std::sync::Arc;

use crate::store::open::backend::Backend;
use crate::store::open::error::OpenError;
use crate::store::open::url::local_path;
use crate::store::options::Section as _;
use crate::store::{LocalOptions, LocalStore, SharedStore, StoreKind, StoreOptions};

pub(super) const BACKEND: Backend = Backend {
    kind: StoreKind::LOCAL,
    schemes: &["file"],
    options: &[LocalOptions::KEYS],
    can_sign: false,
    locate: None,
    open,
};

fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let path = local_path(url)?.ok_or(OpenError::InvalidUrl("it names no path"))?;
    open_path(&path, &options.to_local())
}

/// Opens a directory by its path.
pub(in crate::store::open) fn open_path(
    path: &Path,
    options: &LocalOptions,
) -> Result<SharedStore, OpenError> {
    match LocalStore::is_directory(path) {
        None => return Err(OpenError::NoDirectory(path.to_owned())),
        Some(false) => return Err(OpenError::NotADirectory(path.to_owned())),
        Some(true) => {}
    }
    let store = LocalStore::open(path, options)
        .map_err(|source| OpenError::Directory { path: path.to_owned(), source })?;
    Ok(Arc::new(store))
}
