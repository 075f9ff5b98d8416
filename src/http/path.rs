//! Parsing of raw request paths into a mount and a key, prefix or node path. No other module percent-decodes paths.
//!
//! The raw path is split on `/`, then each segment is decoded exactly once, so `%252e` is the key `%2e`. Repeated
//! slashes collapse, `+` is a literal, and nothing is normalised or case-folded. A decoded `/`, a bad escape, bytes that
//! are not UTF-8, and a text that [`StoreKey`] rejects are a 400. Decoded path parameters of axum are never used for keys.
//!
//! In the path of a node, `%2F` is a slash like any other: node names contain none, and a client that fills a path into a
//! URL template as one parameter escapes it. Access control and handlers use the same function ([`node_of`]), so that both
//! see the same node. In the path of a key, and of any write ([`check_written_path`]), `%2F` is an error.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::{Classify, ErrorClass};
use crate::key::{KeyError, NodePath, StoreKey, StorePrefix};
use crate::views::rechunk::RechunkSpec;

/// Everything but `A-Z a-z 0-9 - . _ ~`.
const NOT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a raw path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// `%` without two hexadecimal digits.
    #[error("the path has a `%` that is not followed by two hexadecimal digits")]
    BadEscape,
    /// Escapes that are not UTF-8.
    #[error("the path is not UTF-8 when decoded")]
    NotUtf8,
    /// An escaped slash in a segment.
    #[error(
        "the path has an escaped `/`, which no name can hold: write the slashes between names as they are"
    )]
    EscapedSlash,
    /// The decoded path is not a valid key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Classify for PathError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::BadEscape | Self::NotUtf8 | Self::EscapedSlash => ErrorClass::InvalidRequest,
            Self::Key(error) => error.class(),
        }
    }
}

/// A raw path, split and decoded: the name of the mount and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MountPath<'a> {
    mount: Cow<'a, str>,
    /// Decoded segments joined with `/`; no slash at either end.
    rest: Cow<'a, str>,
    /// Whether the path ended in a slash.
    ends_in_slash: bool,
}

/// The raw segments of a raw path.
pub(crate) fn segments(raw_path: &str) -> Segments<'_> {
    Segments { rest: raw_path }
}

/// The raw segments that are left of a raw path.
#[derive(Clone, Debug)]
pub(crate) struct Segments<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        // By bytes: every request has a path, and the searchers of `str` take longer to set up than a segment to search.
        let start = self.rest.bytes().position(|byte| byte != b'/')?;
        let rest = self.rest.get(start..)?;
        let end = rest.bytes().position(|byte| byte == b'/').unwrap_or(rest.len());
        let (segment, rest) = rest.split_at_checked(end)?;
        self.rest = rest;
        Some(segment)
    }
}

impl<'a> Segments<'a> {
    /// Those after the first ones.
    fn after(mut self, count: usize) -> Self {
        self.by_ref().take(count).for_each(drop);
        self
    }

    /// The segments, decoded and joined with `/`.
    fn joined(
        self,
        decode: impl Fn(&'a str) -> Result<Cow<'a, str>, PathError>,
    ) -> Result<Cow<'a, str>, PathError> {
        let raw = self.rest.strip_prefix('/').unwrap_or(self.rest);
        let raw = raw.strip_suffix('/').unwrap_or(raw);
        if is_plain(raw) {
            return Ok(Cow::Borrowed(raw));
        }
        let mut text = String::with_capacity(raw.len());
        for segment in self {
            if !text.is_empty() {
                text.push('/');
            }
            text.push_str(&decode(segment)?);
        }
        Ok(Cow::Owned(text))
    }
}

/// Whether a text without a slash at either end has no escape and no empty segment: then it is itself what is joined of its segments.
fn is_plain(raw: &str) -> bool {
    let mut is_after_slash = true;
    let has_none = raw.bytes().all(|byte| {
        let is_odd = byte == b'%' || (byte == b'/' && is_after_slash);
        is_after_slash = byte == b'/';
        !is_odd
    });
    has_none && (!is_after_slash || raw.is_empty())
}

