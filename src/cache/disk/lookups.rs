//! [`SavedLookup`]: the last lookups of mounts whose freshness has `stale`, in a file beside the segments.
//!
//! While a backend fails, what is on the disk is served at the version that the last lookup found, if that is young enough. After a
//! restart this needs the lookups too, with their times, and those that found nothing. They are written every few seconds and at
//! the end, as a whole: into another file, which then takes the place of the first. A checksum covers everything; what is not as it was
//! written is not used. Times are those of the wall clock: a lookup of the future is not used either.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf, BufMut};
use twox_hash::XxHash3_128;

use super::files;
use crate::key::StoreKey;
use crate::store::{ValueInfo, Version};

/// The name of the file.
const FILE: &str = "lookups";
/// The name of the file that is written.
const NEW_FILE: &str = "lookups.new";
const MAGIC: &[u8; 8] = b"zlookup1";
/// The most bytes of the file, and so of memory for it. It takes no more than this part of what segments may take.
const MAX_BYTES: u64 = 16 << 20;
const SHARE: u64 = 16;
/// The longest text.
const MAX_TEXT: usize = 4 << 10;

/// A lookup of a key: what it found, and when it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cache) struct SavedLookup {
    /// The store of the mount, as records have it.
    pub(in crate::cache) scope: Box<str>,
    pub(in crate::cache) key: StoreKey,
    /// The value; `None` if there was none.
    pub(in crate::cache) info: Option<ValueInfo>,
    pub(in crate::cache) asked: SystemTime,
}

/// A lookup as the cache in memory has it: the name of the mount there, the key, what was found, and when it was sent.
pub(in crate::cache) type Lookup = (Arc<str>, StoreKey, Option<ValueInfo>, Instant);

/// What has the last lookups of all mounts.
pub(in crate::cache) trait LookupSource: std::fmt::Debug + Send + Sync {
    /// All of them.
    fn lookups(&self) -> Vec<Lookup>;
}

/// A point of time of this process as one of the wall clock.
pub(super) fn to_wall_clock(when: Instant) -> Option<SystemTime> {
    SystemTime::now().checked_sub(when.elapsed())
}

/// The same the other way round; `None` for a time of the future, and for one that no [`Instant`] can have.
pub(super) fn from_wall_clock(when: SystemTime) -> Option<Instant> {
    Instant::now().checked_sub(SystemTime::now().duration_since(when).ok()?)
}

/// Writes lookups in place of those that are in a directory, as many as fit beside a cache of this size.
///
/// # Errors
/// Those of the file system; what was there before is kept then.
pub(super) fn save(
    directory: &Path,
    size: u64,
    lookups: impl Iterator<Item = SavedLookup>,
) -> io::Result<()> {
    let most = usize::try_from(MAX_BYTES.min(size / SHARE)).unwrap_or(usize::MAX);
    let mut bytes = MAGIC.to_vec();
    for lookup in lookups {
        if bytes.len() + 4 * MAX_TEXT > most {
            break;
        }
        encode(&lookup, &mut bytes);
    }
    bytes.put_u128_le(XxHash3_128::oneshot(&bytes));
    let mut file = files::replace(directory, NEW_FILE)?;
    file.write_all(&bytes)?;
    file.sync_data()?;
    fs::rename(directory.join(NEW_FILE), directory.join(FILE))
}

