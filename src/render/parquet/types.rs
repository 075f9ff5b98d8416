//! [`ParquetType`]: the type of a column in the file, by its Arrow type.
//!
//! | Arrow | Parquet |
//! |---|---|
//! | `Boolean`, `Float32`, `Float64` | the same |
//! | `Float16` | `FLOAT`, exactly |
//! | integers | `INT32` or `INT64` with their width and sign |
//! | `Timestamp` | `INT64` as a local timestamp; seconds become milliseconds |
//! | `Date32` | `INT32` as a date |
//! | `Duration` | `INT64`; the schema under `ARROW:schema` has its unit |
//! | `Utf8`, `Binary`, `FixedSizeBinary` | `BYTE_ARRAY`, texts as such |

use arrow_schema::{DataType as ArrowType, TimeUnit};

use super::thrift_writer::ThriftWriter;

/// How values are stored, by the number of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlainType {
    Boolean = 0,
    Int32 = 1,
    Int64 = 2,
    Float = 4,
    Double = 5,
    ByteArray = 6,
}

/// What values stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogicalMeaning {
    Plain,
    Text,
    Date,
    /// The number of the unit: 1 for milliseconds, 2 for microseconds, 3 for nanoseconds.
    Timestamp(u8),
    Integer {
        bits: u8,
        is_signed: bool,
    },
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParquetType {
    pub(super) physical: PlainType,
    pub(super) meaning: LogicalMeaning,
    /// Whether a value may be missing.
    pub(super) is_optional: bool,
}

impl ParquetType {
    /// The type of a column with this Arrow type; `None` if a file cannot have it.
    pub(super) fn of(arrow: &ArrowType, is_optional: bool) -> Option<Self> {
        use LogicalMeaning::{Date, Integer, Plain, Text, Timestamp};
        let integer = |bits, is_signed| Integer { bits, is_signed };
        let (physical, meaning) = match arrow {
            ArrowType::Boolean => (PlainType::Boolean, Plain),
            ArrowType::Int8 => (PlainType::Int32, integer(8, true)),
            ArrowType::Int16 => (PlainType::Int32, integer(16, true)),
            ArrowType::Int32 => (PlainType::Int32, Plain),
            ArrowType::Int64 | ArrowType::Duration(_) => (PlainType::Int64, Plain),
            ArrowType::UInt8 => (PlainType::Int32, integer(8, false)),
            ArrowType::UInt16 => (PlainType::Int32, integer(16, false)),
            ArrowType::UInt32 => (PlainType::Int32, integer(32, false)),
            ArrowType::UInt64 => (PlainType::Int64, integer(64, false)),
            ArrowType::Float16 | ArrowType::Float32 => (PlainType::Float, Plain),
            ArrowType::Float64 => (PlainType::Double, Plain),
            ArrowType::Date32 => (PlainType::Int32, Date),
            ArrowType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, _) => {
                (PlainType::Int64, Timestamp(1))
            }
            ArrowType::Timestamp(TimeUnit::Microsecond, _) => (PlainType::Int64, Timestamp(2)),
            ArrowType::Timestamp(TimeUnit::Nanosecond, _) => (PlainType::Int64, Timestamp(3)),
            ArrowType::Utf8 => (PlainType::ByteArray, Text),
            ArrowType::Binary | ArrowType::FixedSizeBinary(_) => (PlainType::ByteArray, Plain),
            _ => return None,
        };
        Some(Self { physical, meaning, is_optional })
    }

    /// Writes the element of the schema (`SchemaElement`).
    pub(super) fn write(self, name: &str, element: &mut ThriftWriter<'_>) {
        element.i32(1, self.physical as i32);
        element.i32(3, i32::from(self.is_optional));
        element.text(4, name);
        // What older readers know.
        let converted = match self.meaning {
            LogicalMeaning::Text => Some(0),
            LogicalMeaning::Date => Some(6),
            LogicalMeaning::Integer { bits, is_signed } => {
                let width = bits.trailing_zeros().cast_signed() - 3;
                Some(if is_signed { 15 + width } else { 11 + width })
            }
            LogicalMeaning::Plain | LogicalMeaning::Timestamp(_) => None,
        };
        if let Some(converted) = converted {
            element.i32(6, converted);
        }
        if self.meaning != LogicalMeaning::Plain {
            element.structure(10, |logical| match self.meaning {
                LogicalMeaning::Plain => {}
                LogicalMeaning::Text => logical.structure(1, |_| {}),
                LogicalMeaning::Date => logical.structure(6, |_| {}),
                LogicalMeaning::Timestamp(unit) => logical.structure(8, |timestamp| {
                    timestamp.boolean(1, false);
                    timestamp.structure(2, |units| units.structure(unit, |_| {}));
                }),
                LogicalMeaning::Integer { bits, is_signed } => logical.structure(10, |integer| {
                    integer.byte(1, bits);
                    integer.boolean(2, is_signed);
                }),
            });
        }
    }
}
