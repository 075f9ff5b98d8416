//! The lease of an array's end: of several servers, one at a time appends to an array, or changes its shape.
//!
//! Appended elements are stored before the shape says that they are there. So two servers that append would store the same keys,
//! and one that changes the shape would erase what another is about to show. [`ArrayLease`] keeps them apart. Its record
//! is stored in an area of the store's own, and is only ever replaced on the condition that it is the one that was read.
//!
//! Several arrays of a group grow in one step by the lease of the group: each array's record names the step, and the group's record
//! says whether it is decided. A server that finds an array whose owner broke off within a step asks the group's record, and
//! finishes the step or makes sure that it never is decided.
//!
//! Who makes a node at a path has the lease too, with a mark in its record (`making`).

mod array_lease;
mod error;
mod held;
mod making;
mod record;

pub(super) use array_lease::ArrayLease;
pub use error::LeaseError;
pub use record::AppendKey;
pub(super) use record::{DecidedStep, GroupStep, LeaseOwner, RecordedAppend};
