//! What the arrays of the demo show: an ocean with its continents, two balls, and cells under a microscope.
//!
//! The values are arithmetic, the same at every start and on every machine up to the rounding of sines. They are computed at
//! every start, also by builds that are not optimised.

/// Continents, roughly, as ellipses: latitude and longitude of the centre, and the half axes, all in degrees.
const LAND: [[f32; 4]; 17] = [
    [52.0, -105.0, 17.0, 25.0],
    [66.0, -110.0, 6.0, 45.0],
    [40.0, -95.0, 13.0, 25.0],
    [22.0, -102.0, 8.0, 7.0],
    [73.0, -41.0, 11.0, 15.0],
    [-8.0, -60.0, 16.0, 19.0],
    [-32.0, -66.0, 20.0, 7.0],
    [12.0, 10.0, 17.0, 24.0],
    [-12.0, 25.0, 22.0, 12.0],
    [48.0, 15.0, 8.0, 22.0],
    [64.0, 20.0, 7.0, 12.0],
    [58.0, 90.0, 15.0, 60.0],
    [38.0, 85.0, 14.0, 33.0],
    [21.0, 79.0, 9.0, 8.0],
    [27.0, 45.0, 11.0, 9.0],
    [-25.0, 134.0, 10.0, 19.0],
    [-85.0, 0.0, 14.0, 400.0],
];

/// The temperature of the sea in degrees Celsius at an hour and a place; NaN on land.
pub(super) fn sea_temperature(hour: f32, latitude: f32, longitude: f32) -> f32 {
    for [north, east, height, width] in &LAND {
        let (up, right) = ((latitude - north) / height, (longitude - east) / width);
        if up * up + right * right < 1.0 {
            return f32::NAN;
        }
    }
    let (phi, lambda) = (latitude.to_radians(), longitude.to_radians());
    let zones = 31.0 * phi.cos().powi(2) - 2.0;
    let drift = hour.to_radians() * 15.0;
    let waves = (3.0f32.mul_add(lambda, drift)).sin() * (4.0 * phi).sin() * 1.8;
    let eddies = (9.0 * lambda - 2.0 * drift + 7.0 * phi).sin() * (11.0 * phi).cos() * 0.7;
    zones + waves + eddies
}

/// Two bright balls on a dark background.
pub(super) fn balls(z: i32, y: i32, x: i32) -> i32 {
    ball(z - 40, y - 48, x - 56, 36) + ball(z - 90, y - 84, x - 70, 28)
}

/// The brightness of a ball at a distance from its centre.
fn ball(z: i32, y: i32, x: i32, radius: i32) -> i32 {
    let square = radius * radius - z * z - y * y - x * x;
    if square > 0 { square } else { 0 }
}

/// Pixels from one cell to the next.
const PITCH: i32 = 56;

/// A cell: its number, and the place and size of its nucleus.
struct Cell {
    number: i32,
    y: i32,
    x: i32,
    radius: i32,
}

/// The cell at a place of the grid of cells.
fn cell(row: i32, column: i32) -> Cell {
    let mixed = (row.wrapping_mul(7919) ^ column.wrapping_mul(104_729)).wrapping_mul(48_271) & 0x7fff_ffff;
    Cell {
        number: 1 + row * 10 + column,
        y: row * PITCH + (mixed >> 3) % 27 - 13,
        x: column * PITCH + (mixed >> 9) % 27 - 13,
        radius: 13 + (mixed >> 15) % 8,
    }
}

impl Cell {
    /// The square of the distance from the centre to a pixel.
    fn square(&self, y: i32, x: i32) -> i32 {
        let (down, right) = (self.y - y, self.x - x);
        down * down + right * right
    }
}

/// The places in the grid of the cells around a pixel.
fn around(y: i32, x: i32) -> [(i32, i32); 4] {
    let (row, column) = (y / PITCH, x / PITCH);
    [(row, column), (row, column + 1), (row + 1, column), (row + 1, column + 1)]
}

/// The brightness of a pixel in a channel: nuclei, membranes, and grains in the cells.
pub(super) fn microscope(channel: i32, y: i32, x: i32) -> u8 {
    let noise = ((y.wrapping_mul(31_337) ^ x.wrapping_mul(65_537)).wrapping_mul(48_271) >> 16) & 15;
    let mut light = i32::MIN;
    for (row, column) in &around(y, x) {
        let cell = cell(*row, *column);
        light = light.max(brightness(channel, &cell, cell.square(y, x), y, x));
    }
    u8::try_from((light + noise).clamp(0, 255)).unwrap_or(u8::MAX)
}

fn brightness(channel: i32, cell: &Cell, square: i32, y: i32, x: i32) -> i32 {
    let inner = cell.radius * cell.radius;
    let outer = (cell.radius + 14) * (cell.radius + 14);
    match channel {
        0 => (inner - square) * 190 / inner + if square < inner { 45 } else { 0 },
        1 => 225 - (square - outer).abs() * 225 / (outer / 4),
        _ => {
            let grain = (((y / 3 * 7919) ^ (x / 3 * 6151)).wrapping_mul(48_271) >> 12) & 31;
            if square > inner && square < outer && grain < 3 { 120 + grain * 40 } else { 0 }
        }
    }
}

/// The number of the nucleus at a pixel; 0 between them.
pub(super) fn nucleus(y: i32, x: i32) -> u16 {
    for (row, column) in &around(y, x) {
        let cell = cell(*row, *column);
        if cell.square(y, x) < cell.radius * cell.radius {
            return u16::try_from(cell.number).unwrap_or(0);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sea_is_warm_at_the_equator_and_the_land_is_missing() {
        assert!(sea_temperature(0.0, 0.0, -150.0) > 24.0);
        assert!(sea_temperature(0.0, -60.0, -150.0) < 12.0);
        assert!(sea_temperature(0.0, 15.0, 10.0).is_nan());
    }

    #[test]
    fn nuclei_are_bright_and_numbered() {
        let numbered = (0..512).filter(|&x| nucleus(256, x) > 0).count();
        assert!((20..480).contains(&numbered), "{numbered}");
        for x in 0..512 {
            assert!(nucleus(256, x) == 0 || microscope(0, 256, x) >= 45, "{x}");
        }
    }
}
