//! [`Backend`]: what a backend's file says about it.

use super::error::OpenError;
use crate::store::{SharedStore, StoreKind, StoreOptions};

/// Adds what the environment says of where a store with these options is.
pub(super) type Locate = fn(&mut StoreOptions) -> Result<(), OpenError>;

/// A kind of backend.
pub(super) struct Backend {
    pub(super) kind: StoreKind,
    /// The schemes of its URLs, in lower case.
    pub(super) schemes: &'static [&'static str],
    /// The keys of each section of [`StoreOptions`] that it takes.
    pub(super) options: &'static [&'static [&'static str]],
    /// Whether it signs URLs.
    pub(super) can_sign: bool,
    /// `None` if the environment says nothing of where its stores are.
    pub(super) locate: Option<Locate>,
    /// Opens the store that a URL of one of the schemes names.
    pub(super) open: fn(&str, &StoreOptions) -> Result<SharedStore, OpenError>,
}
