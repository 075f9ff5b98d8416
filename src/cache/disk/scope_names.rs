//! The names of scopes: of the stored values of a mount, and of the chunks that are derived of them.

use std::sync::Arc;

/// What the scope of derived chunks has behind that of the stored values. No scope of stored values ends so.
const SUFFIX: &str = " derived";

/// The scope of the derived chunks of a mount.
pub(super) fn derived_scope(stored: &str) -> Arc<str> {
    format!("{stored}{SUFFIX}").into()
}

/// The scope of the stored values of the mount that a scope belongs to.
pub(super) fn stored_scope(scope: &str) -> &str {
    scope.strip_suffix(SUFFIX).unwrap_or(scope)
}
