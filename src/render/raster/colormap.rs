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

    /// Places at which the published tables were read off.
    const PLACES: [usize; 10] = [0, 32, 64, 96, 127, 128, 160, 192, 224, 255];

    /// The colours that matplotlib 3.11 has at these places. The clients' tests compare all 256 of each.
    #[rustfmt::skip]
    const PUBLISHED: [(&str, [u32; 10]); 10] = [
        ("viridis", [0x44_0154, 0x47_2d7b, 0x3b_528b, 0x2c_728e, 0x21_908d, 0x21_918c, 0x28_ae80, 0x5e_c962, 0xad_dc30, 0xfd_e725]),
        ("magma", [0x00_0004, 0x1d_1147, 0x51_127c, 0x83_2681, 0xb5_367a, 0xb7_3779, 0xe7_5263, 0xfc_8961, 0xfe_c488, 0xfc_fdbf]),
        ("inferno", [0x00_0004, 0x21_0c4a, 0x57_106e, 0x8a_226a, 0xba_3655, 0xbc_3754, 0xe4_5a31, 0xf9_8e09, 0xf9_cb35, 0xfc_ffa4]),
        ("plasma", [0x0d_0887, 0x4c_02a1, 0x7e_03a8, 0xaa_2395, 0xcb_4679, 0xcc_4778, 0xe6_6c5c, 0xf8_9540, 0xfd_c527, 0xf0_f921]),
        ("cividis", [0x00_224e, 0x1a_386f, 0x43_4e6c, 0x61_656f, 0x7c_7b78, 0x7d_7c78, 0x9b_9476, 0xbc_ae6c, 0xde_c958, 0xfe_e838]),
        ("gray", [0x00_0000, 0x20_2020, 0x40_4040, 0x60_6060, 0x7f_7f7f, 0x80_8080, 0xa0_a0a0, 0xc0_c0c0, 0xe0_e0e0, 0xff_ffff]),
        ("turbo", [0x30_123b, 0x46_6be3, 0x28_bceb, 0x32_f298, 0xa1_fd3d, 0xa4_fc3c, 0xee_cf3a, 0xfb_7e21, 0xd0_2f05, 0x7a_0403]),
        ("RdBu", [0x67_001f, 0xbb_2a34, 0xe5_8368, 0xfb_ceb7, 0xf7_f6f6, 0xf6_f7f7, 0xc0_dceb, 0x68_abd0, 0x28_70b1, 0x05_3061]),
        ("Spectral", [0x9e_0142, 0xdd_4a4c, 0xf9_8e52, 0xfe_d481, 0xff_febe, 0xff_ffbe, 0xd6_ee9b, 0x86_cfa5, 0x3d_95b8, 0x5e_4fa2]),
        ("coolwarm", [0x3b_4cc0, 0x62_82ea, 0x8d_b0fe, 0xb9_d0f9, 0xdc_dddd, 0xdd_dcdc, 0xf5_c4ac, 0xf4_987a, 0xdd_5f4b, 0xb4_0426]),
    ];

    /// The largest difference of two colours in a channel.
    fn distance(one: [u8; 3], other: [u8; 3]) -> u8 {
        one.into_iter().zip(other).map(|(one, other)| one.abs_diff(other)).max().unwrap()
    }

    #[test]
    fn colormaps_are_the_published_ones() {
        assert!(PUBLISHED.iter().map(|(name, _)| *name).eq(COLORMAPS));
        for (name, colors) in PUBLISHED {
            let map = Colormap::named(name).unwrap();
            // The coefficients of this one are published with fewer digits.
            let tolerance = u8::from(name == "coolwarm");
            for (place, color) in PLACES.into_iter().zip(colors.map(Color::opaque)) {
                let found = map.colors()[place];
                assert!(distance(found.rgb(), color.rgb()) <= tolerance, "{name} {place}: {found} {color}");
            }
        }
    }

    /// The other library interpolates between the 256 colours of these four tables. It approximates other colormaps.
    #[test]
    fn tables_equal_those_of_another_library() {
        for (name, gradient) in [
            ("viridis", colorous::VIRIDIS),
            ("magma", colorous::MAGMA),
            ("inferno", colorous::INFERNO),
            ("plasma", colorous::PLASMA),
        ] {
            let map = Colormap::named(name).unwrap();
            for (place, &color) in map.colors().iter().enumerate() {
                let other = gradient.eval_rational(place, 256);
                assert!(distance(color.rgb(), [other.r, other.g, other.b]) <= 1, "{name} {place}: {color}");
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
