//! Consolidated metadata in place of a stored document: `.zmetadata` of a v2 group, `zarr.json` of a v3 group.
//!
//! With `?consolidated` it is made anew, since what is stored may be stale. A mount can have it made for every group
//! that has none. Otherwise documents are what is stored, byte for byte.
//!
//! It names all nodes below the group, so it is for those who may list them and read their documents. Who may not and asks
//! for it is refused; where the mount has it made unasked, such a caller gets what is stored.

use std::sync::Arc;

use axum::extract::Query;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{Consolidated, Hierarchy, HierarchyError};
use crate::http::access::{KeyScope, Permission, Scope};
use crate::http::caller::Caller;
use crate::http::dependents::is_yes;
use crate::http::json_answer::text_answer;
use crate::http::problem::Problem;
use crate::http::room::PermitBudget;
use crate::http::state::{AppState, Mount};
use crate::key::{NodePath, StoreKey};
use crate::store::MemoryBudget;

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

impl Document {
    fn of(key: &StoreKey) -> Option<Self> {
        match key.name() {
            ".zmetadata" => Some(Self::Zmetadata),
            "zarr.json" => Some(Self::ZarrJson),
            _ => None,
        }
    }
}

/// Who wants consolidated metadata in place of a stored document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum WantedBy {
    /// Whoever asks.
    Request,
    /// The mount, unless whoever asks says otherwise.
    Mount,
}

/// Who wants it of a key of a mount that has it made or not; `None` if nobody does.
///
/// # Errors
/// 400 if the query cannot be understood.
pub(in crate::http) fn wanted(is_made: bool, key: &StoreKey, uri: &Uri) -> Result<Option<WantedBy>, Problem> {
    if Document::of(key).is_none() {
        return Ok(None);
    }
    Ok(match query(uri)?.consolidated.as_deref().map(is_yes) {
        Some(true) => Some(WantedBy::Request),
        None if is_made => Some(WantedBy::Mount),
        Some(false) | None => None,
    })
}

/// What must be granted to whoever is given it of a key; `is_derived` as in [`Permission`].
pub(in crate::http) fn needs(key: &StoreKey, is_derived: bool) -> [Permission; 2] {
    let reach = KeyScope::Prefix(key.parent());
    [Scope::Read, Scope::List].map(|scope| Permission { scope, reach: reach.clone(), is_derived })
}

fn query(uri: &Uri) -> Result<ConsolidatedQuery, Problem> {
    let Query(query) = Query::try_from_uri(uri).map_err(|rejection| Problem::from_query_error(&rejection))?;
    Ok(query)
}

/// The answer for a key of a mount with these nodes, or of a view of it, whose value is to be made; `None` if the stored
/// value is the answer.
pub(super) async fn answer<'a>(
    state: &AppState,
    (mount, nodes, is_view): (&Mount, impl FnOnce() -> Option<&'a Hierarchy>, bool),
    key: &StoreKey,
    head: &Parts,
) -> Result<Option<Response>, Problem> {
    let Some(document) = Document::of(key) else { return Ok(None) };
    Box::pin(made(state, (mount, nodes(), is_view), key, document, head)).await
}

async fn made(
    state: &AppState,
    (mount, nodes, is_view): (&Mount, Option<&Hierarchy>, bool),
    key: &StoreKey,
    document: Document,
    head: &Parts,
) -> Result<Option<Response>, Problem> {
    let wanted = wanted(mount.consolidated, key, &head.uri)?;
    let (Some(wanted), Some(hierarchy)) = (wanted, nodes) else { return Ok(None) };
    let below_arrays = is_view && query(&head.uri)?.with_declared.as_deref().is_some_and(is_yes);
    let asked = wanted == WantedBy::Request;
    let rights = Caller::of(&head.extensions).rights();
    // Who asked for it and may not was refused before.
    if !asked && !needs(key, is_view).iter().all(|need| rights.allows(&mount.name, need)) {
        return Ok(None);
    }
    if !asked && matches!(document, Document::Zmetadata) && mount.store.head(key).await?.is_some() {
        return Ok(None);
    }
    let path = NodePath::parse(key.parent().as_str())?;
    let room = PermitBudget::of(state, &head.extensions);
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
    Ok(Some(text_answer(&head.headers, [text], version)))
}

async fn make(
    hierarchy: &Hierarchy,
    document: Document,
    path: &NodePath,
    (anew, below_arrays): (bool, bool),
    room: Arc<dyn MemoryBudget>,
) -> Result<Option<Consolidated>, HierarchyError> {
    match document {
        Document::Zmetadata => hierarchy.build_zmetadata(path, room).await,
        Document::ZarrJson => hierarchy.build_inline(path, anew, below_arrays, room).await,
    }
}

/// Whether asking again would fail again, because of what the hierarchy is.
fn is_about_the_nodes(error: &HierarchyError) -> bool {
    matches!(error.class(), ErrorClass::TooLarge | ErrorClass::Unsupported | ErrorClass::InvalidMetadata)
}
