//! [`StoredTime`]: times and spans of time whose unit a file has no type for, as exact numbers of a unit that it has.
//!
//! | steps | stored as |
//! |---|---|
//! | `datetime64` of weeks, hours, minutes, and of several days, seconds or milliseconds | a timestamp in milliseconds |
//! | `datetime64` of several microseconds or nanoseconds | a timestamp in that unit |
//! | `datetime64` of years and months | the date of their first day |
//! | `timedelta64` of weeks, days, hours, minutes, and of several seconds | a duration in seconds |
//! | `timedelta64` of several milliseconds, microseconds or nanoseconds | a duration in that unit |
//!
//! Spans of years and months have no length, and steps below a nanosecond no unit: these stay numbers of steps.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_schema::{DataType as ArrowType, TimeUnit as ArrowUnit};

use crate::metadata::{DataType, TimeStep, TimeUnit};
use crate::render::RenderError;
use crate::units::calendar::days_of_date;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// Milliseconds of a second.
const MILLISECONDS: i64 = 1000;

/// The unit of Arrow that steps of less than a second have; `None` where it has none.
fn below_a_second(unit: TimeUnit) -> Option<ArrowUnit> {
    match unit {
        TimeUnit::Millisecond => Some(ArrowUnit::Millisecond),
        TimeUnit::Microsecond => Some(ArrowUnit::Microsecond),
        TimeUnit::Nanosecond => Some(ArrowUnit::Nanosecond),
        _ => None,
    }
}

/// How the steps of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredTime {
    /// A step is this many of a unit since 1970.
    Instants(ArrowUnit, i64),
    /// A step is this many of a unit.
    Spans(ArrowUnit, i64),
    /// A step is this many months since 1970.
    Months(i64),
}

impl StoredTime {
    /// How elements of this type are stored; `None` if as they are.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::DateTime64(step) => Self::of_instants(*step),
            DataType::TimeDelta64(step) => Self::of_spans(*step),
            _ => None,
        }
    }

    fn of_instants(step: TimeStep) -> Option<Self> {
        let scale = i64::from(step.scale_factor());
        let of_seconds =
            |seconds: i64| Self::Instants(ArrowUnit::Millisecond, scale * seconds * MILLISECONDS);
        Some(match step.unit() {
            TimeUnit::Year => Self::Months(scale * 12),
            TimeUnit::Month => Self::Months(scale),
            TimeUnit::Week => of_seconds(WEEK),
            TimeUnit::Day if scale > 1 => of_seconds(DAY),
            TimeUnit::Hour => of_seconds(HOUR),
            TimeUnit::Minute => of_seconds(MINUTE),
            TimeUnit::Second if scale > 1 => of_seconds(1),
            unit if scale > 1 => Self::Instants(below_a_second(unit)?, scale),
            _ => return None,
        })
    }

    fn of_spans(step: TimeStep) -> Option<Self> {
        let scale = i64::from(step.scale_factor());
        let of_seconds = |seconds: i64| Self::Spans(ArrowUnit::Second, scale * seconds);
        Some(match step.unit() {
            TimeUnit::Week => of_seconds(WEEK),
            TimeUnit::Day => of_seconds(DAY),
            TimeUnit::Hour => of_seconds(HOUR),
            TimeUnit::Minute => of_seconds(MINUTE),
            TimeUnit::Second if scale > 1 => of_seconds(1),
            unit if scale > 1 => Self::Spans(below_a_second(unit)?, scale),
            _ => return None,
        })
    }

    /// The Arrow type of what is stored.
    pub(super) fn arrow_type(self) -> ArrowType {
        match self {
            Self::Instants(unit, _) => ArrowType::Timestamp(unit, None),
            Self::Spans(unit, _) => ArrowType::Duration(unit),
            Self::Months(_) => ArrowType::Date32,
        }
    }

    /// A column of steps as it is stored: instants and spans as `Int64`, months as `Date32`.
    ///
    /// # Errors
    /// [`RenderError::StepRange`] for a step that the type does not reach.
    pub(super) fn cast(self, column: &ArrayRef) -> Result<ArrayRef, RenderError> {
        let Some(steps) = column.as_primitive_opt::<Int64Type>() else {
            return Err(RenderError::ElementCount);
        };
        let too_far = |step| RenderError::StepRange { step };
        Ok(match self {
            Self::Instants(_, factor) | Self::Spans(_, factor) => {
                let stored = |step: i64| step.checked_mul(factor).ok_or_else(|| too_far(step));
                let stored = steps.iter().map(|step| step.map(stored).transpose());
                Arc::new(stored.collect::<Result<PrimitiveArray<Int64Type>, _>>()?)
            }
            Self::Months(months) => {
                let day = |step: i64| {
                    let month = i128::from(step) * i128::from(months);
                    let day = days_of_date(1970 + month.div_euclid(12), month.rem_euclid(12) + 1, 1);
                    day.and_then(|day| i32::try_from(day).ok()).ok_or_else(|| too_far(step))
                };
                let days = steps.iter().map(|step| step.map(day).transpose());
                Arc::new(days.collect::<Result<PrimitiveArray<Date32Type>, _>>()?)
            }
        })
    }
}
