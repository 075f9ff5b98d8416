//! [`Priority`]: the class of work of a request, which decides who goes first under overload.
//!
//! The route, the method and the URL alone determine it, before anything is opened. Health and the description of the
//! server itself have no priority: they never wait.

use axum::http::{HeaderMap, Method, Uri};

use crate::http::route::{Resource, RouteSpec};
use crate::key::last_segment;

/// The classes of work, the first to be admitted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Priority {
    /// Documents, nodes, and HEAD requests for values: small, and every read needs them first.
    Metadata,
    /// Stored bytes.
    StoredBytes,
    /// Decoded elements.
    Elements,
    /// Listings, requests for many keys, and chunks that the server encodes again.
    Background,
}

impl Priority {
    /// All classes, the first to be admitted first.
    pub(crate) const ALL: [Self; 4] = [Self::Metadata, Self::StoredBytes, Self::Elements, Self::Background];

    /// The stable name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::StoredBytes => "values",
            Self::Elements => "elements",
            Self::Background => "bulk",
        }
    }

    /// The index in [`Priority::ALL`].
    pub(super) const fn place(self) -> usize {
        self as usize
    }

    /// The sixteenths of the budget that this class leaves free for the classes before it.
    pub(super) const fn reserve(self) -> u64 {
        match self {
            Self::Metadata => 0,
            Self::StoredBytes => 1,
            Self::Elements => 2,
            Self::Background => 3,
        }
    }

    /// The priority of a request to a route that moves stored bytes.
    pub(super) fn of_stored(spec: &RouteSpec, method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path();
        match method.as_str() {
            "GET" if matches!(spec.resource, Resource::Node | Resource::Page) || is_document(path) => {
                Self::Metadata
            }
            "HEAD" => Self::Metadata,
            "PROPFIND" if headers.get("depth").is_some_and(|depth| depth == "0") => Self::Metadata,
            "PROPFIND" | "COPY" | "MOVE" => Self::Background,
            _ if is_costly(spec.resource) || path.ends_with('/') => Self::Background,
            _ => Self::StoredBytes,
        }
    }
}

/// Whether the last segment of a path names a document of metadata.
fn is_document(path: &str) -> bool {
    matches!(last_segment(path), "zarr.json" | ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata")
}

/// Whether the route lists keys or encodes chunks, whatever the path. On other routes a path that ends in a slash is
/// listed or erased as a prefix.
fn is_costly(resource: Resource) -> bool {
    matches!(resource, Resource::Rechunked | Resource::Pyramid | Resource::Bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_request_determines_its_priority() {
        let [key, node, view, rechunked, bucket] =
            [Resource::Stored, Resource::Node, Resource::View, Resource::Rechunked, Resource::Bucket];
        let pyramid = Resource::Pyramid;
        for (resource, method, url, depth, class) in [
            (key, "GET", "/store/m/a/zarr.json", "", Priority::Metadata),
            (key, "GET", "/store/m/a/.zarray", "", Priority::Metadata),
            (key, "HEAD", "/store/m/a/c/0", "", Priority::Metadata),
            (node, "GET", "/v1/nodes/m/a", "", Priority::Metadata),
            (node, "GET", "/v1/nodes/m/", "", Priority::Metadata),
            (key, "GET", "/store/m/a/c/0", "", Priority::StoredBytes),
            (key, "PUT", "/store/m/a/zarr.json", "", Priority::StoredBytes),
            (key, "GET", "/store/m/zarr.json/c/0", "", Priority::StoredBytes),
            (view, "GET", "/plain/m/a/c/0", "", Priority::StoredBytes),
            (key, "GET", "/rechunk/c/0", "", Priority::StoredBytes),
            (key, "GET", "/s3/m/a", "", Priority::StoredBytes),
            (key, "GET", "/store/m/a/?recursive", "", Priority::Background),
            (key, "DELETE", "/store/m/a/", "", Priority::Background),
            (bucket, "GET", "/s3/m?list-type=2", "", Priority::Background),
            (bucket, "GET", "/s3/m/?list-type=2", "", Priority::Background),
            (rechunked, "GET", "/rechunk/m/8/raw/a/c/0", "", Priority::Background),
            (rechunked, "GET", "/rechunk/m/8/raw/a/zarr.json", "", Priority::Metadata),
            (pyramid, "GET", "/pyramid/m/auto/8/raw/a/1/c/0", "", Priority::Background),
            (pyramid, "GET", "/pyramid/m/auto/8/raw/a/zarr.json", "", Priority::Metadata),
            (key, "PROPFIND", "/store/m/a/", "0", Priority::Metadata),
            (key, "PROPFIND", "/store/m/a/", "1", Priority::Background),
            (key, "PROPFIND", "/store/m/a/", "", Priority::Background),
            (key, "MOVE", "/store/m/a", "", Priority::Background),
        ] {
            let mut headers = HeaderMap::new();
            if !depth.is_empty() {
                headers.insert("depth", depth.parse().unwrap());
            }
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let found =
                Priority::of_stored(&RouteSpec::new("", resource), &method, &url.parse().unwrap(), &headers);
            assert_eq!(found, class, "{method} {url}");
        }
    }

    #[test]
    fn places_and_reserves_of_priorities_follow_their_order() {
        assert!(Priority::ALL.iter().enumerate().all(|(place, class)| class.place() == place));
        assert!(Priority::ALL.is_sorted() && Priority::ALL.is_sorted_by_key(|class| class.reserve()));
    }
}
