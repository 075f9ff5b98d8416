//! [`Principal`]: who a caller has shown to be, and [`Rights`]: what that lets it do.
//!
//! What anonymous callers may do, everybody may. Nobody has decided of a caller yet: then it may do nothing.

use std::sync::Arc;

use super::grant::Grant;

/// Somebody with a name, or anybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Principal {
    pub(super) name: Option<Arc<str>>,
    /// Which of several callers of this name it is.
    pub(super) part: u8,
    pub(super) grants: Vec<Grant>,
    /// What the grants lie within: those of the key that signed them.
    pub(super) within: Option<Arc<[Grant]>>,
}

impl Principal {
    /// Somebody.
    pub(crate) fn named(name: impl Into<Arc<str>>, grants: Vec<Grant>) -> Self {
        Self { name: Some(name.into()), part: 0, grants, within: None }
    }

    /// Whoever has a URL that somebody signed who could give no more than this.
    pub(crate) fn signed(name: impl Into<Arc<str>>, part: u8, grant: Grant, within: Arc<[Grant]>) -> Self {
        Self { name: Some(name.into()), part, grants: vec![grant], within: Some(within) }
    }
}
