//! [`Priority`]: what kind of work a request is, which decides who goes first when there is not room for all.
//!
//! It is read off the route, the method and the URL alone, before anything is opened. Health and the description of the
//! server itself have no class: they never wait.

use axum::http::{HeaderMap, Method, Uri};

use crate::http::route::{Resource, RouteSpec};

/// The kinds of work, from the first to be let in to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Priority {
    /// Documents, nodes, and looks at values: small, and nothing can be read without them.
    Metadata,
    /// Stored bytes.
    StoredBytes,
    /// Decoded elements.
    Elements,
    /// Listings, many keys at once, and chunks that are encoded anew.
    Background,
}

impl Priority {
    /// All of them, the first to be let in first.
    pub(crate) const ALL: [Self; 4] = [Self::Metadata, Self::StoredBytes, Self::Elements, Self::Background];

    /// A stable word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::StoredBytes => "values",
            Self::Elements => "elements",
            Self::Background => "bulk",
        }
    }

    /// Its place in [`Priority::ALL`].
    pub(super) const fn place(self) -> usize {
        self as usize
    }

    /// The sixteenths of the budget that are kept free of it, for the classes before.
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
            "GET" if spec.resource == Resource::Node || is_document(path) => Self::Metadata,
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
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(name, "zarr.json" | ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata")
}

/// Whether keys are listed, or chunks are encoded, whatever the path. Other paths are listed, or erased below, where they
/// end in a slash.
fn is_costly(resource: Resource) -> bool {
    matches!(resource, Resource::Rechunked | Resource::Bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_a_request_is_read_off_its_head() {
        let [key, node, view, rechunked, bucket] =
            [Resource::Stored, Resource::Node, Resource::View, Resource::Rechunked, Resource::Bucket];
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
    fn each_class_stands_in_its_own_place() {
        assert!(Priority::ALL.iter().enumerate().all(|(place, class)| class.place() == place));
        assert!(Priority::ALL.is_sorted() && Priority::ALL.is_sorted_by_key(|class| class.reserve()));
    }
}
