//! [`SliceVersion`]: the version of a selection of elements, from which its entity tags are made.
//!
//! The tag of a response is the version of the selection, and after a hyphen a suffix for its representation. So each
//! representation has a strong tag of its own, and a write with `If-Match` takes the tag of any of them.

use std::fmt::{self, Write};
use std::io;

use sha2::{Digest, Sha256};

use crate::api::label_params::LabelPositions;
use crate::chunk::Subset;
use crate::store::Version;
use crate::units::hexadecimal::digest_tag;

/// Part of every version. It changes whenever a release gives the same elements another meaning.
const ELEMENTS: &[u8] = b"zarrd elements 4";
/// Part of every suffix. It changes whenever a release renders the same elements differently.
const RENDERING: &[u8] = b"zarrd rendering 2";
/// Between the version and the suffix.
const SEPARATOR: char = '-';
/// Characters of the suffix.
const SUFFIX_LENGTH: usize = 8;

/// The version of a selection, while it is put together from the versions of what is read for it.
#[derive(Clone, Debug)]
pub(super) struct SliceVersion {
    text: Vec<u8>,
    is_strong: bool,
}

impl SliceVersion {
    /// The version of a selection, of which nothing that is stored is known yet. `form` identifies how it is reduced,
    /// or the lists by which it is selected.
    pub(super) fn new(subset: &Subset, form: Option<&str>) -> Self {
        let mut version = Self { text: Vec::with_capacity(1 << 10), is_strong: true };
        version.push(ELEMENTS);
        // Writing to a vector, or to a digest, does not fail.
        let _ = io::Write::write_fmt(&mut version.text, format_args!("{subset:?}\0"));
        if let Some(form) = form {
            version.push(form.as_bytes());
        }
        version
    }

    /// Adds the version of a document or a chunk, in the order in which they are read; `None` for what is not stored.
    pub(super) fn add(&mut self, version: Option<&Version>) {
        self.is_strong &= version.is_none_or(Version::is_strong);
        self.push(version.map_or(b"", |version| version.tag().as_bytes()));
    }

    /// Adds what the positions of a selection by label follow from. Comes last.
    pub(super) fn add_labels(&mut self, positions: &LabelPositions) {
        self.push(positions.identity().as_bytes());
        self.add(positions.used.version.as_ref());
    }

    /// Tags are visible ASCII, and `Debug` escapes control characters, so no part contains a zero byte.
    fn push(&mut self, part: &[u8]) {
        self.text.extend_from_slice(part);
        self.text.push(0);
    }

    /// The version of a representation, which is identified by how it is printed.
    pub(super) fn of_representation(&self, representation: &impl fmt::Debug) -> Version {
        let mut digest = Sha256::new_with_prefix(RENDERING);
        let _ = write!(DigestWriter(&mut digest), "{representation:?}");
        let suffix = digest_tag(&digest.finalize());
        let mut tag = String::with_capacity(64);
        tag.push_str(&self.tag());
        tag.push(SEPARATOR);
        tag.extend(suffix.chars().take(SUFFIX_LENGTH));
        if self.is_strong { Version::strong(&tag) } else { Version::weak(&tag) }
    }

    /// Whether an entity tag is that of a representation of this version, which promises equal elements.
    pub(super) fn is_of(&self, tag: &[u8]) -> bool {
        let own = self.tag();
        let suffix = tag.strip_prefix(own.as_bytes());
        self.is_strong
            && suffix.is_some_and(|suffix| suffix.len() == SUFFIX_LENGTH + 1 && suffix.starts_with(b"-"))
    }

    fn tag(&self) -> String {
        digest_tag(&Sha256::digest(&self.text))
    }
}

/// A digest of what is written.
struct DigestWriter<'d>(&'d mut Sha256);

impl fmt::Write for DigestWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn representations_of_a_version_have_different_tags_and_are_recognized() {
        let subset = Subset::full(&[3]);
        let mut version = SliceVersion::new(&subset, None);
        version.add(Some(&Version::strong("a")));
        let mut other = version.clone();
        version.add(None);
        other.add(Some(&Version::strong("b")));
        let [npy, json] = ["npy", "json"].map(|format| version.of_representation(&format));
        assert!(npy.is_strong() && npy != json);
        assert!(version.is_of(npy.tag().as_bytes()) && version.is_of(json.tag().as_bytes()));
        assert!(!other.is_of(npy.tag().as_bytes()) && !version.is_of(version.tag().as_bytes()));
        version.add(Some(&Version::weak("w")));
        assert!(!version.of_representation(&"npy").is_strong());
        assert!(!version.is_of(version.of_representation(&"npy").tag().as_bytes()));
    }
}
