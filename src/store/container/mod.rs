//! What stores over one container file share: the parsed index of its current version, and the memory for it.
//!
//! A container (a zip file, a document of references) holds many values, and an index says where each is. The index is
//! read once for each version of the file, and stays in memory as long as its mount does.

mod budget;
mod index;

pub use budget::ContainerBudget;
pub(in crate::store) use budget::{ContainerReservation, OverBudget};
pub(in crate::store) use index::{ContainerError, IndexCache, TRIES};
