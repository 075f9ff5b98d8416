//! Generated consolidated metadata in place of a stored document: `.zmetadata` of a v2 group, `zarr.json` of a v3 group.
//!
//! With `?consolidated` it is generated even if consolidated metadata is stored, since that may be stale. A mount can be
//! configured to generate it for every group that has none. Otherwise documents are the stored bytes.
//!
//! Consolidated metadata names all nodes below the group, so a caller needs the rights to list them and to read their
//! documents. A request for it without these rights is rejected. Where the configuration of the mount asks for it, a
//! caller without these rights gets the stored document.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::response::Response;

use crate::admission::Admission;
use crate::api::json_response::text_answer;
use crate::auth::caller::Caller;
use crate::auth::consolidated_permissions;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{Consolidated, Hierarchy, HierarchyError};
use crate::http::consolidated_query::{Document, WantedBy, query, wanted};
use crate::http::problem::Problem;
use crate::http::switch::is_on;
use crate::key::{NodePath, StoreKey};
use crate::services::mount::Mount;
use crate::services::permit_budget::PermitBudget;
use crate::store::MemoryBudget;

/// The response for a key whose value is generated, in a mount with this hierarchy or in a view of it; `None` if the
/// stored value is to be sent.
pub(crate) async fn answer<'a>(
    admission: &Admission,
    (mount, nodes, is_view): (&Mount, impl FnOnce() -> Option<&'a Hierarchy>, bool),
    key: &StoreKey,
    head: &Parts,
) -> Result<Option<Response>, Problem> {
    let Some(document) = Document::of(key) else { return Ok(None) };
    Box::pin(made(admission, (mount, nodes(), is_view), key, document, head)).await
}

async fn made(
    admission: &Admission,
    (mount, nodes, is_view): (&Mount, Option<&Hierarchy>, bool),
    key: &StoreKey,
    document: Document,
    head: &Parts,
) -> Result<Option<Response>, Problem> {
    let wanted = wanted(mount.consolidated, key, &head.uri)?;
    let (Some(wanted), Some(hierarchy)) = (wanted, nodes) else { return Ok(None) };
    let below_arrays = is_view && query(&head.uri)?.with_declared.as_deref().is_some_and(is_on);
    let asked = wanted == WantedBy::Request;
    let rights = Caller::of(&head.extensions).rights();
    // An explicit request without the rights was rejected before.
    if !asked && !consolidated_permissions(key, is_view).iter().all(|need| rights.allows(&mount.name, need)) {
        return Ok(None);
    }
    if !asked && matches!(document, Document::Zmetadata) && mount.store.head(key).await?.is_some() {
        return Ok(None);
    }
    let path = NodePath::parse(key.parent().as_str())?;
    let budget = PermitBudget::of(admission, &head.extensions);
    let Consolidated { text, version } =
        match make(hierarchy, document, &path, (asked, below_arrays), budget).await {
            Ok(Some(made)) => made,
            Ok(None) => return Ok(None),
            // Without `?consolidated` the stored document is sent, and the client can open the nodes one by one.
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
    (replaces_stored, below_arrays): (bool, bool),
    budget: Arc<dyn MemoryBudget>,
) -> Result<Option<Consolidated>, HierarchyError> {
    match document {
        Document::Zmetadata => hierarchy.build_zmetadata(path, budget).await,
        Document::ZarrJson => hierarchy.build_inline(path, replaces_stored, below_arrays, budget).await,
    }
}

/// Whether a retry would fail in the same way, because the cause is the hierarchy itself.
fn is_about_the_nodes(error: &HierarchyError) -> bool {
    matches!(error.class(), ErrorClass::TooLarge | ErrorClass::Unsupported | ErrorClass::InvalidMetadata)
}
