//! [`Capabilities`]: what a backend is good at, for callers that choose between two correct ways to read.

/// Up to this length, in bytes, a thread of the reactor reads a range of a local value as it opens the file, if it is in memory. That takes
/// less time than the hop to a blocking thread; a longer read would delay other tasks.
pub(super) const NONBLOCKING_READ_BYTES: u64 = 512 << 10;

/// What a backend is good at. Callers check these, not its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Capabilities {
    /// Whether a request is so cheap that several reads of parts of a value cost no more than one read of the complete
    /// value.
    pub near: bool,
    /// Whether bytes that are in memory are read on the calling thread, and not handed to a thread that may block.
    pub nonblocking: bool,
    /// Whether values are in this process's memory, so that a cache of them saves nothing.
    pub in_memory: bool,
    /// The longest read, in bytes, that adjacent ranges are merged into; `None` for no bound of the backend's own.
    pub max_coalesced_bytes: Option<u64>,
    /// Whether a read that is pinned to a version may return that version although another one is stored by now. A caller that
    /// needs the stored version requests it first.
    pub serves_pinned: bool,
    /// Whether no other process writes to the backend while this one does.
    pub sole_writer: bool,
    /// Whether a write cannot arrive after the process that requested it has ended.
    pub no_late_writes: bool,
}

impl Capabilities {
    /// A backend that takes a network request for each read.
    pub const REMOTE: Self = Self {
        near: false,
        nonblocking: false,
        in_memory: false,
        max_coalesced_bytes: None,
        serves_pinned: false,
        sole_writer: false,
        no_late_writes: false,
    };
    /// Files, of this machine or of one nearby. There is no latency to save by longer reads, and what is read first is decoded while
    /// the rest is read.
    pub const LOCAL: Self = Self {
        near: true,
        max_coalesced_bytes: Some(1 << 20),
        sole_writer: true,
        no_late_writes: true,
        ..Self::REMOTE
    };
    /// Files of this machine that are read without blocking if they are in memory. Several threads read and decode short ranges, while
    /// these are in the caches of their cores.
    pub const LOCAL_NONBLOCKING: Self =
        Self { nonblocking: true, max_coalesced_bytes: Some(NONBLOCKING_READ_BYTES), ..Self::LOCAL };
    /// Values in this process's memory. Several servers of the process may share them.
    pub const MEMORY: Self = Self { near: true, nonblocking: true, in_memory: true, ..Self::REMOTE };
}
