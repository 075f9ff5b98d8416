//! The Arrow types of time steps.

use arrow_ipc::TimeUnit;

use crate::metadata::{TimeStep, TimeUnit as StepUnit};

/// The Arrow unit of a time step; `None` for other steps.
pub(super) fn time_unit(step: TimeStep) -> Option<TimeUnit> {
    match (step.scale_factor(), step.unit()) {
        (1, StepUnit::Second) => Some(TimeUnit::SECOND),
        (1, StepUnit::Millisecond) => Some(TimeUnit::MILLISECOND),
        (1, StepUnit::Microsecond) => Some(TimeUnit::MICROSECOND),
        (1, StepUnit::Nanosecond) => Some(TimeUnit::NANOSECOND),
        _ => None,
    }
}

/// Whether elements of a step are days, of 32 bits.
pub(super) fn is_day(step: TimeStep) -> bool {
    (step.scale_factor(), step.unit()) == (1, StepUnit::Day)
}
