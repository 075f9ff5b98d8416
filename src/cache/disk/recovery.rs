//! [`open`]: takes the directory of a disk cache, and reads what is in it from an earlier run.
//!
//! Only heads of records are read: the bytes are verified when they are requested. Of a segment that is complete that is its
//! table, one read; one without a table is searched. Files that are no segments by their names stay unchanged.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rustix::fs::Access;

use super::engine::{Engine, Known, Purge};
use super::index::RecordPlace;
use super::lock;
use super::options::DiskCacheOptions;
use super::record::{Record, RecordKind};
use super::segment::Segment;
use crate::error::{Classify, ErrorClass};
use crate::key::StorePrefix;

/// Why the disk cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskCacheError {
    /// The path leads to something else.
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// Another server uses it.
    #[error("another server uses `{}`: each needs a directory of its own", .0.display())]
    InUse(PathBuf),
    /// The directory cannot be used.
    #[error("`{}` cannot be used", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The thread that writes cannot be started.
    #[error("the thread of the disk cache cannot be started")]
    Thread(#[source] io::Error),
}

impl Classify for DiskCacheError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotADirectory(_) | Self::InUse(_) | Self::Directory { .. } => ErrorClass::InvalidRequest,
            Self::Thread(_) => ErrorClass::Internal,
        }
    }
}

/// Checks that the directory can be used now, by this user. Nothing is created: it would belong to who checks.
///
/// # Errors
/// As for [`open`].
pub(super) fn check(path: &Path) -> Result<(), DiskCacheError> {
    probe(path).map_err(|error| unusable(path, error))
}

fn probe(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => lock::probe(path)?,
        Ok(_) => return Err(ErrorKind::NotADirectory.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // It is created in the nearest directory that exists.
    let existing = path.ancestors().find(|above| above.exists()).unwrap_or(path);
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    Ok(rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Why a directory cannot be used.
fn unusable(path: &Path, source: io::Error) -> DiskCacheError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::WouldBlock => DiskCacheError::InUse(path),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => DiskCacheError::NotADirectory(path),
        _ => DiskCacheError::Directory { path, source },
    }
}

/// Opens the cache in a directory, and returns it with the number of its next segment.
///
/// # Errors
/// [`DiskCacheError`]. A full disk is none: then the cache waits for space.
pub(super) fn open(path: &Path, options: &DiskCacheOptions) -> Result<(Engine, u64), DiskCacheError> {
    let engine = Engine::new(path.to_owned(), options);
    let held = match take(path) {
        Ok(held) => held,
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            tracing::warn!(path = %path.display(), "the disk of the disk cache is full: the cache waits for space");
            engine.is_paused.store(true, Ordering::Relaxed);
            return Ok((engine, 0));
        }
        Err(error) => return Err(unusable(path, error)),
    };
    *engine.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    warn_of_others(path);
    let failed = |source| DiskCacheError::Directory { path: path.to_owned(), source };
    let numbers = numbers(path).map_err(failed)?;
    let next = numbers.last().map_or(0, |last| last.saturating_add(1));
    for number in numbers {
        read_segment(&engine, number);
    }
    fit(&engine);
    Ok((engine, next))
}

/// Warns of a directory whose files others may list, replace or remove. The files themselves are for their owner alone.
fn warn_of_others(path: &Path) {
    let mode = std::fs::metadata(path).map_or(0, |about| about.permissions().mode());
    if mode & 0o077 != 0 {
        tracing::warn!(
            path = %path.display(),
            mode = format!("{:o}", mode & 0o777),
            "others than this server's user may enter the directory of the disk cache: `chmod 700` it"
        );
    }
}

/// Creates the directory if it is missing, and locks it.
fn take(path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    lock::take(path)
}

/// The numbers of the segments in a directory, in order.
fn numbers(path: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().and_then(Segment::number_of)
            && entry.file_type()?.is_file()
        {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Adds the records of a segment to the index. A file that is no segment, as a crash at its creation
/// leaves it, or that cannot be read, is removed.
fn read_segment(engine: &Engine, number: u64) {
    let opened = Segment::open(&engine.directory, number);
    let read = opened.and_then(|segment| {
        let Some(segment) = segment else { return Ok(None) };
        segment.records().map(|records| Some((segment, records)))
    });
    let (segment, records) = match read {
        Ok(Some(read)) => read,
        unusable => {
            if unusable.is_err() {
                engine.counts.failures.fetch_add(1, Ordering::Relaxed);
            }
            // What is not in use must not take space.
            let _ = std::fs::remove_file(engine.directory.join(Segment::file_name(number)));
            return;
        }
    };
    let state = &mut *engine.state();
    let known = Known { segment: Arc::new(segment), names: Vec::with_capacity(records.len()) };
    state.segments.insert(number, known);
    for (offset, record) in records {
        let Record { kind, scope, key, tag, .. } = &record;
        match kind {
            RecordKind::Value => {
                let hashes = (engine.name_hash(scope, key), engine.version_hash(scope, key, tag));
                let length = u32::try_from(record.length()).unwrap_or(u32::MAX);
                state.insert(hashes, &record, RecordPlace { segment: number, offset, length });
            }
            RecordKind::Purge => {
                if let Ok(prefix) = StorePrefix::parse(key) {
                    state.purges.push(Purge { scope: scope.clone(), prefix, at: (number, offset) });
                }
            }
            RecordKind::Table => {}
        }
    }
}

/// Removes the oldest segments until the others fit: the cache may have been larger.
fn fit(engine: &Engine) {
    let state = &mut *engine.state();
    while state.bytes() > engine.size || state.index.parts() > engine.max_parts {
        let Some((segment, _)) = state.take_oldest(&engine.counts) else { break };
        segment.remove();
    }
    state.is_full = state.bytes() + 2 * engine.segment_size > engine.size;
}
