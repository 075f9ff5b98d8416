//! Zarr v2 documents.
use super::{ArrayMetadata, GroupMetadata, MetadataError, MetadataLimits};

/// Parses `.zarray`, and `.zattrs` if there is one.
///
/// # Errors
/// [`MetadataError`] says what is wrong and where.
pub fn parse_array(
    _zarray: &[u8],
    _zattrs: Option<&[u8]>,
    _limits: &MetadataLimits,
) -> Result<ArrayMetadata, MetadataError> {
    Err(MetadataError::unsupported("format", "v2"))
}

/// Parses `.zgroup`, and `.zattrs` if there is one.
///
/// # Errors
/// [`MetadataError`] says what is wrong and where.
pub fn parse_group(
    _zgroup: &[u8],
    _zattrs: Option<&[u8]>,
    _limits: &MetadataLimits,
) -> Result<GroupMetadata, MetadataError> {
    Err(MetadataError::unsupported("format", "v2"))
}
