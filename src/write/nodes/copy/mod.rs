//! Copies and moves of nodes: an array, or a group with all that is below it, to another path of the same mount or of another.
//!
//! # What a copy promises
//!
//! - Readers never see a part of a node: values are stored first, then the documents of nodes below it, and its own document last.
//!   Documents are those that the source had before its values were listed, so that each element that they count is there.
//! - Nothing is replaced. What is at the target already must be equal to what the source has under the same key, as a copy leaves
//!   it that broke off. So the same copy can be made again, and goes on.
//! - One node at a time is made at a path: a copy has the path's lease.
//! - If something of it is erased meanwhile, the node is not made, and the source of a move stays. `erasure` says why that is noticed.
//! - A move erases the source after that: its documents first, so that no reader sees a part of it, and each value on the condition
//!   that it is the one that was copied. What was written to the source in the meantime is kept.
//! - A move that broke off while it erased the source goes on with that when it is made again, if all that is left of the source is
//!   at the target as it is ([`rest`]).
//! - Memory is bounded by the documents, and for a move by a number for each value. Both are limited, and counted before anything is
//!   written.

mod copied_document;
mod copied_versions;
mod documents;
mod error;
mod in_flight;
mod node_copy;
mod plan;
mod rest;
mod run;
mod source;
mod values;

pub use error::{NodeCopyError, NodeCopyFailure};
pub use node_copy::{NodeCopy, NodePlace, NodeTransfer};
pub use plan::NodeCopyPlan;
