//! [`Labels`]: the labels of a coordinate in memory, from its elements and attributes.

use bytes::Bytes;

use super::calendar::Calendar;
use super::cf_times::CfTimes;
use super::error::LabelError;
use super::float_precision::FloatPrecision;
use super::instant::{self, Instant, NOT_A_TIME, beginning};
use super::places::Order;
use crate::chunk::Elements;
use crate::metadata::{ArrayMetadata, DataType, TimeStep, TimeUnit};
use crate::reduce::CfValues;

/// Bytes of memory of a text beside its characters.
const TEXT_BYTES: u64 = 16;

/// The labels of a coordinate, in stored order.
#[derive(Debug)]
pub(super) enum Labels {
    /// Floats, and integers that are packed.
    Floats { values: Vec<f64>, precision: FloatPrecision },
    /// Integers and truth values.
    Integers(Vec<i128>),
    /// Times of a calendar.
    Times { instants: Vec<Instant>, calendar: Calendar },
    /// Texts.
    Texts(Vec<Box<str>>),
}

impl Labels {
    /// The labels of a coordinate with these elements. Its values are never masked.
    pub(super) fn new(
        dimension: &str,
        metadata: &ArrayMetadata,
        parts: &[Elements],
    ) -> Result<Self, LabelError> {
        let items = joined(parts);
        let data_type = &metadata.data_type;
        let values = CfValues::unmasked(data_type, &metadata.attributes);
        if values.are_real() {
            return Ok(Self::of_numbers(metadata, &values, &items));
        }
        Ok(match data_type {
            DataType::DateTime64(step) if step.unit() == TimeUnit::Generic => {
                Self::Integers(int64(&items).map(i128::from).collect())
            }
            DataType::DateTime64(step) => {
                let calendar = Calendar::ProlepticGregorian;
                let instant = |steps| of_steps(*step, steps).unwrap_or(NOT_A_TIME);
                Self::Times { instants: int64(&items).map(instant).collect(), calendar }
            }
            DataType::TimeDelta64(_) => Self::Integers(int64(&items).map(i128::from).collect()),
            DataType::String => {
                let text = |element: &[u8]| String::from_utf8_lossy(element).into_owned().into_boxed_str();
                Self::Texts(parts.iter().flat_map(Elements::variable_elements).map(text).collect())
            }
            DataType::FixedLengthUtf32 { .. } => {
                let texts = items.chunks(data_type.element_bytes());
                Self::Texts(texts.map(utf32).collect())
            }
            DataType::NullTerminatedBytes { .. } => {
                let texts = items.chunks(data_type.element_bytes());
                let text = |item: &[u8]| {
                    let length = item.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                    String::from_utf8_lossy(item.get(..length).unwrap_or_default()).into_owned().into()
                };
                Self::Texts(texts.map(text).collect())
            }
            other => {
                let (dimension, data_type) = (dimension.to_owned(), other.name());
                return Err(LabelError::NoLabels { dimension, data_type });
            }
        })
    }

    fn of_numbers(metadata: &ArrayMetadata, values: &CfValues, items: &[u8]) -> Self {
        let times = CfTimes::of_attributes(&metadata.attributes);
        if values.are_integers() {
            let integers = values.integers_of(items);
            return match times {
                None => Self::Integers(integers),
                Some(times) => {
                    let instant = |number: i128| times.of_integer(number).unwrap_or(NOT_A_TIME);
                    let instants = integers.into_iter().map(instant).collect();
                    Self::Times { instants, calendar: times.calendar() }
                }
            };
        }
        let mut numbers = Vec::new();
        values.append_numbers(items, &mut numbers);
        if let Some(times) = times {
            let instant = |number: f64| times.of_float(number).unwrap_or(NOT_A_TIME);
            return Self::Times {
                instants: numbers.into_iter().map(instant).collect(),
                calendar: times.calendar(),
            };
        }
        let precision = FloatPrecision::of(&metadata.data_type, values);
        for number in &mut numbers {
            *number = precision.rounded(*number);
        }
        Self::Floats { values: numbers, precision }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Floats { values, .. } => values.len(),
            Self::Integers(values) => values.len(),
            Self::Times { instants, .. } => instants.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    pub(super) fn order(&self) -> Order {
        // A position below the length has a label.
        match self {
            Self::Floats { values, .. } => {
                Order::of(values.len(), |place| values.get(place).copied().unwrap_or(f64::NAN))
            }
            Self::Integers(values) => {
                Order::of(values.len(), |place| values.get(place).copied().unwrap_or_default())
            }
            Self::Times { instants, .. } if instants.contains(&NOT_A_TIME) => Order::Unsorted,
            Self::Times { instants, .. } => {
                Order::of(instants.len(), |place| instants.get(place).copied().unwrap_or_default())
            }
            Self::Texts(texts) => Order::of(texts.len(), |place| texts.get(place).map(|text| &**text)),
        }
    }

    /// The label at a position, as it can be requested.
    pub(super) fn text(&self, place: usize) -> Option<String> {
        Some(match self {
            Self::Floats { values, precision } => precision.text(*values.get(place)?),
            Self::Integers(values) => values.get(place)?.to_string(),
            Self::Times { instants, calendar } => instant::text(*calendar, *instants.get(place)?),
            Self::Texts(texts) => texts.get(place)?.to_string(),
        })
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Floats { values, .. } => (values.len() as u64).saturating_mul(8),
            Self::Integers(values) | Self::Times { instants: values, .. } => {
                (values.len() as u64).saturating_mul(16)
            }
            Self::Texts(texts) => {
                texts.iter().map(|text| text.len() as u64 + TEXT_BYTES).fold(0, u64::saturating_add)
            }
        }
    }
}

/// The items of all parts.
fn joined(parts: &[Elements]) -> Bytes {
    match parts {
        [part] => part.items().clone(),
        parts => parts.iter().flat_map(|part| part.items().iter().copied()).collect(),
    }
}

fn int64(items: &[u8]) -> impl Iterator<Item = i64> + '_ {
    let (items, _) = items.as_chunks();
    items.iter().map(|&item| i64::from_le_bytes(item))
}

/// Characters of four bytes each, without the zeros at their end.
fn utf32(item: &[u8]) -> Box<str> {
    let (characters, _) = item.as_chunks();
    let characters = characters.iter().map(|&character| u32::from_le_bytes(character));
    let text: String =
        characters.map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    text.trim_end_matches('\0').into()
}

/// The instant of a number of steps since 1970; `None` for `NaT`, and beyond five billion years.
fn of_steps(step: TimeStep, steps: i64) -> Option<Instant> {
    if steps == i64::MIN {
        return None;
    }
    let count = i128::from(steps) * i128::from(step.scale_factor());
    let of_month = |months: i128| {
        let (year, month) = (1970 + months.div_euclid(12), months.rem_euclid(12) + 1);
        beginning(Calendar::ProlepticGregorian.day(year, month, 1)?)
    };
    match step.unit() {
        TimeUnit::Year => of_month(count.checked_mul(12)?),
        TimeUnit::Month => of_month(count),
        unit => count.checked_mul(unit.attoseconds()?),
    }
}
