//! Reversing the bytes of each of many numbers, in about the time that copying them takes.

/// Bytes that are copied and reversed at a time, which stay in the first cache of a core.
const PIECE_BYTES: usize = 16 << 10;

/// Reverses the bytes of each unit.
pub(super) fn reverse_units(bytes: &mut [u8], unit_bytes: usize) {
    // Units of a length that the compiler knows take vector instructions.
    match unit_bytes {
        0 | 1 => {}
        2 => reverse::<2>(bytes),
        4 => reverse::<4>(bytes),
        8 => reverse::<8>(bytes),
        _ => bytes.chunks_exact_mut(unit_bytes).for_each(<[u8]>::reverse),
    }
}

/// Appends units with their bytes reversed.
pub(super) fn push_reversed(units: &[u8], unit_bytes: usize, out: &mut Vec<u8>) {
    out.reserve(units.len());
    let piece_bytes = PIECE_BYTES.next_multiple_of(unit_bytes.max(1));
    for piece in units.chunks(piece_bytes) {
        let start = out.len();
        out.extend_from_slice(piece);
        reverse_units(out.get_mut(start..).unwrap_or_default(), unit_bytes);
    }
}

fn reverse<const N: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|unit| unit.reverse());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_every_length_are_reversed_in_place_and_where_they_are_appended() {
        for unit_bytes in [1, 2, 3, 4, 8, 16] {
            let units: Vec<u8> =
                (0..PIECE_BYTES * 3 / unit_bytes * unit_bytes).map(|at| (at % 251) as u8).collect();
            let expected: Vec<u8> =
                units.chunks(unit_bytes).flat_map(|unit| unit.iter().rev().copied()).collect();
            let mut out = vec![7];
            push_reversed(&units, unit_bytes, &mut out);
            assert_eq!((out[0], &out[1..]), (7, &expected[..]), "{unit_bytes}");
            let mut reversed = units;
            reverse_units(&mut reversed, unit_bytes);
            assert_eq!(reversed, expected, "{unit_bytes}");
        }
    }
}
