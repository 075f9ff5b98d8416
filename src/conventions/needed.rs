//! [`Needed`]: which documents the summary of a node needs besides its own.
//!
//! Their number is bounded: 64 levels or wells at most, the group of labels, the groups above, and one coordinate for each of the
//! first dimensions.

use serde_json::{Value, json};

use super::cf;
use super::facts::{ArrayFacts, Neighbours};
use super::layout::layout;
use super::level_of::groups_above;
use super::ome::OmeNode;
use super::values::MAX_ITEMS;
use super::zvf::VectorSummary;
use crate::key::NodePath;
use crate::metadata::GroupMetadata;

/// Most wells of a plate whose documents are read.
const MAX_WELLS: usize = 4;
/// Most dimensions of an array whose coordinates are read.
const MAX_COORDINATES: usize = 6;
/// Most arrays of a group that are read, to find out whether it is a dataset.
pub const MAX_DATASET_ARRAYS: usize = 32;

/// The documents that a summary needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Nodes that attributes declare.
    pub declared: Vec<NodePath>,
    /// Nodes that may exist.
    pub possible: Vec<NodePath>,
    /// Whether arrays directly below the group are needed too, up to [`MAX_DATASET_ARRAYS`].
    pub arrays_below: bool,
}

impl Needed {
    /// For the summary of a group.
    #[must_use]
    pub fn of_group(path: &NodePath, group: &GroupMetadata) -> Self {
        let below = |name: &str| NodePath::parse(&format!("{}{name}", path.prefix())).ok();
        let all = |names: &mut dyn Iterator<Item = &String>| names.filter_map(|name| below(name)).collect();
        if let Some(store) = VectorSummary::parse(&group.attributes) {
            return Self { declared: all(&mut store.levels.iter()), ..Self::default() };
        }
        match OmeNode::parse(&group.attributes) {
            Some((OmeNode::Image(image), _)) => Self {
                declared: all(&mut image.levels.iter().map(|(level, _)| level)),
                possible: below("labels").into_iter().chain(image.needed_list(path)).collect(),
                arrays_below: false,
            },
            Some((OmeNode::Plate(plate), _)) => Self {
                declared: all(&mut plate.wells.iter().take(MAX_WELLS).map(|(well, ..)| well)),
                ..Self::default()
            },
            Some((OmeNode::Collection(images), _)) if images.is_empty() => {
                Self { possible: below("OME").into_iter().collect(), ..Self::default() }
            }
            Some(_) => Self::default(),
            None => {
                let levels = layout(&group.attributes).unwrap_or_default();
                Self {
                    declared: all(&mut levels.iter().map(|level| &level.asset)),
                    possible: Vec::new(),
                    arrays_below: true,
                }
            }
        }
    }

    /// For the summary of an array: the groups above it, of which one may be its image.
    #[must_use]
    pub fn of_array(path: &NodePath) -> Self {
        Self { possible: groups_above(path).into_iter().map(|(group, _)| group).collect(), ..Self::default() }
    }

    /// For the summary of an array, given those groups: the coordinates of its dimensions, which have their names, and its
    /// grid mappings, if it is in a group and no level of an image.
    #[must_use]
    pub fn beside_array(path: &NodePath, array: &ArrayFacts, above: &Neighbours) -> Self {
        let attributes = &array.metadata.attributes;
        let is_beside = |parent: &NodePath| above.group(parent).is_some() && above.image_of(path).is_none();
        let Some(parent) = path.parent().filter(is_beside) else { return Self::default() };
        let dimensions = array.names().into_iter().flatten().take(MAX_COORDINATES);
        let names = dimensions.chain(cf::grid_mappings(attributes));
        let mut possible: Vec<NodePath> =
            names.filter_map(|name| parent.child(&name).ok()).filter(|found| found != path).collect();
        possible.sort();
        possible.dedup();
        Self { possible, ..Self::default() }
    }

    /// The same as text, for a cache.
    #[must_use]
    pub fn to_text(&self) -> String {
        let texts = |paths: &[NodePath]| paths.iter().map(|path| json!(path.as_str())).collect::<Value>();
        json!([texts(&self.declared), texts(&self.possible), self.arrays_below]).to_string()
    }

    /// Parses what [`Needed::to_text`] wrote.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Self {
        let (declared, possible, arrays_below): (Vec<String>, Vec<String>, bool) =
            serde_json::from_slice(text).unwrap_or_default();
        let parse = |texts: Vec<String>| {
            texts.iter().take(MAX_ITEMS).filter_map(|path| NodePath::parse(path).ok()).collect()
        };
        Self { declared: parse(declared), possible: parse(possible), arrays_below }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_nodes_are_read_back_from_their_text() {
        let path = |text: &str| NodePath::parse(text).unwrap();
        let needed = Needed {
            declared: vec![path("a/0"), path("a/é\"")],
            possible: vec![path(""), path("a/labels")],
            arrays_below: true,
        };
        assert_eq!(Needed::from_text(needed.to_text().as_bytes()), needed);
        assert_eq!(Needed::from_text(b"[3"), Needed::default());
    }
}
