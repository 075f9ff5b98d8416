//! `/v1/nodes/{mount}/{path}`: the metadata of a node, normalised for all Zarr format versions, and how nodes are created, changed
//! and erased.

pub(crate) mod missing;
pub(crate) mod multiscales;
pub(crate) mod node_changes;
mod open_in;
mod read;
mod schema;
mod specs;
mod summary;
pub(crate) mod summary_document;
mod transfer;
mod url;
mod write;

use utoipa_axum::routes;

use crate::services::route::Route;
pub(crate) use specs::{NODE, ROOT_NODE};

/// The routes of nodes.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&NODE, routes!(read::get_node, write::put_node, write::patch_node, write::delete_node)),
        Route::new(
            &ROOT_NODE,
            routes!(
                read::get_root_node,
                write::put_root_node,
                write::patch_root_node,
                write::delete_root_node
            ),
        ),
    ]
}
