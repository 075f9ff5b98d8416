//! Options of stores: everything that a URL does not say.
//!
//! Each backend has a type of its own for its options; [`StoreOptions`] is the table of the configuration that holds
//! them. The backends of each section are in the files of `open::backends`.

mod section;
mod store_options;
mod writers;

pub(super) use section::{Section, TableKeys, read_entry, section};
pub use store_options::*;
pub use writers::Writers;
