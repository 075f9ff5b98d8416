//! What all pages of a request share.

use axum::http::{HeaderMap, Uri};

use super::links::session_path;
use super::script;
use crate::auth::caller::Caller;
use crate::auth::without_credential;
use crate::http::base_path::BasePath;
use crate::http::host;
use crate::page::Site;
use crate::services::state::AppState;

/// The site of a request.
pub(super) fn site(
    state: &AppState,
    base: &BasePath,
    caller: &Caller,
    uri: &Uri,
    headers: &HeaderMap,
) -> Site {
    let scheme = if caller.is_encrypted() { "https" } else { "http" };
    // A host that is no authority would be no part of a URL either.
    let origin =
        host::authority(uri, headers).map(|authority| format!("{scheme}://{authority}")).unwrap_or_default();
    Site {
        session: (!state.access.rules().is_open()).then(|| session_path(base.as_str())),
        is_signed_in: caller.rights().name().is_some(),
        here: without_credential(uri),
        origin,
        ..of_base(base.as_str())
    }
}

/// The site below a base path, for a caller of whom nothing is known.
pub(super) fn of_base(base: &str) -> Site {
    Site {
        home: format!("{base}/"),
        script: script::path(base),
        icon: format!("{base}/favicon.svg"),
        docs: format!("{base}/docs/"),
        ..Site::default()
    }
}