/// Removes the lookups of a directory, which holds after a crash too.
///
/// # Errors
/// Those of the file system; that there are none is no error.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_file(directory.join(FILE)) {
        Ok(()) => File::open(directory)?.sync_all(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The lookups of a directory; none if they are not as they were written.
pub(super) fn load(directory: &Path) -> Vec<SavedLookup> {
    read(directory).ok().and_then(|bytes| decode(&bytes)).unwrap_or_default()
}

/// The file; no more of it than was written.
fn read(directory: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    files::open(directory, FILE)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Option<Vec<SavedLookup>> {
    let (covered, sum) = bytes.split_last_chunk::<16>()?;
    if XxHash3_128::oneshot(covered) != u128::from_le_bytes(*sum) {
        return None;
    }
    let mut left = covered.strip_prefix(MAGIC)?;
    let mut lookups = Vec::new();
    while !left.is_empty() {
        lookups.push(decode_one(&mut left)?);
    }
    Some(lookups)
}

fn encode(lookup: &SavedLookup, bytes: &mut Vec<u8>) {
    let SavedLookup { scope, key, info, asked } = lookup;
    let tag = info.as_ref().map_or("", |info| info.version.tag());
    let (Some(asked), true) =
        (micros(*asked), [scope, key.as_str(), tag].iter().all(|text| text.len() <= MAX_TEXT))
    else {
        return;
    };
    // Without a strong version nothing is found by it.
    if info.as_ref().is_some_and(|info| !info.version.is_strong()) {
        return;
    }
    bytes.put_u64_le(asked);
    bytes.put_u8(u8::from(info.is_some()));
    bytes.put_u64_le(info.as_ref().map_or(0, |info| info.size));
    bytes.put_u64_le(info.as_ref().and_then(|info| micros(info.modified?)).unwrap_or(u64::MAX));
    for text in [scope, key.as_str(), tag] {
        bytes.put_u32_le(u32::try_from(text.len()).unwrap_or(u32::MAX));
        bytes.put_slice(text.as_bytes());
    }
}

fn decode_one(left: &mut &[u8]) -> Option<SavedLookup> {
    let asked = left.try_get_u64_le().ok()?;
    let is_stored = left.try_get_u8().ok()? == 1;
    let (size, modified) = (left.try_get_u64_le().ok()?, left.try_get_u64_le().ok()?);
    let mut text = || {
        let length = usize::try_from(left.try_get_u32_le().ok()?).ok()?;
        let (text, rest) = left.split_at_checked(length)?;
        *left = rest;
        std::str::from_utf8(text).ok()
    };
    let (scope, key, tag) = (text()?, text()?, text()?);
    let modified = (modified != u64::MAX).then(|| time(modified)).flatten();
    let info = is_stored.then(|| ValueInfo { size, version: Version::strong(tag), modified });
    Some(SavedLookup { scope: scope.into(), key: StoreKey::parse(key).ok()?, info, asked: time(asked)? })
}

/// Microseconds since 1970.
fn micros(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_micros()).ok()
}

fn time(micros: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookups() -> Vec<SavedLookup> {
        let asked = time(1_700_000_000_123_456).unwrap();
        let info = ValueInfo { size: 7, version: Version::strong("tag"), modified: time(5) };
        let of = |key: &str, info| SavedLookup {
            scope: "m@0".into(),
            key: StoreKey::parse(key).unwrap(),
            info,
            asked,
        };
        vec![of("a/zarr.json", Some(info.clone())), of("a/.zarray", None), {
            of("b", Some(ValueInfo { modified: None, ..info }))
        }]
    }

    #[test]
    fn lookups_are_loaded_as_they_were_saved() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path()), []);
        save(folder.path(), 1 << 20, lookups().into_iter()).unwrap();
        assert_eq!(load(folder.path()), lookups());
        save(folder.path(), 1 << 20, lookups().into_iter().take(1)).unwrap();
        assert_eq!(load(folder.path()), lookups()[..1]);
        remove(folder.path()).unwrap();
        remove(folder.path()).unwrap();
        assert_eq!(load(folder.path()), []);
    }

    #[test]
    fn what_is_damaged_or_cut_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), 1 << 20, lookups().into_iter()).unwrap();
        let path = folder.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert_eq!(load(folder.path()), [], "{at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(load(folder.path()), [], "{at} bytes");
        }
    }

    #[test]
    fn weak_versions_and_times_of_the_future_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let mut weak = lookups();
        weak[0].info.as_mut().unwrap().version = Version::weak("w");
        save(folder.path(), 1 << 20, weak.into_iter()).unwrap();
        assert_eq!(load(folder.path()), lookups()[1..]);
        let now = SystemTime::now();
        assert!(from_wall_clock(now + Duration::from_secs(100)).is_none());
        let minute = from_wall_clock(now - Duration::from_mins(1)).unwrap().elapsed();
        assert!(minute >= Duration::from_mins(1));
    }
}
