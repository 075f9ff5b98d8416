//! [`Coord`]: the coordinates of a chunk, and how they are written.

/// The coordinates of a chunk: whole numbers, negative ones too; those of attributes before those of space.
pub type Coord = Vec<i64>;

/// Coordinates as they are written: `-3.0.12`.
#[must_use]
pub fn format_coord(coord: &[i64]) -> String {
    let numbers: Vec<String> = coord.iter().map(i64::to_string).collect();
    numbers.join(".")
}

/// Coordinates from how they are written; `None` if they are not.
#[must_use]
pub fn parse_coord(text: &str) -> Option<Coord> {
    let number = |number: &str| {
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| number.parse().ok()).flatten()
    };
    text.split('.').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_written_with_dots_and_read_back() {
        for coord in [vec![0, 0, 0], vec![-3, -1, 0], vec![i64::MIN, i64::MAX]] {
            assert_eq!(parse_coord(&format_coord(&coord)), Some(coord));
        }
        for text in ["", ".", "0.", "-", "+1", "1.a", "--1", "9223372036854775808", "0,1", " 1"] {
            assert_eq!(parse_coord(text), None, "{text}");
        }
    }
}
