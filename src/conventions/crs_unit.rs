//! [`CrsUnit`]: what the coordinates of a reference system are in.
//!
//! `epsg.txt` has the codes of the EPSG Dataset with such a unit: the geographic systems of two dimensions, and the projected ones,
//! deprecated ones too. A test in `tests/clients` compares it with PROJ's database.

/// A unit, and lines with codes and ranges of codes in it.
const CODES: &str = include_str!("epsg.txt");

/// What the coordinates of a reference system are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrsUnit {
    /// Degrees of longitude and latitude.
    Degrees,
    /// Degrees of another sphere of coordinates, such as one whose pole is rotated.
    DerivedDegrees,
    /// Metres of a projection.
    Metres,
    /// International feet of a projection.
    Feet,
    /// US survey feet of a projection.
    UsSurveyFeet,
}

impl CrsUnit {
    /// The unit of the system with an EPSG code; `None` if none has the code, or if it is none of a plane, or in another unit.
    #[must_use]
    pub fn of_epsg(code: u16) -> Option<Self> {
        let line = CODES.lines().find(|line| line.split(' ').skip(1).any(|codes| has(codes, code)))?;
        Some(match line.split(' ').next()? {
            "degrees" => Self::Degrees,
            "metres" => Self::Metres,
            "feet" => Self::Feet,
            "us-survey-feet" => Self::UsSurveyFeet,
            _ => return None,
        })
    }

    /// The unit of a projection with this many metres.
    pub(super) fn of_metres(metres: f64) -> Option<Self> {
        // US survey feet differ from others by two millionths.
        let is = |wanted: f64| (metres / wanted - 1.0).abs() < 1e-8;
        [(1.0, Self::Metres), (0.3048, Self::Feet), (1200.0 / 3937.0, Self::UsSurveyFeet)]
            .into_iter()
            .find_map(|(wanted, unit)| is(wanted).then_some(unit))
    }

    /// Its name in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Degrees => "degrees of longitude and latitude",
            Self::DerivedDegrees => "degrees of a rotated pole or another derived system",
            Self::Metres => "metres of a projection",
            Self::Feet => "feet of a projection",
            Self::UsSurveyFeet => "US survey feet of a projection",
        }
    }
}

/// Whether a code is one, or in a range: `4326`, `32601-32660`.
fn has(codes: &str, code: u16) -> bool {
    let (first, last) = codes.split_once('-').unwrap_or((codes, codes));
    matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if (first..=last).contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_the_unit_of_its_system() {
        for (code, unit) in [
            (4326, Some(CrsUnit::Degrees)),
            (3857, Some(CrsUnit::Metres)),
            (32_633, Some(CrsUnit::Metres)),
            (2263, Some(CrsUnit::UsSurveyFeet)),
            (2222, Some(CrsUnit::Feet)),
            // Of three dimensions, vertical, of two systems, and reserved.
            (4978, None),
            (4979, None),
            (5773, None),
            (9707, None),
            (0, None),
            (32_767, None),
        ] {
            assert_eq!(CrsUnit::of_epsg(code), unit, "{code}");
        }
    }
}
