//! [`VersionDigest`]: the version of a derived chunk, a digest of the versions of all that it is made of.

use sha2::{Digest, Sha256};

use crate::cache::EncodedKey;
use crate::store::Version;
use crate::units::hexadecimal::digest_tag;

/// Identifies the encoder in versions: another release may encode other bytes.
const ENCODER_VERSION: &str = concat!("rechunked by ", env!("CARGO_PKG_VERSION"));

/// A digest in progress.
#[derive(Debug)]
pub(in crate::views) struct VersionDigest {
    digest: Sha256,
    is_strong: bool,
}

impl VersionDigest {
    /// The digest of a chunk, with the versions of the documents of its array.
    pub(in crate::views) fn new<'v>(
        key: &EncodedKey,
        documents: impl Iterator<Item = Option<&'v Version>>,
    ) -> Self {
        let mut new = Self { digest: Sha256::new(), is_strong: true };
        new.add_part(ENCODER_VERSION.as_bytes());
        new.add_part(key.recipe.as_bytes());
        new.add_part(format!("{:?}", key.coords).as_bytes());
        documents.for_each(|version| new.add(version));
        new
    }

    /// Adds the version of a stored chunk; `None` if there is no such chunk.
    pub(in crate::views) fn add(&mut self, version: Option<&Version>) {
        self.is_strong &= version.is_none_or(Version::is_strong);
        self.add_part(version.map_or(b"", |version| version.tag().as_bytes()));
    }

    /// The parts contain no zero byte: tags are visible ASCII.
    fn add_part(&mut self, part: &[u8]) {
        self.digest.update(part);
        self.digest.update([0]);
    }

    /// The version, as strong as the versions that were added.
    pub(in crate::views) fn finish(self) -> Version {
        let tag = digest_tag(&self.digest.finalize());
        if self.is_strong { Version::strong(&tag) } else { Version::weak(&tag) }
    }
}
