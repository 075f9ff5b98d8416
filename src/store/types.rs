//! The types of the store interface: ranges, versions, conditions and listings.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use futures::stream::BoxStream;
use sha2::{Digest, Sha256};

use super::StoreError;
use crate::cpu::expect_pool_for;
use crate::key::{StoreKey, StorePrefix};
use crate::units::hexadecimal::digest_tag;

/// The number of changes that a store had reported when a watch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchToken(pub(super) u64);

/// The kind of a backend. A backend that no other code distinguishes has its kind in its own file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreKind {
    name: &'static str,
    display_name: &'static str,
}

impl StoreKind {
    /// A directory of this machine.
    pub const LOCAL: Self = Self::new("local", "a directory");
    /// Values in this process's memory.
    pub const MEMORY: Self = Self::new("memory", "memory://");
    /// Amazon S3 and what speaks its protocol.
    pub const S3: Self = Self::new("s3", "S3");
    /// Google Cloud Storage.
    pub const GCS: Self = Self::new("gcs", "GCS");
    /// Azure Blob Storage.
    pub const AZURE: Self = Self::new("azure", "Azure");
    /// An HTTP server, with `WebDAV` or without.
    pub const HTTP: Self = Self::new("http", "an HTTP server");
    /// A zip file, in any of the others.
    pub const ZIP: Self = Self::new("zip", "a zip file");
    /// A document of references into files of the others, as kerchunk writes it.
    pub const KERCHUNK: Self = Self::new("kerchunk", "references of kerchunk");

    /// An Icechunk repository.
    pub const ICECHUNK: Self = Self::new("icechunk", "an Icechunk repository");

    /// A kind by its two names: a stable identifier, and the name in messages for operators.
    #[must_use]
    pub const fn new(name: &'static str, display_name: &'static str) -> Self {
        Self { name, display_name }
    }

    /// The kind as a stable identifier.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.name
    }

    /// The kind as messages for operators name it.
    #[must_use]
    pub const fn display_name(self) -> &'static str {
        self.display_name
    }
}

/// One content of one key: an entity tag without its quotes (RFC 9110, section 8.8.3).
///
/// Equal versions of one key mean equal bytes, if [`Version::is_strong`]. A weak version (the backend gave no strong
/// tag) only means that the value probably did not change. An unsettled version belongs to one read of a value whose
/// next write may not change the backend's metadata: it is equal to no other version, so nothing is cached under it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version {
    tag: Arc<str>,
    strength: Strength,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Strength {
    Strong,
    Weak,
    /// The tag ends in `~` and a nonce.
    Unsettled,
}

impl Version {
    /// A version from an opaque tag of visible ASCII without `"`; other characters are replaced by `_`.
    #[must_use]
    pub fn strong(tag: &str) -> Self {
        Self { tag: clean_tag(tag), strength: Strength::Strong }
    }

    /// A weak version, from the little metadata that a backend has (modification time and size).
    #[must_use]
    pub fn weak(tag: &str) -> Self {
        Self { tag: clean_tag(tag), strength: Strength::Weak }
    }

    /// The version of one read of a value, from metadata that the next write may leave unchanged.
    #[must_use]
    pub fn unsettled(tag: &str) -> Self {
        // Random too: clients hold entity tags of other processes, and of earlier ones.
        static PROCESS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let nonce = PROCESS.hash_one(COUNT.fetch_add(1, Ordering::Relaxed));
        Self { tag: clean_tag(&format!("{tag}~{nonce:016x}")), strength: Strength::Unsettled }
    }