/// Splits and decodes a raw path whose first `literals` segments are fixed by the route.
fn locate(raw_path: &str, literals: usize) -> Result<MountPath<'_>, PathError> {
    let mut names = segments(raw_path).after(literals);
    let mount = decode(names.next().unwrap_or_default())?;
    let rest = names.joined(decode)?;
    if !mount.is_empty() {
        // `..` in place of a mount name is a 400, as in a key, not an unknown mount.
        StoreKey::check(&mount)?;
    }
    Ok(MountPath { mount, rest, ends_in_slash: raw_path.ends_with('/') })
}

/// Decodes one raw segment, once.
fn decode(segment: &str) -> Result<Cow<'_, str>, PathError> {
    match unescaped(segment)? {
        // What has no escape has no slash.
        Cow::Owned(text) if text.contains('/') => Err(PathError::EscapedSlash),
        text => Ok(text),
    }
}

/// Decodes one raw segment once. The result may contain slashes.
fn unescaped(segment: &str) -> Result<Cow<'_, str>, PathError> {
    if segment.bytes().all(|byte| byte != b'%') {
        return Ok(Cow::Borrowed(segment));
    }
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        let mut is_hex = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
        if byte == b'%' && !(is_hex() && is_hex()) {
            return Err(PathError::BadEscape);
        }
    }
    percent_decode_str(segment).decode_utf8().map_err(|_not_utf8| PathError::NotUtf8)
}

/// Encodes a text as one segment of a URL: everything outside `A-Za-z0-9-._~` is percent-encoded.
pub(crate) fn encode(segment: &str) -> String {
    utf8_percent_encode(segment, NOT_UNRESERVED).to_string()
}

/// A key or a prefix below the root of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrPrefix {
    /// A key: a path without a trailing slash.
    Key(StoreKey),
    /// A prefix: the root, or a path with a trailing slash.
    Prefix(StorePrefix),
}

impl KeyOrPrefix {
    /// Parses decoded segments, joined with `/` and without a slash at either end.
    fn parse(text: &str, ends_in_slash: bool) -> Result<Self, PathError> {
        if text.is_empty() {
            return Ok(Self::Prefix(StorePrefix::root()));
        }
        let key = StoreKey::parse(text)?;
        Ok(if ends_in_slash { Self::Prefix(key.as_prefix()) } else { Self::Key(key) })
    }

    /// Parses a raw path where a mount is served at the root path.
    pub(crate) fn at_root(raw_path: &str) -> Result<Self, PathError> {
        Self::parse(&segments(raw_path).joined(decode)?, raw_path.ends_with('/'))
    }
}

/// The mount name and the key or prefix of a raw path of the store routes.
pub(crate) fn place_of(raw_path: &str) -> Result<(Cow<'_, str>, KeyOrPrefix), PathError> {
    let located = locate(raw_path, 1)?;
    let place = KeyOrPrefix::parse(&located.rest, located.ends_in_slash)?;
    Ok((located.mount, place))
}

/// The mount and the key that `x-amz-copy-source` names: `mount/key`, percent-encoded, with a slash before it or without. `%2F`
/// is a slash: some clients encode the whole as one segment.
///
/// # Errors
/// [`PathError`] if it names no key.
pub(crate) fn copied_key(text: &str) -> Result<(String, StoreKey), PathError> {
    let path = unescaped(text)?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (mount, key) = path.split_once('/').unwrap_or((path, ""));
    Ok((mount.to_owned(), StoreKey::parse(key)?))
}

/// The mount name and the node path of a raw path `/v1/{word}/{mount}/{path}`. `%2F` counts as a slash.
///
/// # Errors
/// [`PathError`] if the path is invalid.
pub(crate) fn node_of(raw_path: &str) -> Result<(Cow<'_, str>, NodePath), PathError> {
    node_behind(raw_path, 2)
}

