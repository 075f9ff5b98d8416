//! Options of stores: everything that a URL does not say.
//!
//! Each backend has a type of its own for its options; [`StoreOptions`] is the table of the configuration that holds
//! them. The backends of each section are in the table of `open::backends`.

mod backends;
mod section;
mod store_options;

pub use backends::{AzureOptions, BearerTokenOptions, BucketOptions, GcsOptions, RemoteOptions, S3Options};
pub(super) use section::{Section, read_entry, section};
pub use store_options::StoreOptions;
