//! [`MetadataLimits`]: limits on the size and nesting of metadata documents.

/// Limits on metadata documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataLimits {
    /// Maximum length of a document, in bytes.
    pub document_bytes: usize,
    /// Maximum nesting of arrays and objects.
    pub depth: usize,
    /// Maximum number of dimensions of an array.
    pub rank: usize,
    /// Maximum number of codecs in one chain.
    pub codecs: usize,
    /// Maximum length of consolidated metadata, read or built, in bytes.
    pub consolidated_bytes: usize,
    /// Maximum number of nodes visited to build consolidated metadata.
    pub consolidated_nodes: usize,
}

impl Default for MetadataLimits {
    fn default() -> Self {
        Self {
            document_bytes: 4 << 20,
            depth: 64,
            rank: 32,
            codecs: 16,
            consolidated_bytes: 64 << 20,
            consolidated_nodes: 50_000,
        }
    }
}
