//! Legends: the colours of a picture side by side.

use super::color::Color;
use super::picture::{Picture, Pixels};

/// Ramps of colours from left to right, each in a band of its own, from top to bottom; `None` without any colour.
#[must_use]
pub fn ramps(ramps: &[Vec<Color>], width: u32, height: u32) -> Option<Picture> {
    let (width, height) = (width as usize, height as usize);
    let mut colors = Vec::with_capacity(width * height);
    for row in 0..height {
        let ramp = ramps.get(row * ramps.len() / height)?;
        // The colour at the middle of each pixel.
        let color = |column: usize| ramp.get((2 * column + 1) * ramp.len() / (2 * width));
        for column in 0..width {
            colors.push(color(column)?.0);
        }
    }
    Picture::new(width, height, Pixels::Colors(colors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::raster::Colormap;

    #[test]
    fn a_ramp_has_each_colour_once_where_there_are_as_many_pixels() {
        let map = Colormap::named("viridis").unwrap();
        let legend =
            ramps(&[map.colors().to_vec(), vec![Color::opaque(7)]], 256, 4).unwrap().colors().into_owned();
        assert!(legend[..256].iter().zip(map.colors()).all(|(found, color)| *found == color.0));
        assert_eq!(legend[256..512], legend[..256]);
        assert!(legend[512..].iter().all(|color| *color == [0, 0, 7, 255]));
        assert!(ramps(&[], 4, 4).is_none() && ramps(&[vec![]], 4, 4).is_none());
    }
}
