//! Which image an array is a level of, and which arrays have categories: one rule for summaries, pages, pictures, elements
//! and pyramids.
//!
//! The path of a level in the attributes of its image may have several names (OME-Zarr 0.5, "multiscales"; the Zarr
//! convention `multiscales`). So every group above an array may be its image, and the nearest one counts.

use super::layout::layout;
use super::ome::{OmeImage, list_of_labels, lists_label};
use crate::key::NodePath;
use crate::metadata::Attributes;

/// Most names in the path of a level below its image, as in `a/b/c/d`.
const MAX_NAMES: usize = 4;
/// The attribute of arrays whose numbers are names of things (CF 1.11, section 3.5).
const FLAG_VALUES: &str = "flag_values";

/// What a group declares an array below it to be.
#[derive(Clone, Debug, PartialEq)]
pub enum DeclaredLevel {
    /// A level of this image: the index of the level.
    OfImage(OmeImage, usize),
    /// A level of a layout that has several.
    OfLayout,
}

/// The groups that may declare an array as their level, the nearest first, each with the path of the array below it.
#[must_use]
pub fn groups_above(array: &NodePath) -> Vec<(NodePath, String)> {
    let groups = std::iter::successors(array.parent(), NodePath::parent).take(MAX_NAMES);
    let below = |group: &NodePath| array.as_str().strip_prefix(group.prefix().as_str()).map(str::to_owned);
    groups.filter_map(|group| below(&group).map(|below| (group, below))).collect()
}

/// What the attributes of a group declare the array at this path below it to be.
#[must_use]
pub fn declared_level(group: &Attributes, below: &str) -> Option<DeclaredLevel> {
    if !["ome", "multiscales"].iter().any(|member| group.contains_key(member)) {
        return None;
    }
    let of_image = OmeImage::parse(group).and_then(|image| {
        let level = image.levels.iter().position(|(level, _)| level == below)?;
        Some(DeclaredLevel::OfImage(image, level))
    });
    let of_layout = || {
        let levels = layout(group)?;
        let is_level = levels.len() > 1 && levels.iter().any(|level| level.asset == below);
        is_level.then_some(DeclaredLevel::OfLayout)
    };
    of_image.or_else(of_layout)
}

/// Whether the elements of an array are categories, whose numbers have no order: by its own attributes, or because it is a
/// level of an image of labels.
#[must_use]
pub fn has_categories(array: &Attributes, image: Option<&OmeImage>) -> bool {
    array.contains_key(FLAG_VALUES) || image.is_some_and(|image| image.is_labels)
}

impl OmeImage {
    /// The group that may list the image at this path as one of labels; `None` if the image says itself that it is one.
    #[must_use]
    pub fn needed_list(&self, path: &NodePath) -> Option<NodePath> {
        if self.is_labels { None } else { list_of_labels(path) }
    }

    /// The same image, as one of labels if the attributes of that group list it.
    #[must_use]
    pub fn listed_in(self, list: &Attributes, path: &NodePath) -> Self {
        let is_labels = self.is_labels || lists_label(list, path.name());
        Self { is_labels, ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attributes(text: &serde_json::Value) -> Attributes {
        Attributes::from(text.as_object().unwrap().clone())
    }

    #[test]
    fn an_array_may_be_a_level_of_a_group_up_to_four_names_above_it() {
        let array = NodePath::parse("p/i/a/b/c/d").unwrap();
        let above = groups_above(&array);
        let above: Vec<(&str, &str)> =
            above.iter().map(|(group, below)| (group.as_str(), below.as_str())).collect();
        assert_eq!(above, [("p/i/a/b/c", "d"), ("p/i/a/b", "c/d"), ("p/i/a", "b/c/d"), ("p/i", "a/b/c/d")]);
        assert_eq!(groups_above(&NodePath::root()), []);
        let group =
            attributes(&json!({ "multiscales": [{ "datasets": [{ "path": "0" }, { "path": "s/1/" }] }] }));
        for (below, expected) in [("0", Some(0)), ("s/1", Some(1)), ("1", None), ("s", None)] {
            let level = match declared_level(&group, below) {
                Some(DeclaredLevel::OfImage(_, level)) => Some(level),
                _ => None,
            };
            assert_eq!(level, expected, "{below}");
        }
    }

    #[test]
    fn one_level_of_a_layout_is_no_pyramid() {
        let layout = |count: usize| {
            let levels: Vec<_> = (0..count).map(|level| json!({ "asset": format!("s/{level}") })).collect();
            attributes(&json!({ "multiscales": { "layout": levels } }))
        };
        assert_eq!(declared_level(&layout(2), "s/1"), Some(DeclaredLevel::OfLayout));
        assert_eq!(declared_level(&layout(2), "s/2"), None);
        assert_eq!(declared_level(&layout(1), "s/0"), None);
    }

    #[test]
    fn an_image_is_one_of_labels_if_it_or_its_list_says_so() {
        let path = |text: &str| NodePath::parse(text).unwrap();
        let list = attributes(&json!({ "labels": ["cells"] }));
        let image = OmeImage::default();
        assert_eq!(image.needed_list(&path("i/labels/cells")), Some(path("i/labels")));
        assert_eq!(image.needed_list(&path("i/other/cells")), None);
        assert!(!image.clone().listed_in(&list, &path("i/labels/other")).is_labels);
        let listed = image.listed_in(&list, &path("i/labels/cells"));
        assert!(listed.is_labels);
        assert_eq!(listed.needed_list(&path("i/labels/cells")), None);
        let none = Attributes::default();
        assert!(has_categories(&none, Some(&listed)) && !has_categories(&none, None));
        assert!(has_categories(&attributes(&json!({ "flag_values": [1] })), None));
    }
}
