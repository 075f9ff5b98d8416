//! [`FoundDocuments`]: the documents of a node as a lookup found them, with the texts that came with it.

use bytes::Bytes;

use super::Located;
use super::documents::Documents;
use crate::store::{ValueInfo, Version};

/// The documents of a node, and the texts of those that the lookup read.
#[derive(Clone, Debug)]
pub struct FoundDocuments {
    /// The documents with their versions.
    pub located: Located,
    pub(super) texts: DocumentTexts,
}

impl FoundDocuments {
    pub(super) fn new(documents: Documents, bytes: u64, texts: DocumentTexts) -> Self {
        Self { located: Located { documents, bytes }, texts }
    }
}

impl From<Located> for FoundDocuments {
    fn from(located: Located) -> Self {
        Self { located, texts: DocumentTexts::default() }
    }
}

/// Texts of documents, each with its name and version. None is longer than `MetadataLimits::document_bytes`.
#[derive(Clone, Debug, Default)]
pub(super) struct DocumentTexts(Vec<(&'static str, Version, Bytes)>);

impl DocumentTexts {
    /// Adds a document, if its text was read. Returns its version.
    pub(super) fn add(&mut self, name: &'static str, document: FoundDocument) -> Version {
        let version = document.info.version;
        if let Some(text) = document.text {
            self.0.push((name, version.clone(), text));
        }
        version
    }

    /// The text of a document at a version, if it was read.
    pub(super) fn get(&self, name: &str, version: &Version) -> Option<Bytes> {
        self.0.iter().find(|(known, at, _)| *known == name && at == version).map(|(_, _, text)| text.clone())
    }
}

/// A document that exists.
pub(super) struct FoundDocument {
    pub(super) info: ValueInfo,
    /// Its text, if the lookup read it.
    pub(super) text: Option<Bytes>,
}
