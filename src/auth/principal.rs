//! [`Principal`]: an authenticated caller, or the anonymous one, and its grants.
//!
//! Every caller may do what anonymous callers may. A request without a decision has no rights at all
//! (`Rights::Undecided`).

use std::sync::Arc;

use super::grant::Grant;

/// A caller with a name, or the anonymous caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Principal {
    pub(super) name: Option<Arc<str>>,
    /// Which of the fair shares of this name the caller has.
    pub(super) part: u8,
    pub(super) grants: Vec<Grant>,
    /// The limits of the grants: the grants of the key that signed them.
    pub(super) within: Option<Arc<[Grant]>>,
}

impl Principal {
    /// An authenticated caller.
    pub(crate) fn named(name: impl Into<Arc<str>>, grants: Vec<Grant>) -> Self {
        Self { name: Some(name.into()), part: 0, grants, within: None }
    }

    /// The holder of a signed URL, limited to the grants of the key that signed it.
    pub(crate) fn signed(name: impl Into<Arc<str>>, part: u8, grant: Grant, within: Arc<[Grant]>) -> Self {
        Self { name: Some(name.into()), part, grants: vec![grant], within: Some(within) }
    }
}
