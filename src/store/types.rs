//! The nouns of the store interface: ranges, versions, values, conditions and listings.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use sha2::{Digest, Sha256};

use super::StoreError;
use crate::cpu::expect_pool_for;
use crate::key::{StoreKey, StorePrefix};

/// Since when a store has told nothing of what it watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchToken(pub(super) u64);

/// The kind of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// A directory of this machine.
    Local,
    /// Values in this process's memory.
    Memory,
    /// Amazon S3 and what speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// A plain HTTP server, with `WebDAV` or without.
    Http,
    /// A zip file, wherever it lies.
    Zip,
}

impl StoreKind {
    /// The kind as a stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Memory => "memory",
            Self::S3 => "s3",
            Self::Gcs => "gcs",
            Self::Azure => "azure",
            Self::Http => "http",
            Self::Zip => "zip",
        }
    }

    /// The kind as an operator calls it.
    #[must_use]
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Local => "a directory",
            Self::Memory => "memory://",
            Self::S3 => "S3",
            Self::Gcs => "GCS",
            Self::Azure => "Azure",
            Self::Http => "an HTTP server",
            Self::Zip => "a zip file",
        }
    }
}

/// What names one content of one key: an entity tag without its quotes.
///
/// Equal versions of one key mean equal bytes, if [`Version::is_strong`]; a weak one (the backend gave no
/// strong tag) only says that the value probably did not change. An unsettled one names a look at a value whose next
/// write may not show in what the backend says of it: it is equal to no other, so nothing is remembered under it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version {
    tag: Arc<str>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Strong,
    Weak,
    /// The tag ends in `~` and the number of the look.
    Unsettled,
}

impl Version {
    /// A version from an opaque tag of visible ASCII without `"`; other characters are replaced by `_`.
    #[must_use]
    pub fn strong(tag: &str) -> Self {
        Self { tag: clean_tag(tag), kind: Kind::Strong }
    }

    /// A weak version, from what little a backend says (modification time and size).
    #[must_use]
    pub fn weak(tag: &str) -> Self {
        Self { tag: clean_tag(tag), kind: Kind::Weak }
    }

    /// The version of one look at a value, from all that the backend says, which the next write may leave as it is.
    #[must_use]
    pub fn unsettled(tag: &str) -> Self {
        // Random too: entity tags of other processes, and of earlier ones, are in the hands of clients.
        static PROCESS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        let look = PROCESS.hash_one(LOOKS.fetch_add(1, Ordering::Relaxed));
        Self { tag: clean_tag(&format!("{tag}~{look:016x}")), kind: Kind::Unsettled }
    }

    /// The version of a text that was made: the front of its digest, 128 bits in hexadecimal. Where the text is long, to be
    /// called on the pool.
    #[must_use]
    pub fn of_text(text: &[u8]) -> Self {
        expect_pool_for(text.len());
        Self::of_own_text(text)
    }

    /// The same of a text of the program's own, which is made once.
    pub(crate) fn of_own_text(text: &[u8]) -> Self {
        Self::strong(&digest_tag(&Sha256::digest(text)))
    }

    /// The opaque tag.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// This version, to hold a read to; a weak one names no bytes, so no read can be held to it.
    #[must_use]
    pub fn pin(&self) -> Option<&Self> {
        (self.kind != Kind::Weak).then_some(self)
    }

    /// Whether equal versions promise equal bytes.
    #[must_use]
    pub fn is_strong(&self) -> bool {
        self.kind == Kind::Strong
    }

    /// Whether the next write is sure to give the value another version.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.kind != Kind::Unsettled
    }

    /// Whether what is found now is what this version was said of: for an unsettled one, as far as can be told.
    #[must_use]
    pub fn holds_for(&self, found: &Self) -> bool {
        self == found || (!self.is_settled() && found.kind != Kind::Weak && self.said() == found.said())
    }

    /// The version of a part of what this is the version of: as strong, and as settled.
    #[must_use]
    pub fn of_part(&self, name: &str) -> Self {
        let tag = format!("{}-{name}", self.said());
        match self.kind {
            Kind::Strong => Self::strong(&tag),
            Kind::Weak => Self::weak(&tag),
            Kind::Unsettled => Self { tag: clean_tag(&format!("{tag}{}", self.look())), kind: self.kind },
        }
    }

    /// What the backend says of the value.
    fn said(&self) -> &str {
        self.tag.strip_suffix(self.look()).unwrap_or(&self.tag)
    }

    /// The mark of the look, if the version is unsettled.
    fn look(&self) -> &str {
        match self.tag.rfind('~') {
            Some(at) if !self.is_settled() => self.tag.get(at..).unwrap_or_default(),
            Some(_) | None => "",
        }
    }
}

