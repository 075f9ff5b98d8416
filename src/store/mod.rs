//! The abstract store interface of Zarr over a pluggable backend.
//!
//! Zarr core 3.1, "Abstract store interface": `interface` has its verbs under their own names. `local` is our own store
//! over a directory; `object` adapts `object_store`'s S3, GCS, Azure, HTTP and memory backends; `zip` reads the entries
//! of a zip file in one of these, `references` what a document of references leads to; both are a `container`. `backend` limits the load on a remote backend. Wrappers (limits, counting, caches,
//! faults in tests) are structs around an inner [`Store`] with the same verbs. `partial` builds the verbs over many
//! keys and over parts of values from the others. `options` and `open` lead from a URL to a store: a new backend is a
//! file in `open::backends`.
//!
//! Two rules every implementation keeps. **Absence is `Ok(None)`, and only where the backend says that the key
//! does not exist**: any other failure is an error, because a Zarr client reads absence as fill values. **A
//! [`Version`] names one content of one key**: bytes read at a version are never mixed with another's.

mod backend;
mod cache_policy;
mod capabilities;
mod change_watch;
mod container;
mod error;
mod extent;
mod interface;
mod local;
mod memory_budget;
mod object;
mod observed;
mod open;
mod options;
mod own_area;
mod partial;
mod path_locks;
mod references;
mod reserved_keys;
mod resolved_extent;
mod secret;
mod types;
mod value;
mod web;
mod write_deadline;
mod zip;

#[cfg(test)]
mod tests;

pub use backend::{BackendState, CircuitState};
pub use cache_policy::{CachePolicy, CachePolicyError, Freshness, FreshnessError};
pub use capabilities::Capabilities;
pub(crate) use change_watch::{ChangeWatch, WatchTurn};
pub use container::ContainerBudget;
pub use error::{LinkFault, Shared, StoreError};
pub use extent::Extent;
pub use interface::{SharedStore, Shortcuts, Store};
pub(crate) use local::nonblocking;
pub use local::{Durability, LocalOptions, LocalStore, MAX_CONCURRENCY, Symlinks};
pub use memory_budget::{BudgetExceeded, MemoryBudget, Reservation};
pub use object::{
    ObjectBackend, ObjectOptions, PrivateAddress, is_denied, is_unanswered, set_trace_context_provider,
    trouble,
};
pub use observed::{CallOutcome, Observer, Verb, observed};
pub use open::{
    OpenBudgets, OpenError, backends_of, can_sign_urls, icechunk_repository, is_zip, kerchunk_document,
    kind_of, local_path, open, open_prefix, open_within, place_of, references_of, schemes, signing_schemes,
    takes_option,
};
pub use options::*;
pub use own_area::OwnArea;
pub use partial::{
    PartFailure, PartialWrite, ValuePart, erase_values, get_partial_values, set_partial_values,
};
pub use references::{
    AllowedPrefixError, BrokenReference, ChunkReference, IcechunkStore, NamedSnapshot, ObjectId,
    ParquetReferenceStore, PinnedStore, PinnedVersion, Reference, ReferenceError, ReferencePlace,
    ReferenceStore, ReferenceTable, RefusedReference, RepositoryVersions, SnapshotInfo, check_icechunk,
    check_prefixes, check_records, parse_kerchunk,
};
pub(crate) use reserved_keys::RESERVED;
pub use resolved_extent::ResolvedExtent;
pub use secret::Secret;
pub use types::{
    ByteRange, CopyResult, DirEntries, DirEntry, DirListing, ListEntry, SetResult, StoreKind, ValueInfo,
    Version, WatchToken, WriteCondition,
};
pub use value::{FileBody, Value, ValueBody, ValueStream};
pub use web::Web;
pub(crate) use write_deadline::{DeadlinePassed, WriteDeadline};
pub use zip::{ZipError, ZipStore};
