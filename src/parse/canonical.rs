//! [`check_canonical`]: whether bytes are elements of a fixed size in canonical form.
//!
//! Most types have an element for all bytes. Those that have not would be stored as what no reader understands.

use super::error::ParseError;
use crate::metadata::DataType;

/// Checks that these items, of which the first is number `first` of a body, are elements of the type.
///
/// # Errors
/// [`ParseError::Element`].
pub fn check_canonical(data_type: &DataType, items: &[u8], first: u64) -> Result<(), ParseError> {
    if is_any(data_type) {
        return Ok(());
    }
    for (number, element) in (first..).zip(items.chunks(data_type.element_bytes())) {
        if let Err(reason) = check_element(data_type, element) {
            return Err(ParseError::Element { number, reason: reason.to_owned() });
        }
    }
    Ok(())
}

/// Whether all bytes are elements.
fn is_any(data_type: &DataType) -> bool {
    match data_type {
        DataType::Bool
        | DataType::Int2
        | DataType::Int4
        | DataType::UInt2
        | DataType::UInt4
        | DataType::FixedLengthUtf32 { .. } => false,
        DataType::SmallFloat(format) | DataType::ComplexSmallFloat(format) => format.mask() == u8::MAX,
        DataType::Struct(structure) => structure.fields().iter().all(|field| is_any(&field.data_type)),
        DataType::Subarray(subarray) => is_any(subarray.item()),
        _ => true,
    }
}

fn check_element(data_type: &DataType, element: &[u8]) -> Result<(), &'static str> {
    let [first, ..] = element else { return Err("has another length than its type") };
    let fits = |low: i8, high: i8| (low..=high).contains(&i8::from_le_bytes([*first]));
    let (holds, reason) = match data_type {
        DataType::Bool => (*first <= 1, "is neither 0 nor 1, and the array is of booleans"),
        DataType::Int2 => (fits(-2, 1), "is outside of -2 to 1"),
        DataType::Int4 => (fits(-8, 7), "is outside of -8 to 7"),
        DataType::UInt2 => (*first < 4, "is outside of 0 to 3"),
        DataType::UInt4 => (*first < 16, "is outside of 0 to 15"),
        DataType::SmallFloat(format) | DataType::ComplexSmallFloat(format) => {
            (element.iter().all(|byte| byte & !format.mask() == 0), "has bits that its type does not have")
        }
        DataType::FixedLengthUtf32 { .. } => {
            let (characters, _) = element.as_chunks();
            let is_character = |bytes: &[u8; 4]| char::from_u32(u32::from_le_bytes(*bytes)).is_some();
            (characters.iter().all(is_character), "has a code point that is no character")
        }
        DataType::Struct(structure) => {
            for (at, field) in structure.fields_at() {
                let end = at.saturating_add(field.data_type.element_bytes());
                check_element(&field.data_type, element.get(at..end).unwrap_or_default())?;
            }
            (true, "")
        }
        DataType::Subarray(subarray) => {
            let mut items = element.chunks(subarray.item().element_bytes());
            items.try_for_each(|item| check_element(subarray.item(), item))?;
            (true, "")
        }
        _ => (true, ""),
    };
    if holds { Ok(()) } else { Err(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_element_are_named_by_their_number() {
        let wrong = |data_type: &DataType, items: &[u8]| match check_canonical(data_type, items, 10) {
            Ok(()) => None,
            Err(ParseError::Element { number, .. }) => Some(number),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(wrong(&DataType::Bool, &[0, 1, 2]), Some(12));
        assert_eq!(wrong(&DataType::Int4, &[7, 0xf8, 8]), Some(12));
        assert_eq!(wrong(&DataType::UInt2, &[3, 4]), Some(11));
        assert_eq!(wrong(&DataType::FixedLengthUtf32 { code_points: 1 }, &[0, 0xd8, 0, 0]), Some(10));
        assert_eq!(wrong(&DataType::FixedLengthUtf32 { code_points: 1 }, &[65, 0, 0, 0]), None);
        assert_eq!(wrong(&DataType::Float32, &[0xff; 8]), None);
    }
}
