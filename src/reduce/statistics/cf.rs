//! [`CfValues`]: the values of elements, as stored or decoded (CF conventions 1.12, sections 2.5.1 and 8.1).

use half::{bf16, f16};
use serde_json::Value;

use crate::error::{Classify, ErrorClass};
use crate::metadata::{ArrayMetadata, DataType};
use crate::reduce::method::{Kind, ReduceError};
use crate::reduce::missing::Missing;
use crate::reduce::number::{Real, RealFloat};
use crate::reduce::read_as::read_as;

/// How elements become values.
#[derive(Clone, Debug, PartialEq)]
pub struct CfValues {
    data_type: DataType,
    missing: Missing,
    /// `scale_factor` and `add_offset`, if there are any.
    packing: Option<(f64, f64)>,
}

/// Why elements have no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CfError {
    /// Elements are no real numbers.
    #[error("statistics are of real numbers; the elements have the type {0}")]
    NotReal(String),
    /// The missing values cannot be compared.
    #[error(transparent)]
    Missing(#[from] ReduceError),
}

impl Classify for CfError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotReal(_) => ErrorClass::InvalidRequest,
            Self::Missing(error) => error.class(),
        }
    }
}

/// Takes values, one after the other.
pub(super) trait Visitor {
    /// An integer that is not missing, as it is.
    fn integer(&mut self, number: i64);

    /// Another number, which may be NaN.
    fn float(&mut self, number: f64);

    /// An element that is missing.
    fn missing(&mut self);
}

impl CfValues {
    /// The values of an array: decoded by its attributes, or the stored numbers.
    ///
    /// # Errors
    /// [`CfError`].
    pub fn new(metadata: &ArrayMetadata, decodes: bool) -> Result<Self, CfError> {
        let data_type = metadata.data_type.clone();
        if !matches!(Kind::of(&data_type), Kind::Bool | Kind::Integer | Kind::Float) {
            return Err(CfError::NotReal(data_type.name()));
        }
        if !decodes {
            return Ok(Self { data_type, missing: Missing::default(), packing: None });
        }
        let attributes = &metadata.attributes;
        let missing = Missing::from_attributes(attributes, &data_type)?;
        let number = |name: &str| match attributes.get(name) {
            Some(Value::Number(number)) => number.as_str().parse::<f64>().ok(),
            Some(Value::String(text)) => text.parse().ok(),
            _ => None,
        };
        let packing = match (number("scale_factor"), number("add_offset")) {
            (None, None) => None,
            (scale, offset) => Some((scale.unwrap_or(1.0), offset.unwrap_or(0.0))),
        };
        Ok(Self { data_type: read_as(attributes, &data_type), missing, packing })
    }

    /// Whether values are integers.
    #[must_use]
    pub fn are_integers(&self) -> bool {
        self.packing.is_none() && Kind::of(&self.data_type) != Kind::Float
    }

    /// Whether there are at most 65536 different values.
    #[must_use]
    pub fn are_few(&self) -> bool {
        self.data_type.element_bytes() <= 2
    }

    /// The bytes of an element.
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        self.data_type.element_bytes()
    }

    /// Gives the values of elements in canonical form to a visitor.
    pub(super) fn visit(&self, items: &[u8], visitor: &mut impl Visitor) {
        match &self.data_type {
            DataType::Bool | DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
                self.integers::<u8>(items, visitor);
            }
            DataType::Int2 | DataType::Int4 | DataType::Int8 => self.integers::<i8>(items, visitor),
            DataType::UInt16 => self.integers::<u16>(items, visitor),
            DataType::Int16 => self.integers::<i16>(items, visitor),
            DataType::UInt32 => self.integers::<u32>(items, visitor),
            DataType::Int32 => self.integers::<i32>(items, visitor),
            DataType::Int64 => self.integers::<i64>(items, visitor),
            DataType::UInt64 => self.large_integers(items, visitor),
            DataType::Float16 => self.floats::<f16>(items, visitor),
            DataType::BFloat16 => self.floats::<bf16>(items, visitor),
            DataType::Float32 => self.floats::<f32>(items, visitor),
            DataType::Float64 => self.floats::<f64>(items, visitor),
            _ => {}
        }
    }

    fn missing<T: Real>(&self) -> Vec<T> {
        let elements = self.missing.elements();
        elements.filter_map(|element| T::raw(element).first().copied()).map(T::get).collect()
    }

    fn integers<T: Real + Into<i64>>(&self, items: &[u8], visitor: &mut impl Visitor) {
        let missing = self.missing::<T>();
        for &raw in T::raw(items) {
            let number = T::get(raw);
            if missing.contains(&number) {
                visitor.missing();
            } else if let Some((scale, offset)) = self.packing {
                visitor.float(double(number.into()) * scale + offset);
            } else {
                visitor.integer(number.into());
            }
        }
    }

    /// Integers of 64 bits without a sign: those that are no `i64` count as floats.
    fn large_integers(&self, items: &[u8], visitor: &mut impl Visitor) {
        let missing = self.missing::<u64>();
        for &raw in u64::raw(items) {
            let number = <u64 as Real>::get(raw);
            if missing.contains(&number) {
                visitor.missing();
                continue;
            }
            match (self.packing, i64::try_from(number)) {
                (None, Ok(number)) => visitor.integer(number),
                (packing, _) => {
                    let (scale, offset) = packing.unwrap_or((1.0, 0.0));
                    visitor.float(unsigned_double(number) * scale + offset);
                }
            }
        }
    }

    fn floats<T: RealFloat>(&self, items: &[u8], visitor: &mut impl Visitor) {
        let missing = self.missing::<T>();
        let (scale, offset) = self.packing.unwrap_or((1.0, 0.0));
        let is_packed = self.packing.is_some();
        for &raw in T::raw(items) {
            let number = T::get(raw);
            if !number.is_nan() && missing.contains(&number) {
                visitor.missing();
            } else {
                let number = number.double();
                visitor.float(if is_packed { number * scale + offset } else { number });
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics are float64")]
pub(super) fn double(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "statistics are float64")]
fn unsigned_double(number: u64) -> f64 {
    number as f64
}
