//! The nodes below a group for a page, which does not wait long for a storage that does not answer.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{Children, HierarchyError};
use crate::key::NodePath;
use crate::metadata::GroupMetadata;
use crate::services::extract::NodeTarget;

/// Longest wait for a listing, where something else can take its place.
const WAIT: Duration = Duration::from_secs(1);

/// What a page says if the storage did not answer in time.
pub(super) const SLOW: &str = "The storage does not answer, or slowly: what this page shows may have been read before, and nodes may be missing here.";
/// What a page says if the storage failed.
const FAILED: &str =
    "The storage does not answer: what this page shows was read before, and nodes may be missing here.";

/// The nodes below a group, and whether the storage answered.
#[derive(Debug, Default)]
pub(super) struct ListedChildren {
    pub(super) children: Children,
    /// What the page says if the storage did not answer.
    pub(super) silence: Option<&'static str>,
}

/// The first `most` nodes below a group. If the storage fails, or is slower than a second, they are those of the consolidated
/// metadata that was read before; without it they are not known. A mount without `stale` is waited for.
pub(super) async fn listed(
    target: &NodeTarget,
    path: &NodePath,
    group: &GroupMetadata,
    most: usize,
) -> Result<ListedChildren, HierarchyError> {
    let hierarchy = target.opener.hierarchy();
    let mut listing = pin!(hierarchy.children(path, group, most));
    let (failure, silence) = match timeout(WAIT, &mut listing).await {
        Ok(Ok(children)) => return Ok(ListedChildren { children, silence: None }),
        Ok(Err(error)) if is_silence(&error) => (Some(error), FAILED),
        Ok(Err(error)) => return Err(error),
        Err(_) => (None, SLOW),
    };
    let copies = timeout(WAIT, hierarchy.consolidated_children(path, group, most)).await;
    if let Ok(Ok(Some(children))) = copies {
        return Ok(ListedChildren { children, silence: Some(silence) });
    }
    if failure.is_none() && target.mount.staleness.is_none() {
        return match listing.await {
            Ok(children) => Ok(ListedChildren { children, silence: None }),
            Err(error) if is_silence(&error) => Ok(unknown(FAILED)),
            Err(error) => Err(error),
        };
    }
    Ok(unknown(silence))
}

fn unknown(silence: &'static str) -> ListedChildren {
    ListedChildren { children: Children::default(), silence: Some(silence) }
}

/// Whether a failure is one of a storage that does not answer, or of a server that is too busy to ask it.
fn is_silence(error: &HierarchyError) -> bool {
    matches!(error.class(), ErrorClass::BackendFailed | ErrorClass::Overloaded | ErrorClass::TimedOut)
}
