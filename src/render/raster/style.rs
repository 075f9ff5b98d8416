//! [`Style`]: how planes of elements become a picture.

use super::categories::Categories;
use super::color::Color;
use super::colormap::Colormap;
use super::decoding::Decoding;
use super::mapping::{Mapping, Scale};
use super::palette::{ABOVE, BELOW, MISSING, OUTSIDE, PALETTE};
use super::picture::{Picture, Pixels};
use super::plane::Plane;

/// The colour of numbers outside the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// That of the nearest end of the range.
    #[default]
    Extend,
    /// This one.
    Color(Color),
}

/// One plane in the colours of a colormap.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedStyle {
    /// The range of the colormap.
    pub mapping: Mapping,
    /// The colours.
    pub colormap: Colormap,
    /// The colour of smaller numbers.
    pub below: Outside,
    /// The colour of larger numbers.
    pub above: Outside,
    /// The colour where there is no number.
    pub missing: Color,
}

/// A plane of a composite: its numbers are amounts of light of this colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// From no light to all of it.
    pub mapping: Mapping,
    /// The colour.
    pub color: Color,
}

/// How planes of elements become a picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Style {
    /// One plane in the colours of a colormap.
    Mapped(Box<MappedStyle>),
    /// One plane as 65536 shades of gray, transparent where there is no number.
    Gray16(Mapping),
    /// One plane of labels.
    Categories(Categories, Color),
    /// The sum of the light of one plane for each channel. Where no plane has a number, the second colour shows.
    Composite(Vec<Channel>, Color),
}

impl Style {
    /// Draws planes of one shape; `None` if their number is not that of the style.
    #[must_use]
    pub fn draw(&self, planes: &[(Plane, Decoding)]) -> Option<Picture> {
        let (first, decoding) = planes.first()?;
        let (width, height) = (first.width(), first.height());
        let pixels = match self {
            Self::Composite(channels, missing) => {
                let is_even =
                    planes.iter().all(|(plane, _)| (plane.width(), plane.height()) == (width, height));
                if channels.len() != planes.len() || !is_even {
                    return None;
                }
                Pixels::Colors(composite(channels, *missing, planes))
            }
            Self::Mapped(style) => mapped(style, first, decoding),
            Self::Gray16(mapping) => gray(mapping, first, decoding),
            Self::Categories(categories, missing) => {
                let mut colors = Vec::with_capacity(width * height);
                for row in 0..height {
                    categories.draw(decoding, &first.row(row), *missing, &mut colors);
                }
                Pixels::Colors(colors)
            }
        };
        Picture::new(width, height, pixels)
    }
}

impl Plane {
    /// Calls `visit` with the numbers of each row.
    pub fn for_each_row(&self, decoding: &Decoding, mut visit: impl FnMut(&[f64])) {
        let mut numbers = Vec::with_capacity(self.width());
        for row in 0..self.height() {
            decoding.numbers(&self.row(row), &mut numbers);
            visit(&numbers);
        }
    }

    /// The numbers of all elements in memory, in any order.
    #[must_use]
    pub fn numbers(&self, decoding: &Decoding) -> Vec<f64> {
        let mut numbers = Vec::new();
        decoding.numbers(self.items(), &mut numbers);
        numbers
    }
}

fn mapped(style: &MappedStyle, plane: &Plane, decoding: &Decoding) -> Pixels {
    let symbols = by_table(style, plane, decoding).unwrap_or_else(|| symbols(style, plane, decoding));
    let mut palette = [Color::TRANSPARENT; PALETTE];
    for (place, color) in palette.iter_mut().zip(style.colormap.colors()) {
        *place = *color;
    }
    let outside = |outside, end: usize| match outside {
        Outside::Extend => style.colormap.colors()[end],
        Outside::Color(color) => color,
    };
    for (symbol, color) in [
        (MISSING, style.missing),
        (BELOW, outside(style.below, 0)),
        (ABOVE, outside(style.above, 255)),
        (OUTSIDE, Color::TRANSPARENT),
    ] {
        palette[usize::from(symbol)] = color;
    }
    Pixels::Symbols(symbols, Box::new(palette))
}

/// The symbol of each number.
fn symbols(style: &MappedStyle, plane: &Plane, decoding: &Decoding) -> Vec<u16> {
    let mut symbols = Vec::with_capacity(plane.width() * plane.height());
    let below = if style.below == Outside::Extend { 0 } else { BELOW };
    let above = if style.above == Outside::Extend { 255 } else { ABOVE };
    // The last of the 256 equal parts of the range includes its end.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 256")]
    let part = |place: f64| ((place * 256.0) as u16).min(255);
    let (low, high) = style.mapping.range();
    let span = high - low;
    if style.mapping.scale() == Scale::Linear && low < high && span.is_finite() {
        // As [`Mapping::place`] has it, but a row at a time and without a branch for each number.
        plane.for_each_row(decoding, |numbers| {
            symbols.extend(numbers.iter().map(|&number| {
                let within = part((number - low) / span);
                let within = if number < low { below } else { within };
                let within = if number > high { above } else { within };
                if number.is_nan() { MISSING } else { within }
            }));
        });
    } else {
        plane.for_each_row(decoding, |numbers| {
            symbols.extend(numbers.iter().map(|&number| match style.mapping.place(number) {
                place if place.is_nan() => MISSING,
                place if place < 0.0 => below,
                place if place > 1.0 => above,
                place => part(place),
            }));
        });
    }
    symbols
}

