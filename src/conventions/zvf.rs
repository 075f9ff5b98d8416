//! [`VectorSummary`]: what the attributes of a store in Zarr Vector Format say about it.
//!
//! The module `vectors` reads such stores. This one is there in builds without it, and reads attributes alone.

use serde_json::Value;

use super::axis::SummaryAxis;
use super::ome::axes_and_levels;
use super::values::{member_text, numbers, text};
use crate::metadata::Attributes;

/// The member that identifies a store of the library's profile.
const LIBRARY_MEMBER: &str = "zarr_vectors";
/// Members that identify a store of the documents' profile.
const DOC_MEMBERS: [&str; 3] = ["zarr_vectors_version", "geometry_type", "spatial_dims"];

/// A store of vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct VectorSummary {
    pub(super) version: Option<String>,
    pub(super) axes: Vec<SummaryAxis>,
    /// The paths of its levels.
    pub(super) levels: Vec<String>,
    /// The smallest coordinates, then the largest.
    pub(super) bounds: Option<Vec<f64>>,
}

/// Whether the attributes of a group describe a store in Zarr Vector Format.
#[must_use]
pub fn is_vector_store(attributes: &Attributes) -> bool {
    // Nothing is parsed: this is asked of groups whose attributes may be long.
    if attributes.member_text(LIBRARY_MEMBER).is_some_and(|text| text.starts_with('{')) {
        return true;
    }
    let marks = DOC_MEMBERS.iter().filter(|name| attributes.contains_key(name)).count();
    marks >= 2 || (marks == 1 && attributes.contains_key("chunk_shape"))
}

impl VectorSummary {
    /// The store that the attributes of a group describe, if they describe one.
    pub(super) fn parse(attributes: &Attributes) -> Option<Self> {
        if !is_vector_store(attributes) {
            return None;
        }
        let library = match attributes.get(LIBRARY_MEMBER) {
            Some(Value::Object(members)) => Some(members),
            _ => None,
        };
        let multiscales = attributes.get("multiscales");
        let (axes, levels) = axes_and_levels(multiscales.as_ref());
        let (version, bounds) = if let Some(members) = &library {
            (member_text(members, "zv_version"), ends(members.get("bounds")))
        } else {
            let bounds = attributes.get("bounding_box");
            let end = |name: &str| bounds.as_ref().and_then(|bounds| bounds.get(name));
            let version = attributes.get("zarr_vectors_version");
            (version.as_ref().and_then(text), joined(end("min"), end("max")))
        };
        Some(Self { version, axes, levels, bounds })
    }
}

/// The two lists of a list in one list.
fn ends(bounds: Option<&Value>) -> Option<Vec<f64>> {
    match bounds?.as_array()?.as_slice() {
        [low, high] => joined(Some(low), Some(high)),
        _ => None,
    }
}

/// The smallest and the largest coordinates in one list.
fn joined(low: Option<&Value>, high: Option<&Value>) -> Option<Vec<f64>> {
    let (mut low, high) = (numbers(low)?, numbers(high)?);
    (low.len() == high.len() && !low.is_empty()).then(|| {
        low.extend(high);
        low
    })
}
