//! Writing nodes: documents of new arrays and groups, changes of attributes and shapes, and erasure.
//!
//! Zarr core 3.1, "Metadata"; Zarr v2, "Metadata". [`NewNode`] is what a client says of a new node; it gives the
//! [`NodeDocuments`], which are parsed by the server's own readers before they are stored. [`NodeWriter`] stores them.
//!
//! # What a change of a node promises
//!
//! - A node is there once its main document is stored, which is the last step. Groups above it are made first.
//! - A document is replaced on the condition that it is still the one that was read, so that no other change is lost.
//! - An array that shrinks and grows again has the fill value where it grew: what lies outside of the shape is erased when it
//!   shrinks, and again before it grows.
//! - Consolidated metadata that is stored above the node is changed with it.

mod array_document;
mod changed_node;
mod consolidated_copies;
mod copy;
mod creation;
mod documents;
mod erased_chunks;
mod erasure;
mod error;
mod leased_array;
mod leftovers;
mod mark;
mod new_documents;
mod new_node;
mod patch;
mod resize;
mod stored_document;
mod writer;

pub(super) use array_document::ArrayDocument;
pub(super) use changed_node::ChangedNode;
pub use copy::{NodeCopy, NodeCopyError, NodeCopyFailure, NodeCopyPlan, NodePlace, NodeTransfer};
pub use creation::{NewValues, NodeCreation};
pub use documents::NodeDocuments;
pub use error::NodeWriteError;
pub use new_node::{LikeArray, NewNode};
pub use patch::NodePatch;
pub use writer::NodeWriter;
