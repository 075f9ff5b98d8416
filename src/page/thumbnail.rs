//! Small pictures in lists, which a browser loads when they come into view.

use maud::{Markup, html};

use super::child_row::{ArrayRow, ChildRow, kind_of, row};
use super::cost::Cost;
use super::facts::Drawn;
use super::state::join;
use super::view::{ArrayView, Shown};

/// Decoded bytes of the largest plane that a list shows.
const MOST_BYTES: u128 = 16 << 20;
/// Longer side of a small picture, in pixels.
pub(super) const SIDE: &str = "128";

/// The path of the picture of a node in a list: of an array if it costs little, and of what has images.
pub(super) fn of(child: &ChildRow) -> Option<String> {
    match &child.attributes {
        Some(attributes) => {
            let has_images = matches!(kind_of(attributes), Some("image" | "labels" | "plate" | "well"));
            let own = || join(&child.links.image, [("size", SIDE)].into_iter());
            has_images.then(own).or_else(|| of(child.pictured.as_deref()?))
        }
        None => of_array(&row(child)?, SIDE),
    }
}

/// The array that the picture of a dataset is of, among the nodes of a group; `None` if the group is no dataset, or none of its
/// arrays has a picture that costs little.
#[must_use]
pub fn pictured(children: Vec<ChildRow>) -> Option<ChildRow> {
    if !children.iter().any(ChildRow::is_coordinate) {
        return None;
    }
    children.into_iter().find(|child| child.array.is_some() && of(child).is_some())
}

/// The path of the picture of an array, where it costs little.
pub(super) fn of_array(row: &ArrayRow<'_>, size: &str) -> Option<String> {
    if row.facts.drawn == Drawn::Text || row.facts.elements() == 0 {
        return None;
    }
    let view = ArrayView::default_of(&row.facts, row.array);
    let cost = Cost::of(&view.subset, row.facts.item_bytes, row.array?);
    let is_plane = matches!(view.shown, Shown::Plane { .. });
    let slice = view.slice(&row.facts.shape);
    let query = [("slice", slice.as_str()), ("size", size)];
    (is_plane && cost.bytes <= MOST_BYTES && row.facts.limits.allow_unasked(cost))
        .then(|| join(&row.child.links.image, query.into_iter()))
}

/// A picture in a card. The text below it says what it shows.
pub(super) fn medium(source: &str) -> Markup {
    html! { img.small loading="lazy" src=(source) alt="" width="88" height="88"; }
}

/// A small picture. The text next to it says what it shows.
pub(super) fn small(source: &str) -> Markup {
    html! { img.small loading="lazy" src=(source) alt="" width="32" height="32"; }
}
