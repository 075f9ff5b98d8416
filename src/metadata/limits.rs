//! [`MetadataLimits`]: how large and how deep a metadata document may be.

/// Limits on what a metadata document may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataLimits {
    /// Longest document, in bytes.
    pub document_bytes: usize,
    /// Deepest nesting of arrays and objects.
    pub depth: usize,
    /// Most dimensions of an array.
    pub rank: usize,
    /// Most codecs in one chain.
    pub codecs: usize,
    /// Longest document that holds copies of others (consolidated metadata), in bytes, read or made.
    pub consolidated_bytes: usize,
    /// Most nodes looked at to make one.
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
