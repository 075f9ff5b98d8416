//! [`SnapshotHeaders`]: which snapshot a response of a hierarchy with versions is of, and the URL that stays so.
//!
//! A request to a branch sees one snapshot: the branch is resolved before the handler, which gets the mount at that
//! snapshot. What a tag or a snapshot has never changes, so caches may keep it.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;

use crate::api::versions::VERSIONS;
use crate::error::ErrorClass;
use crate::http::base_path::BasePath;
use crate::http::path::{KeyOrPrefix, segments};
use crate::http::problem::Problem;
use crate::http::route::{Resource, RouteSpec};
use crate::http::target::Target;
use crate::services::mount::Mount;
use crate::services::pinned::{PinnedMounts, is_document, no_such_version};
use crate::services::state::AppState;
use crate::store::{ObjectId, PinnedVersion};

/// The snapshot that a response is of.
const ZARRD_SNAPSHOT: HeaderName = HeaderName::from_static("zarrd-snapshot");
/// For what never changes.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The headers of a response of one snapshot.
pub(super) struct SnapshotHeaders {
    /// `None` where the request may name versions outside of its path.
    snapshot: Option<ObjectId>,
    /// The URL at which this snapshot stays, if the request named a branch.
    location: Option<HeaderValue>,
    is_immutable: bool,
}

impl SnapshotHeaders {
    /// Resolves the version that a request names, and pins the mount of the request to it. `None` if the mount has no versions.
    ///
    /// # Errors
    /// The failure of the repository; [`AskedVersion::missing`]; [`AskedVersion::refuse_time`].
    pub(super) async fn pin(
        state: &AppState,
        spec: Option<&'static RouteSpec>,
        root: Option<&Arc<Mount>>,
        request: &mut Request,
    ) -> Result<Option<Self>, Problem> {
        let Some(asked) = AskedVersion::of(state, spec, root, request) else { return Ok(None) };
        asked.refuse_time(spec, request.uri())?;
        let Some(snapshot) = state.pins.resolve(&asked.mount, asked.version()).await? else {
            return asked.missing().map_or(Ok(None), Err);
        };
        if asked.version().is_fixed() {
            let is_immutable = asked.is_value && asked.mount.store.is_closed();
            let snapshot = is_named_by_path(spec).then_some(snapshot);
            return Ok(Some(Self { snapshot, location: None, is_immutable }));
        }
        let pinned = state.pins.mounts(&state.mounts, &asked.mount, asked.named.as_ref(), snapshot);
        let Some(pinned) = pinned else { return Ok(None) };
        let location = asked.location(request, snapshot);
        request.extensions_mut().insert::<PinnedMounts>(pinned);
        let snapshot = is_named_by_path(spec).then_some(snapshot);
        Ok(Some(Self { snapshot, location, is_immutable: false }))
    }

    /// Sets the headers.
    pub(super) fn put(self, method: &Method, answer: &mut Response) {
        if !answer.status().is_success() && answer.status() != StatusCode::NOT_MODIFIED {
            return;
        }
        let headers = answer.headers_mut();
        if let Some(id) = self.snapshot.and_then(|id| HeaderValue::try_from(id.to_string()).ok()) {
            headers.insert(ZARRD_SNAPSHOT, id);
        }
        let reads = matches!(*method, Method::GET | Method::HEAD);
        if let Some(location) = self.location.filter(|_| reads) {
            headers.insert(header::CONTENT_LOCATION, location);
        }
        if self.is_immutable && reads {
            headers.insert(header::CACHE_CONTROL, IMMUTABLE);
        }
    }
}

/// The version of a mount that a request is for.
struct AskedVersion {
    mount: Arc<Mount>,
    /// The version that the mount serves.
    served: PinnedVersion,
    /// The version that the path names.
    named: Option<PinnedVersion>,
    /// The key, prefix or path, with the version.
    place: String,
    /// Whether it is of one value or array.
    is_value: bool,
    /// Whether it is of a metadata document or a node, which are absent where there is no such version.
    is_document: bool,
    /// Whether the response is of the place alone.
    has_location: bool,
}

