//! [`PayloadError`]: why a payload is not valid.

/// Why a payload is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// It ends within this part.
    #[error("it ends within its {0}")]
    Short(&'static str),
    /// Bytes follow its end.
    #[error("{0} bytes follow its end")]
    Trailing(usize),
    /// Its length is not a multiple of the row size.
    #[error("{bytes} bytes are not a multiple of the row size of {row} bytes")]
    PartialRow {
        /// The number of bytes.
        bytes: usize,
        /// The size of a row in bytes.
        row: usize,
    },
    /// Its magic number is not that of a fragment index.
    #[error("its magic number is not that of a fragment index")]
    Magic,
    /// An unsupported version.
    #[error("its version is {0}, not 1")]
    Version(u16),
    /// Unsupported flags.
    #[error("its flags are {0:#x}, not 0")]
    Flags(u16),
    /// More ranges than fragments.
    #[error("{ranges} of its {fragments} fragments are ranges")]
    TooManyRanges {
        /// The number of ranges.
        ranges: u32,
        /// The number of fragments.
        fragments: u32,
    },
    /// The bitmap marks a different number of ranges than the header declares.
    #[error("its bitmap marks {marked} fragments as ranges; there are {ranges}")]
    RangeCount {
        /// The number that the bitmap marks.
        marked: u32,
        /// The number in the header.
        ranges: u32,
    },
    /// The bitmap marks fragments after the last one.
    #[error("its bitmap marks fragments that do not exist")]
    Padding,
    /// Offsets that do not start at 0, or that descend.
    #[error("its offsets do not ascend from 0")]
    Offsets,
    /// A row that does not exist.
    #[error("it names row {row} of {rows}")]
    Row {
        /// The row.
        row: i64,
        /// The number of rows.
        rows: u64,
    },
    /// An unknown mode.
    #[error("block {block} has the mode {mode}; there are 0, 1 and 2")]
    Mode {
        /// The mode.
        mode: u8,
        /// The block.
        block: u32,
    },
    /// A fragment number that is negative or too large.
    #[error("it names fragment {0}")]
    Fragment(i64),
    /// A count that is negative or too large.
    #[error("it has the invalid count {0}")]
    Count(i64),
    /// A code that is not a permutation of a record's endpoints.
    #[error("{0} is not a permutation of a record's endpoints")]
    Permutation(i64),
}
