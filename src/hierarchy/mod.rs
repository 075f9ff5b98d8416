//! Nodes of a hierarchy: the metadata documents stored under a path, and what they describe.
//!
//! Zarr core 3.1, "Hierarchy" and "Stored representation"; Zarr v2, "Hierarchies". `zarr.json` takes precedence over
//! `.zarray` and `.zgroup`, and these over the `meta` of Zarr v1. A prefix without a document is not a node, unless an
//! array above declares it (convention "dependent-arrays"). This module does not read chunks.

mod candidates;
mod children;
mod consolidate;
mod consolidated;
mod consolidated_children;
mod dependents;
mod documents;
mod error;
mod found_documents;
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
pub use found_documents::FoundDocuments;
pub use handle::Hierarchy;
pub use load::Node;