    /// The version of a generated text: the first 128 bits of its SHA-256 digest, in hexadecimal. For a long text, call
    /// this on the compute pool.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Self {
        expect_pool_for(text.len());
        Self::from_own_text(text)
    }

    /// As [`Version::from_text`], for a text of the program itself, which is hashed once on any thread.
    pub(crate) fn from_own_text(text: &[u8]) -> Self {
        Self::strong(&digest_tag(&Sha256::digest(text)))
    }

    /// The opaque tag.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// This version as the condition of a read; `None` for a weak one, which identifies no bytes.
    #[must_use]
    pub fn pin(&self) -> Option<&Self> {
        (self.strength != Strength::Weak).then_some(self)
    }

    /// Whether equal versions promise equal bytes.
    #[must_use]
    pub fn is_strong(&self) -> bool {
        self.strength == Strength::Strong
    }

    /// Whether the next write is sure to give the value another version.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.strength != Strength::Unsettled
    }

    /// Whether a value that now has the version `found` is the one of this version. For an unsettled version: as far as
    /// the backend's metadata shows.
    #[must_use]
    pub fn matches(&self, found: &Self) -> bool {
        self == found
            || (!self.is_settled()
                && found.strength != Strength::Weak
                && self.backend_tag() == found.backend_tag())
    }

    /// The version of a part of a value with this version: as strong, and as settled.
    #[must_use]
    pub fn for_part(&self, name: &str) -> Self {
        let tag = format!("{}-{name}", self.backend_tag());
        match self.strength {
            Strength::Strong => Self::strong(&tag),
            Strength::Weak => Self::weak(&tag),
            Strength::Unsettled => {
                Self { tag: clean_tag(&format!("{tag}{}", self.nonce())), strength: self.strength }
            }
        }
    }

    /// The version of a value that is made of a value of this version and one of another: it names one content only if
    /// both do.
    #[must_use]
    pub fn combined(&self, other: &Self) -> Self {
        let tag = format!("{}-{}", self.backend_tag(), other.backend_tag());
        match (self.strength, other.strength) {
            (Strength::Weak, _) | (_, Strength::Weak) => Self::weak(&tag),
            (Strength::Unsettled, _) | (_, Strength::Unsettled) => Self::unsettled(&tag),
            (Strength::Strong, Strength::Strong) => Self::strong(&tag),
        }
    }

    /// The tag from the backend's metadata, without the nonce.
    pub(crate) fn backend_tag(&self) -> &str {
        self.tag.strip_suffix(self.nonce()).unwrap_or(&self.tag)
    }

    /// `~` and the nonce, if the version is unsettled; else empty.
    fn nonce(&self) -> &str {
        match self.tag.rfind('~') {
            Some(at) if !self.is_settled() => self.tag.get(at..).unwrap_or_default(),
            Some(_) | None => "",
        }
    }
}

fn clean_tag(tag: &str) -> Arc<str> {
    let visible = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
    if tag.bytes().all(visible) {
        return tag.into();
    }
    tag.bytes().map(|byte| if visible(byte) { char::from(byte) } else { '_' }).collect::<String>().into()
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", if self.is_strong() { "" } else { "W/" }, &*self.tag)
    }
}

/// The requested part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ByteRange {
    /// The complete value.
    #[default]
    Whole,
    /// From the first number, in bytes, up to but without the second; an end past the value means the value's end.
    Bounded(u64, u64),
    /// From this offset, in bytes, to the end.
    From(u64),
    /// The last bytes; more than there are means the complete value.
    Suffix(u64),
}

impl ByteRange {
    /// The half-open interval of this range in a value of `size` bytes; `None` if it has no byte of the value.
    #[must_use]
    pub fn resolve(self, size: u64) -> Option<Range<u64>> {
        match self {
            Self::Whole => Some(0..size),
            Self::Bounded(start, end) if start < size && start < end => Some(start..end.min(size)),
            Self::From(start) if start < size => Some(start..size),
            Self::Suffix(length) if length > 0 && size > 0 => Some(size.saturating_sub(length)..size),
            Self::Bounded(..) | Self::From(_) | Self::Suffix(_) => None,
        }
    }
}

/// Size, version and time of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// Length in bytes.
    pub size: u64,
    /// The version of its content.
    pub version: Version,
    /// Its modification time, if the backend reports one.
    pub modified: Option<SystemTime>,
}

/// The condition of a write, which is checked in one step with the write.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum WriteCondition {
    /// Write in any case.
    #[default]
    Always,
    /// Only if the key does not exist (`If-None-Match: *`).
    IfAbsent,
    /// Only if the key has this version (`If-Match`).
    IfVersion(Version),
}

impl WriteCondition {
    /// Compares the condition with the stored value. A weak version never holds, an unsettled one as far as the
    /// backend's metadata shows: clients never have one, but a read-modify-write in this process may.
    ///
    /// # Errors
    /// [`StoreError::ConditionFailed`].
    pub fn check(&self, current: Option<&ValueInfo>) -> Result<(), StoreError> {
        let holds = match self {
            Self::Always => true,
            Self::IfAbsent => current.is_none(),
            Self::IfVersion(version) => {
                version.pin().is_some() && current.is_some_and(|info| version.matches(&info.version))
            }
        };
        if holds { Ok(()) } else { Err(StoreError::ConditionFailed) }
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetResult {
    /// Whether the key did not exist before. `false` if the backend does not report it.
    pub created: bool,
    /// The new version, if the backend reports it.
    pub version: Option<Version>,
}

/// The result of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyResult {
    /// The version that was copied.
    pub version: Version,
    /// The result of writing it.
    pub outcome: SetResult,
}

/// A key in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// The key.
    pub key: StoreKey,
    /// Size, version and time of its value, as the listing reports them.
    pub info: ValueInfo,
}

