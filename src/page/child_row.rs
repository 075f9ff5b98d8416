//! [`ChildRow`]: a node in a list, opened, with what its page needs to know.

use std::sync::Arc;

use super::cost::PageLimits;
use super::facts::ShownArray;
use super::node_page::{NodeLinks, TreeItem};
use crate::array::Array;
use crate::conventions::{OmeNode, is_vector_store};
use crate::labels::LabelExtent;
use crate::metadata::{ArrayMetadata, Attributes};

/// The metadata of an array, and the array or why it cannot be read.
pub type OpenedArray = (Arc<ArrayMetadata>, Result<Arc<Array>, String>);

/// A node below a group.
#[derive(Clone, Debug)]
pub struct ChildRow {
    /// Its name and page.
    pub item: TreeItem,
    /// Its resources.
    pub links: NodeLinks,
    /// The array; `None` for other nodes.
    pub array: Option<OpenedArray>,
    /// The attributes of a group.
    pub attributes: Option<Attributes>,
    /// What the server reads of it for one request.
    pub limits: PageLimits,
    /// From where to where its labels reach, if it is the coordinate of a dimension.
    pub extent: Option<LabelExtent>,
    /// Of a dataset, the array that its picture is of.
    pub pictured: Option<Box<ChildRow>>,
}

impl ChildRow {
    /// Whether it is a group that is nothing else by its attributes.
    #[must_use]
    pub fn is_plain_group(&self) -> bool {
        self.attributes.as_ref().is_some_and(|attributes| kind_of(attributes).is_none())
    }

    /// Whether it is an array with the coordinates of its only dimension.
    #[must_use]
    pub fn is_coordinate(&self) -> bool {
        row(self).is_some_and(|row| row.is_coordinate())
    }
}

/// An array below a group, with its facts.
pub(super) struct ArrayRow<'a> {
    pub(super) child: &'a ChildRow,
    pub(super) facts: ShownArray,
    pub(super) array: Option<&'a Array>,
    pub(super) metadata: &'a ArrayMetadata,
}

/// The array of a node, with its facts.
pub(super) fn row(child: &ChildRow) -> Option<ArrayRow<'_>> {
    let (metadata, array) = child.array.as_ref()?;
    let bound = array.as_deref();
    let facts = ShownArray::of(metadata, bound.map_err(String::as_str), child.limits);
    Some(ArrayRow { child, facts, array: bound.ok(), metadata })
}

impl ArrayRow<'_> {
    /// Whether the array holds the coordinates of its only dimension.
    pub(super) fn is_coordinate(&self) -> bool {
        self.facts.names.len() == 1 && self.facts.is_named[0] && self.facts.names[0] == self.child.item.name
    }
}

/// What a group is, by its attributes.
pub(super) fn kind_of(attributes: &Attributes) -> Option<&'static str> {
    // Stores of vectors have `multiscales` too.
    if is_vector_store(attributes) {
        return Some("vectors");
    }
    Some(match OmeNode::parse(attributes)?.0 {
        OmeNode::Image(image) if image.is_labels => "labels",
        OmeNode::Image(_) => "image",
        OmeNode::Plate(_) => "plate",
        OmeNode::Well(_) => "well",
        _ => return None,
    })
}
