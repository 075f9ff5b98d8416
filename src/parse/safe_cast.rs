//! [`SafeCast`]: numbers of one type as another, if none is changed by it.

use bytes::Bytes;

use super::error::ParseError;
use crate::codec::{Cast, CodecError};
use crate::metadata::DataType;

/// A cast of numbers that loses nothing: from an integer to one that has all of its numbers, or to a float; and from a float to a
/// wider one. An integer that the float does not have is an error.
#[derive(Debug)]
pub struct SafeCast(Cast);

impl SafeCast {
    /// The cast from one type to another; `None` if it could lose something.
    #[must_use]
    pub fn new(from: &DataType, to: &DataType) -> Option<Self> {
        let has_all = match (from.integer_bounds(), to.integer_bounds()) {
            (Some((low, high)), Some((least, most))) => least <= low && high <= most,
            (Some(_), None) => float_bytes(to).is_some(),
            (None, Some(_)) => false,
            (None, None) => float_bytes(from).zip(float_bytes(to)).is_some_and(|(from, to)| from <= to),
        };
        Cast::new(from, to).filter(|_| has_all).map(Self)
    }

    /// Casts elements in canonical form.
    ///
    /// # Errors
    /// [`ParseError::Malformed`] if an integer would be changed.
    pub fn cast(&self, items: &[u8]) -> Result<Bytes, ParseError> {
        self.0.cast(items).map_err(|error| {
            let reason = match error {
                CodecError::NotCast { reason, .. } => format!("an element {reason}"),
                other => other.to_string(),
            };
            ParseError::Malformed { format: "elements that the array's type has", reason }
        })
    }
}

/// The size of a float that numpy has.
fn float_bytes(data_type: &DataType) -> Option<usize> {
    matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64)
        .then(|| data_type.element_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cast_is_offered_only_where_it_loses_nothing() {
        use DataType::{Bool, Float32, Float64, Int16, Int32, Int64, UInt8, UInt16};
        let is_safe = |from, to| SafeCast::new(&from, &to).is_some();
        assert!(is_safe(UInt8, Int16) && is_safe(Int16, Int64) && is_safe(Float32, Float64));
        assert!(is_safe(Int64, Float64) && is_safe(Int32, Float32));
        assert!(!is_safe(Int16, UInt16) && !is_safe(Int32, Int16) && !is_safe(Float64, Float32));
        assert!(!is_safe(Float32, Int64) && !is_safe(Bool, Int32));
        let cast = SafeCast::new(&Int32, &Float32).unwrap();
        assert_eq!(cast.cast(&3_i32.to_le_bytes()).unwrap().as_ref(), 3_f32.to_le_bytes());
        assert!(cast.cast(&16_777_217_i32.to_le_bytes()).is_err());
    }
}
