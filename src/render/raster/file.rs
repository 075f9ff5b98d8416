//! [`PictureFile`]: the PNG file of a picture that is written while the picture is drawn, some rows at a time.
//!
//! The head of a file says how pixels are written, and has the palette. Both depend on all pixels, unless each is known to have
//! a number. Until both are known, rows wait with a byte for each pixel. The file depends on the pixels and on nothing else.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use png::{BitDepth, ColorType, Compression, Encoder, Filter, StreamWriter};

use super::color::Color;
use super::palette::{FoundColors, PALETTE, Palette, Specials};
use super::picture::{Picture, Pixels, shade_and_opacity};
use super::place_rows::PlaceRows;
use crate::render::RenderError;

/// Pixels that are drawn and written at a time, but at least a row.
const PIXELS_AT_ONCE: usize = 1 << 16;
/// Compressed bytes in each chunk of the file but the last.
const CHUNK_BYTES: usize = 64 << 10;

/// Rows of this many pixels that are drawn and written at a time: [`PictureFile::add`] takes as many, but for the last.
#[must_use]
pub fn rows_at_once(width: usize) -> usize {
    (PIXELS_AT_ONCE / width.max(1)).max(1)
}

/// The bytes that the pixels of a file take at most while its palette is not known.
#[must_use]
pub fn waiting_bytes(pixels: u64) -> u64 {
    pixels.saturating_add(pixels.div_ceil(8))
}

/// The bytes that drawing and writing rows of this many pixels takes at most, beside their elements and rows that wait.
#[must_use]
pub fn writing_bytes(width: u64) -> u64 {
    let at_once = width.max(PIXELS_AT_ONCE as u64);
    // The pixels, as they are written, compressed and for the trial of that; and what the encoder keeps.
    at_once.saturating_mul(20).saturating_add(width.saturating_mul(12)).saturating_add(4 * CHUNK_BYTES as u64)
}

/// The file of a picture that is being drawn.
pub struct PictureFile {
    width: u32,
    height: u32,
    /// Rows that were added.
    rows: u32,
    /// Whether every pixel has a number.
    is_complete: bool,
    queue: VecDeque<Rows>,
    state: State,
}

/// Rows that are not written yet.
enum Rows {
    Waiting(PlaceRows),
    Drawn(Pixels),
    /// As they are written.
    Bytes(Vec<u8>),
}

enum State {
    /// How pixels are written is not known.
    Waiting(Waiting),
    Writing(Box<Writing>),
    Ended,
}

/// What is known of the colours of a picture.
enum Waiting {
    Nothing,
    Symbols(Box<[bool; PALETTE]>, Box<[Color; PALETTE]>),
    Colors(FoundColors),
}

/// How pixels are written.
struct Form {
    color: ColorType,
    /// The palette, and the places of symbols that are none of the colormap.
    palette: Option<(Palette, Specials)>,
    /// The colours of symbols.
    colors: Vec<Color>,
}

/// A file whose head is written.
struct Writing {
    form: Form,
    writer: StreamWriter<'static, Written>,
    written: Written,
}

