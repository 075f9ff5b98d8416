//! JSON from hostile bytes.

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
}

impl Default for MetadataLimits {
    fn default() -> Self {
        Self { document_bytes: 4 << 20, depth: 64, rank: 32, codecs: 16 }
    }
}
