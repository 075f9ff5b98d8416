//! [`Target`]: the resource that the URL of a request names, according to its route.
//!
//! Only this module parses paths into targets. If credentials are configured, authorization parses the path first and puts
//! the target into the request extensions for the extractors. Access control and handlers therefore see the same target.

use std::borrow::Cow;

use axum::http::{Extensions, Uri};

use super::chunk_path::split_chunk;
use super::dap_path::dap_of;
use super::path::{
    KeyOrPrefix, PathError, encode, node_of, node_of_page, place_of, prefix_of, pyramid_place,
    rechunked_place, segments, tile_of,
};
use super::route::Resource;
use super::vectors_path;
use crate::key::NodePath;
use crate::views::ViewKind;

/// The resource that a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// The server, or its mounts.
    Server,
    /// A key or prefix of the mount that is served at the root path.
    Root(KeyOrPrefix),
    /// A key or prefix of a mount, or of a view of it.
    Stored {
        /// The mount's name.
        mount: Cow<'a, str>,
        /// The view; `None` for the mount's store.
        view: Option<ViewKind>,
        /// The key or prefix.
        place: KeyOrPrefix,
    },
    /// A key or prefix of a rechunked mount.
    Rechunked {
        /// The mount's name.
        mount: Cow<'a, str>,
        /// The recipe as texts: chunk shape, codec and optional data type.
        spec: (Cow<'a, str>, Cow<'a, str>, Option<Cow<'a, str>>),
        /// The key or prefix.
        place: KeyOrPrefix,
    },
    /// A key or prefix of a mount as pyramids.
    Pyramid {
        /// The mount's name.
        mount: Cow<'a, str>,
        /// How they are built, as texts: method, chunk shape, codec and optional data type.
        spec: (Cow<'a, str>, Cow<'a, str>, Cow<'a, str>, Option<Cow<'a, str>>),
        /// The key or prefix.
        place: KeyOrPrefix,
    },
    /// A mount as an S3 bucket; the query selects its keys.
    Bucket {
        /// The mount's name.
        mount: Cow<'a, str>,
    },
    /// A node of a mount, or all keys below one.
    Node {
        /// The mount's name.
        mount: Cow<'a, str>,
        /// The path of the node or of its subresource.
        path: NodePath,
        /// The node that the caller must be allowed to read: for a chunk its array, for a subresource of a vector store the
        /// shortest path that can be the store.
        node: NodePath,
    },
}