/// The mount name and the node path of a raw path `/view/{mount}/{path}`, as [`node_of`].
///
/// # Errors
/// [`PathError`] if the path is invalid.
pub(crate) fn node_of_page(raw_path: &str) -> Result<(Cow<'_, str>, NodePath), PathError> {
    node_behind(raw_path, 1)
}

/// The mount name and the node path of a raw path `/dap/{mount}/{path}` without the suffix of a response, as [`node_of`].
///
/// # Errors
/// [`PathError`] if the path is invalid.
pub(crate) fn dap_node(raw_path: &str) -> Result<(Cow<'_, str>, NodePath), PathError> {
    node_behind(raw_path, 1)
}

/// Checks that the raw path of a request that writes to a node has no escaped slash: what is written has one spelling.
///
/// # Errors
/// [`PathError`] if the path is invalid.
pub(crate) fn check_written_path(raw_path: &str) -> Result<(), PathError> {
    segments(raw_path).try_for_each(|segment| decode(segment).map(drop))
}

fn node_behind(raw_path: &str, literals: usize) -> Result<(Cow<'_, str>, NodePath), PathError> {
    let mut names = segments(raw_path).after(literals);
    let mount = decode(names.next().unwrap_or_default())?;
    if !mount.is_empty() {
        StoreKey::check(&mount)?;
    }
    Ok((mount, node_path(names)?))
}

/// The mount name, the grid, level, column and row of a tile, and the node path of a raw path
/// `/tiles/{mount}/{tms}/{z}/{x}/{y}/{path}`.
type TilePath<'a> = (Cow<'a, str>, [Cow<'a, str>; 4], NodePath);

/// Parses a raw path of a tile. `%2F` in the node path counts as a slash.
///
/// # Errors
/// [`PathError`] if the path is invalid.
pub(crate) fn tile_of(raw_path: &str) -> Result<TilePath<'_>, PathError> {
    let mut names = segments(raw_path).after(1);
    let mut next = || decode(names.next().unwrap_or_default());
    let (mount, address) = (next()?, [next()?, next()?, next()?, next()?]);
    if !mount.is_empty() {
        StoreKey::check(&mount)?;
    }
    Ok((mount, address, node_path(names)?))
}

/// The node path of raw segments.
fn node_path(names: Segments<'_>) -> Result<NodePath, PathError> {
    let path = names.joined(unescaped)?;
    // Escaped slashes collapse like unescaped ones.
    let path = if path.contains("//") || path.starts_with('/') || path.ends_with('/') {
        NodePath::parse(&segments(&path).joined(|name| Ok(Cow::Borrowed(name)))?)?
    } else {
        NodePath::parse(&path)?
    };
    Ok(path)
}

/// The mount name and the node path of a raw path `/v1/{word}/{mount}/{path}` that addresses keys, in the path or in the
/// body. `%2F` is an error, as in every path of a key.
///
/// # Errors
/// [`PathError`] if the path is invalid.
pub(crate) fn prefix_of(raw_path: &str) -> Result<(Cow<'_, str>, NodePath), PathError> {
    let located = locate(raw_path, 2)?;
    Ok((located.mount, NodePath::parse(&located.rest)?))
}

/// The mount name, chunk shape and codec, optional data type, and key or prefix of a raw path
/// `/rechunk/{mount}/{chunks}/{codec}/…`, in this order; and with other segments in place of the chunk shape and codec.
type RecipePath<'a, const N: usize> = (Cow<'a, str>, [Cow<'a, str>; N], Option<Cow<'a, str>>, KeyOrPrefix);

/// Parses a raw path with a mount and a rechunking recipe.
pub(crate) fn rechunked_place(raw_path: &str) -> Result<RecipePath<'_, 2>, PathError> {
    recipe_place(raw_path)
}

/// Parses a raw path `/pyramid/{mount}/{method}/{chunks}/{codec}/…`, with the data type as in that of a rechunking recipe.
pub(crate) fn pyramid_place(raw_path: &str) -> Result<RecipePath<'_, 3>, PathError> {
    recipe_place(raw_path)
}

