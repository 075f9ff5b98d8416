//! Opens an empty store in this process's memory: `memory://`.

use std::sync::Arc;

use super::error::OpenError;
use crate::store::{ObjectBackend, SharedStore, StoreOptions};

pub(super) fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    if !rest.trim_matches('/').is_empty() {
        return Err(OpenError::InvalidUrl("nothing may follow `memory://`"));
    }
    Ok(Arc::new(ObjectBackend::memory(options.writable)))
}