impl Target<'_> {
    /// Parses a URL; `at_root` is true where a mount is served at the root path.
    ///
    /// # Errors
    /// 400 if the path is invalid.
    pub(crate) fn parse(resource: Resource, uri: &Uri, at_root: bool) -> Result<Target<'_>, PathError> {
        let raw_path = uri.path();
        Ok(match resource {
            Resource::Public | Resource::Mounts => Target::Server,
            Resource::Stored if at_root => Target::Root(KeyOrPrefix::at_root(raw_path)?),
            Resource::Stored | Resource::Object | Resource::View => {
                let view = || segments(raw_path).next().and_then(ViewKind::from_name);
                let (mount, place) = place_of(raw_path)?;
                Target::Stored { mount, view: (resource == Resource::View).then(view).flatten(), place }
            }
            Resource::Rechunked => {
                let (mount, [chunks, codec], data_type, place) = rechunked_place(raw_path)?;
                Target::Rechunked { mount, spec: (chunks, codec, data_type), place }
            }
            Resource::Pyramid => {
                let (mount, [method, chunks, codec], data_type, place) = pyramid_place(raw_path)?;
                Target::Pyramid { mount, spec: (method, chunks, codec, data_type), place }
            }
            Resource::Bucket => {
                let (mount, _) = place_of(raw_path)?;
                Target::Bucket { mount }
            }
            Resource::Node | Resource::Chunk | Resource::Vectors => {
                let (mount, path) = node_of(raw_path)?;
                let node = match resource {
                    Resource::Chunk => split_chunk(&path).map(|(node, _)| node),
                    Resource::Vectors => Some(vectors_path::shortest_store(&path)),
                    _ => None,
                };
                Target::Node { node: node.unwrap_or_else(|| path.clone()), mount, path }
            }
            Resource::Tile => {
                let (mount, _, path) = tile_of(raw_path)?;
                Target::Node { mount, node: path.clone(), path }
            }
            Resource::Page => {
                let (mount, path) = node_of_page(raw_path)?;
                Target::Node { mount, node: path.clone(), path }
            }
            Resource::Dap => {
                let (mount, path) = dap_of(raw_path)?;
                Target::Node { mount, node: path.clone(), path }
            }
            Resource::Keys | Resource::Nodes | Resource::Cache => {
                let (mount, path) = prefix_of(raw_path)?;
                Target::Node { mount, node: path.clone(), path }
            }
        })
    }

    /// The target of a request: the one that authorization put into the extensions, else parsed from the URL.
    ///
    /// # Errors
    /// As for [`Target::parse`].
    pub(crate) fn of_request<'r>(
        resource: Resource,
        uri: &'r Uri,
        at_root: bool,
        extensions: &'r Extensions,
    ) -> Result<Cow<'r, Target<'r>>, PathError> {
        match extensions.get::<Target<'static>>() {
            Some(target) => Ok(Cow::Borrowed(target)),
            None => Target::parse(resource, uri, at_root).map(Cow::Owned),
        }
    }

    /// The same target without a borrow of the URL.
    pub(crate) fn into_owned(self) -> Target<'static> {
        fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        match self {
            Target::Server => Target::Server,
            Target::Root(place) => Target::Root(place),
            Target::Stored { mount, view, place } => Target::Stored { mount: owned(mount), view, place },
            Target::Rechunked { mount, spec: (chunks, codec, data_type), place } => Target::Rechunked {
                mount: owned(mount),
                spec: (owned(chunks), owned(codec), data_type.map(owned)),
                place,
            },
            Target::Pyramid { mount, spec: (method, chunks, codec, data_type), place } => Target::Pyramid {
                mount: owned(mount),
                spec: (owned(method), owned(chunks), owned(codec), data_type.map(owned)),
                place,
            },
            Target::Bucket { mount } => Target::Bucket { mount: owned(mount) },
            Target::Node { mount, path, node } => Target::Node { mount: owned(mount), path, node },
        }
    }

    /// The name of the mount that the URL names, if it names one.
    pub(crate) fn mount(&self) -> Option<&str> {
        match self {
            Target::Server | Target::Root(_) => None,
            Target::Stored { mount, .. }
            | Target::Rechunked { mount, .. }
            | Target::Pyramid { mount, .. }
            | Target::Bucket { mount }
            | Target::Node { mount, .. } => Some(mount),
        }
    }

    /// The key or prefix that the URL names, if it names one.
    pub(crate) fn place(&self) -> Option<&KeyOrPrefix> {
        match self {
            Target::Root(place)
            | Target::Stored { place, .. }
            | Target::Rechunked { place, .. }
            | Target::Pyramid { place, .. } => Some(place),
            Target::Server | Target::Bucket { .. } | Target::Node { .. } => None,
        }
    }

    /// The key or prefix of another raw path of the same server; `None` if it is in another mount or in a place that cannot
    /// be written.
    ///
    /// # Errors
    /// [`PathError`] if the path is invalid.
    pub(crate) fn resolve_destination(&self, raw_path: &str) -> Result<Option<KeyOrPrefix>, PathError> {
        match self {
            Target::Root(_) => KeyOrPrefix::at_root(raw_path).map(Some),
            Target::Stored { mount, view, .. } => resolve_destination(*view, mount, raw_path),
            Target::Server
            | Target::Rechunked { .. }
            | Target::Pyramid { .. }
            | Target::Bucket { .. }
            | Target::Node { .. } => Ok(None),
        }
    }
}

/// The key or prefix of another raw path of the same server; `None` if it is in another mount or view.
///
/// # Errors
/// [`PathError`] if the path is invalid.
pub(crate) fn resolve_destination(
    view: Option<ViewKind>,
    mount: &str,
    raw_path: &str,
) -> Result<Option<KeyOrPrefix>, PathError> {
    if segments(raw_path).next() != Some(first_segment(view)) {
        return Ok(None);
    }
    let (other, place) = place_of(raw_path)?;
    Ok((other == mount).then_some(place))
}

/// The first segment of the path of a mount's store, or of a view of it.
pub(crate) fn first_segment(view: Option<ViewKind>) -> &'static str {
    view.map_or("store", ViewKind::name)
}

/// The path of the root of a mount's store or of a view of it, without a trailing slash.
pub(crate) fn root_path(view: Option<ViewKind>, mount: &str) -> String {
    format!("/{}/{}", first_segment(view), encode(mount))
}
