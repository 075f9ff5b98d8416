//! The routes of `/v1/vectors` with their documentation.
//!
//! The path of a store may have any number of segments, so one wildcard route serves every subresource and `tail`
//! splits the path. The API document describes each subresource as a route of its own, with the documentation beside
//! its handler.

use utoipa::OpenApi;
use utoipa_axum::routes;

use super::specs::{ROOT_VECTORS, VECTORS};
use super::{amplification, chunks, handlers, links, objects, stats, summary, validate, vertices};
use crate::http::route::RouteSpec;
use crate::services::route::Route;

/// The subresources that the wildcard route serves.
#[derive(OpenApi)]
#[openapi(
    paths(
        summary::get_level,
        chunks::list_chunks,
        chunks::get_chunk,
        vertices::get_vertices,
        amplification::get_amplification,
        objects::list_objects,
        objects::get_object,
        objects::get_object_vertices,
        objects::get_object_edges,
        links::list_links,
        stats::get_stats,
        validate::validate_store,
    ),
    tags((name = "vectors", description = "Points, lines and meshes in Zarr Vector Format"))
)]
struct Subresources;

/// The specs of the subresources.
pub(crate) const SUBRESOURCES: [&RouteSpec; 12] = [
    &summary::LEVEL,
    &chunks::CHUNKS,
    &chunks::CHUNK,
    &vertices::VERTICES,
    &amplification::AMPLIFICATION,
    &objects::OBJECTS,
    &objects::OBJECT,
    &objects::OBJECT_VERTICES,
    &objects::OBJECT_EDGES,
    &links::LINKS,
    &stats::STATS,
    &validate::VALIDATE,
];

/// The routes of `/v1/vectors`. Handlers admit requests, for the memory that a response holds.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&VECTORS, routes!(handlers::get_vectors, handlers::post_vectors)),
        Route::new(&ROOT_VECTORS, routes!(handlers::get_root_vectors)),
    ]
}

/// The documentation of the subresources.
pub(crate) fn documentation() -> utoipa::openapi::OpenApi {
    Subresources::openapi()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::vectors_path::{Subresource, split_candidates};
    use crate::key::NodePath;

    /// The path of a documented route below its mount, with a value for each parameter.
    fn example(template: &str) -> Option<NodePath> {
        let path = template.strip_prefix("/v1/vectors/{mount}/")?;
        let path = path
            .replace("{path}", "a")
            .replace("{level}", "0")
            .replace("{chunk}", "0.0")
            .replace("{id}", "7");
        Some(NodePath::parse(&path).unwrap())
    }

    #[test]
    fn the_api_document_has_every_subresource_once() {
        let api = Subresources::openapi();
        let store = NodePath::parse("a").unwrap();
        let mut documented = Vec::new();
        for template in api.paths.paths.keys() {
            let tails = split_candidates(&example(template).unwrap());
            let (_, tail) = tails.into_iter().find(|(path, _)| *path == store).unwrap();
            assert!(
                tail.subresource != Subresource::Store && !documented.contains(&tail.subresource),
                "{template}"
            );
            documented.push(tail.subresource);
        }
        assert_eq!(documented.len(), 12);
    }
}
