//! [`NodeFacts`]: what is known about a node from its documents, and [`Neighbours`]: the nodes around it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cf;
use super::level_of::{DeclaredLevel, declared_level, groups_above};
use super::ome::OmeImage;
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, Attributes, DataType, GroupMetadata};

/// What is known about an array.
#[derive(Clone, Debug)]
pub struct ArrayFacts {
    /// Its metadata.
    pub metadata: Arc<ArrayMetadata>,
    /// The shape of the smallest unit of decoding; `None` if it varies, or if the codecs cannot be used.
    pub decoded_chunk_shape: Option<Vec<u64>>,
    /// The first and the last value of a coordinate, if they were read.
    pub ends: Option<(f64, f64)>,
}

/// What is known about a node.
#[derive(Clone, Debug)]
pub enum NodeFacts {
    /// An array.
    Array(ArrayFacts),
    /// A group.
    Group(Arc<GroupMetadata>),
}

/// A node near another, or its absence.
#[derive(Clone, Debug)]
pub enum Neighbour {
    /// It was read.
    Present(NodeFacts),
    /// There is no node, or the caller may not read it.
    Absent,
    /// It could not be read, or its documents are invalid.
    Unknown,
}

/// Nodes near another one, by their paths.
#[derive(Clone, Debug, Default)]
pub struct Neighbours(pub BTreeMap<NodePath, Neighbour>);

impl ArrayFacts {
    /// Bytes of all elements.
    pub(super) fn bytes(&self) -> u64 {
        product(&self.metadata.shape).saturating_mul(self.element_bytes())
    }

    /// Whether it is the coordinate of the dimension of its name (CF 1.11, section 1.3).
    #[must_use]
    pub fn is_coordinate(&self, name: &str) -> bool {
        matches!(self.names().as_slice(), [Some(dimension)] if dimension == name)
    }

    /// The smallest and the largest value of a coordinate, as its attributes state or its ends show.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        let of_ends = || self.ends.map(|(first, last)| (first.min(last), first.max(last)));
        cf::actual_range(&self.metadata.attributes).or_else(of_ends)
    }

    /// Bytes of a decoded chunk.
    pub(super) fn chunk_bytes(&self) -> Option<u64> {
        Some(product(self.decoded_chunk_shape.as_ref()?).saturating_mul(self.element_bytes()))
    }

    /// Chunks that are decoded on their own.
    pub(super) fn chunks(&self) -> Option<u64> {
        let edges = self.decoded_chunk_shape.as_ref()?;
        let counts =
            self.metadata.shape.iter().zip(edges).map(|(length, edge)| length.div_ceil((*edge).max(1)));
        Some(counts.fold(1, u64::saturating_mul))
    }

    fn element_bytes(&self) -> u64 {
        self.metadata.data_type.element_bytes() as u64
    }

    /// The names of the dimensions, as many as there are.
    pub(super) fn names(&self) -> Vec<Option<String>> {
        let rank = self.metadata.shape.len();
        let named = self.metadata.dimension_names.clone().filter(|names| names.len() == rank);
        let named = named.unwrap_or_else(|| vec![None; rank]);
        named.into_iter().map(|name| name.filter(|name| !name.is_empty())).collect()
    }

    /// Whether there is a picture of the array: it has two dimensions of numbers, and elements.
    pub(super) fn has_picture(&self) -> bool {
        let shape = &self.metadata.shape;
        shape.len() >= 2 && !shape.contains(&0) && is_number(&self.metadata.data_type)
    }
}

impl NodeFacts {
    /// Sets the first and the last value of a coordinate.
    pub fn set_ends(&mut self, ends: Option<(f64, f64)>) {
        if let Self::Array(array) = self {
            array.ends = ends;
        }
    }
}

impl Neighbours {
    /// The array at a path.
    pub(super) fn array(&self, path: &NodePath) -> Option<&ArrayFacts> {
        match self.0.get(path)? {
            Neighbour::Present(NodeFacts::Array(array)) => Some(array),
            _ => None,
        }
    }

    /// The group at a path.
    pub(super) fn group(&self, path: &NodePath) -> Option<&Arc<GroupMetadata>> {
        match self.0.get(path)? {
            Neighbour::Present(NodeFacts::Group(group)) => Some(group),
            _ => None,
        }
    }

    /// What the nearest of the groups above an array that declares it as a level declares it to be: with the attributes of
    /// that group, and the path below it.
    pub(super) fn declared_level(&self, array: &NodePath) -> Option<(&Attributes, String, DeclaredLevel)> {
        groups_above(array).into_iter().find_map(|(group, below)| {
            let attributes = &self.group(&group)?.attributes;
            let level = declared_level(attributes, &below)?;
            Some((attributes, below, level))
        })
    }

    /// The image that an array is a level of, and the index of the level.
    pub(super) fn image_of(&self, array: &NodePath) -> Option<(OmeImage, usize)> {
        match self.declared_level(array)? {
            (_, _, DeclaredLevel::OfImage(image, level)) => Some((image, level)),
            (_, _, DeclaredLevel::OfLayout) => None,
        }
    }

    /// Whether there is a node at a path; `None` if that is unknown.
    pub(super) fn exists(&self, path: &NodePath) -> Option<bool> {
        match self.0.get(path)? {
            Neighbour::Present(_) => Some(true),
            Neighbour::Absent => Some(false),
            Neighbour::Unknown => None,
        }
    }

    /// Whether every node was read or is absent, so that a summary is as good as its documents.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.0.values().any(|neighbour| matches!(neighbour, Neighbour::Unknown))
    }

    /// Bytes of all attributes, which bound the work of a summary.
    #[must_use]
    pub fn attribute_bytes(&self) -> u64 {
        let bytes = |neighbour: &Neighbour| match neighbour {
            Neighbour::Present(NodeFacts::Array(array)) => array.metadata.attributes.text().len() as u64,
            Neighbour::Present(NodeFacts::Group(group)) => group.attributes.text().len() as u64,
            Neighbour::Absent | Neighbour::Unknown => 0,
        };
        self.0.values().map(bytes).fold(0, u64::saturating_add)
    }
}

/// The product of lengths.
pub(super) fn product(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |product, &length| product.saturating_mul(length))
}

/// Whether elements are numbers or truth values.
#[must_use]
pub fn is_number(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::RawBits { .. }
            | DataType::DateTime64(_)
            | DataType::TimeDelta64(_)
            | DataType::FixedLengthUtf32 { .. }
            | DataType::NullTerminatedBytes { .. }
            | DataType::Struct(_)
            | DataType::Subarray(_)
            | DataType::String
            | DataType::VariableBytes
            | DataType::VariableArray(_)
            | DataType::Json
    )
}

/// Whether elements are whole numbers or truth values.
pub(super) fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer() || *data_type == DataType::Bool
}
