//! [`Target`]: what a request's URL names, by the resource of its route.
//!
//! A path is parsed here and nowhere else. Where credentials are configured, authorization parses it first and leaves the
//! target in the request's extensions, where extractors find it; rights and handlers so see the same target.

use std::borrow::Cow;

use axum::http::{Extensions, Uri};

use super::chunk_path::split_chunk;
use super::path::{KeyOrPrefix, PathError, encode, node_of, place_of, prefix_of, rechunked_place, segments};
use super::route::Resource;
use super::vectors_path;
use crate::key::NodePath;
use crate::views::ViewKind;

/// What a URL names.
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
        /// How it is rechunked, as it is written: chunk shape, codec and perhaps data type.
        spec: (Cow<'a, str>, Cow<'a, str>, Option<Cow<'a, str>>),
        /// The key or prefix.
        place: KeyOrPrefix,
    },
    /// A mount, whose keys the query selects.
    Bucket {
        /// The mount's name.
        mount: Cow<'a, str>,
    },
    /// A node of a mount, or all keys below one.
    Node {
        /// The mount's name.
        mount: Cow<'a, str>,
        /// The path: of the node, or of what is asked of it.
        path: NodePath,
        /// The node that a caller must be allowed to read: of a chunk its array, of a subresource the shortest path that may
        /// be its store's.
        node: NodePath,
    },
}

impl Target<'_> {
    /// What a URL names; `at_root` where a mount is served at the root path.
    ///
    /// # Errors
    /// 400 if the path or query names nothing.
    pub(crate) fn parse(resource: Resource, uri: &Uri, at_root: bool) -> Result<Target<'_>, PathError> {
        let raw_path = uri.path();
        Ok(match resource {
            Resource::Public | Resource::Mounts => Target::Server,
            Resource::Stored if at_root => Target::Root(KeyOrPrefix::at_root(raw_path)?),
            Resource::Stored | Resource::View => {
                let view = segments(raw_path).next().filter(|_| resource == Resource::View);
                let (mount, place) = place_of(raw_path)?;
                Target::Stored { mount, view: view.and_then(ViewKind::from_name), place }
            }
            Resource::Rechunked => {
                let (mount, [chunks, codec], data_type, place) = rechunked_place(raw_path)?;
                Target::Rechunked { mount, spec: (chunks, codec, data_type), place }
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
            Resource::Keys | Resource::Cache => {
                let (mount, path) = prefix_of(raw_path)?;
                Target::Node { mount, node: path.clone(), path }
            }
        })
    }

    /// The target of a request: what authorization left, or what the URL names.
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

    /// The same without a borrow of the URL.
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
            | Target::Bucket { mount }
            | Target::Node { mount, .. } => Some(mount),
        }
    }

    /// The key or prefix that the URL names, if it names one.
    pub(crate) fn place(&self) -> Option<&KeyOrPrefix> {
        match self {
            Target::Root(place) | Target::Stored { place, .. } | Target::Rechunked { place, .. } => {
                Some(place)
            }
            Target::Server | Target::Bucket { .. } | Target::Node { .. } => None,
        }
    }

    /// What another raw path of the same server names; `None` if that is in another mount, or cannot be written to.
    ///
    /// # Errors
    /// [`PathError`] if the path names nothing.
    pub(crate) fn resolve_destination(&self, raw_path: &str) -> Result<Option<KeyOrPrefix>, PathError> {
        match self {
            Target::Root(_) => KeyOrPrefix::at_root(raw_path).map(Some),
            Target::Stored { mount, view, .. } => resolve_destination(*view, mount, raw_path),
            Target::Server | Target::Rechunked { .. } | Target::Bucket { .. } | Target::Node { .. } => {
                Ok(None)
            }
        }
    }
}

/// What another raw path of the same server names in a mount's store or a view of it; `None` if it is in another mount or view.
///
/// # Errors
/// [`PathError`] if the path names nothing.
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

/// The path of the root of a mount's store or of a view of it, without a slash at its end.
pub(crate) fn root_path(view: Option<ViewKind>, mount: &str) -> String {
    format!("/{}/{}", first_segment(view), encode(mount))
}