/// What was written of a file and not yet taken.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl PictureFile {
    /// The file of a picture of this size. With `is_complete`, every pixel stands for a number and is opaque.
    #[must_use]
    pub fn new(width: u32, height: u32, is_complete: bool) -> Self {
        let (queue, state) = (VecDeque::new(), State::Waiting(Waiting::Nothing));
        Self { width, height, rows: 0, is_complete, queue, state }
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

    /// Whether more rows are to be added before [`PictureFile::write`] has something to write.
    #[must_use]
    pub fn needs_rows(&self) -> bool {
        let has_none = matches!(self.state, State::Waiting(_)) || self.queue.is_empty();
        has_none && self.rows < self.height
    }

    /// Whether all rows were added.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.rows == self.height
    }

    /// Whether all of the file was written.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Adds the next rows: as many as [`rows_at_once`] says, or the last.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if they do not fit the picture.
    pub fn add(&mut self, rows: Picture) -> Result<(), RenderError> {
        let count = self.rows.checked_add(rows.height()).filter(|count| *count <= self.height);
        let count = count.filter(|_| rows.width() == self.width);
        self.rows = count.ok_or(RenderError::ElementCount)?;
        let pixels = rows.into_pixels();
        let State::Waiting(waiting) = &mut self.state else {
            self.queue.push_back(Rows::Drawn(pixels));
            return Ok(());
        };
        let (rows, is_known) =
            if self.is_complete { (Rows::Drawn(pixels), true) } else { waiting.rows(pixels) };
        self.queue.push_back(rows);
        if is_known || self.rows == self.height {
            let waiting = std::mem::replace(waiting, Waiting::Nothing);
            let form = self.form(waiting).ok_or(RenderError::ElementCount)?;
            self.begin(form)?;
        }
        Ok(())
    }

    /// What of the file is complete with the next rows that were added; the end of it with the last of them.
    ///
    /// # Errors
    /// [`RenderError::PngFailed`] and [`RenderError::ElementCount`], which are bugs.
    pub fn write(&mut self) -> Result<Vec<u8>, RenderError> {
        let State::Writing(writing) = &mut self.state else { return Ok(Vec::new()) };
        if let Some(rows) = self.queue.pop_front() {
            let bytes = writing.form.bytes(rows).ok_or(RenderError::ElementCount)?;
            writing.writer.write_all(&bytes).map_err(failed)?;
        }
        let mut piece = writing.written.take();
        if self.queue.is_empty()
            && self.rows == self.height
            && let State::Writing(writing) = std::mem::replace(&mut self.state, State::Ended)
        {
            writing.writer.finish().map_err(failed)?;
            piece.append(&mut writing.written.take());
        }
        Ok(piece)
    }

    /// How the pixels that were added, and all that follow, are written; `None` if there are none.
    fn form(&self, waiting: Waiting) -> Option<Form> {
        let form = |color, colors: &[Color]| Form { color, palette: None, colors: colors.to_vec() };
        let indexed = |is_used: [bool; PALETTE], colors: &[Color; PALETTE]| {
            let palette = Palette::of_used(is_used, colors)?;
            Some(Form { palette: Some(palette), ..form(ColorType::Indexed, colors) })
        };
        Some(match (waiting, self.queue.back()?) {
            (Waiting::Symbols(is_used, colors), _) => {
                indexed(*is_used, &colors).unwrap_or_else(|| form(ColorType::Rgba, &*colors))
            }
            (Waiting::Colors(found), Rows::Waiting(_)) => {
                let palette = Some((Palette::new(found.colors()), Specials::default()));
                Form { palette, ..form(ColorType::Indexed, &[]) }
            }
            (Waiting::Colors(found), _) => form(ColorType::Rgba, found.colors()),
            (Waiting::Nothing, Rows::Drawn(Pixels::Symbols(_, colors))) => {
                let mut is_used = [true; PALETTE];
                is_used[256..].fill(false);
                indexed(is_used, colors)?
            }
            (Waiting::Nothing, Rows::Drawn(Pixels::Gray16(_))) => {
                form(if self.is_complete { ColorType::Grayscale } else { ColorType::GrayscaleAlpha }, &[])
            }
            (Waiting::Nothing, _) => form(ColorType::Rgb, &[]),
        })
    }

    /// Writes the head. Whether the pixels are compressed depends on whether the first of them get shorter.
    fn begin(&mut self, form: Form) -> Result<(), RenderError> {
        let first =
            self.queue.pop_front().and_then(|rows| form.bytes(rows)).ok_or(RenderError::ElementCount)?;
        let is_stored = !gets_shorter(&first, form.row_bytes(self.width))?;
        self.queue.push_front(Rows::Bytes(first));
        let written = Written::default();
        let mut encoder = Encoder::new(written.clone(), self.width, self.height);
        let is_gray = matches!(form.color, ColorType::Grayscale | ColorType::GrayscaleAlpha);
        encoder.set_color(form.color);
        encoder.set_depth(if is_gray { BitDepth::Sixteen } else { BitDepth::Eight });
        encoder.set_compression(if is_stored { Compression::NoCompression } else { Compression::Fastest });
        encoder.set_filter(if is_stored { Filter::NoFilter } else { Filter::Up });
        if let Some((palette, _)) = &form.palette {
            encoder.set_palette(palette.colors.clone());
            if !palette.opacities.is_empty() {
                encoder.set_trns(palette.opacities.clone());
            }
        }
        let writer = encoder.write_header().map_err(failed)?;
        let writer = writer.into_stream_writer_with_size(CHUNK_BYTES).map_err(failed)?;
        self.state = State::Writing(Box::new(Writing { form, writer, written }));
        Ok(())
    }
}

