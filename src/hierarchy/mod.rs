//! Nodes: which metadata documents stand under a path, and what they say.
//!
//! Zarr core 3.1, "Hierarchy" and "Stored representation"; Zarr v2, "Hierarchies". `zarr.json` wins over `.zarray`
//! and `.zgroup` beside it, and these over the `meta` of Zarr v1. A prefix without a document of its own is not a node. Chunks are not this room's business.

mod children;
mod draft;
mod error;
mod locate;
mod separator;

pub use children::{Child, Children, NodeKind};
pub use error::HierarchyError;
pub use locate::{Located, Node};

use crate::cpu::Cpu;
use crate::key::NodePath;
use crate::metadata::{MetadataLimits, Separator};
use crate::store::SharedStore;

/// The nodes of one store.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    store: SharedStore,
    limits: MetadataLimits,
    cpu: Cpu,
    separator: Option<Separator>,
}

impl Hierarchy {
    /// The hierarchy in a store, whose long documents are parsed on `cpu`.
    #[must_use]
    pub fn new(store: SharedStore, limits: MetadataLimits, cpu: Cpu) -> Self {
        Self { store, limits, cpu, separator: None }
    }

    /// The same, where `separator` stands in the chunks' keys of v2 arrays whose documents do not give one. Without it,
    /// each such array is asked for it.
    #[must_use]
    pub fn with_separator(self, separator: Option<Separator>) -> Self {
        Self { separator, ..self }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The node at a path.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchNode`]; a document that cannot be read or used.
    pub async fn open(&self, path: &NodePath) -> Result<Node, HierarchyError> {
        let located = self.locate(path).await?;
        self.load(path, &located).await
    }
}