fn digest_tag(digest: &[u8]) -> String {
    let digits = digest.iter().take(16).flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
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

/// The part of a value that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ByteRange {
    /// All of it.
    #[default]
    Whole,
    /// From the first number up to but without the second; an end past the value means the value's end.
    Bounded(u64, u64),
    /// From here to the end.
    From(u64),
    /// The last bytes; more than there are means the whole value.
    Suffix(u64),
}

impl ByteRange {
    /// The half-open interval this means in a value of `size` bytes; `None` if there is nothing of it there.
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

/// What a store knows of a value without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// Length in bytes.
    pub size: u64,
    /// Which content this is.
    pub version: Version,
    /// When it was written, if the backend says.
    pub modified: Option<SystemTime>,
}

/// Bytes on their way in or out.
pub type ValueStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// The bytes of a value: at hand, or still to come.
pub enum ValueBody {
    /// In memory already.
    Bytes(Bytes),
    /// As the backend sends them. Ends in an error rather than short.
    Stream(ValueStream),
}

/// A value, or a part of one.
#[derive(Debug)]
pub struct Value {
    /// The whole value's size and version.
    pub info: ValueInfo,
    /// Which of its bytes the body holds.
    pub range: Range<u64>,
    /// The bytes.
    pub body: ValueBody,
}

impl Value {
    /// How many bytes the body holds.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The body, collected: refuses, before reading, one that is longer than `limit_bytes`, and checks that it is
    /// exactly as long as [`Value::range`] promises.
    ///
    /// # Errors
    /// [`StoreError::ValueTooLarge`], [`StoreError::WrongLength`], or the body's own error.
    pub async fn bytes(self, limit_bytes: u64) -> Result<Bytes, StoreError> {
        let length = self.len();
        let too_large = StoreError::ValueTooLarge { size: length, limit: limit_bytes };
        let (true, Ok(capacity)) = (length <= limit_bytes, usize::try_from(length)) else {
            return Err(too_large);
        };
        let bytes = match self.body {
            ValueBody::Bytes(bytes) => bytes,
            ValueBody::Stream(mut stream) => {
                let Some(first) = stream.try_next().await? else {
                    return if length == 0 { Ok(Bytes::new()) } else { Err(StoreError::WrongLength) };
                };
                if first.len() == capacity && stream.try_next().await?.is_none() {
                    return Ok(first);
                }
                let mut bytes = BytesMut::with_capacity(capacity);
                bytes.extend_from_slice(&first);
                while let Some(part) = stream.try_next().await? {
                    if part.len() > capacity - bytes.len().min(capacity) {
                        return Err(StoreError::WrongLength);
                    }
                    bytes.extend_from_slice(&part);
                }
                bytes.freeze()
            }
        };
        if bytes.len() == capacity { Ok(bytes) } else { Err(StoreError::WrongLength) }
    }

    /// The same, where it was read at a version that was asked for: for an unsettled one, as far as can be told.
    #[must_use]
    pub(super) fn at(mut self, if_match: Option<&Version>) -> Self {
        if let Some(version) = if_match {
            self.info.version = version.clone();
        }
        self
    }

    /// The body as a stream that ends in an error unless it is exactly as long as [`Value::range`] promises.
    #[must_use]
    pub fn into_exact_stream(self) -> ValueStream {
        let state = (self.len(), self.body.into_stream());
        try_unfold(state, |(left, mut stream)| async move {
            let Some(part) = stream.try_next().await? else {
                return if left == 0 { Ok(None) } else { Err(StoreError::WrongLength) };
            };
            let left = u64::try_from(part.len()).ok().and_then(|length| left.checked_sub(length));
            Ok(Some((part, (left.ok_or(StoreError::WrongLength)?, stream))))
        })
        .boxed()
    }
}

impl ValueBody {
    /// The body as a stream, whichever it is.
    #[must_use]
    pub fn into_stream(self) -> ValueStream {
        match self {
            Self::Bytes(bytes) => futures::stream::once(std::future::ready(Ok(bytes))).boxed(),
            Self::Stream(stream) => stream,
        }
    }
}

