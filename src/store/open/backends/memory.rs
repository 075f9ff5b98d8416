//! Opens an empty store in this process's memory: `memory://`.

use std::sync::Arc;

use crate::store::open::backend::Backend;
use crate::store::open::error::OpenError;
use crate::store::{ObjectBackend, SharedStore, StoreKind, StoreOptions};

pub(super) const BACKEND: Backend = Backend {
    kind: StoreKind::MEMORY,
    schemes: &["memory"],
    options: &[],
    can_sign: false,
    locate: None,
    open,
};

fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    if !rest.trim_matches('/').is_empty() {
        return Err(OpenError::InvalidUrl("nothing may follow `memory://`"));
    }
    Ok(Arc::new(ObjectBackend::memory(options.writable)))
}
