//! [`PlaceRows`]: rows of symbols with little more than a byte for each pixel.

/// Symbols of a picture: their lower bytes, and which of them are not places of the colormap.
#[derive(Debug)]
pub(super) struct PlaceRows {
    places: Vec<u8>,
    /// A bit for each pixel; empty if all are places of the colormap.
    specials: Vec<u8>,
}

impl PlaceRows {
    /// Rows of places of the colormap.
    pub(super) fn new(places: Vec<u8>) -> Self {
        Self { places, specials: Vec::new() }
    }

    /// Rows of symbols, which are marked in `is_used`.
    pub(super) fn of_symbols(symbols: &[u16], is_used: &mut [bool]) -> Self {
        let mut rows = Self::new(Vec::with_capacity(symbols.len()));
        for (at, &symbol) in symbols.iter().enumerate() {
            let [high, low] = symbol.to_be_bytes();
            rows.places.push(low);
            if let Some(is_used) = is_used.get_mut(usize::from(symbol)) {
                *is_used = true;
            }
            if high > 0 {
                if rows.specials.is_empty() {
                    rows.specials = vec![0; symbols.len().div_ceil(8)];
                }
                rows.specials[at / 8] |= 1 << (at % 8);
            }
        }
        rows
    }

    /// A byte for each pixel.
    pub(super) fn mapped(self, slot: impl Fn(u16) -> u8) -> Vec<u8> {
        if self.specials.is_empty() {
            return self.places;
        }
        self.symbols().map(slot).collect()
    }

    /// The symbols.
    pub(super) fn symbols(&self) -> impl Iterator<Item = u16> {
        let is_special = |at: usize| self.specials.get(at / 8).is_some_and(|bits| bits >> (at % 8) & 1 == 1);
        self.places
            .iter()
            .enumerate()
            .map(move |(at, &place)| u16::from_be_bytes([u8::from(is_special(at)), place]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_symbols_that_they_are_made_of() {
        for symbols in [vec![3, 255, 0], vec![256, 1, 2, 3, 4, 5, 6, 7, 259, 8], Vec::new()] {
            let mut is_used = [false; 260];
            let rows = PlaceRows::of_symbols(&symbols, &mut is_used);
            assert_eq!(rows.symbols().collect::<Vec<_>>(), symbols);
            assert!(
                (0..260).all(|symbol| is_used[symbol] == symbols.contains(&u16::try_from(symbol).unwrap()))
            );
            let slots = rows.mapped(|symbol| u8::try_from(symbol).unwrap_or(9));
            let expected: Vec<u8> = symbols.iter().map(|&symbol| u8::try_from(symbol).unwrap_or(9)).collect();
            assert_eq!(slots, expected);
        }
    }
}