impl AskedVersion {
    /// `None` if the request is not for a mount with versions, or does not read its hierarchy.
    fn of(
        state: &AppState,
        spec: Option<&'static RouteSpec>,
        root: Option<&Arc<Mount>>,
        request: &Request,
    ) -> Option<Self> {
        let spec = spec?;
        let reads = matches!(request.method().as_str(), "GET" | "HEAD" | "POST" | "PROPFIND");
        if !reads {
            return None;
        }
        let target =
            Target::of_request(spec.resource, request.uri(), root.is_some(), request.extensions()).ok()?;
        let mount = Arc::clone(match target.mount() {
            Some(name) => state.mounts.get(name)?,
            None => root?,
        });
        let served = mount.store.served_version()?;
        let place = place_of(&target);
        let is_value = match (spec.resource, target.place()) {
            (Resource::Node, _) => spec.fast_path.is_some(),
            (Resource::Chunk | Resource::Cache, _) | (_, Some(KeyOrPrefix::Key(_))) => true,
            _ => false,
        };
        let is_document = match (spec.resource, target.place()) {
            (Resource::Node | Resource::Cache, _) => true,
            (_, Some(KeyOrPrefix::Key(key))) => is_document(key.name()),
            _ => false,
        };
        let has_place = matches!(
            spec.resource,
            Resource::Stored
                | Resource::Object
                | Resource::View
                | Resource::Rechunked
                | Resource::Pyramid
                | Resource::Node
                | Resource::Chunk
        );
        Some(Self {
            named: PinnedVersion::of_text(place),
            place: place.to_owned(),
            has_location: has_place && spec.template != VERSIONS.template,
            mount,
            served,
            is_value,
            is_document,
        })
    }

    /// Rejects `at=` with a time, which would be ignored: only the list of versions has such a parameter. Pages have one of this
    /// name for a place, of numbers, and appends for a length.
    fn refuse_time(&self, spec: Option<&'static RouteSpec>, uri: &Uri) -> Result<(), Problem> {
        if spec.is_some_and(|spec| spec.template == VERSIONS.template) {
            return Ok(());
        }
        let is_place = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        let mut pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        if pairs.all(|(name, value)| name != "at" || is_place(&value)) {
            return Ok(());
        }
        Err(Problem::from_class(ErrorClass::InvalidRequest).detail(format!(
            "`at`: this route has no parameter for a time: `/v1/versions/{}?at=…` redirects to the snapshot of that time, whose \
             `@ID` comes first in the paths of every route",
            self.mount.name
        )))
    }

    fn version(&self) -> &PinnedVersion {
        self.named.as_ref().unwrap_or(&self.served)
    }

    /// The problem of a version that the repository does not have. `None` where the handler knows the answer: for prefixes,
    /// and for the version that the mount serves.
    fn missing(&self) -> Option<Problem> {
        let named = self.named.as_ref().filter(|_| self.is_value || self.is_document)?;
        Some(no_such_version(&self.mount, named, self.is_document))
    }

    /// The URL of a request with a snapshot before its place, instead of the branch if it names one.
    fn location(&self, request: &Request, snapshot: ObjectId) -> Option<HeaderValue> {
        let uri = request.uri();
        // The segments of such a path are not those of the place.
        let has_escaped_slash = uri.path().to_ascii_lowercase().contains("%2f");
        if !self.has_location || has_escaped_slash {
            return None;
        }
        let count = self.place.split('/').filter(|segment| !segment.is_empty()).count();
        let all: Vec<&str> = segments(uri.path()).filter(|segment| !segment.is_empty()).collect();
        let (before, after) = all.split_at_checked(all.len().checked_sub(count)?)?;
        let after = after.get(usize::from(self.named.is_some())..)?;
        let mut text = BasePath::of(request.extensions()).as_str().to_owned();
        let pin = format!("@{snapshot}");
        for segment in before.iter().chain([&&*pin]).chain(after) {
            text.push('/');
            text.push_str(segment);
        }
        if uri.path().ends_with('/') {
            text.push('/');
        }
        if let Some(query) = uri.query() {
            text.push('?');
            text.push_str(query);
        }
        HeaderValue::try_from(text).ok()
    }
}

/// Whether the path alone says of which version a response is. In listings of `/s3` the query may name one, and in requests for
/// several keys or nodes the body.
fn is_named_by_path(spec: Option<&'static RouteSpec>) -> bool {
    !spec.is_some_and(|spec| matches!(spec.resource, Resource::Bucket | Resource::Keys | Resource::Nodes))
}

/// The key, prefix or path that a target names, as text.
fn place_of<'a>(target: &'a Target<'_>) -> &'a str {
    match target {
        Target::Node { path, .. } => path.as_str(),
        _ => match target.place() {
            Some(KeyOrPrefix::Key(key)) => key.as_str(),
            Some(KeyOrPrefix::Prefix(prefix)) => prefix.as_str(),
            None => "",
        },
    }
}
