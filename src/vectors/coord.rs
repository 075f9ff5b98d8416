//! [`Coord`]: the coordinates of a chunk, and their text form.

/// The coordinates of a chunk: one integer for each axis, possibly negative. Coordinates of an attribute axis precede
/// the spatial ones.
pub type Coord = Vec<i64>;

/// Coordinates as text, separated by dots: `-3.0.12`.
#[must_use]
pub fn format_coord(coord: &[i64]) -> String {
    let numbers: Vec<String> = coord.iter().map(i64::to_string).collect();
    numbers.join(".")
}

/// Parses coordinates as [`format_coord`] writes them; `None` for any other text.
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
    fn formatted_coordinates_parse_back() {
        for coord in [vec![0, 0, 0], vec![-3, -1, 0], vec![i64::MIN, i64::MAX]] {
            assert_eq!(parse_coord(&format_coord(&coord)), Some(coord));
        }
        for text in ["", ".", "0.", "-", "+1", "1.a", "--1", "9223372036854775808", "0,1", " 1"] {
            assert_eq!(parse_coord(text), None, "{text}");
        }
    }
}
