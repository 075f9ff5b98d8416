//! [`Format`]: the formats of decoded elements, with their names, media types and file extensions.
//!
//! This is the one list of them: what HTTP offers, negotiates and documents is derived from [`Format::ALL`].

use crate::metadata::{DataType, Endianness};

/// A format of decoded elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The elements in canonical form and nothing else; each element of variable length follows its length.
    Bytes,
    /// A file that numpy opens (`numpy.lib.format`).
    Npy,
    /// Nested lists (RFC 8259).
    Json,
    /// Rows and columns of text (RFC 4180).
    Csv,
    /// A stream of Arrow record batches (Arrow columnar format, "IPC Streaming Format").
    Arrow,
}

/// How a response in some format is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In pieces as they are decoded. The length is known before the first element is read, so ranges can be served.
    Streamed,
    /// All at once. The length depends on the elements, so the response is written to memory first.
    Buffered,
}

impl Format {
    /// All formats; the first is the default.
    pub const ALL: [Self; 5] = [Self::Bytes, Self::Npy, Self::Json, Self::Csv, Self::Arrow];

    /// The value of the query parameter `format`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Npy => "npy",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The media type, without parameters.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Bytes => "application/octet-stream",
            Self::Npy => "application/x-npy",
            Self::Json => "application/json",
            Self::Csv => "text/csv",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    /// The extension of a file in this format, without a dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Bytes => "bin",
            Self::Npy => "npy",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
        }
    }

    /// How elements of this type are sent.
    #[must_use]
    pub fn delivery(self, data_type: &DataType) -> Delivery {
        match self {
            Self::Bytes | Self::Npy if !data_type.is_variable() => Delivery::Streamed,
            Self::Bytes | Self::Npy | Self::Json | Self::Csv | Self::Arrow => Delivery::Buffered,
        }
    }
}

/// A format and its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// The format.
    pub format: Format,
    /// The byte order of [`Format::Bytes`] and [`Format::Npy`].
    pub endian: Endianness,
    /// How [`Format::Json`] and [`Format::Csv`] write values that JSON has no number for.
    pub nan: NanMode,
}

/// How text formats write a float that JSON has no number for, and a time that is `NaT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NanMode {
    /// `"NaN"`, `"Infinity"`, `"-Infinity"` and `"NaT"`.
    #[default]
    String,
    /// `null` for all of them.
    Null,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_formats_share_a_name_media_type_or_extension() {
        for property in [Format::name, Format::media_type, Format::extension] {
            let mut values = Format::ALL.map(property).to_vec();
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), Format::ALL.len(), "{values:?}");
        }
    }
}