impl Waiting {
    /// Rows that wait until all colours are known, and whether they need not, since they are.
    fn rows(&mut self, pixels: Pixels) -> (Rows, bool) {
        match pixels {
            Pixels::Gray16(_) => (Rows::Drawn(pixels), true),
            Pixels::Symbols(symbols, colors) => {
                if !matches!(self, Self::Symbols(..)) {
                    *self = Self::Symbols(Box::new([false; PALETTE]), colors);
                }
                let Self::Symbols(is_used, _) = self else { return (Rows::Bytes(Vec::new()), false) };
                let rows = PlaceRows::of_symbols(&symbols, &mut **is_used);
                (Rows::Waiting(rows), is_used.iter().filter(|&&is_used| is_used).count() > 256)
            }
            Pixels::Colors(colors) => {
                if !matches!(self, Self::Colors(_)) {
                    *self = Self::Colors(FoundColors::default());
                }
                let Self::Colors(found) = self else { return (Rows::Bytes(Vec::new()), false) };
                match found.places(&colors) {
                    Some(places) => (Rows::Waiting(PlaceRows::new(places)), false),
                    None => (Rows::Drawn(Pixels::Colors(colors)), true),
                }
            }
        }
    }
}

impl Form {
    /// The bytes of a row.
    fn row_bytes(&self, width: u32) -> usize {
        let pixel = match self.color {
            ColorType::Indexed => 1,
            ColorType::Grayscale => 2,
            ColorType::Rgb => 3,
            ColorType::GrayscaleAlpha | ColorType::Rgba => 4,
        };
        width as usize * pixel
    }

    /// The pixels of rows as they are written; `None` if they cannot be written so.
    fn bytes(&self, rows: Rows) -> Option<Vec<u8>> {
        let color = |symbol: u16| self.colors.get(usize::from(symbol)).map_or([0; 4], |color| color.0);
        Some(match (rows, self.color) {
            (Rows::Bytes(bytes), _) => bytes,
            (Rows::Waiting(rows), ColorType::Indexed) => {
                let (_, slots) = self.palette.as_ref()?;
                let slot = |symbol: u16| match symbol.to_be_bytes() {
                    [0, place] => place,
                    [_, special] => slots.get(usize::from(special)).copied().unwrap_or_default(),
                };
                rows.mapped(slot)
            }
            (Rows::Waiting(rows), _) => rows.symbols().flat_map(color).collect(),
            (Rows::Drawn(Pixels::Symbols(symbols, _)), ColorType::Indexed) => {
                symbols.into_iter().map(u8::try_from).collect::<Result<_, _>>().ok()?
            }
            (Rows::Drawn(Pixels::Symbols(symbols, _)), _) => symbols.into_iter().flat_map(color).collect(),
            (Rows::Drawn(Pixels::Colors(colors)), ColorType::Rgb) => {
                colors.into_iter().flat_map(|[red, green, blue, _]| [red, green, blue]).collect()
            }
            (Rows::Drawn(Pixels::Colors(colors)), _) => colors.into_flattened(),
            (Rows::Drawn(Pixels::Gray16(shades)), ColorType::Grayscale) => {
                shades.into_iter().flat_map(|shade| shade.unwrap_or_default().to_be_bytes()).collect()
            }
            (Rows::Drawn(Pixels::Gray16(shades)), _) => {
                shades.into_iter().flat_map(shade_and_opacity).collect()
            }
        })
    }
}

