//! Extractors: the mount, and the key, prefix or node in it, that a request names.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, Method, StatusCode, Uri};

use super::mount::Mount;
use super::mounts::Mounts;
use super::permit_budget::PermitBudget;
use super::pinned::PinnedMounts;
use super::state::AppState;
use super::views;
use crate::admission::Admission;
use crate::array::NodeOpener;
use crate::error::ErrorClass;
use crate::hierarchy::Hierarchy;
use crate::http::path::{KeyOrPrefix, PathError, check_written_path, segments};
use crate::http::problem::Problem;
use crate::http::route::RouteSpec;
use crate::http::target::{Target, resolve_destination, root_path};
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::store::SharedStore;
use crate::views::ViewKind;
use crate::views::pyramid::PyramidSpec;
use crate::views::rechunk::RechunkSpec;

/// A request extension: the mount that is served at the root path.
#[derive(Clone, Debug)]
pub(crate) struct RootMount(pub(crate) Arc<Mount>);

fn mount_of(mounts: &Mounts, view: Option<ViewKind>, name: &str) -> Result<Arc<Mount>, Problem> {
    let mount = match view {
        None => mounts.get(name),
        Some(kind) => mounts.viewed(kind, name).map(|viewed| &viewed.mount),
    };
    mount.map(Arc::clone).ok_or_else(unknown_mount)
}

fn unknown_mount() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown-mount")
        .detail("there is no mount of this name; `/v1/mounts` lists those there are")
}

/// The first segments of the path of a request, as they were sent.
fn base_of(uri: &Uri, count: usize) -> String {
    segments(uri.path()).take(count).flat_map(|segment| ["/", segment]).collect()
}

/// The problem for a route whose path names something other than its handler extracts.
fn wrong_route() -> Problem {
    Problem::from_class(ErrorClass::Internal)
}

/// The hierarchy of a mount that is shown by a recipe in the path: rechunked, or as pyramids.
#[derive(Debug)]
struct DerivedTarget {
    /// The path of its root, as it was requested, without a final slash.
    base: String,
    hierarchy: Hierarchy,
}

/// The mount and the key or prefix of a request to the store routes, those of views, and those with a recipe.
#[derive(Clone, Debug)]
pub(crate) struct StoreTarget {
    /// The mount.
    pub(crate) mount: Arc<Mount>,
    /// The view of the mount's store; `None` for the store itself.
    pub(crate) view: Option<ViewKind>,
    /// The key or prefix.
    pub(crate) place: KeyOrPrefix,
    /// The hierarchy under the recipe, if the request has one.
    derived: Option<Arc<DerivedTarget>>,
    /// Whether the mount is served at the root path.
    at_root: bool,
    /// The mount at the snapshot that the request sees, if it has versions.
    pinned: Option<PinnedMounts>,
}

impl StoreTarget {
    /// Resolves the target of a request to a route; `root` is the mount that is served at the root path.
    ///
    /// # Errors
    /// 400 if the path is invalid, 404 if the mount does not exist.
    pub(crate) fn new(
        mounts: &Mounts,
        spec: &RouteSpec,
        uri: &Uri,
        extensions: &Extensions,
        root: Option<&Arc<Mount>>,
    ) -> Result<Self, Problem> {
        let target = Target::of_request(spec.resource, uri, root.is_some(), extensions)?;
        let pinned: Option<&PinnedMounts> = extensions.get();
        let mounts = PinnedMounts::of(extensions, mounts);
        let stored = |mount, view, place| Self {
            mount,
            view,
            place,
            derived: None,
            at_root: root.is_some(),
            pinned: pinned.cloned(),
        };
        match (&*target, root) {
            (Target::Root(place), Some(mount)) => {
                let mount = pinned.and_then(|_| mounts.get(&mount.name)).unwrap_or(mount);
                Ok(stored(Arc::clone(mount), None, place.clone()))
            }
            (Target::Stored { mount, view, place }, _) => {
                Ok(stored(mount_of(mounts, *view, mount)?, *view, place.clone()))
            }
            (Target::Bucket { mount }, _) => {
                let place = KeyOrPrefix::Prefix(StorePrefix::root());
                Ok(stored(mount_of(mounts, None, mount)?, None, place))
            }
            (Target::Rechunked { mount, spec: (chunks, codec, data_type), place }, _) => {
                let spec = RechunkSpec::parse(chunks, codec, data_type.as_deref());
                let (mount, rechunker) =
                    mounts.get(mount).zip(mounts.rechunker(mount)).ok_or_else(unknown_mount)?;
                let store = rechunker.store(spec.map_err(Problem::from)?);
                let hierarchy = store.hierarchy();
                let segments = 4 + usize::from(data_type.is_some());
                Ok(Self::derived(mount, Arc::new(store), hierarchy, base_of(uri, segments), place))
            }
            (Target::Pyramid { mount, spec: (method, chunks, codec, data_type), place }, _) => {
                let spec = PyramidSpec::parse(method, chunks, codec, data_type.as_deref());
                let (mount, pyramids) =
                    mounts.get(mount).zip(mounts.pyramids(mount)).ok_or_else(unknown_mount)?;
                let store = pyramids.store(spec.map_err(Problem::from)?);
                let hierarchy = store.hierarchy();
                let segments = 5 + usize::from(data_type.is_some());
                Ok(Self::derived(mount, Arc::new(store), hierarchy, base_of(uri, segments), place))
            }
            _ => Err(wrong_route()),
        }
    }

