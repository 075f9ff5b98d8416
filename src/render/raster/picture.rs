//! [`Picture`]: the pixels of a picture, and the PNG file of them.
//!
//! The file has a palette where 256 colours suffice: that is smaller and faster than colours for each pixel. The choice never
//! changes a pixel.

use std::borrow::Cow;

use png::{BitDepth, ColorType, Compression, Encoder, Filter};

use super::color::Color;
use super::palette::{OUTSIDE, PALETTE, Palette};
use crate::render::RenderError;

/// The pixels of a picture, row after row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pixels {
    /// Symbols, and the colour of each.
    Symbols(Vec<u16>, Box<[Color; PALETTE]>),
    /// Colours: red, green, blue, opacity.
    Colors(Vec<[u8; 4]>),
    /// Shades of gray; transparent without one.
    Gray16(Vec<Option<u16>>),
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    pixels: Pixels,
}

/// Bytes of a file beside its pixels, at most: its palette with opacities, and what frames its chunks.
const FRAME_BYTES: u64 = 2 << 10;
/// Bytes of a block of pixels that are stored as they are (RFC 1951, section 3.2.4).
const BLOCK_BYTES: u64 = 0xffff;
/// Bytes that such a block has beside.
const BLOCK_HEAD_BYTES: u64 = 5;

/// The bytes of the PNG file of a picture, at most (saturated): its pixels are never written longer than they are.
#[must_use]
pub fn most_file_bytes(width: u64, height: u64, pixel_bytes: u64) -> u64 {
    // A row begins with its filter.
    let row = width.saturating_mul(pixel_bytes).saturating_add(1);
    let raw = row.saturating_mul(height);
    let heads = raw.div_ceil(BLOCK_BYTES).saturating_add(1).saturating_mul(BLOCK_HEAD_BYTES);
    raw.saturating_add(heads).saturating_add(FRAME_BYTES)
}

impl Picture {
    /// A picture; `None` if the number of pixels differs from its size, or if that is not one of PNG.
    #[must_use]
    pub fn new(width: usize, height: usize, pixels: Pixels) -> Option<Self> {
        let count = match &pixels {
            Pixels::Symbols(symbols, _) => symbols.len(),
            Pixels::Colors(colors) => colors.len(),
            Pixels::Gray16(shades) => shades.len(),
        };
        let side = |length: usize| u32::try_from(length).ok().filter(|side| (1..1 << 31).contains(side));
        (width.checked_mul(height)? == count).then_some(())?;
        Some(Self { width: side(width)?, height: side(height)?, pixels })
    }

    /// Pixels in a row.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The pixels, row after row.
    pub(super) fn into_pixels(self) -> Pixels {
        self.pixels
    }

    /// A square of this side with the picture in its upper left corner and nothing in the rest. A longer side is cut.
    #[must_use]
    pub fn on_square(self, side: u32) -> Self {
        if (self.width, self.height) == (side, side) {
            return self;
        }
        let (from, to) = (self.width as usize, side as usize);
        let rows = (self.height as usize).min(to);
        let pixels = match self.pixels {
            Pixels::Symbols(symbols, palette) => {
                Pixels::Symbols(padded(&symbols, OUTSIDE, from, rows, to), palette)
            }
            Pixels::Colors(colors) => Pixels::Colors(padded(&colors, [0; 4], from, rows, to)),
            Pixels::Gray16(shades) => Pixels::Gray16(padded(&shades, None, from, rows, to)),
        };
        Self { width: side, height: side, pixels }
    }

