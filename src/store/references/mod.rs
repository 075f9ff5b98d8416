//! A store whose values are references into other files, as a document of kerchunk lists them.
//!
//! The document (kerchunk's JSON, versions 0 and 1, or a directory in Parquet) gives each key its bytes, or a file and a range of it. It is read
//! once for each version, and held as a table within a budget. A document is written by others and read with the
//! position of this server in its network, so a reference leads only to the prefixes that the operator allows, and each
//! prefix has options of its own. Absence is decided by the document alone: a file that is missing, too short or not
//! allowed is an error, because a client would read its absence as fill values. The store does not write.

mod allowed;
mod error;
mod expression;
mod generated;
mod icechunk;
mod json;
mod kerchunk;
mod listed_items;
mod load;
mod parquet;
mod place;
mod prefixes;
mod read;
mod reference_store;
mod table;
mod template;
mod work;

#[cfg(test)]
mod tests;

pub(super) use allowed::AllowList;
pub use error::{BrokenReference, ReferenceError, RefusedReference};
pub use icechunk::{
    ChunkReference, IcechunkStore, NamedSnapshot, ObjectId, PinnedStore, PinnedVersion, RepositoryVersions,
    SnapshotInfo, check_icechunk,
};
pub use kerchunk::parse_kerchunk;
pub use parquet::{ParquetReferenceStore, check_records};
pub use place::ReferencePlace;
pub use prefixes::{AllowedPrefixError, check_prefixes};
pub use reference_store::ReferenceStore;
pub use table::{Reference, ReferenceTable};
