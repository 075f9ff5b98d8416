//! Consolidated metadata in place of a stored document: `.zmetadata` of a v2 group, `zarr.json` of a v3 group.
//!
//! With `?consolidated` it is made anew, since what is stored may be stale. A mount can have it made for every group
//! that has none. Otherwise documents are what is stored, byte for byte.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Query;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{Consolidated, Hierarchy, HierarchyError, NoRoom, Room};
use crate::http::admission::{Class, Entrant, Permit, Share};
use crate::http::dependents::is_yes;
use crate::http::json_answer::text_answer;
use crate::http::problem::Problem;
use crate::http::state::{AppState, Mount};
use crate::key::{NodePath, StoreKey};

/// Whether consolidated metadata is asked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct ConsolidatedQuery {
    /// Of `.zmetadata` or a group's `zarr.json`: make consolidated metadata of the documents below. No value is needed;
    /// `false` and `0` mean the stored document, whatever the mount's setting.
    consolidated: Option<String>,
    /// With `consolidated`, in views: name the arrays that others declare, too. Strict clients refuse arrays with nodes
    /// below them. No value is needed; `false` and `0` mean no.
    #[serde(rename = "virtual")]
    with_declared: Option<String>,
}

/// The document of a group that may hold copies of those below it.
#[derive(Clone, Copy)]
enum Document {
    /// v2: `.zmetadata`.
    Zmetadata,
    /// v3: `zarr.json`.
    ZarrJson,
}

/// The answer for a key of a mount with these nodes, or of a view of it, whose value is to be made; `None` if the stored
/// value is the answer.
pub(super) async fn answer<'a>(
    state: &AppState,
    (mount, nodes, is_view): (&Mount, impl FnOnce() -> Option<&'a Hierarchy>, bool),
    key: &StoreKey,
    head: &Parts,
) -> Result<Option<Response>, Problem> {
    let document = match key.name() {
        ".zmetadata" => Document::Zmetadata,
        "zarr.json" => Document::ZarrJson,
        _ => return Ok(None),
    };
    Box::pin(made(state, (mount, nodes(), is_view), key, document, head)).await
}

async fn made(
    state: &AppState,
    (mount, nodes, is_view): (&Mount, Option<&Hierarchy>, bool),
    key: &StoreKey,
    document: Document,
    head: &Parts,
) -> Result<Option<Response>, Problem> {
    let (uri, headers, share) = (&head.uri, &head.headers, Share::of(&head.extensions));
    let Query(query) = Query::<ConsolidatedQuery>::try_from_uri(uri)
        .map_err(|rejection| Problem::of_class(ErrorClass::InvalidRequest).detail(rejection.body_text()))?;
    let asked = query.consolidated.as_deref().map(is_yes);
    let below_arrays = is_view && query.with_declared.as_deref().is_some_and(is_yes);
    let Some(hierarchy) = nodes.filter(|_| asked.unwrap_or(mount.consolidated)) else {
        return Ok(None);
    };
    let asked = asked.is_some();
    if !asked && matches!(document, Document::Zmetadata) && mount.store.head(key).await?.is_some() {
        return Ok(None);
    }
    let path = NodePath::parse(key.parent().as_str())?;
    let permit = state.admission().extra(Entrant::of(Class::Bulk, share));
    let room = Arc::new(PermitRoom(Mutex::new(permit)));
    let Consolidated { text, version } =
        match make(hierarchy, document, &path, (asked, below_arrays), room).await {
            Ok(Some(made)) => made,
            Ok(None) => return Ok(None),
            // Who asked for a stored document gets that one, and can open the nodes one by one.
            Err(error) if !asked && is_about_the_nodes(&error) => {
                tracing::warn!(mount = mount.name, %key, %error, "consolidated metadata cannot be made");
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
    Ok(Some(text_answer(headers, [text], version)))
}

/// Room that a permit gives.
#[derive(Debug)]
struct PermitRoom(Mutex<Permit>);

impl Room for PermitRoom {
    fn hold(&self, bytes: u64) -> Result<(), NoRoom> {
        // No code panics while it holds the lock.
        let resized = self.0.lock().unwrap_or_else(PoisonError::into_inner).resize(bytes);
        resized.map_err(|problem| NoRoom { is_for_now: problem.status() == StatusCode::SERVICE_UNAVAILABLE })
    }
}

async fn make(
    hierarchy: &Hierarchy,
    document: Document,
    path: &NodePath,
    (anew, below_arrays): (bool, bool),
    room: Arc<dyn Room>,
) -> Result<Option<Consolidated>, HierarchyError> {
    match document {
        Document::Zmetadata => hierarchy.make_zmetadata(path, room).await,
        Document::ZarrJson => hierarchy.make_inline(path, anew, below_arrays, room).await,
    }
}

/// Whether asking again would fail again, because of what the hierarchy is.
fn is_about_the_nodes(error: &HierarchyError) -> bool {
    matches!(error.class(), ErrorClass::TooLarge | ErrorClass::Unsupported | ErrorClass::InvalidMetadata)
}
