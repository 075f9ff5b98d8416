//! [`WriteChecks`]: what must hold for values to be stored.

use std::sync::Arc;

use super::array_identity::ArrayIdentity;
use super::stored_chunk::VersionCheck;

/// What must hold for values to be stored.
#[derive(Clone, Default)]
pub struct WriteChecks {
    /// Must allow the version that each stored value has before.
    pub value: Option<VersionCheck>,
    /// The array that the elements were made for.
    pub array: Option<Arc<ArrayIdentity>>,
}