    /// The target in a hierarchy that is derived by a recipe, whose root is at the path `base`.
    fn derived(
        mount: &Mount,
        store: SharedStore,
        hierarchy: Hierarchy,
        base: String,
        place: &KeyOrPrefix,
    ) -> Self {
        let mount = Arc::new(views::shown_as(mount, store));
        let derived = Some(Arc::new(DerivedTarget { base, hierarchy }));
        Self { mount, view: None, place: place.clone(), derived, at_root: false, pinned: None }
    }

    /// The hierarchy of the store or view.
    pub(crate) fn hierarchy<'a>(&'a self, mounts: &'a Mounts) -> Option<&'a Hierarchy> {
        if let Some(derived) = &self.derived {
            return Some(&derived.hierarchy);
        }
        let mounts = self.pinned.as_ref().map_or(mounts, |pinned| &pinned.mounts);
        mounts.hierarchy(self.view, &self.mount.name)
    }

    /// Whether the target is a view, not the mount's store.
    pub(crate) fn is_view(&self) -> bool {
        self.view.is_some() || self.derived.is_some()
    }

    /// Whether there is a page for what is here: not for views, and not for a mount that is served at the root path.
    pub(crate) fn has_page(&self) -> bool {
        !self.is_view() && !self.at_root
    }

    /// Whether the response may be derived from a large number of documents.
    pub(crate) fn is_made_of_many(&self) -> bool {
        let consolidates = |key: &StoreKey| matches!(key.name(), "zarr.json" | ".zmetadata");
        self.derived.is_some() && matches!(&self.place, KeyOrPrefix::Key(key) if consolidates(key))
    }

    /// The same target, with a view that charges the memory it holds to the budget of the request with these
    /// extensions. Ask for it before anything is listed.
    pub(crate) fn charged_to_request(&self, admission: &Admission, extensions: &Extensions) -> Cow<'_, Self> {
        let charged = || self.mount.store.with_budget(&PermitBudget::of(admission, extensions));
        match self.is_view().then(charged).flatten() {
            None => Cow::Borrowed(self),
            Some(store) => {
                let mount = Arc::new(Mount { store, ..Mount::clone(&self.mount) });
                Cow::Owned(Self { mount, ..self.clone() })
            }
        }
    }

    /// The path of the mount's root, without a final slash.
    pub(crate) fn base(&self) -> String {
        match &self.derived {
            Some(derived) => derived.base.clone(),
            None if self.at_root => String::new(),
            None => root_path(self.view, &self.mount.name),
        }
    }

    /// The key or prefix that another raw path of the same server names; `None` if it is in another mount or cannot be
    /// written to.
    ///
    /// # Errors
    /// [`PathError`] if the path is invalid.
    pub(crate) fn resolve_destination(&self, raw_path: &str) -> Result<Option<KeyOrPrefix>, PathError> {
        if self.at_root {
            return KeyOrPrefix::at_root(raw_path).map(Some);
        }
        if self.derived.is_some() {
            return Ok(None);
        }
        resolve_destination(self.view, &self.mount.name, raw_path)
    }

    /// The methods offered for the target.
    pub(crate) fn methods(&self) -> &'static str {
        match self.place {
            KeyOrPrefix::Key(_) => self.mount.key_methods(),
            KeyOrPrefix::Prefix(_) => self.mount.prefix_methods(),
        }
    }
}

/// The route of a request, from the extension that the middleware inserted.
fn route(extensions: &Extensions) -> Result<&'static RouteSpec, Problem> {
    extensions.get::<&'static RouteSpec>().copied().ok_or_else(wrong_route)
}

impl FromRequestParts<AppState> for StoreTarget {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let root = parts.extensions.get().map(|RootMount(mount)| mount);
        Self::new(&state.mounts, route(&parts.extensions)?, &parts.uri, &parts.extensions, root)
    }
}

/// The mount and the node of a request to a route `/v1/{word}/{mount}/{path}`.
#[derive(Clone, Debug)]
pub(crate) struct NodeTarget {
    /// The mount.
    pub(crate) mount: Arc<Mount>,
    /// The opener of the mount's nodes.
    pub(crate) opener: NodeOpener,
    /// The node.
    pub(crate) path: NodePath,
}

impl NodeTarget {
    /// Resolves the target of a request to a route.
    ///
    /// # Errors
    /// 400 if the path is invalid, 404 if the mount does not exist.
    pub(crate) fn new(
        mounts: &Mounts,
        spec: &RouteSpec,
        uri: &Uri,
        extensions: &Extensions,
    ) -> Result<Self, Problem> {
        let target = Target::of_request(spec.resource, uri, false, extensions)?;
        let Target::Node { mount, path, .. } = &*target else { return Err(wrong_route()) };
        let mounts = PinnedMounts::of(extensions, mounts);
        let (mount, opener) = mounts.with_opener(mount).ok_or_else(unknown_mount)?.clone();
        Ok(Self { mount, opener, path: path.clone() })
    }

    /// As [`NodeTarget::new`], for a request that writes.
    ///
    /// # Errors
    /// As [`NodeTarget::new`]; 400 also if the path has an escaped slash.
    pub(crate) fn to_write(mounts: &Mounts, spec: &RouteSpec, request: &Request) -> Result<Self, Problem> {
        check_written(request.uri())?;
        Self::new(mounts, spec, request.uri(), request.extensions())
    }
}

fn check_written(uri: &Uri) -> Result<(), Problem> {
    check_written_path(uri.path()).map_err(|error| Problem::from(error).extension("written", false))
}

impl FromRequestParts<AppState> for NodeTarget {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        if matches!(parts.method, Method::PUT | Method::PATCH | Method::DELETE) {
            check_written(&parts.uri)?;
        }
        Self::new(&state.mounts, route(&parts.extensions)?, &parts.uri, &parts.extensions)
    }
}
