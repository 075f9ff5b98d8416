//! [`ParquetFault`]: why a file in Parquet is refused.

/// Why a file is refused, as a part of a sentence.
pub(super) type ParquetFault = &'static str;