/// Whether rows of this many bytes get shorter when they are compressed.
fn gets_shorter(bytes: &[u8], row: usize) -> Result<bool, RenderError> {
    let side = |length: usize| u32::try_from(length).map_err(|_too_long| RenderError::ElementCount);
    let mut file = Vec::with_capacity(bytes.len() / 2);
    let mut encoder = Encoder::new(&mut file, side(row)?, side(bytes.len() / row.max(1))?);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fastest);
    encoder.set_filter(Filter::Up);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(bytes).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file.len() < bytes.len())
}

impl Written {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for PictureFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PictureFile").field("rows", &self.rows).finish_non_exhaustive()
    }
}

fn failed(error: impl Into<png::EncodingError>) -> RenderError {
    RenderError::PngFailed { reason: error.into().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::raster::palette::{ABOVE, MISSING};

    const WIDTH: usize = 300;
    const HEIGHT: usize = 500;

    /// The file of a picture of which as many rows at a time are added as are written.
    fn file(picture: &Pixels, is_complete: bool) -> Vec<u8> {
        let length = |length: usize| u32::try_from(length).unwrap();
        let mut file = PictureFile::new(length(WIDTH), length(HEIGHT), is_complete);
        let (mut written, mut first) = (Vec::new(), 0);
        while !file.is_ended() {
            if file.needs_rows() {
                let end = (first + rows_at_once(WIDTH)).min(HEIGHT);
                let part = first * WIDTH..end * WIDTH;
                let rows = match picture {
                    Pixels::Symbols(symbols, colors) => {
                        Pixels::Symbols(symbols[part].to_vec(), colors.clone())
                    }
                    Pixels::Colors(colors) => Pixels::Colors(colors[part].to_vec()),
                    Pixels::Gray16(shades) => Pixels::Gray16(shades[part].to_vec()),
                };
                file.add(Picture::new(WIDTH, end - first, rows).unwrap()).unwrap();
                first = end;
            }
            written.append(&mut file.write().unwrap());
        }
        assert!(file.is_drawn() && file.write().unwrap().is_empty());
        written
    }

    fn decoded(file: &[u8]) -> (ColorType, Vec<[u8; 4]>) {
        let color = png::Decoder::new(io::Cursor::new(file)).read_header_info().unwrap().color_type;
        let mut decoder = png::Decoder::new(io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
        let mut reader = decoder.read_info().unwrap();
        let mut data = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut data).unwrap();
        assert_eq!((info.width as usize, info.height as usize), (WIDTH, HEIGHT));
        reader.finish().unwrap();
        let pixels = data.as_chunks::<4>().0;
        let is_gray = info.bit_depth == BitDepth::Sixteen;
        let eight = |&[high, _, opacity, _]: &[u8; 4]| [high, high, high, opacity];
        (color, if is_gray { pixels.iter().map(eight).collect() } else { pixels.to_vec() })
    }

    /// A colormap of which no colour is another, and something transparent for what is missing.
    fn colormap() -> Box<[Color; PALETTE]> {
        let mut colors = [Color([1, 2, 3, 0]); PALETTE];
        for (place, color) in colors.iter_mut().take(256).enumerate() {
            let level = u8::try_from(place).unwrap();
            *color = Color([level, level / 2, 255 - level, 255]);
        }
        colors[usize::from(ABOVE)] = Color([200, 0, 0, 255]);
        Box::new(colors)
    }

    /// A pixel of each row and column.
    fn each<T>(pixel: impl Fn(usize, usize) -> T) -> Vec<T> {
        (0..HEIGHT * WIDTH).map(|at| pixel(at / WIDTH, at % WIDTH)).collect()
    }

    /// Numbers without a pattern, which cannot be compressed.
    fn noise(row: usize, column: usize) -> [u8; 8] {
        let number = (row * WIDTH + column) as u64;
        let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)).to_be_bytes()
    }

    #[test]
    fn a_file_that_is_written_while_it_is_drawn_has_every_pixel() {
        let low = |row: usize, column: usize| (row / 3 + column / 2) % 200;
        let place = |number: usize| u16::try_from(number).unwrap();
        let color = |number: usize| {
            [u8::try_from(number % 256).unwrap(), u8::try_from(number / 256).unwrap(), 7, 255]
        };
        let late = |row: usize, column: usize| if row + 1 == HEIGHT { color(column) } else { color(row % 5) };
        let last = |row: usize, column: usize| (row, column) == (HEIGHT - 1, WIDTH - 1);
        let symbols = |symbols: Vec<u16>| Pixels::Symbols(symbols, colormap());
        let shade = |row: usize, column: usize| u16::from_be_bytes([noise(row, column)[0], 0]);
        for (pixels, is_complete, expected) in [
            (symbols(each(|row, column| place(low(row, column)))), true, ColorType::Indexed),
            (symbols(each(|row, column| place(low(row, column)))), false, ColorType::Indexed),
            (
                symbols(each(
                    |row, column| if last(row, column) { MISSING } else { place(low(row, column)) },
                )),
                false,
                ColorType::Indexed,
            ),
            (
                symbols(each(|row, column| [ABOVE, MISSING, place(low(row, column))][column % 3])),
                false,
                ColorType::Indexed,
            ),
            (
                symbols(each(
                    |row, column| {
                        if last(row, column) { MISSING } else { u16::from(noise(row, column)[1]) }
                    },
                )),
                false,
                ColorType::Rgba,
            ),
            (symbols(each(|row, column| u16::from(noise(row, column)[2]))), true, ColorType::Indexed),
            (Pixels::Colors(each(|row, _| color(row % 250))), false, ColorType::Indexed),
            (
                Pixels::Colors(each(|row, column| if last(row, column) { [0; 4] } else { color(row % 9) })),
                false,
                ColorType::Indexed,
            ),
            (Pixels::Colors(each(late)), false, ColorType::Rgba),
            (Pixels::Colors(each(|row, column| color(row * 7 + column))), true, ColorType::Rgb),
            (Pixels::Gray16(each(|row, column| Some(shade(row, column)))), true, ColorType::Grayscale),
            (
                Pixels::Gray16(each(|row, column| Some(shade(row, column)).filter(|_| !last(row, column)))),
                false,
                ColorType::GrayscaleAlpha,
            ),
        ] {
            let written = file(&pixels, is_complete);
            let (found, drawn) = decoded(&written);
            assert_eq!(found, expected);
            let picture = Picture::new(WIDTH, HEIGHT, pixels).unwrap();
            assert!(drawn == *picture.colors(), "{found:?}");
            let pixel = match found {
                ColorType::Indexed => 1,
                ColorType::Grayscale => 2,
                _ => 4,
            };
            assert!(written.len() < HEIGHT * WIDTH * pixel + (4 << 10), "{found:?}: {}", written.len());
        }
    }

    #[test]
    fn rows_that_do_not_fit_the_picture_are_an_error() {
        let rows = |width: usize, height: usize| {
            Picture::new(width, height, Pixels::Gray16(vec![None; width * height])).unwrap()
        };
        let mut file = PictureFile::new(3, 2, false);
        assert_eq!(file.add(rows(2, 1)), Err(RenderError::ElementCount));
        assert_eq!(file.add(rows(3, 3)), Err(RenderError::ElementCount));
        assert_eq!(file.add(rows(3, 2)), Ok(()));
        assert_eq!(file.add(rows(3, 1)), Err(RenderError::ElementCount));
    }
}
