//! [`Colormap`]: 256 colours for the places between the ends of a range.

use super::color::Color;
use super::tables::{CIVIDIS, INFERNO, MAGMA, PLASMA, TURBO, VIRIDIS};

/// The names of the colormaps. Each also exists with `_r` behind its name, in reverse.
pub const COLORMAPS: [&str; 10] =
    ["viridis", "magma", "inferno", "plasma", "cividis", "gray", "turbo", "RdBu", "Spectral", "coolwarm"];

/// The diverging schemes of Cynthia Brewer and Mark Harrower (`ColorBrewer` 2.0, Apache-2.0), of 11 classes.
const RDBU: [u32; 11] = [
    0x67_001f, 0xb2_182b, 0xd6_604d, 0xf4_a582, 0xfd_dbc7, 0xf7_f7f7, 0xd1_e5f0, 0x92_c5de, 0x43_93c3,
    0x21_66ac, 0x05_3061,
];
const SPECTRAL: [u32; 11] = [
    0x9e_0142, 0xd5_3e4f, 0xf4_6d43, 0xfd_ae61, 0xfe_e08b, 0xff_ffbf, 0xe6_f598, 0xab_dda4, 0x66_c2a5,
    0x32_88bd, 0x5e_4fa2,
];
/// The diverging map of Kenneth Moreland ("Diverging Color Maps for Scientific Visualization", 2009) from (59, 76, 192) to
/// (180, 4, 38), evaluated at 33 places.
const COOLWARM: [u32; 33] = [
    0x3b_4cc0, 0x44_5acc, 0x4e_68d7, 0x58_75e1, 0x62_82ea, 0x6c_8ef1, 0x77_9af7, 0x82_a5fb, 0x8d_b0fe,
    0x98_b9ff, 0xa3_c2fe, 0xae_c9fd, 0xb8_d0f9, 0xc2_d5f4, 0xcc_d9ee, 0xd5_dbe6, 0xdd_dddd, 0xe5_d8d1,
    0xec_d3c6, 0xf1_ccb9, 0xf5_c4ad, 0xf7_bba0, 0xf7_b194, 0xf7_a687, 0xf4_9a7b, 0xf1_8d6f, 0xec_7f63,
    0xe5_7057, 0xde_614c, 0xd5_5042, 0xcb_3e38, 0xc0_282f, 0xb4_0426,
];

/// 256 opaque colours, the first for the smallest values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colormap([Color; 256]);

impl Colormap {
    /// The colormap of this name, whatever its case; `_r` at the end reverses it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let (name, is_reversed) = match name.strip_suffix("_r") {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        let map = match name {
            "viridis" => Self::from_table(&VIRIDIS),
            "magma" => Self::from_table(&MAGMA),
            "inferno" => Self::from_table(&INFERNO),
            "plasma" => Self::from_table(&PLASMA),
            "cividis" => Self::from_table(&CIVIDIS),
            "turbo" => Self::from_table(&TURBO),
            "gray" | "grey" => Self::from_stops(&[Color::opaque(0), Color::opaque(0xff_ffff)]),
            "rdbu" => Self::from_stops(&RDBU.map(Color::opaque)),
            "spectral" => Self::from_stops(&SPECTRAL.map(Color::opaque)),
            "coolwarm" => Self::from_stops(&COOLWARM.map(Color::opaque)),
            _ => return None,
        };
        Some(if is_reversed { map.reversed() } else { map })
    }

    fn from_table(table: &[u32; 256]) -> Self {
        Self(table.map(Color::opaque))
    }

    /// Colours at equal distances, and between two of them a linear transition in sRGB, rounded half up. A single colour
    /// fills the map; without any, it is black.
    #[must_use]
    pub fn from_stops(stops: &[Color]) -> Self {
        let last = stops.len().saturating_sub(1);
        Self(std::array::from_fn(|place| {
            // In 255ths of the distance between two stops.
            let (before, part) = (place * last / 255, place * last % 255);
            let stop = |at: usize| stops.get(at.min(last)).map_or(Color::opaque(0), |stop| *stop).0;
            let (from, to) = (stop(before), stop(before + 1));
            Color(std::array::from_fn(|at| {
                let (from, to) = (usize::from(from[at]), usize::from(to[at]));
                let sum = from * (255 - part) + to * part;
                u8::try_from((2 * sum + 255) / 510).unwrap_or(u8::MAX)
            }))
        }))
    }

    /// The same colours in reverse.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }

    /// The colours.
    #[must_use]
    pub fn colors(&self) -> &[Color; 256] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(one: Color, other: colorous::Color) -> u8 {
        let pairs = one.rgb().into_iter().zip([other.r, other.g, other.b]);
        pairs.map(|(one, other)| one.abs_diff(other)).max().unwrap()
    }

    /// The other library interpolates between the colours of tables, and approximates other colormaps by polynomials and splines.
    #[test]
    fn colormaps_equal_those_of_another_library() {
        for (name, gradient, tolerance) in [
            ("viridis", colorous::VIRIDIS, 1),
            ("magma", colorous::MAGMA, 1),
            ("inferno", colorous::INFERNO, 1),
            ("plasma", colorous::PLASMA, 1),
            ("cividis", colorous::CIVIDIS, 24),
            ("turbo", colorous::TURBO, 40),
            ("RdBu", colorous::RED_BLUE, 24),
            ("Spectral", colorous::SPECTRAL, 24),
        ] {
            let map = Colormap::named(name).unwrap();
            for (place, &color) in map.colors().iter().enumerate() {
                let other = gradient.eval_rational(place, 256);
                assert!(distance(color, other) <= tolerance, "{name} {place}: {color} {other:?}");
            }
        }
    }

    #[test]
    fn each_name_has_a_colormap_and_its_reverse() {
        for name in COLORMAPS {
            let map = Colormap::named(name).unwrap();
            let reverse = Colormap::named(&format!("{name}_r")).unwrap();
            assert!(map.colors().iter().eq(reverse.colors().iter().rev()), "{name}");
            assert!(map.colors().iter().all(|color| color.0[3] == 255), "{name}");
        }
        for name in ["", "_r", "jet", "viridis_r_r"] {
            assert_eq!(Colormap::named(name), None, "{name}");
        }
    }

    #[test]
    fn stops_are_at_equal_distances() {
        let gray = Colormap::named("gray").unwrap();
        for (place, color) in gray.colors().iter().enumerate() {
            let level = u8::try_from(place).unwrap();
            assert_eq!(color.0, [level, level, level, 255]);
        }
        let stops = ["000000", "ff0000", "0000ff", "00ff00"].map(|text| Color::parse(text).unwrap());
        let map = Colormap::from_stops(&stops);
        for (at, stop) in stops.into_iter().enumerate() {
            assert_eq!(map.colors()[at * 85], stop);
        }
        assert_eq!(Colormap::from_stops(&stops[1..2]).colors()[200], stops[1]);
        assert_eq!(Colormap::from_stops(&[]).colors()[7], Color::opaque(0));
    }
}