/// The symbol of each number, by a table of those of all elements between the least and the greatest; `None` if elements are
/// wide, or so different that the table is no shorter than a quarter of the plane.
fn by_table(style: &MappedStyle, plane: &Plane, decoding: &Decoding) -> Option<Vec<u16>> {
    match decoding.data_type().element_bytes() {
        1 => tabled(style, plane, decoding, |[low]| u16::from(low)),
        2 => tabled(style, plane, decoding, u16::from_le_bytes),
        _ => None,
    }
}

fn tabled<const N: usize>(
    style: &MappedStyle,
    plane: &Plane,
    decoding: &Decoding,
    bits: impl Fn([u8; N]) -> u16,
) -> Option<Vec<u16>> {
    let (width, height) = (plane.width(), plane.height());
    let (mut least, mut greatest) = (u16::MAX, 0);
    for row in 0..height {
        for element in plane.row(row).as_chunks::<N>().0 {
            let bits = bits(*element);
            least = least.min(bits);
            greatest = greatest.max(bits);
        }
    }
    let length = usize::from(greatest.checked_sub(least)?) + 1;
    if length > width * height / 4 {
        return None;
    }
    let values = (least..=greatest).flat_map(|bits| bits.to_le_bytes().into_iter().take(N));
    let table = Plane::new(values.collect::<Vec<u8>>().into(), N, length, 1)?;
    let table = symbols(style, &table, decoding);
    let mut all = Vec::with_capacity(width * height);
    for row in 0..height {
        let symbol = |element: &[u8; N]| table.get(usize::from(bits(*element) - least)).copied();
        all.extend(
            plane.row(row).as_chunks::<N>().0.iter().map(|element| symbol(element).unwrap_or(MISSING)),
        );
    }
    Some(all)
}

fn gray(mapping: &Mapping, plane: &Plane, decoding: &Decoding) -> Pixels {
    let mut shades = Vec::with_capacity(plane.width() * plane.height());
    plane.for_each_row(decoding, |numbers| {
        shades.extend(numbers.iter().map(|&number| {
            let place = mapping.place(number);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 65535")]
            let shade = (place.clamp(0.0, 1.0) * 65535.0).round() as u16;
            (!place.is_nan()).then_some(shade)
        }));
    });
    Pixels::Gray16(shades)
}

