//! Appending elements to the end of an array.
//!
//! # What an append promises
//!
//! - Before it is done, no reader sees anything of it; afterwards, all of it. Elements are stored beyond the shape first, and then
//!   the document with the new shape, in one step.
//! - An append that is acknowledged is in the array once, whatever happens to the server that stored it, and however many servers
//!   append. One that was not acknowledged is in it as a whole or not at all, and can be sent again under the same key.
//!
//! # How
//!
//! Appends to one array form a line in this process; its head takes all that wait ([`AppendWriter`]). One server at a time has the
//! lease of the array (`lease`). It notes what it is about to append, stores the elements, and then the document, on the condition
//! that it is the one that was read ([`batch`]).
//!
//! - Who takes an array over without knowing that the owner before has finished, first changes the bytes of the document, so that a
//!   change of the former owner that arrives late fails.
//! - Elements are stored at the version that each value had *before* the lease was checked (`guarded`). So a former owner
//!   cannot overwrite what the new one has stored.
//! - Elements of which it is not known whether they are stored keep the lease to its end: they may arrive until then. Where the version of
//!   a value would not keep them away afterwards, because its bytes stay the same, the next owner waits for them.
//! - Each value is stored, also one of nothing but fill values: the condition that a value is absent would not distinguish one owner
//!   from another.

mod appender;
mod arrival;
mod batch;
mod error;
mod group;
mod guard;
mod line_lease;
mod rows;

pub use appender::AppendWriter;
pub use error::AppendError;
pub use group::{GroupAppend, GroupPart};
pub use rows::{Append, Appended};