/// The result of `list_dir`: keys and prefixes directly under a prefix, each sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirListing {
    /// Keys directly under the prefix.
    pub keys: Vec<ListEntry>,
    /// Prefixes directly under the prefix, each once.
    pub prefixes: Vec<StorePrefix>,
}

/// An entry directly under a prefix. Keys and prefixes are one sequence, in the order of the bytes of their texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirEntry {
    /// A key.
    Key(ListEntry),
    /// A prefix with keys below it.
    Prefix(StorePrefix),
}

impl DirEntry {
    /// The text of the key or prefix.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Key(entry) => entry.key.as_str(),
            Self::Prefix(prefix) => prefix.as_str(),
        }
    }
}

/// Entries of a directory, in their order. Ends in an error rather than early.
pub type DirEntries = BoxStream<'static, Result<DirEntry, StoreError>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clamped_to_the_value_and_empty_ones_are_not_satisfiable() {
        for (range, size, resolved) in [
            (ByteRange::Whole, 0, Some(0..0)),
            (ByteRange::Bounded(2, 5), 10, Some(2..5)),
            (ByteRange::Bounded(2, u64::MAX), 10, Some(2..10)),
            (ByteRange::Bounded(10, 11), 10, None),
            (ByteRange::Bounded(5, 5), 10, None),
            (ByteRange::From(9), 10, Some(9..10)),
            (ByteRange::From(10), 10, None),
            (ByteRange::Suffix(3), 10, Some(7..10)),
            (ByteRange::Suffix(30), 10, Some(0..10)),
            (ByteRange::Suffix(0), 10, None),
            (ByteRange::Suffix(1), 0, None),
        ] {
            assert_eq!(range.resolve(size), resolved, "{range:?} of {size}");
        }
    }

    #[test]
    fn a_version_is_always_a_valid_entity_tag() {
        assert_eq!(Version::strong("a\"b\r\nc\u{e9}").tag(), "a_b__c__");
        assert_ne!(Version::strong("x"), Version::weak("x"));
    }

    #[test]
    fn an_unsettled_version_equals_no_other_and_matches_equal_metadata() {
        let (one, two) = (Version::unsettled("a"), Version::unsettled("a"));
        assert_ne!(one, two);
        assert_ne!(one.tag(), two.tag());
        assert!(!one.is_strong() && !one.is_settled() && one.pin() == Some(&one));
        for found in [&one, &two, &Version::strong("a")] {
            assert!(one.matches(found), "{found:?}");
        }
        for found in [&Version::unsettled("b"), &Version::strong("b"), &Version::weak("a")] {
            assert!(!one.matches(found), "{found:?}");
        }
        // A version that was parsed from the tag alone does not match.
        let received = [Version::strong("a"), Version::strong(one.tag()), Version::weak(one.tag())];
        assert!(received.iter().all(|received| !received.matches(&one) && !received.matches(&two)));
        let (part, other) = (one.for_part("7"), two.for_part("7"));
        assert!(part != other && part.matches(&other) && part.matches(&Version::strong("a-7")));
        assert_eq!(Version::strong("a").for_part("7"), Version::strong("a-7"));
        assert_eq!(Version::weak("a").for_part("7"), Version::weak("a-7"));
    }

    #[test]
    fn a_combined_version_promises_no_more_than_each_of_its_parts() {
        let (strong, weak) = (Version::strong("a"), Version::weak("b"));
        assert_eq!(strong.combined(&Version::strong("b")), Version::strong("a-b"));
        assert_ne!(strong.combined(&Version::strong("c")), Version::strong("a-b"));
        for combined in
            [strong.combined(&weak), weak.combined(&strong), weak.combined(&Version::unsettled("c"))]
        {
            assert!(!combined.is_strong() && combined.pin().is_none(), "{combined:?}");
        }
        let combined = || strong.combined(&Version::unsettled("c"));
        assert!(!combined().is_settled() && combined() != combined() && combined().matches(&combined()));
    }
}