/// Parses a raw path with a mount and this number of segments of a recipe.
fn recipe_place<const N: usize>(raw_path: &str) -> Result<RecipePath<'_, N>, PathError> {
    let mut names = segments(raw_path).after(1);
    let name = decode(names.next().unwrap_or_default())?;
    let mut recipe = [const { Cow::Borrowed("") }; N];
    for segment in &mut recipe {
        *segment = decode(names.next().unwrap_or_default())?;
    }
    let third = names.clone().next().map(decode).transpose()?;
    let data_type = third.filter(|segment| RechunkSpec::is_data_type(segment));
    if data_type.is_some() {
        names.next();
    }
    let place = KeyOrPrefix::parse(&names.joined(decode)?, raw_path.ends_with('/'))?;
    Ok((name, recipe, data_type, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(place: &KeyOrPrefix) -> String {
        match place {
            KeyOrPrefix::Key(key) => key.as_str().to_owned(),
            KeyOrPrefix::Prefix(prefix) => prefix.as_str().to_owned(),
        }
    }

    fn rest(raw: &str) -> Result<String, PathError> {
        let located = locate(raw, 1)?;
        KeyOrPrefix::parse(&located.rest, located.ends_in_slash).map(|place| text(&place))
    }

    #[test]
    fn at_the_root_every_path_is_a_key_or_a_prefix() {
        for (raw, expected) in [
            ("/", ""),
            ("//", ""),
            ("//zarr.json", "zarr.json"),
            ("/store/m/a", "store/m/a"),
            ("/healthz", "healthz"),
            ("/v1/", "v1/"),
            ("/%252e%252e", "%2e%2e"),
        ] {
            assert_eq!(KeyOrPrefix::at_root(raw).map(|place| text(&place)).as_deref(), Ok(expected), "{raw}");
        }
        for raw in ["/..", "/a/%2e%2e/b", "/a%2fb", "/%00", "/%"] {
            assert!(KeyOrPrefix::at_root(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn an_escaped_slash_separates_segments_only_in_node_paths() {
        let node = |raw: &str| node_of(raw).map(|(mount, path)| format!("{mount} {}", path.as_str()));
        for word in ["data", "nodes", "chunk", "vectors"] {
            for (path, expected) in [
                ("demo/image%2F0", "demo image/0"),
                ("demo/image%2f0", "demo image/0"),
                ("demo/image/0", "demo image/0"),
                ("demo/%2Fimage%2F%2f0%2F/", "demo image/0"),
                ("demo/%2F", "demo "),
                ("demo/a%252Fb", "demo a%2Fb"),
            ] {
                assert_eq!(node(&format!("/v1/{word}/{path}")).as_deref(), Ok(expected), "{path}");
            }
            for path in [
                "demo/a%2F..%2Fb",
                "demo/%2e%2E%2Fb",
                "demo/a%2F.",
                "demo%2Fa",
                "demo%2F..%2Fm/a",
                "demo/a%2F%00",
            ] {
                assert!(node(&format!("/v1/{word}/{path}")).is_err(), "{path}");
            }
        }
        for raw in ["/v1/cache/demo/a%2Fb", "/v1/partial/demo%2Fa", "//v1//cache//demo//a%2Fb"] {
            assert_eq!(prefix_of(raw), Err(PathError::EscapedSlash), "{raw}");
        }
        assert_eq!(rest("/store/m/a%2Fb"), Err(PathError::EscapedSlash));
        for raw in ["/v1/nodes/demo/a%2Fb", "/v1/data/demo/%2fa", "/v1/chunk/demo%2Fa/c/0"] {
            assert_eq!(check_written_path(raw), Err(PathError::EscapedSlash), "{raw}");
        }
        assert_eq!(check_written_path("/v1/nodes//demo/a%252Fb/%C3%A9"), Ok(()));
    }

    #[test]
    fn each_segment_is_decoded_exactly_once() {
        for (raw, text) in [
            ("/store/m/a/zarr.json", "a/zarr.json"),
            ("/store/m", ""),
            ("/store/m/", ""),
            ("/store/m//zarr.json", "zarr.json"),
            ("//store///m//a///b//", "a/b/"),
            ("/store/m/a+b", "a+b"),
            ("/store/m/%252e%252e/x", "%2e%2e/x"),
            ("/store/m/%C3%A9", "\u{e9}"),
            ("/store/m/e%CC%81", "e\u{301}"),
            ("/store/m/a%20b%3fc%23d%25", "a b?c#d%"),
            ("/store/m/...", "..."),
            ("/store/m/a%5cb", "a\\b"),
            ("/store/m/a;v=1", "a;v=1"),
        ] {
            assert_eq!(rest(raw).as_deref(), Ok(text), "{raw}");
        }
    }

    #[test]
    fn paths_that_are_not_valid_keys_are_rejected() {
        for (raw, error) in [
            ("/store/m/..", PathError::Key(KeyError::DotSegment(".."))),
            ("/store/m/a/../b", PathError::Key(KeyError::DotSegment(".."))),
            ("/store/m/%2e%2E/b", PathError::Key(KeyError::DotSegment(".."))),
            ("/store/m/.%2e/b", PathError::Key(KeyError::DotSegment(".."))),
            ("/store/m/a/%2e", PathError::Key(KeyError::DotSegment("."))),
            ("/store/m/./a", PathError::Key(KeyError::DotSegment("."))),
            ("/store/../m/a", PathError::Key(KeyError::DotSegment(".."))),
            ("/store/%2e%2e/m/a", PathError::Key(KeyError::DotSegment(".."))),
            ("/store/m/a%2fb", PathError::EscapedSlash),
            ("/store/m/..%2F..%2fetc", PathError::EscapedSlash),
            ("/store/m%2fa/b", PathError::EscapedSlash),
            ("/store/m/a%00", PathError::Key(KeyError::ControlCharacter)),
            ("/store/m/a%0d%0aX:1", PathError::Key(KeyError::ControlCharacter)),
            ("/store/m/a%7f", PathError::Key(KeyError::ControlCharacter)),
            ("/store/m/%ff", PathError::NotUtf8),
            ("/store/m/%c0%af", PathError::NotUtf8),
            ("/store/m/%ed%a0%80", PathError::NotUtf8),
            ("/store/m/%", PathError::BadEscape),
            ("/store/m/%2", PathError::BadEscape),
            ("/store/m/%zz", PathError::BadEscape),
            ("/store/m/%u002e", PathError::BadEscape),
            ("/store/m/a%+1", PathError::BadEscape),
        ] {
            assert_eq!(rest(raw), Err(error), "{raw}");
        }
        assert_eq!(rest(&format!("/store/m/{}", "a".repeat(1025))), Err(KeyError::TooLong(1025).into()));
        assert_eq!(rest(&format!("/store/m/{}", "a/".repeat(65))), Err(KeyError::TooDeep(65).into()));
    }

    proptest::proptest! {
        #[test]
        fn every_key_survives_its_own_encoding(text in "\\PC{1,40}(/\\PC{1,20}){0,3}") {
            if let Ok(key) = StoreKey::parse(&text) {
                let encoded = key.as_str().split('/').map(encode).collect::<Vec<_>>().join("/");
                proptest::prop_assert_eq!(rest(&format!("/store/m/{encoded}")).unwrap(), key.as_str());
            }
        }

        #[test]
        fn no_raw_path_makes_a_key_that_leaves_the_root(raw in "(/|[.]|%2[eEfF]|%25|%5c|a|[+]|%|0){0,30}") {
            if let Ok(text) = rest(&format!("/store/m/{raw}")) {
                proptest::prop_assert!(!text.starts_with('/') && !text.contains("//"));
                proptest::prop_assert!(text.split('/').all(|segment| segment != "." && segment != ".."));
            }
        }
    }
}
