//! Which pictures are drawn from their last row: those whose latitudes or northings ascend, so that north is at the top.

use super::layout::Layout;
use super::subject::Subject;
use crate::array::Array;
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope};
use crate::http::problem::Problem;
use crate::services::coordinate_ends::coordinate_ends;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;

/// Names of dimensions that may be geographic, in lower case.
const NAMES: [&str; 7] = ["lat", "latitude", "rlat", "nav_lat", "northing", "y", "yc"];
/// Values of `standard_name` of coordinates that ascend to the north (CF Conventions 1.11, chapter 4).
const STANDARD_NAMES: [&str; 3] = ["latitude", "grid_latitude", "projection_y_coordinate"];
/// Values of `units` of latitudes.
const UNITS: [&str; 6] = ["degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"];

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
    if subject.ome.is_some() || !NAMES.contains(&name.to_lowercase().as_str()) {
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
    if array.metadata().shape != [length] || length < 2 || !is_geographic(array) {
        return Ok(not_geographic);
    }
    let ends = coordinate_ends(state, array, u64::MAX).await?;
    let versions = node.located.versions().map(Option::<&Version>::cloned).chain(ends.versions).collect();
    let ascends = ends.values.is_some_and(|(first, last)| first < last);
    Ok(Orientation { ascends, versions, requested_neighbours: true })
}

/// Whether coordinates are latitudes or northings, by their attributes.
fn is_geographic(array: &Array) -> bool {
    let attributes = &array.metadata().attributes;
    let is_one = |name: &str, of: &[&str]| {
        let text = attributes.member_text(name).filter(|text| text.len() < 64);
        text.is_some_and(|text| of.contains(&text.trim_matches('"')))
    };
    is_one("standard_name", &STANDARD_NAMES) || is_one("units", &UNITS)
}
