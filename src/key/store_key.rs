//! [`StoreKey`] and [`StorePrefix`]: the names of values in a store (Zarr core 3.1, "Abstract store interface").

use std::fmt;
use std::sync::Arc;

use super::check::check_key;
use super::last_segment::last_segment;
use super::{KeyError, MAX_KEY_BYTES};

/// The key of a value in a store.
///
/// Invariants: 1 to 1,024 bytes of UTF-8; 1 to 64 segments separated by `/`; no segment is empty, `.` or `..`; no
/// control characters. Clones share their text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreKey(Arc<str>);

impl StoreKey {
    /// Parses a key as the specification spells it (not percent-encoded, no leading slash).
    ///
    /// # Errors
    /// [`KeyError`] says which invariant the text breaks.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        Self::check(text)?;
        Ok(Self(text.into()))
    }

    /// Checks that a text is a key.
    ///
    /// # Errors
    /// As [`StoreKey::parse`].
    pub fn check(text: &str) -> Result<(), KeyError> {
        check_key(text)
    }

    /// The longest prefix of a text that is a key; `None` if no prefix is one. No other key sorts between it and the text.
    #[must_use]
    pub fn longest_prefix(text: &str) -> Option<Self> {
        let front = text.get(..text.floor_char_boundary(MAX_KEY_BYTES))?;
        let shorter = |text: &&str| {
            let (last, _) = text.char_indices().next_back()?;
            front.get(..last)
        };
        std::iter::successors(Some(front), shorter).find_map(|text| Self::parse(text).ok())
    }

    /// The key's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last segment.
    #[must_use]
    pub fn name(&self) -> &str {
        last_segment(&self.0)
    }

    /// The prefix that contains this key: everything up to and including the last `/`, or the root.
    #[must_use]
    pub fn parent(&self) -> StorePrefix {
        StorePrefix(
            self.0.rsplit_once('/').map_or_else(|| "".into(), |(parent, _)| format!("{parent}/").into()),
        )
    }

    /// This key as the prefix `key/`.
    #[must_use]
    pub fn as_prefix(&self) -> StorePrefix {
        StorePrefix(format!("{}/", self.0).into())
    }
}

/// A prefix of keys: empty (the root of the store), or a key's text followed by `/`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorePrefix(Arc<str>);

impl StorePrefix {
    /// The prefix of every key.
    #[must_use]
    pub fn root() -> Self {
        Self("".into())
    }

    /// Parses a prefix: empty, or ending in `/`.
    ///
    /// # Errors
    /// [`KeyError`] says which invariant the text breaks.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        check_key(text.strip_suffix('/').ok_or(KeyError::PrefixWithoutSlash)?)?;
        Ok(Self(text.into()))
    }

    /// The prefix's text: empty, or ending in `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The key without the prefix's trailing slash; `None` for the root.
    #[must_use]
    pub fn as_key(&self) -> Option<StoreKey> {
        self.0.strip_suffix('/').map(|text| StoreKey(text.into()))
    }

    /// The key `prefix` + `rest`.
    ///
    /// # Errors
    /// [`KeyError`] if the result is not a valid key.
    pub fn key(&self, rest: &str) -> Result<StoreKey, KeyError> {
        StoreKey::parse(&[&*self.0, rest].concat())
    }

    /// The prefix `prefix` + `name` + `/`.
    ///
    /// # Errors
    /// [`KeyError`] if the result is not a valid prefix.
    pub fn join(&self, name: &str) -> Result<Self, KeyError> {
        Self::parse(&format!("{}{name}/", self.0))
    }
}

impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreKey({:?})", &*self.0)
    }
}

impl fmt::Display for StorePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StorePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorePrefix({:?})", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_parent_and_a_last_segment() {
        let key = StoreKey::parse("a/b/zarr.json").unwrap();
        assert_eq!((key.name(), key.parent().as_str()), ("zarr.json", "a/b/"));
        let key = StoreKey::parse("zarr.json").unwrap();
        assert_eq!((key.name(), key.parent().as_str()), ("zarr.json", ""));
    }

    #[test]
    fn invalid_keys_are_rejected() {
        for (text, error) in [
            ("", KeyError::Empty),
            ("/a", KeyError::EmptySegment),
            ("a/", KeyError::EmptySegment),
            ("a//b", KeyError::EmptySegment),
            ("a/./b", KeyError::DotSegment(".")),
            ("a/..", KeyError::DotSegment("..")),
            ("a\0b", KeyError::ControlCharacter),
            ("a\u{7f}", KeyError::ControlCharacter),
        ] {
            assert_eq!(StoreKey::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(StoreKey::parse(&"a".repeat(1025)), Err(KeyError::TooLong(1025)));
        assert_eq!(StoreKey::parse(&vec!["a"; 65].join("/")), Err(KeyError::TooDeep(65)));
        assert!(StoreKey::parse(&vec!["a"; 64].join("/")).is_ok());
        assert!(StoreKey::parse(&"a".repeat(1024)).is_ok());
    }

    #[test]
    fn unusual_valid_keys_are_kept_byte_for_byte() {
        for text in
            ["a1/0..0", "...foo", "c.1.2", "%2e%2e", "e\u{301}", "a b", "x\\y", "a&b'<c>", "...", "日本/0"]
        {
            assert_eq!(StoreKey::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_prefix_is_the_root_or_a_text_with_a_trailing_slash() {
        assert!(StorePrefix::parse("").unwrap().is_root());
        assert_eq!(StorePrefix::parse("a"), Err(KeyError::PrefixWithoutSlash));
        assert_eq!(StorePrefix::parse("/"), Err(KeyError::Empty));
        assert_eq!(StorePrefix::parse("a/b/").unwrap().key("c/0").unwrap().as_str(), "a/b/c/0");
        assert_eq!(StorePrefix::root().join("a").unwrap().as_str(), "a/");
    }

    #[test]
    fn the_longest_prefix_of_any_text_that_is_a_key_is_found() {
        for (text, key) in [
            ("", None),
            ("/", None),
            ("a/b", Some("a/b")),
            ("a/", Some("a")),
            ("a//b", Some("a")),
            ("a/../b", Some("a")),
            ("a/.zarray", Some("a/.zarray")),
            ("a\0b", Some("a")),
            ("é\u{7f}", Some("é")),
        ] {
            assert_eq!(StoreKey::longest_prefix(text).as_ref().map(StoreKey::as_str), key, "{text:?}");
        }
        let long = "é".repeat(600);
        assert_eq!(StoreKey::longest_prefix(&long).unwrap().as_str().len(), 1024);
        assert_eq!(StoreKey::longest_prefix(&"a/".repeat(600)).unwrap().as_str().len(), 127);
    }
}
