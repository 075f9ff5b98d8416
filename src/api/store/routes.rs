//! The list of store routes with their handlers.

use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

use super::specs::{KEY, KEY_AT_ROOT, MOUNT, ROOT, ROOT_AT_ROOT};
use super::{key, list, partial, patch, write};
use crate::services::route::Route;
use crate::services::state::AppState;

/// The store routes.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&KEY, key_methods()),
        Route::new(&ROOT, root_methods()),
        Route::new(&MOUNT, with_other_methods(routes!(key::get_mount))),
        Route::new(&partial::PARTIAL, routes!(partial::post_partial)),
        Route::new(&partial::ERASE, routes!(partial::post_erase)),
    ]
}

/// The store routes of the mount that is served at the root path.
pub(crate) fn routes_at_root() -> Vec<Route> {
    vec![Route::new(&KEY_AT_ROOT, key_methods()), Route::new(&ROOT_AT_ROOT, root_methods())]
}

fn key_methods() -> UtoipaMethodRouter<AppState> {
    with_other_methods(routes!(key::get_key, write::put_key, patch::patch_key, write::delete_key))
}

fn root_methods() -> UtoipaMethodRouter<AppState> {
    with_other_methods(routes!(list::list_root, write::delete_root))
}

/// Adds a fallback to a route for all other methods, which depend on what the mount allows.
pub(crate) fn with_other_methods(
    (schemas, paths, methods): UtoipaMethodRouter<AppState>,
) -> UtoipaMethodRouter<AppState> {
    (schemas, paths, methods.fallback(key::other_method))
}
