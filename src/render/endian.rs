//! Canonical elements in the other byte order.

use crate::metadata::DataType;

/// Turns little-endian elements into big-endian ones, in place: each half of a complex number, each
/// character of text and each field for itself, single and raw bytes not at all. `elements` holds whole elements.
pub fn to_big_endian(data_type: &DataType, elements: &mut [u8]) {
    let units = data_type.endian_units();
    if let [(_, unit)] = units[..] {
        if unit > 1 {
            elements.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
        return;
    }
    for element in elements.chunks_exact_mut(data_type.item_bytes()) {
        let mut rest = element;
        for &(bytes, unit) in &units {
            let Some((run, behind)) = rest.split_at_mut_checked(bytes) else { break };
            run.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
            rest = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swapped(data_type: &DataType, elements: &[u8]) -> Vec<u8> {
        let mut elements = elements.to_vec();
        to_big_endian(data_type, &mut elements);
        elements
    }

    #[test]
    fn every_number_is_reversed_for_itself() {
        assert_eq!(swapped(&DataType::Int16, &[1, 2, 3, 4]), [2, 1, 4, 3]);
        assert_eq!(swapped(&DataType::Float64, &[1, 2, 3, 4, 5, 6, 7, 8]), [8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn the_halves_of_a_complex_number_keep_their_places() {
        assert_eq!(swapped(&DataType::Complex64, &[1, 2, 3, 4, 5, 6, 7, 8]), [4, 3, 2, 1, 8, 7, 6, 5]);
    }

    #[test]
    fn the_characters_of_a_text_keep_their_places() {
        let text = DataType::FixedLengthUtf32 { code_points: 2 };
        assert_eq!(swapped(&text, &[1, 2, 3, 4, 5, 6, 7, 8]), [4, 3, 2, 1, 8, 7, 6, 5]);
    }

    #[test]
    fn single_and_raw_bytes_stay_as_they_are() {
        for data_type in [
            DataType::Bool,
            DataType::UInt8,
            DataType::RawBits { bytes: 4 },
            DataType::NullTerminatedBytes { bytes: 4 },
        ] {
            assert_eq!(swapped(&data_type, &[1, 2, 3, 4]), [1, 2, 3, 4]);
        }
    }
}
