//! [`FloatPrecision`]: the precision in which labels that are floats are compared and written.

use half::{bf16, f16};

use crate::metadata::{DataType, bfloat16_to_print, float16_to_print};
use crate::reduce::CfValues;

/// The precision of labels. A number that is requested is rounded to it before it is compared: `0.1` is the label that is stored as
/// the nearest float of the coordinate's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloatPrecision {
    /// `float16`.
    Half,
    /// `bfloat16`.
    Brain,
    /// `float32`, and shorter floats of other kinds.
    Single,
    /// `float64`, and what is unpacked.
    Double,
}

impl FloatPrecision {
    pub(super) fn of(data_type: &DataType, values: &CfValues) -> Self {
        match data_type {
            _ if !values.are_single() => Self::Double,
            DataType::Float16 => Self::Half,
            DataType::BFloat16 => Self::Brain,
            _ => Self::Single,
        }
    }

    /// The nearest float of this precision.
    #[expect(clippy::cast_possible_truncation, reason = "the rounding is what is wanted")]
    pub(super) fn rounded(self, number: f64) -> f64 {
        match self {
            Self::Half => f16::from_f64(number).into(),
            Self::Brain => bf16::from_f64(number).into(),
            Self::Single => (number as f32).into(),
            Self::Double => number,
        }
    }

    /// The shortest text of a float of this precision.
    #[expect(clippy::cast_possible_truncation, reason = "the number has this precision")]
    pub(super) fn text(self, number: f64) -> String {
        match self {
            Self::Half => float16_to_print(f16::from_f64(number).to_bits()).to_string(),
            Self::Brain => bfloat16_to_print(bf16::from_f64(number).to_bits()).to_string(),
            Self::Single => (number as f32).to_string(),
            Self::Double => number.to_string(),
        }
    }

    /// The text of the step between labels, which has fewer digits than the type: those of a difference are not exact.
    pub(super) fn step_text(self, step: f64) -> String {
        match self {
            Self::Half | Self::Brain => format!("{step:.1e}"),
            Self::Single => format!("{step:.5e}"),
            Self::Double => format!("{step:.11e}"),
        }
    }

    /// Numbers that are this part of a turn apart are the same after whole turns were added to one of them.
    pub(super) fn turn_rounding(self) -> f64 {
        if self == Self::Double { 1e-12 } else { 1e-7 }
    }
}
