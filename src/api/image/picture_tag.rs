//! [`PictureTag`]: the entity tag of a picture in the making.

use sha2::{Digest, Sha256};

use super::scene::Scene;
use crate::store::Version;
use crate::units::hexadecimal::digest_tag;

/// Part of every tag. It changes whenever a release draws the same elements differently.
const RENDERER: &[u8] = b"zarrd picture 3";

/// The entity tag of a picture in the making: a digest of everything that the picture depends on.
#[derive(Debug)]
pub(super) struct PictureTag {
    text: Vec<u8>,
    is_strong: bool,
}

impl Default for PictureTag {
    fn default() -> Self {
        let mut tag = Self { text: Vec::with_capacity(1 << 10), is_strong: true };
        tag.add_text(RENDERER);
        tag
    }
}

impl PictureTag {
    /// Adds what a scene depends on beside its chunks.
    pub(super) fn add_scene(&mut self, scene: &Scene) {
        self.add_text(scene.words().as_bytes());
        for version in &scene.versions {
            self.add(version.as_ref());
        }
        if let Some(positions) = &scene.subject.positions {
            self.add_text(positions.identity().as_bytes());
            self.add(positions.used.version.as_ref());
        }
        for node in &scene.subject.nodes {
            for version in node.located.versions() {
                self.add(version);
            }
        }
    }

    /// Adds a text. No part contains a zero byte: tags are visible ASCII, and `Debug` escapes control characters.
    pub(super) fn add_text(&mut self, part: &[u8]) {
        self.text.extend_from_slice(part);
        self.text.push(0);
    }

    /// Adds the version of a stored value, or its absence.
    pub(super) fn add(&mut self, version: Option<&Version>) {
        self.is_strong &= version.is_none_or(Version::is_strong);
        self.add_text(version.map_or(b"", |version| version.tag().as_bytes()));
    }

    /// The version of the picture.
    pub(super) fn finish(&self) -> Version {
        let tag = digest_tag(&Sha256::digest(&self.text));
        if self.is_strong { Version::strong(&tag) } else { Version::weak(&tag) }
    }
}
