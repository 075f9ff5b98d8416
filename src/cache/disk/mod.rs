//! A cache on a local disk, below those in memory: stored bytes of remote mounts, and chunks that the server encoded, which stay over
//! a restart.
//!
//! The bytes are in segment files, which are written from their beginnings to their ends, read, and removed in the order in which
//! they were written (`segment`, `record`). An index in memory says where each part of a value is (`index`); it is rebuilt from the
//! files at the start (`recovery`). One thread writes (`writer`), from a queue with a bound, which reads fill as they pass
//! (`collector`), and chunks that are encoded (`derived`). A full cache admits what is missed a second time (`ghost`). `docs/src/decisions/disk-cache.md` has the reasons.
//!
//! Every record has checksums over its name, version, place and bytes, which each read verifies: whatever a crash or a failing disk
//! leaves is right or a miss. Without this module the server is slower, never wrong.

mod collector;
mod counts;
mod derived;
mod disk_cache;
mod engine;
mod files;
mod ghost;
mod index;
mod lock;
mod lookups;
mod options;
mod record;
mod recovery;
mod scope_names;
mod scopes;
mod segment;
mod store;
mod threads;
mod tier;
mod writer;

#[cfg(test)]
mod tests;

pub(super) use derived::DiskChunk;
pub use disk_cache::{CachedMount, DiskCache};
pub(super) use lookups::{Lookup, LookupSource};
pub use options::DiskCacheOptions;
pub use recovery::DiskCacheError;