fn composite(channels: &[Channel], missing: Color, planes: &[(Plane, Decoding)]) -> Vec<[u8; 4]> {
    let Some((first, _)) = planes.first() else { return Vec::new() };
    let width = first.width();
    let mut colors = Vec::with_capacity(width * first.height());
    let mut numbers = Vec::with_capacity(width);
    let mut light = vec![([0.0_f64; 3], false); width];
    for row in 0..first.height() {
        light.fill(([0.0; 3], false));
        for (channel, (plane, decoding)) in channels.iter().zip(planes) {
            decoding.numbers(&plane.row(row), &mut numbers);
            let color = channel.color.rgb().map(f64::from);
            for ((sum, is_lit), &number) in light.iter_mut().zip(&numbers) {
                let place = channel.mapping.place(number);
                if place.is_nan() {
                    continue;
                }
                *is_lit = true;
                let place = place.clamp(0.0, 1.0);
                for (sum, part) in sum.iter_mut().zip(color) {
                    *sum += place * part;
                }
            }
        }
        colors.extend(light.iter().map(|&(sum, is_lit)| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
            let [red, green, blue] = sum.map(|sum| sum.min(255.0).round() as u8);
            if is_lit { [red, green, blue, u8::MAX] } else { missing.0 }
        }));
    }
    colors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::DataType;
    use crate::render::raster::Part;

    fn plane(numbers: &[f32], width: usize) -> (Plane, Decoding) {
        let items: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let plane = Plane::new(items.into(), 4, width, numbers.len() / width).unwrap();
        (plane, Decoding::stored(&DataType::Float32, Part::Abs).unwrap())
    }

    fn mapped_style(below: Outside, above: Outside) -> Style {
        Style::Mapped(Box::new(MappedStyle {
            mapping: Mapping::new(0.0, 256.0, Scale::Linear).unwrap(),
            colormap: Colormap::named("gray").unwrap(),
            below,
            above,
            missing: Color([1, 2, 3, 4]),
        }))
    }

    fn colors(style: &Style, planes: &[(Plane, Decoding)]) -> Vec<[u8; 4]> {
        style.draw(planes).unwrap().colors().into_owned()
    }

    #[test]
    fn a_number_has_the_colour_of_its_part_of_the_range() {
        let planes = [plane(&[0.0, 1.0, 1.5, 255.0, 256.0, -1.0, 300.0, f32::NAN], 4)];
        let gray = |level| [level, level, level, 255];
        let style = mapped_style(Outside::Extend, Outside::Extend);
        let expected = [gray(0), gray(1), gray(1), gray(255), gray(255), gray(0), gray(255), [1, 2, 3, 4]];
        assert_eq!(colors(&style, &planes), expected);
        let red = Outside::Color(Color::opaque(0xff_0000));
        let style = mapped_style(red, Outside::Color(Color::TRANSPARENT));
        assert_eq!(colors(&style, &planes)[5..7], [[255, 0, 0, 255], [0; 4]]);
    }

    #[test]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 256")]
    fn every_number_has_the_colour_of_its_place() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from_bits(state)
        };
        for (low, high) in [(0.0, 1.0), (269.9, 311.2), (-1e-310, 1e-310), (-1e308, 1e308), (3.0, 3.0)] {
            let near = |part: f64| low + (high - low) * part;
            let parts = (0..=2560).map(|step| near(f64::from(step) / 2560.0));
            let ends = [
                low,
                high,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                -0.0,
                high.next_up(),
                low.next_down(),
            ];
            let numbers: Vec<f64> = parts.chain((0..1000).map(|_| next())).chain(ends).collect();
            let items: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let plane = Plane::new(items.into(), 8, numbers.len(), 1).unwrap();
            let decoding = Decoding::stored(&DataType::Float64, Part::Abs).unwrap();
            let mapping = Mapping::new(low, high, Scale::Linear).unwrap();
            let Style::Mapped(style) = mapped_style(Outside::Extend, Outside::Color(Color([9; 4]))) else {
                panic!()
            };
            let style = Style::Mapped(Box::new(MappedStyle { mapping, ..*style }));
            let expected = numbers.iter().map(|&number| match mapping.place(number) {
                place if place.is_nan() => [1, 2, 3, 4],
                place if place < 0.0 => [0, 0, 0, 255],
                place if place > 1.0 => [9; 4],
                place => {
                    let level = (place * 256.0).min(255.0) as u8;
                    [level, level, level, 255]
                }
            });
            assert_eq!(colors(&style, &[(plane, decoding)]), expected.collect::<Vec<_>>(), "{low} {high}");
        }
    }

    #[test]
    fn narrow_elements_have_the_colours_of_wide_ones() {
        let style = mapped_style(Outside::Color(Color([7; 4])), Outside::Color(Color([9; 4])));
        let numbers: Vec<i16> = (0..4096).map(|at: i16| at % 600 * 37 % 600 - 250).collect();
        let of = |items: Vec<u8>, data_type: DataType| {
            let decoding = Decoding::stored(&data_type, Part::Abs).unwrap();
            let plane = Plane::new(items.into(), data_type.element_bytes(), 64, 64).unwrap();
            [plane.clone(), plane.clone().rows(3, 20), plane.transposed().flipped(true, true)]
                .map(|plane| colors(&style, &[(plane, decoding.clone())]))
        };
        let bytes = |wide: bool, narrow: fn(i16) -> i16| -> Vec<u8> {
            let number = |number: &i16| narrow(*number);
            if wide {
                numbers.iter().flat_map(|item| f64::from(number(item)).to_le_bytes()).collect()
            } else {
                numbers.iter().flat_map(|item| number(item).to_le_bytes()).collect()
            }
        };
        assert_eq!(of(bytes(false, |it| it), DataType::Int16), of(bytes(true, |it| it), DataType::Float64));
        let positive: fn(i16) -> i16 = |it| it + 250;
        assert_eq!(
            of(bytes(false, positive), DataType::UInt16),
            of(bytes(true, positive), DataType::Float64)
        );
        let small: fn(i16) -> i16 = |it| it.rem_euclid(256);
        let low = |items: Vec<u8>| items.into_iter().step_by(2).collect::<Vec<u8>>();
        assert_eq!(of(low(bytes(false, small)), DataType::UInt8), of(bytes(true, small), DataType::Float64));
    }

    #[test]
    fn the_light_of_channels_is_added() {
        let one = |color| Channel { mapping: Mapping::new(0.0, 1.0, Scale::Linear).unwrap(), color };
        let style = Style::Composite(
            vec![one(Color::opaque(0xff_0000)), one(Color::opaque(0xff_00ff))],
            Color::TRANSPARENT,
        );
        let planes = [plane(&[0.5, 1.0, f32::NAN, f32::NAN], 4), plane(&[0.25, 1.0, 0.5, f32::NAN], 4)];
        assert_eq!(
            colors(&style, &planes),
            [[191, 0, 64, 255], [255, 0, 255, 255], [128, 0, 128, 255], [0, 0, 0, 0]]
        );
        assert!(style.draw(&planes[..1]).is_none());
    }
}
