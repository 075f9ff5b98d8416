//! [`RangeSource`]: where the range of a picture's colours comes from.
//!
//! `auto` has one meaning for all pictures of an array: what its metadata says, else percentiles of a fixed sample.

use serde_json::{Map, Value};

use super::words::RangeWord;
use crate::conventions::{RangeUnits, stated_range};
use crate::metadata::DataType;
use crate::render::raster::{Decoding, Part, Scale};

/// How a range is found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RangeSource {
    /// It is known without reading elements; and where it comes from.
    Known(f64, f64, &'static str),
    /// Percentiles 1 to 99 of the sample of the array.
    Sample,
    /// The extremes of the picture.
    Slice,
    /// Two percentiles of the picture.
    Percentiles(f64, f64),
}

/// What a range may depend on.
#[derive(Debug)]
pub(crate) struct RangeContext<'a> {
    pub(crate) data_type: &'a DataType,
    pub(crate) decoding: &'a Decoding,
    pub(crate) attributes: &'a Map<String, Value>,
    pub(crate) part: Part,
    pub(crate) window: Option<(f64, f64)>,
}

impl RangeContext<'_> {
    /// The source of the range that a request wants.
    pub(crate) fn source(&self, word: RangeWord, scale: Scale) -> RangeSource {
        match word {
            RangeWord::Given(low, high) => RangeSource::Known(low, high, "request"),
            RangeWord::Slice => RangeSource::Slice,
            RangeWord::Percentiles(low, high) => RangeSource::Percentiles(low, high),
            RangeWord::Type => self.of_type().unwrap_or(RangeSource::Known(0.0, 1.0, "type")),
            RangeWord::Auto => match self.stated() {
                Some((low, high, from)) => {
                    let (low, high) = usable(low, high, scale);
                    RangeSource::Known(low, high, from)
                }
                None => RangeSource::Sample,
            },
        }
    }

    /// The range in the metadata.
    fn stated(&self) -> Option<(f64, f64, &'static str)> {
        if let Some((low, high)) = self.window {
            return Some((low, high, "omero"));
        }
        if *self.data_type == DataType::Bool {
            return Some((0.0, 1.0, "type"));
        }
        if self.part == Part::Argument && self.data_type.complex_half().is_some() {
            return Some((-std::f64::consts::PI, std::f64::consts::PI, "type"));
        }
        let units = RangeUnits {
            stored_as: self.data_type,
            read_as: self.decoding.data_type(),
            is_packed: self.decoding.is_packed(),
        };
        let stated = stated_range(
            |name| self.attributes.get(name).cloned(),
            &units,
            |stored| self.decoding.unpacked(stored),
        )?;
        Some((stated.low, stated.high, stated.from))
    }

    /// The extremes of an integer type, in the numbers that they stand for.
    fn of_type(&self) -> Option<RangeSource> {
        let (low, high) = match self.decoding.data_type() {
            DataType::Bool => (0.0, 1.0),
            // The nearest float64 of the largest numbers is a power of two.
            #[expect(clippy::cast_precision_loss, reason = "ranges are float64")]
            data_type => data_type.integer_bounds().map(|(low, high)| (low as f64, high as f64))?,
        };
        let (low, high) = (self.decoding.unpacked(low), self.decoding.unpacked(high));
        Some(RangeSource::Known(low.min(high), low.max(high), "type"))
    }
}

/// A range that was not requested, made usable for a scale: a logarithmic one begins above 0, at a thousandth of its end if
/// need be.
pub(crate) fn usable(low: f64, high: f64, scale: Scale) -> (f64, f64) {
    match scale {
        Scale::Log if high <= 0.0 => (1.0, 10.0),
        Scale::Log if low <= 0.0 => (high / 1000.0, high),
        _ => (low, high),
    }
}

/// A number in a header: whole numbers without a fraction.
pub(crate) fn shown(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 { format!("{number:.0}") } else { format!("{number:?}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(data_type: &DataType, attributes: &Value, word: RangeWord, scale: Scale) -> RangeSource {
        let attributes = attributes.as_object().unwrap();
        let all = crate::metadata::Attributes::from(attributes.clone());
        let values = crate::reduce::CfValues::decoded(data_type, &all).unwrap();
        let decoding = Decoding::cf(data_type, Part::Abs, values).unwrap();
        RangeContext { data_type, decoding: &decoding, attributes, part: Part::Abs, window: None }
            .source(word, scale)
    }

    #[test]
    fn the_range_in_the_metadata_precedes_a_sample() {
        let auto = |data_type, attributes| source(data_type, &attributes, RangeWord::Auto, Scale::Linear);
        let float = &DataType::Float32;
        assert_eq!(auto(float, json!({})), RangeSource::Sample);
        assert_eq!(auto(&DataType::Bool, json!({})), RangeSource::Known(0.0, 1.0, "type"));
        let packed = json!({ "valid_range": [-100, 100], "scale_factor": -0.5, "add_offset": 1.0, "actual_range": [0, 1] });
        assert_eq!(auto(&DataType::Int16, packed), RangeSource::Known(-49.0, 51.0, "valid_range"));
        // The stored numbers of `_Unsigned` are written with the sign of the stored type, or without.
        for limits in [json!({ "valid_range": [0, -1] }), json!({ "valid_min": 0, "valid_max": 255 })] {
            let mut unsigned = limits.clone();
            unsigned["_Unsigned"] = json!("true");
            assert_eq!(auto(&DataType::Int8, unsigned), RangeSource::Known(0.0, 255.0, "valid_range"));
        }
        let limits = json!({ "valid_min": 3, "valid_max": 4.5 });
        assert_eq!(auto(float, limits), RangeSource::Known(3.0, 4.5, "valid_range"));
        let actual = json!({ "actual_range": [250.5, 310.0], "scale_factor": 2 });
        assert_eq!(auto(float, actual), RangeSource::Known(250.5, 310.0, "actual_range"));
        for odd in
            [json!({ "valid_range": [1] }), json!({ "valid_min": 1 }), json!({ "actual_range": ["a", "b"] })]
        {
            assert_eq!(auto(float, odd), RangeSource::Sample);
        }
    }

    #[test]
    fn the_range_of_a_type_is_that_of_its_numbers() {
        let of = |data_type, attributes| source(data_type, &attributes, RangeWord::Type, Scale::Linear);
        assert_eq!(of(&DataType::UInt8, json!({})), RangeSource::Known(0.0, 255.0, "type"));
        assert_eq!(
            of(&DataType::Int8, json!({ "_Unsigned": "true" })),
            RangeSource::Known(0.0, 255.0, "type")
        );
        assert_eq!(
            of(&DataType::UInt8, json!({ "scale_factor": 0.1 })),
            RangeSource::Known(0.0, 25.5, "type")
        );
    }

    #[test]
    fn a_logarithmic_range_begins_above_zero() {
        let limits = json!({ "valid_min": 0, "valid_max": 5000 });
        let found = source(&DataType::Float32, &limits, RangeWord::Auto, Scale::Log);
        assert_eq!(found, RangeSource::Known(5.0, 5000.0, "valid_range"));
        assert_eq!(usable(-4.0, -1.0, Scale::Log), (1.0, 10.0));
        assert_eq!(
            ["269.9", "1500", "-0.25", "1e20"],
            [269.9, 1500.0, -0.25, 1e20].map(shown).each_ref().map(String::as_str)
        );
    }
}