impl fmt::Debug for ValueBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// What must hold for a write to be made; checked and made as one step.
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
    /// Compares the condition with what is stored now. A weak version never holds, an unsettled one as far as can be told:
    /// callers have none, so that is for who reads, changes and writes back.
    ///
    /// # Errors
    /// [`StoreError::ConditionFailed`].
    pub fn check(&self, current: Option<&ValueInfo>) -> Result<(), StoreError> {
        let holds = match self {
            Self::Always => true,
            Self::IfAbsent => current.is_none(),
            Self::IfVersion(version) => {
                version.pin().is_some() && current.is_some_and(|info| version.holds_for(&info.version))
            }
        };
        if holds { Ok(()) } else { Err(StoreError::ConditionFailed) }
    }
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetResult {
    /// Whether the key did not exist before. A backend that cannot tell says `false`.
    pub created: bool,
    /// The new version, if the backend says.
    pub version: Option<Version>,
}

/// What a copy did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyResult {
    /// The version that was copied.
    pub version: Version,
    /// What writing it did.
    pub outcome: SetResult,
}

/// A key in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// The key.
    pub key: StoreKey,
    /// What the listing says of its value.
    pub info: ValueInfo,
}

/// What `list_dir` found: keys and prefixes directly under a prefix, each sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirListing {
    /// Keys directly under the prefix.
    pub keys: Vec<ListEntry>,
    /// Prefixes directly under the prefix, each once.
    pub prefixes: Vec<StorePrefix>,
}

/// What stands directly under a prefix. Keys and prefixes are one sequence, in the order of the bytes of their texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirEntry {
    /// A key.
    Key(ListEntry),
    /// A prefix, which keys are below.
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
    fn a_version_is_always_fit_for_an_entity_tag() {
        assert_eq!(Version::strong("a\"b\r\nc\u{e9}").tag(), "a_b__c__");
        assert_ne!(Version::strong("x"), Version::weak("x"));
    }

    #[test]
    fn an_unsettled_version_is_equal_to_no_other_and_still_tells_what_can_be_told() {
        let (one, two) = (Version::unsettled("a"), Version::unsettled("a"));
        assert_ne!(one, two);
        assert_ne!(one.tag(), two.tag());
        assert!(!one.is_strong() && !one.is_settled() && one.pin() == Some(&one));
        for found in [&one, &two, &Version::strong("a")] {
            assert!(one.holds_for(found), "{found:?}");
        }
        for found in [&Version::unsettled("b"), &Version::strong("b"), &Version::weak("a")] {
            assert!(!one.holds_for(found), "{found:?}");
        }
        // Whoever was told a version by its text alone has not this one.
        let told = [Version::strong("a"), Version::strong(one.tag()), Version::weak(one.tag())];
        assert!(told.iter().all(|told| !told.holds_for(&one) && !told.holds_for(&two)));
        let (part, other) = (one.of_part("7"), two.of_part("7"));
        assert!(part != other && part.holds_for(&other) && part.holds_for(&Version::strong("a-7")));
        assert_eq!(Version::strong("a").of_part("7"), Version::strong("a-7"));
        assert_eq!(Version::weak("a").of_part("7"), Version::weak("a-7"));
    }

    #[tokio::test]
    async fn a_body_that_is_not_as_long_as_promised_is_an_error() {
        let value = |parts: Vec<&'static [u8]>, range: Range<u64>| Value {
            info: ValueInfo { size: 100, version: Version::strong("v"), modified: None },
            range,
            body: ValueBody::Stream(
                futures::stream::iter(parts.into_iter().map(|part| Ok(Bytes::from_static(part)))).boxed(),
            ),
        };
        assert_eq!(value(vec![b"ab", b"cd"], 0..4).bytes(10).await.unwrap(), "abcd");
        assert_eq!(value(vec![b"abcd"], 0..4).bytes(10).await.unwrap(), "abcd");
        assert_eq!(value(vec![], 4..4).bytes(10).await.unwrap(), "");
        let stream = value(vec![b"ab", b"cd"], 0..4).into_exact_stream();
        assert_eq!(stream.try_collect::<Vec<_>>().await.unwrap().concat(), b"abcd");
        for (parts, range) in [(vec![b"ab" as &[u8]], 0..4), (vec![b"ab", b"cde"], 0..4), (vec![], 0..1)] {
            assert!(matches!(
                value(parts.clone(), range.clone()).bytes(10).await,
                Err(StoreError::WrongLength)
            ));
            let stream: Result<Vec<Bytes>, _> = value(parts, range).into_exact_stream().try_collect().await;
            assert!(matches!(stream, Err(StoreError::WrongLength)));
        }
        assert!(matches!(value(vec![b"abcd"], 0..4).bytes(3).await, Err(StoreError::ValueTooLarge { .. })));
    }
}