    /// Pictures in rows and columns, each with its row and column, and nothing where there is none. All places are as large as
    /// the largest picture, which stand in their middle, and a pixel apart. `None` if the picture were larger than one of PNG.
    #[must_use]
    pub fn grid(pictures: &[(usize, usize, Self)], rows: usize, columns: usize) -> Option<Self> {
        let longest =
            |side: fn(&Self) -> u32| pictures.iter().map(|(_, _, one)| side(one)).max().unwrap_or(0);
        let (width, height) = (longest(Self::width) as usize, longest(Self::height) as usize);
        let all_width = columns.checked_mul(width.checked_add(1)?)?.checked_sub(1)?;
        let all_height = rows.checked_mul(height.checked_add(1)?)?.checked_sub(1)?;
        let place = |row: usize, column: usize, picture: &Self| {
            let (across, down) = (picture.width as usize, picture.height as usize);
            (row < rows && column < columns).then_some((
                column * (width + 1) + (width - across) / 2,
                row * (height + 1) + (height - down) / 2,
            ))
        };
        let is_gray = |picture: &Self| matches!(picture.pixels, Pixels::Gray16(_));
        let count = all_width.checked_mul(all_height)?;
        let pixels = if pictures.iter().all(|(_, _, picture)| is_gray(picture)) {
            let mut all = vec![None; count];
            for (row, column, picture) in pictures {
                let (Some(corner), Pixels::Gray16(shades)) = (place(*row, *column, picture), &picture.pixels)
                else {
                    continue;
                };
                put(&mut all, all_width, corner, shades, picture.width as usize);
            }
            Pixels::Gray16(all)
        } else {
            let mut all = vec![[0; 4]; count];
            for (row, column, picture) in pictures {
                let Some(corner) = place(*row, *column, picture) else { continue };
                put(&mut all, all_width, corner, &picture.colors(), picture.width as usize);
            }
            Pixels::Colors(all)
        };
        Self::new(all_width, all_height, pixels)
    }

    /// The PNG file.
    ///
    /// # Errors
    /// [`RenderError::PngFailed`], which is a bug.
    pub fn encode(self) -> Result<Vec<u8>, RenderError> {
        let indexed = match &self.pixels {
            Pixels::Symbols(symbols, palette) => Palette::of_symbols(symbols, palette),
            Pixels::Colors(colors) => Palette::of_colors(colors),
            Pixels::Gray16(shades) => return self.gray(shades),
        };
        match indexed {
            Some((palette, indices)) => {
                // The pixels are no longer needed, and take more memory than their places in the palette.
                let Self { width, height, pixels } = self;
                drop(pixels);
                Self { width, height, pixels: Pixels::Gray16(Vec::new()) }.indexed(&palette, &indices)
            }
            None => self.colored(&self.colors()),
        }
    }

    fn indexed(&self, palette: &Palette, indices: &[u8]) -> Result<Vec<u8>, RenderError> {
        self.write(ColorType::Indexed, BitDepth::Eight, Some(palette), indices)
    }

    fn colored(&self, colors: &[[u8; 4]]) -> Result<Vec<u8>, RenderError> {
        if colors.iter().all(|color| color[3] == u8::MAX) {
            let opaque: Vec<u8> =
                colors.iter().flat_map(|&[red, green, blue, _]| [red, green, blue]).collect();
            return self.write(ColorType::Rgb, BitDepth::Eight, None, &opaque);
        }
        self.write(ColorType::Rgba, BitDepth::Eight, None, colors.as_flattened())
    }

    fn gray(&self, shades: &[Option<u16>]) -> Result<Vec<u8>, RenderError> {
        if shades.iter().all(Option::is_some) {
            let shades: Vec<u8> =
                shades.iter().flat_map(|shade| shade.unwrap_or_default().to_be_bytes()).collect();
            return self.write(ColorType::Grayscale, BitDepth::Sixteen, None, &shades);
        }
        let pixels: Vec<u8> = shades.iter().copied().flat_map(shade_and_opacity).collect();
        self.write(ColorType::GrayscaleAlpha, BitDepth::Sixteen, None, &pixels)
    }

    fn write(
        &self,
        color: ColorType,
        depth: BitDepth,
        palette: Option<&Palette>,
        data: &[u8],
    ) -> Result<Vec<u8>, RenderError> {
        let mut file = Vec::with_capacity(data.len() / 2 + 1024);
        let mut encoder = Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        encoder.set_compression(Compression::Fastest);
        encoder.set_filter(Filter::Up);
        if let Some(palette) = palette {
            encoder.set_palette(palette.colors.as_slice());
            if !palette.opacities.is_empty() {
                encoder.set_trns(palette.opacities.as_slice());
            }
        }
        let failed = |error: png::EncodingError| RenderError::PngFailed { reason: error.to_string() };
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(data).map_err(failed)?;
        writer.finish().map_err(failed)?;
        file.shrink_to_fit();
        Ok(file)
    }

    /// The colour of each pixel.
    pub(super) fn colors(&self) -> Cow<'_, [[u8; 4]]> {
        match &self.pixels {
            Pixels::Symbols(symbols, palette) => {
                let color = |symbol: &u16| palette.get(usize::from(*symbol)).map_or([0; 4], |color| color.0);
                symbols.iter().map(color).collect()
            }
            Pixels::Colors(colors) => Cow::Borrowed(colors),
            Pixels::Gray16(shades) => {
                let color = |shade: &Option<u16>| {
                    shade.map_or([0; 4], |shade| {
                        let [level, _] = shade.to_be_bytes();
                        [level, level, level, u8::MAX]
                    })
                };
                shades.iter().map(color).collect()
            }
        }
    }
}

