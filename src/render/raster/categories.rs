//! [`Categories`]: a colour for each label, for values that are names and not amounts.

use std::collections::BTreeMap;

use super::color::Color;
use super::decoding::Decoding;
use super::numbers::integer;

/// The colours of labels. 0 is the background and transparent, unless it has a colour of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Categories(BTreeMap<i128, Color>);

impl Categories {
    /// The colours of some labels; all others have one that is derived from their number.
    #[must_use]
    pub fn new(colors: impl IntoIterator<Item = (i128, Color)>) -> Self {
        Self(colors.into_iter().collect())
    }

    /// The labels that have a colour of their own, with it.
    pub fn known(&self) -> impl Iterator<Item = (i128, Color)> {
        self.0.iter().map(|(label, color)| (*label, *color))
    }

    /// The colour of a label.
    #[must_use]
    pub fn color(&self, label: i128) -> Color {
        match self.0.get(&label) {
            Some(color) => *color,
            None if label == 0 => Color::TRANSPARENT,
            None => hashed(label),
        }
    }

    /// The colours of elements in a row; `missing` where there is no label. A float is the label of its whole part.
    pub(super) fn draw(&self, decoding: &Decoding, items: &[u8], missing: Color, out: &mut Vec<[u8; 4]>) {
        let mut numbers = Vec::new();
        decoding.numbers(items, &mut numbers);
        let element_bytes = decoding.data_type().element_bytes().max(1);
        let mut last: Option<(i128, Color)> = None;
        for (number, item) in numbers.iter().zip(items.chunks(element_bytes)) {
            if number.is_nan() {
                out.push(missing.0);
                continue;
            }
            #[expect(clippy::cast_possible_truncation, reason = "labels are whole numbers")]
            let label = integer(decoding.data_type(), item).unwrap_or(*number as i128);
            // Neighbours often have the same label.
            let color = match last {
                Some((before, color)) if before == label => color,
                _ => self.color(label),
            };
            last = Some((label, color));
            out.push(color.0);
        }
    }
}

/// A bright colour that depends on the label alone: the hue, the saturation and the value come from a hash of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the low bits of the label and of its hash"
)]
fn hashed(label: i128) -> Color {
    // The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014).
    let mut hash = (label as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let [hue_high, hue_low, saturation, value, ..] = hash.to_be_bytes();
    let hue = u32::from(u16::from_be_bytes([hue_high, hue_low])) * 6;
    let (sector, rest) = (hue >> 16, (hue & 0xffff) >> 8);
    let value = 160 + u32::from(value) * 95 / 255;
    let saturation = 140 + u32::from(saturation) * 115 / 255;
    let down = |by: u32| (value * (255 * 255 - saturation * by) / (255 * 255)) as u8;
    let (low, falling, rising, high) = (down(255), down(rest), down(255 - rest), value as u8);
    let [red, green, blue] = match sector {
        0 => [high, rising, low],
        1 => [falling, high, low],
        2 => [low, high, rising],
        3 => [low, falling, high],
        4 => [rising, low, high],
        _ => [high, low, falling],
    };
    Color([red, green, blue, u8::MAX])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::DataType;
    use crate::render::raster::Part;

    #[test]
    fn labels_have_colours_of_their_own_and_0_is_transparent() {
        let categories = Categories::new([(3, Color::opaque(0xff_0000))]);
        assert_eq!(categories.color(0), Color::TRANSPARENT);
        assert_eq!(categories.color(3), Color::opaque(0xff_0000));
        let mut colors: Vec<Color> = (4..500).map(|label| categories.color(label)).collect();
        assert!(colors.iter().all(|color| color.0[3] == 255 && color.rgb().iter().any(|&part| part >= 160)));
        colors.sort_by_key(|color| color.0);
        colors.dedup();
        assert!(colors.len() > 480, "{}", colors.len());
    }

    #[test]
    fn large_labels_keep_their_identity() {
        let categories = Categories::default();
        let labels = [u64::MAX, u64::MAX - 1, u64::MAX - 1];
        let items: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        let decoding = Decoding::stored(&DataType::UInt64, Part::Abs).unwrap();
        let mut out = Vec::new();
        categories.draw(&decoding, &items, Color::TRANSPARENT, &mut out);
        assert_ne!(out[0], out[1]);
        assert_eq!(out[1], out[2]);
    }
}
