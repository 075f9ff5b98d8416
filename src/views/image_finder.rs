//! [`ImageFinder`]: finds the image that an array is a level of (OME-Zarr 0.5, "multiscales"; the Zarr convention
//! `multiscales`).
//!
//! What attributes say is decided in `conventions`. This opens the groups which that needs, the few above an array, and the
//! list of labels. A group that is broken or forbidden to the caller says nothing.

use std::sync::Arc;
use std::time::Instant;

use futures::future::try_join_all;

use crate::array::{ArrayError, CachedLookup, NodeOpener, OpenNode};
use crate::conventions::{DeclaredLevel, OmeImage, declared_level, groups_above};
use crate::cpu::ComputePool;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Node;
use crate::key::NodePath;

/// Finds images for one request.
#[derive(Clone, Copy)]
pub struct ImageFinder<'a> {
    opener: &'a NodeOpener,
    cpu: &'a ComputePool,
    /// Whether the caller may read the documents of a node.
    may_read: &'a (dyn Fn(&NodePath) -> bool + Sync),
    /// When the request began: what it found since then is not requested again.
    began: Instant,
}

/// A path above an array, or that of a list of labels.
#[derive(Clone, Debug)]
pub struct NodeAbove {
    /// The path.
    pub path: NodePath,
    /// What is there.
    pub found: FoundAbove,
}

/// What is at a path.
#[derive(Clone, Debug)]
pub enum FoundAbove {
    /// This node.
    Node(Arc<OpenNode>),
    /// No node, by a lookup that began then.
    Absent(Instant),
    /// Not known: the node is broken, or forbidden to the caller.
    Unknown,
}

/// What is above an array.
#[derive(Clone, Debug)]
pub struct Above {
    /// The paths that decided what it is a level of, the nearest first.
    pub nodes: Vec<NodeAbove>,
    /// What it is a level of.
    pub level: Option<LevelAbove>,
}

/// What an array is a level of.
#[derive(Clone, Debug)]
pub enum LevelAbove {
    /// An image.
    OfImage(Box<ImageAbove>),
    /// A layout of several levels.
    OfLayout,
}

/// The image that an array is a level of.
#[derive(Clone, Debug)]
pub struct ImageAbove {
    /// The path of its group.
    pub path: NodePath,
    /// Its group.
    pub group: Arc<OpenNode>,
    /// What the group says, and the list of labels.
    pub ome: OmeImage,
    /// Which level of it the array is.
    pub level: usize,
    /// The list of labels, if it had to be asked.
    pub list: Option<NodeAbove>,
}

impl<'a> ImageFinder<'a> {
    /// Finds images for a request that began at `began`. `may_read` is whether the caller may read the documents of a node.
    #[must_use]
    pub fn new(
        opener: &'a NodeOpener,
        cpu: &'a ComputePool,
        may_read: &'a (dyn Fn(&NodePath) -> bool + Sync),
        began: Instant,
    ) -> Self {
        Self { opener, cpu, may_read, began }
    }

    /// What is above an array.
    ///
    /// # Errors
    /// Failures of the store and of the compute pool.
    pub async fn above(&self, array: &NodePath) -> Result<Above, ArrayError> {
        let groups = groups_above(array);
        let found = try_join_all(groups.iter().map(|(path, _)| self.node(path))).await?;
        let mut nodes = Vec::with_capacity(found.len());
        for ((_, below), node) in groups.into_iter().zip(found) {
            nodes.push(node.clone());
            let NodeAbove { path, found: FoundAbove::Node(group) } = node else { continue };
            let level = match self.declared(&group, below).await? {
                None => continue,
                Some(DeclaredLevel::OfLayout) => LevelAbove::OfLayout,
                Some(DeclaredLevel::OfImage(ome, level)) => {
                    let (ome, list) = self.with_list(&path, ome).await?;
                    LevelAbove::OfImage(Box::new(ImageAbove { path, group, ome, level, list }))
                }
            };
            return Ok(Above { nodes, level: Some(level) });
        }
        Ok(Above { nodes, level: None })
    }

    /// The image at a path as one of labels, if the list above names it. With that list, if it had to be asked.
    ///
    /// # Errors
    /// Failures of the store and of the compute pool.
    pub async fn with_list(
        &self,
        path: &NodePath,
        ome: OmeImage,
    ) -> Result<(OmeImage, Option<NodeAbove>), ArrayError> {
        let Some(list) = ome.needed_list(path) else { return Ok((ome, None)) };
        let list = self.node(&list).await?;
        let FoundAbove::Node(node) = &list.found else { return Ok((ome, Some(list))) };
        let Node::Group(group) = &node.node else { return Ok((ome, Some(list))) };
        let (attributes, path) = (group.attributes.clone(), path.clone());
        let bytes = attributes.text().len() as u64;
        let ome = self.cpu.run_document(bytes, move || ome.listed_in(&attributes, &path)).await?;
        Ok((ome, Some(list)))
    }

    async fn node(&self, path: &NodePath) -> Result<NodeAbove, ArrayError> {
        let found = if (self.may_read)(path) {
            match Box::pin(self.opener.find_cached(path, self.began)).await {
                Ok(CachedLookup::Node(node)) => FoundAbove::Node(node),
                Ok(CachedLookup::Absent(located_at)) => FoundAbove::Absent(located_at),
                // What is wrong with the group does not concern the array.
                Err(error) if is_unusable(&error) => FoundAbove::Unknown,
                Err(error) => return Err(error),
            }
        } else {
            FoundAbove::Unknown
        };
        Ok(NodeAbove { path: path.clone(), found })
    }

    async fn declared(&self, node: &OpenNode, below: String) -> Result<Option<DeclaredLevel>, ArrayError> {
        let Node::Group(group) = &node.node else { return Ok(None) };
        let attributes = group.attributes.clone();
        let bytes = attributes.text().len() as u64;
        Ok(self.cpu.run_document(bytes, move || declared_level(&attributes, &below)).await?)
    }
}

impl std::fmt::Debug for ImageFinder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageFinder").field("began", &self.began).finish_non_exhaustive()
    }
}

impl Above {
    /// The image that the array is a level of.
    #[must_use]
    pub fn into_image(self) -> Option<ImageAbove> {
        match self.level? {
            LevelAbove::OfImage(image) => Some(*image),
            LevelAbove::OfLayout => None,
        }
    }
}

impl NodeAbove {
    /// The node, if there is one.
    #[must_use]
    pub fn node(&self) -> Option<&Arc<OpenNode>> {
        match &self.found {
            FoundAbove::Node(node) => Some(node),
            FoundAbove::Absent(_) | FoundAbove::Unknown => None,
        }
    }
}

fn is_unusable(error: &ArrayError) -> bool {
    matches!(
        error.class(),
        ErrorClass::InvalidMetadata
            | ErrorClass::CorruptData
            | ErrorClass::Unsupported
            | ErrorClass::TooLarge
    )
}
