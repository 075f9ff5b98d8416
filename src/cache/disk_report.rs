//! [`DiskReport`]: the state of the disk cache and the reads of each mount, as metrics and the list of mounts have them.

/// The state of the disk cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskReport {
    /// Bytes that its files may take.
    pub size: u64,
    /// Bytes that its files take.
    pub bytes: u64,
    /// Whether nothing is written for now, because the disk failed.
    pub is_paused: bool,
    /// Parts of values that were not written because they came too fast or the disk failed.
    pub dropped: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Records that were not as they were written; their bytes were read from the backend.
    pub damaged: u64,
    /// Reads and writes of files that failed.
    pub failures: u64,
    /// The reads of stored values of each remote mount, by its name.
    pub mounts: Vec<(Box<str>, DiskReads)>,
    /// The reads of chunks that are derived of each mount, by its name.
    pub derived: Vec<(Box<str>, DiskReads)>,
}

/// Reads of one mount since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskReads {
    /// Reads that were answered from the disk.
    pub hits: u64,
    /// Reads of values that may be on the disk, and that went to the backend; or chunks that had to be encoded.
    pub misses: u64,
    /// Bytes that were read from the disk.
    pub hit_bytes: u64,
}
