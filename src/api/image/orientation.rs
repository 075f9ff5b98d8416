//! Which pictures are drawn from their last row: those whose latitudes or northings ascend, so that north is at the top.

use super::layout::Layout;
use super::subject::Subject;
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope};
use crate::conventions::{is_northing, may_be_northing};
use crate::http::problem::Problem;
use crate::services::coordinate_ends::coordinate_ends;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;

/// Whether rows go from south to north, and the versions of what says so.
#[derive(Debug, Default)]
pub(crate) struct Orientation {
    pub(crate) ascends: bool,
    pub(crate) versions: Vec<Option<Version>>,
    /// Whether another node was requested, whatever was found.
    pub(crate) requested_neighbours: bool,
}

/// The orientation of the rows of a layout: that of the coordinate array beside the array, if it is geographic.
///
/// # Errors
/// Those of reading the first and the last coordinate.
pub(crate) async fn orientation(
    state: &AppState,
    target: &NodeTarget,
    caller: &Caller,
    subject: &Subject,
    layout: &Layout,
) -> Result<Orientation, Problem> {
    let names = subject.names();
    let Some(name) = names.get(layout.rows).and_then(Option::as_deref) else {
        return Ok(Orientation::default());
    };
    if subject.ome.is_some() || !may_be_northing(name) {
        return Ok(Orientation::default());
    }
    let Some(Ok(path)) = subject.array.path().parent().map(|above| above.child(name)) else {
        return Ok(Orientation::default());
    };
    let not_geographic = Orientation { requested_neighbours: true, ..Orientation::default() };
    let need = Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()));
    if !caller.rights().allows(&target.mount.name, &need) {
        return Ok(not_geographic);
    }
    // The picture of an array does not fail because of what is beside it.
    let Some(node) = target.opener.find(&path).await.ok().flatten() else {
        return Ok(not_geographic);
    };
    let Ok(array) = node.array() else { return Ok(not_geographic) };
    let length = subject.array.metadata().shape.get(layout.rows).copied().unwrap_or_default();
    if array.metadata().shape != [length] || length < 2 || !is_northing(name, &array.metadata().attributes) {
        return Ok(not_geographic);
    }
    let ends = coordinate_ends(state, array, u64::MAX).await?;
    let versions = node.located.versions().map(Option::<&Version>::cloned).chain(ends.versions).collect();
    let ascends = ends.values.is_some_and(|(first, last)| first < last);
    Ok(Orientation { ascends, versions, requested_neighbours: true })
}
