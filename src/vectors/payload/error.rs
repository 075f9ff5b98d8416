//! [`PayloadError`]: why a payload is not valid.

/// Why a payload is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// It ends before what its counts promise.
    #[error("it ends within its {0}")]
    Short(&'static str),
    /// It goes on behind its end.
    #[error("{0} bytes stand behind its end")]
    Trailing(usize),
    /// Its length is no whole number of rows.
    #[error("{bytes} bytes are no whole number of rows of {row} bytes")]
    PartialRow {
        /// Bytes there are.
        bytes: usize,
        /// Bytes of a row.
        row: usize,
    },
    /// It does not begin as a fragment index does.
    #[error("its first bytes are not those of a fragment index")]
    Magic,
    /// A version that is not known.
    #[error("its version is {0}, not 1")]
    Version(u16),
    /// Flags that are not known.
    #[error("its flags are {0:#x}, not 0")]
    Flags(u16),
    /// More ranges than fragments.
    #[error("{ranges} of its {fragments} fragments are ranges")]
    TooManyRanges {
        /// Ranges.
        ranges: u32,
        /// Fragments.
        fragments: u32,
    },
    /// The bitmap does not mark as many ranges as there are.
    #[error("its bitmap marks {marked} fragments as ranges; there are {ranges}")]
    RangeCount {
        /// Marked in the bitmap.
        marked: u32,
        /// As the header has it.
        ranges: u32,
    },
    /// Bits behind the last fragment.
    #[error("its bitmap marks fragments that do not exist")]
    Padding,
    /// Offsets that do not begin at 0, or descend.
    #[error("its offsets do not ascend from 0")]
    Offsets,
    /// A row that does not exist.
    #[error("it names row {row} of {rows}")]
    Row {
        /// The row.
        row: i64,
        /// Rows there are.
        rows: u64,
    },
    /// A mode that is not known.
    #[error("block {block} has the mode {mode}; there are 0, 1 and 2")]
    Mode {
        /// The mode.
        mode: u8,
        /// The block.
        block: u32,
    },
    /// A fragment number below 0, or beyond what numbers can be.
    #[error("it names fragment {0}")]
    Fragment(i64),
    /// A count below 0.
    #[error("it counts {0} of something")]
    Count(i64),
    /// A number that says how a record was ordered, and cannot.
    #[error("{0} is no order of a record's endpoints")]
    Permutation(i64),
}
