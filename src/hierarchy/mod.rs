//! Nodes: which metadata documents stand under a path, and what they say.
//!
//! Zarr core 3.1, "Hierarchy" and "Stored representation"; Zarr v2, "Hierarchies". `zarr.json` wins over `.zarray`
//! and `.zgroup` beside it, and these over the `meta` of Zarr v1. A prefix without a document of its own is
//! not a node, unless the array above declares it (the convention "dependent-arrays"). Chunks are not this room's business.

mod children;
mod consolidate;
mod consolidated;
mod consolidated_children;
mod dependents;
mod documents;
mod error;
mod handle;
mod key_claims;
mod load;
mod locate;
mod missing_node;
mod separator;
mod shared_build;

pub use children::{Child, Children};
pub use consolidated::Consolidated;
pub use dependents::{DeclaredArray, Dependent, DependentEntry, Dependents};
pub use documents::Located;
pub use error::HierarchyError;
pub use handle::Hierarchy;
pub use load::Node;
