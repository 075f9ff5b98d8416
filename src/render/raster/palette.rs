//! [`Palette`]: the colours of the pixels of a picture, if 256 suffice.

use std::collections::HashMap;

use super::color::Color;

/// The symbol of a pixel without a number; symbols below are places in the colormap.
pub(super) const MISSING: u16 = 256;
/// The symbol of a number below the range.
pub(super) const BELOW: u16 = 257;
/// The symbol of a number above the range.
pub(super) const ABOVE: u16 = 258;
/// The symbol of a pixel outside the array.
pub(super) const OUTSIDE: u16 = 259;
/// The number of symbols.
pub(super) const PALETTE: usize = 260;

/// The places in a palette of the symbols that are none of a colormap.
pub(super) type Specials = [u8; PALETTE - 256];

/// The chunks `PLTE` and `tRNS` (PNG, sections 11.2.2 and 11.3.1.1).
pub(super) struct Palette {
    pub(super) colors: Vec<u8>,
    /// Up to the last that is not opaque.
    pub(super) opacities: Vec<u8>,
}

impl Palette {
    pub(super) fn new(colors: &[Color]) -> Self {
        let opaque = |color: &Color| color.0[3] == u8::MAX;
        let end = colors.iter().rposition(|color| !opaque(color)).map_or(0, |last| last + 1);
        Self {
            colors: colors.iter().flat_map(|color| color.rgb()).collect(),
            opacities: colors.iter().take(end).map(|color| color.0[3]).collect(),
        }
    }

    /// The palette of symbols, and the place of each pixel in it; `None` if more than 256 are used.
    pub(super) fn of_symbols(symbols: &[u16], colors: &[Color; PALETTE]) -> Option<(Self, Vec<u8>)> {
        let mut is_used = [false; PALETTE];
        // Of signed integers, since processors find the greatest of these many at a time.
        let last =
            symbols.iter().map(|symbol| symbol.cast_signed()).max().unwrap_or_default().cast_unsigned();
        if last < MISSING {
            // Which of the others are used makes no difference: none of them has to be free.
            is_used[usize::from(last)] = true;
            let (palette, _) = Self::of_used(is_used, colors)?;
            return Some((palette, symbols.iter().map(|symbol| symbol.to_le_bytes()[0]).collect()));
        }
        for &symbol in symbols {
            if let Some(is_used) = is_used.get_mut(usize::from(symbol)) {
                *is_used = true;
            }
        }
        let (palette, specials) = Self::of_used(is_used, colors)?;
        let place = |symbol: &u16| match symbol.to_be_bytes() {
            [0, place] => place,
            [_, special] => specials.get(usize::from(special)).copied().unwrap_or_default(),
        };
        Some((palette, symbols.iter().map(place).collect()))
    }

    /// The palette of the symbols that are used, and the places in it of those that are none of the colormap; `None` if more
    /// than 256 are used. Symbols of the colormap keep their places, and the others take the first that are free.
    pub(super) fn of_used(
        mut is_used: [bool; PALETTE],
        colors: &[Color; PALETTE],
    ) -> Option<(Self, Specials)> {
        let mut places = Specials::default();
        let mut palette = colors[..256].to_vec();
        for (place, special) in places.iter_mut().zip(256..PALETTE) {
            if is_used[special] {
                let free = is_used[..256].iter().position(|is_used| !is_used)?;
                is_used[free] = true;
                palette[free] = colors[special];
                *place = u8::try_from(free).ok()?;
            }
        }
        let end = is_used[..256].iter().rposition(|&is_used| is_used).map_or(1, |last| last + 1);
        palette.truncate(end);
        Some((Self::new(&palette), places))
    }

    /// The palette of colours, and the place of each pixel in it; `None` if there are more than 256.
    pub(super) fn of_colors(colors: &[[u8; 4]]) -> Option<(Self, Vec<u8>)> {
        let mut found = FoundColors::default();
        let places = found.places(colors)?;
        Some((Self::new(found.colors()), places))
    }
}

/// Colours in the order in which they were found, at most 256.
#[derive(Debug, Default)]
pub(super) struct FoundColors {
    places: HashMap<[u8; 4], u8>,
    colors: Vec<Color>,
}

impl FoundColors {
    /// The colours by their places.
    pub(super) fn colors(&self) -> &[Color] {
        &self.colors
    }

    /// The place of each of these colours; `None` if there are then more than 256.
    pub(super) fn places(&mut self, colors: &[[u8; 4]]) -> Option<Vec<u8>> {
        let mut places = Vec::with_capacity(colors.len());
        let mut last: Option<([u8; 4], u8)> = None;
        for &color in colors {
            let place = match last {
                Some((before, place)) if before == color => place,
                _ => self.place(color)?,
            };
            last = Some((color, place));
            places.push(place);
        }
        Some(places)
    }

    fn place(&mut self, color: [u8; 4]) -> Option<u8> {
        if let Some(place) = self.places.get(&color) {
            return Some(*place);
        }
        let place = u8::try_from(self.colors.len()).ok()?;
        self.places.insert(color, place);
        self.colors.push(Color(color));
        Some(place)
    }
}