/// A shade and its opacity as they are written.
pub(super) fn shade_and_opacity(shade: Option<u16>) -> [u8; 4] {
    let [high, low] = shade.unwrap_or_default().to_be_bytes();
    let opacity = u8::from(shade.is_some()) * u8::MAX;
    [high, low, opacity, opacity]
}

/// Puts rows of `width` pixels into a picture with longer rows, from this column and row on.
fn put<T: Copy>(all: &mut [T], all_width: usize, (left, top): (usize, usize), pixels: &[T], width: usize) {
    for (row, pixels) in pixels.chunks(width.max(1)).enumerate() {
        let start = (top + row) * all_width + left;
        if let Some(to) = all.get_mut(start..start + pixels.len()) {
            to.copy_from_slice(pixels);
        }
    }
}

/// Rows of `from` pixels as the beginning of the rows of a square.
fn padded<T: Copy>(pixels: &[T], outside: T, from: usize, rows: usize, side: usize) -> Vec<T> {
    let mut square = vec![outside; side * side];
    for (row, to) in pixels.chunks(from.max(1)).take(rows).zip(square.chunks_mut(side.max(1))) {
        let count = from.min(side);
        to[..count].copy_from_slice(&row[..count]);
    }
    square
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::raster::palette::MISSING;

    fn decoded(file: &[u8]) -> (u32, u32, ColorType, Vec<[u8; 4]>) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::IDENTITY);
        let color = decoder.read_header_info().unwrap().color_type;
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
        let mut reader = decoder.read_info().unwrap();
        let mut data = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut data).unwrap();
        let pixels = match info.color_type {
            ColorType::Rgba | ColorType::GrayscaleAlpha => data.as_chunks::<4>().0.to_vec(),
            other => panic!("{other:?}"),
        };
        (info.width, info.height, color, pixels)
    }

    fn ramp() -> Box<[Color; PALETTE]> {
        let mut palette = [Color::TRANSPARENT; PALETTE];
        for (place, color) in palette.iter_mut().take(256).enumerate() {
            let level = u8::try_from(place).unwrap();
            *color = Color([level, 255 - level, 7, 255]);
        }
        palette[usize::from(MISSING)] = Color([9, 9, 9, 128]);
        Box::new(palette)
    }

    #[test]
    fn a_palette_never_changes_a_pixel() {
        let all: Vec<u16> = (0..256).collect();
        for (symbols, color) in [
            (all.clone(), ColorType::Indexed),
            (vec![0, 1, MISSING, 255, OUTSIDE, 3], ColorType::Indexed),
            (vec![MISSING; 4], ColorType::Indexed),
            ([all.clone(), vec![MISSING, OUTSIDE]].concat(), ColorType::Rgba),
        ] {
            let picture = Picture::new(symbols.len() / 2, 2, Pixels::Symbols(symbols, ramp())).unwrap();
            let (width, height, found, pixels) = decoded(&picture.clone().encode().unwrap());
            assert_eq!((width, height, found), (picture.width(), 2, color));
            assert_eq!(pixels, &*picture.colors());
        }
    }

    #[test]
    fn colours_are_written_with_as_few_bytes_as_they_need() {
        let many = |opacity| {
            (0..300_u16).map(move |at| [at.to_be_bytes()[0], at.to_be_bytes()[1], 3, opacity]).collect()
        };
        for (colors, color) in [
            (vec![[1, 2, 3, 255], [0; 4], [1, 2, 3, 255]], ColorType::Indexed),
            (many(255), ColorType::Rgb),
            (many(254), ColorType::Rgba),
        ] {
            let picture = Picture::new(colors.len(), 1, Pixels::Colors(colors)).unwrap();
            let (_, _, found, pixels) = decoded(&picture.clone().encode().unwrap());
            assert_eq!((found, pixels.as_slice()), (color, &*picture.colors()));
        }
    }

    #[test]
    fn a_file_is_no_longer_than_its_bound() {
        // Numbers that follow no pattern cannot be compressed.
        let mut state = 1_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()
        };
        for (width, height) in [(1, 1), (3, 2), (255, 256), (300, 700)] {
            let count = width * height;
            let symbols = (0..count).map(|_| u16::from(next()[0])).collect();
            let with_missing =
                (0..count).map(|_| u16::from_be_bytes([next()[0] & 1, next()[0]]) % 257).collect();
            let colors = (0..count).map(|_| next()[..4].try_into().unwrap()).collect();
            let shades: Vec<u16> = (0..count).map(|_| u16::from_be_bytes([next()[0], next()[0]])).collect();
            let some =
                |at: usize| shades[1..].iter().map(|&shade| Some(shade)).chain([Some(7).filter(|_| at > 0)]);
            for (pixels, bytes) in [
                (Pixels::Symbols(symbols, ramp()), 1),
                (Pixels::Symbols(with_missing, ramp()), 4),
                (Pixels::Colors(colors), 4),
                (Pixels::Gray16(some(0).collect()), 4),
                (Pixels::Gray16(some(1).collect()), 2),
            ] {
                let file = Picture::new(width, height, pixels).unwrap().encode().unwrap();
                let most = most_file_bytes(width as u64, height as u64, bytes);
                assert!(file.len() as u64 <= most, "{width} by {height}: {} of {most}", file.len());
            }
        }
        assert_eq!(most_file_bytes(u64::MAX, u64::MAX, 4), u64::MAX);
    }

    #[test]
    fn gray_has_16_bits() {
        let picture = Picture::new(3, 1, Pixels::Gray16(vec![Some(0), Some(0x1234), Some(65535)])).unwrap();
        let (_, _, color, pixels) = decoded(&picture.encode().unwrap());
        assert_eq!(color, ColorType::Grayscale);
        assert_eq!(pixels, [[0, 0, 255, 255], [0x12, 0x34, 255, 255], [255; 4]]);
        let picture = Picture::new(2, 1, Pixels::Gray16(vec![Some(0x1234), None])).unwrap();
        let (_, _, color, pixels) = decoded(&picture.encode().unwrap());
        assert_eq!((color, pixels), (ColorType::GrayscaleAlpha, vec![[0x12, 0x34, 255, 255], [0; 4]]));
    }

    #[test]
    fn pictures_in_rows_and_columns_are_a_pixel_apart_and_in_the_middle_of_their_places() {
        let one = |width, height, level: u8| {
            let colors = vec![[level, level, level, 255]; width * height];
            Picture::new(width, height, Pixels::Colors(colors)).unwrap()
        };
        let palette = Picture::new(3, 1, Pixels::Symbols(vec![5, MISSING, 6], ramp())).unwrap();
        let pictures = [(0, 0, palette), (1, 1, one(1, 1, 9)), (7, 0, one(1, 1, 8))];
        let grid = Picture::grid(&pictures, 2, 2).unwrap();
        let (none, nine) = ([0; 4], [9, 9, 9, 255]);
        let (five, missing, six) = ([5, 250, 7, 255], [9, 9, 9, 128], [6, 249, 7, 255]);
        let expected = [
            [five, missing, six, none, none, none, none],
            [none; 7],
            [none, none, none, none, none, nine, none],
        ];
        assert_eq!((grid.width(), grid.height()), (7, 3));
        assert_eq!(&*grid.colors(), expected.concat());
        let gray = Picture::new(1, 1, Pixels::Gray16(vec![Some(0x1234)])).unwrap();
        let grid = Picture::grid(&[(0, 1, gray.clone())], 1, 2).unwrap();
        assert_eq!(grid.pixels, Pixels::Gray16(vec![None, None, Some(0x1234)]));
        let mixed = Picture::grid(&[(0, 0, gray), (0, 1, one(1, 1, 9))], 1, 2).unwrap();
        assert_eq!(*mixed.colors(), [[0x12, 0x12, 0x12, 255], none, nine]);
        assert_eq!(Picture::grid(&[], 0, 0), None);
    }

    #[test]
    fn a_picture_on_a_square_is_in_its_upper_left_corner() {
        let picture = Picture::new(1, 2, Pixels::Symbols(vec![5, 6], ramp())).unwrap().on_square(3);
        let (width, height, _, pixels) = decoded(&picture.encode().unwrap());
        assert_eq!((width, height), (3, 3));
        let (none, five, six) = ([0; 4], [5, 250, 7, 255], [6, 249, 7, 255]);
        assert_eq!(pixels, [five, none, none, six, none, none, none, none, none]);
    }
}
