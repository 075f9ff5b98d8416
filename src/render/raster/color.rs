//! [`Color`]: a colour of a picture, and its spelling in URLs.

use std::fmt;

/// A colour: red, green, blue and opacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Color(pub [u8; 4]);

impl Color {
    /// No colour: what lies behind the picture is visible.
    pub const TRANSPARENT: Self = Self([0; 4]);

    /// An opaque colour from `0xRRGGBB`.
    #[must_use]
    pub const fn opaque(rgb: u32) -> Self {
        let [_, red, green, blue] = rgb.to_be_bytes();
        Self([red, green, blue, u8::MAX])
    }

    /// Parses `rrggbb`, `rrggbbaa`, either of them after `#`, or `transparent`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "transparent" {
            return Some(Self::TRANSPARENT);
        }
        let digits = text.strip_prefix('#').unwrap_or(text);
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let number = u32::from_str_radix(digits, 16).ok()?;
        match digits.len() {
            6 => Some(Self::opaque(number)),
            8 => Some(Self(number.to_be_bytes())),
            _ => None,
        }
    }

    /// Red, green and blue.
    #[must_use]
    pub fn rgb(self) -> [u8; 3] {
        let [red, green, blue, _] = self.0;
        [red, green, blue]
    }
}

/// `rrggbb`, or `rrggbbaa` if it is not opaque.
impl fmt::Display for Color {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue, opacity] = self.0;
        write!(out, "{red:02x}{green:02x}{blue:02x}")?;
        if opacity == u8::MAX { Ok(()) } else { write!(out, "{opacity:02x}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_written_as_it_is_parsed() {
        for (text, color, written) in [
            ("ff8000", [255, 128, 0, 255], "ff8000"),
            ("#FF8000", [255, 128, 0, 255], "ff8000"),
            ("ff800040", [255, 128, 0, 64], "ff800040"),
            ("transparent", [0; 4], "00000000"),
        ] {
            let parsed = Color::parse(text).unwrap();
            assert_eq!((parsed, parsed.to_string().as_str()), (Color(color), written), "{text}");
        }
        for text in ["", "#", "fff", "ff80", "gg0000", "+f8000", "red", "ff80000"] {
            assert_eq!(Color::parse(text), None, "{text}");
        }
    }
}
