//! The nouns of the store interface: ranges, versions, values, conditions and listings.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};

use super::StoreError;
use crate::key::{StoreKey, StorePrefix};

/// Since when a store has told nothing of what it watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet(pub(super) u64);

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
    pub const fn name(self) -> &'static str {
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
    pub const fn words(self) -> &'static str {
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
/// strong tag) only says that the value probably did not change.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version {
    tag: Arc<str>,
    strong: bool,
}

impl Version {
    /// A version from an opaque tag of visible ASCII without `"`; other characters are replaced by `_`.
    #[must_use]
    pub fn strong(tag: &str) -> Self {
        Self { tag: clean_tag(tag), strong: true }
    }

    /// A weak version, from what little a backend says (modification time and size).
    #[must_use]
    pub fn weak(tag: &str) -> Self {
        Self { tag: clean_tag(tag), strong: false }
    }

    /// The opaque tag.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// This version, to hold a read to; a weak one names no bytes, so no read can be held to it.
    #[must_use]
    pub fn pin(&self) -> Option<&Self> {
        self.strong.then_some(self)
    }

    /// Whether equal versions promise equal bytes.
    #[must_use]
    pub fn is_strong(&self) -> bool {
        self.strong
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
        write!(f, "{}{:?}", if self.strong { "" } else { "W/" }, &*self.tag)
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
    /// Compares the condition with what is stored now. A weak version never holds.
    ///
    /// # Errors
    /// [`StoreError::ConditionFailed`].
    pub fn check(&self, current: Option<&ValueInfo>) -> Result<(), StoreError> {
        let holds = match self {
            Self::Always => true,
            Self::IfAbsent => current.is_none(),
            Self::IfVersion(version) => {
                version.is_strong() && current.is_some_and(|info| info.version == *version)
            }
        };
        if holds { Ok(()) } else { Err(StoreError::ConditionFailed) }
    }
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOutcome {
    /// Whether the key did not exist before. A backend that cannot tell says `false`.
    pub created: bool,
    /// The new version, if the backend says.
    pub version: Option<Version>,
}

/// What a copy did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The version that was copied.
    pub version: Version,
    /// What writing it did.
    pub outcome: SetOutcome,
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
