//! Data types in v3 documents (Zarr core 3.1 "Data types"; Zarr extensions, "data-types").
//!
//! Most types are a name; dates, time spans, structs and types with a length are a name and a configuration. Unknown names
//! are unsupported.

use serde_json::{Map, Value, json};

use super::names::{SIMPLE_TYPES, is_decimal};
use super::{DataType, Field, SmallFloat, StructType, TimeStep, TimeUnit};
use crate::metadata::MetadataError;
use crate::metadata::extension::Extension;

const MEMBER: &str = "data_type";

impl DataType {
    /// Parses the `data_type` of a v3 document: a name or an extension object.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for unknown types, and for elements larger than 1 MiB; [`MetadataError::Invalid`] for
    /// an invalid extension object, a wrong configuration, or `"must_understand": false`.
    pub fn from_v3(data_type: &Value) -> Result<Self, MetadataError> {
        let extension = Extension::parse(data_type, MEMBER)?;
        extension.require_understood()?;
        let (name, configuration) = (extension.name.as_str(), &extension.configuration);
        match name {
            "numpy.datetime64" => parse_step(name, configuration).map(Self::DateTime64),
            "numpy.timedelta64" => parse_step(name, configuration).map(Self::TimeDelta64),
            "fixed_length_utf32" => sized_type(name, configuration, Self::fixed_length_utf32),
            "null_terminated_bytes" => sized_type(name, configuration, Self::null_terminated_bytes),
            // The name in zarr-python for the specification's raw bits.
            "raw_bytes" => sized_type(name, configuration, Self::raw_bits),
            // Names that writers used before one was registered.
            "variable_length_bytes" | "binary" => {
                check_configuration(name, configuration, &[]).map(|()| Self::VariableBytes)
            }
            "complex_float32" => check_configuration(name, configuration, &[]).map(|()| Self::Complex64),
            "complex_float64" => check_configuration(name, configuration, &[]).map(|()| Self::Complex128),
            "struct" | "structured" => parse_struct(name, configuration),
            _ => {
                let known = from_name(name)?.ok_or_else(|| MetadataError::unsupported("data type", name))?;
                check_configuration(name, configuration, &[]).map(|()| known)
            }
        }
    }

    /// The `data_type` of a v3 document for this type: a name, or an object if the type has a configuration.
    #[must_use]
    pub fn to_metadata(&self) -> Value {
        let configured =
            |name: &str, configuration: Value| json!({ "name": name, "configuration": configuration });
        let time =
            |step: &TimeStep| json!({ "unit": step.unit().name(), "scale_factor": step.scale_factor() });
        match self {
            Self::DateTime64(step) => configured("numpy.datetime64", time(step)),
            Self::TimeDelta64(step) => configured("numpy.timedelta64", time(step)),
            Self::FixedLengthUtf32 { .. } => {
                configured("fixed_length_utf32", json!({ "length_bytes": self.element_bytes() }))
            }
            Self::NullTerminatedBytes { bytes } => {
                configured("null_terminated_bytes", json!({ "length_bytes": bytes }))
            }
            Self::Struct(structure) => {
                let fields = structure
                    .fields()
                    .iter()
                    .map(|field| json!({ "name": *field.name, "data_type": field.data_type.to_metadata() }));
                configured("struct", json!({ "fields": fields.collect::<Vec<_>>() }))
            }
            // These two occur only in v2 documents; v3 has no names for them.
            Self::Subarray(subarray) => configured(
                "subarray",
                json!({ "data_type": subarray.item().to_metadata(), "shape": subarray.shape() }),
            ),
            Self::VariableArray(item) => {
                configured("variable_array", json!({ "data_type": item.to_metadata() }))
            }
            Self::Bool
            | Self::Int2
            | Self::Int4
            | Self::Int8
            | Self::Int16
            | Self::Int32
            | Self::Int64
            | Self::UInt2
            | Self::UInt4
            | Self::UInt8
            | Self::UInt16
            | Self::UInt32
            | Self::UInt64
            | Self::Float16
            | Self::BFloat16
            | Self::Float32
            | Self::Float64
            | Self::SmallFloat(_)
            | Self::ComplexFloat16
            | Self::ComplexBFloat16
            | Self::ComplexSmallFloat(_)
            | Self::Complex64
            | Self::Complex128
            | Self::String
            | Self::VariableBytes
            | Self::Json
            | Self::RawBits { .. } => Value::from(self.name()),
        }
    }
}

/// The type with this name and no configuration. `r12` is an error: raw bits must be whole bytes.
fn from_name(name: &str) -> Result<Option<DataType>, MetadataError> {
    if let Some((named, ..)) = SIMPLE_TYPES.iter().find(|(_, known, ..)| *known == name) {
        // JSON values exist only in v2.
        return Ok((*named != DataType::Json).then(|| named.clone()));
    }
    let small = name.strip_prefix("complex_").unwrap_or(name);
    if let Some(float) = SmallFloat::from_name(small) {
        let is_complex = small.len() < name.len();
        return Ok(Some(if is_complex {
            DataType::ComplexSmallFloat(float)
        } else {
            DataType::SmallFloat(float)
        }));
    }
    let Some(bits) = name.strip_prefix('r').filter(|digits| is_decimal(digits)) else {
        return Ok(None);
    };
    match bits.parse::<u32>() {
        Ok(bits) if bits % 8 != 0 => {
            Err(MetadataError::invalid(MEMBER, format!("`{name}` is not a whole number of bytes")))
        }
        Ok(bits) => DataType::raw_bits(bits / 8, name).map(Some),
        Err(_) => Err(MetadataError::unsupported("data type", name)),
    }
}

/// Rejects members of a configuration other than these.
fn check_configuration(
    name: &str,
    configuration: &Map<String, Value>,
    members: &[&str],
) -> Result<(), MetadataError> {
    match configuration.keys().find(|member| !members.contains(&member.as_str())) {
        None => Ok(()),
        Some(other) => Err(MetadataError::invalid(MEMBER, format!("`{other}` does not belong to `{name}`"))),
    }
}

fn parse_step(name: &str, configuration: &Map<String, Value>) -> Result<TimeStep, MetadataError> {
    check_configuration(name, configuration, &["unit", "scale_factor"])?;
    let unit = configuration.get("unit").and_then(Value::as_str).and_then(TimeUnit::from_name);
    let unit = unit.ok_or_else(|| {
        MetadataError::invalid(MEMBER, format!("the `unit` of `{name}` is missing or unknown"))
    })?;
    let scale_factor = configuration.get("scale_factor").and_then(Value::as_u64);
    scale_factor.and_then(|factor| TimeStep::new(unit, u32::try_from(factor).ok()?)).ok_or_else(|| {
        let reason = format!("the `scale_factor` of `{name}` must be an integer from 1 to 2^31 - 1");
        MetadataError::invalid(MEMBER, reason)
    })
}

/// A struct from its `fields`: objects, or pairs of name and type as early writers wrote them.
fn parse_struct(name: &str, configuration: &Map<String, Value>) -> Result<DataType, MetadataError> {
    const FIELDS: &str = "fields";
    check_configuration(name, configuration, &[FIELDS])?;
    let invalid = || {
        let reason = format!("the `fields` of `{name}` must be a list of objects of `name` and `data_type`");
        MetadataError::invalid(MEMBER, reason)
    };
    let field = |field: &Value| {
        let (name, data_type) = match field {
            Value::Object(members) if members.len() == 2 => (members.get("name"), members.get("data_type")),
            Value::Array(pair) if pair.len() == 2 => (pair.first(), pair.get(1)),
            _ => (None, None),
        };
        let name = name.and_then(Value::as_str).ok_or_else(invalid)?;
        let data_type = DataType::from_v3(data_type.ok_or_else(invalid)?)?;
        Ok(Field { name: name.into(), data_type })
    };
    let fields = configuration.get(FIELDS).and_then(Value::as_array).ok_or_else(invalid)?;
    // The depth limit of documents bounds the recursion.
    let fields = fields.iter().map(field).collect::<Result<_, MetadataError>>()?;
    StructType::new(fields).map(DataType::Struct)
}

/// The type that `make` returns for `length_bytes`, the only member of the configuration.
fn sized_type(
    name: &str,
    configuration: &Map<String, Value>,
    make: fn(u32, &str) -> Result<DataType, MetadataError>,
) -> Result<DataType, MetadataError> {
    const LENGTH_BYTES: &str = "length_bytes";
    check_configuration(name, configuration, &[LENGTH_BYTES])?;
    let length = configuration.get(LENGTH_BYTES).and_then(Value::as_u64).ok_or_else(|| {
        MetadataError::invalid(MEMBER, format!("the `length_bytes` of `{name}` must be an integer"))
    })?;
    let written = format!("{name}[{length}]");
    match u32::try_from(length) {
        Ok(length) => make(length, &written),
        Err(_) => Err(MetadataError::unsupported("data type", written)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(name: &str, configuration: impl Into<Value>) -> Value {
        let configuration: Value = configuration.into();
        json!({ "name": name, "configuration": configuration })
    }

    fn time(unit: &str, scale_factor: impl Into<Value>) -> Value {
        let scale_factor: Value = scale_factor.into();
        configured("numpy.datetime64", json!({ "unit": unit, "scale_factor": scale_factor }))
    }

    #[test]
    fn written_types_parse_to_the_same_type() {
        let step = TimeStep::new(TimeUnit::Microsecond, 25).unwrap();
        let others = [
            DataType::RawBits { bytes: 1 },
            DataType::RawBits { bytes: 3 },
            DataType::RawBits { bytes: 16 },
            DataType::DateTime64(step),
            DataType::TimeDelta64(step),
            DataType::FixedLengthUtf32 { code_points: 5 },
            DataType::NullTerminatedBytes { bytes: 7 },
        ];
        for data_type in SIMPLE_TYPES
            .iter()
            .map(|(named, ..)| named.clone())
            .filter(|named| *named != DataType::Json)
            .chain(others)
        {
            let written = data_type.to_metadata();
            assert_eq!(DataType::from_v3(&written), Ok(data_type.clone()));
            if let Value::String(name) = written {
                assert_eq!(DataType::from_v3(&configured(&name, json!({}))), Ok(data_type));
            }
        }
    }

    #[test]
    fn types_with_a_configuration_are_written_as_objects() {
        for (data_type, written) in [
            (DataType::Float32, json!("float32")),
            (DataType::RawBits { bytes: 3 }, json!("r24")),
            (DataType::DateTime64(TimeStep::new(TimeUnit::Nanosecond, 1).unwrap()), time("ns", json!(1))),
            (
                DataType::TimeDelta64(TimeStep::new(TimeUnit::Generic, 3).unwrap()),
                configured("numpy.timedelta64", json!({ "unit": "generic", "scale_factor": 3 })),
            ),
            (
                DataType::FixedLengthUtf32 { code_points: 5 },
                configured("fixed_length_utf32", json!({ "length_bytes": 20 })),
            ),
            (
                DataType::NullTerminatedBytes { bytes: 5 },
                configured("null_terminated_bytes", json!({ "length_bytes": 5 })),
            ),
        ] {
            assert_eq!(data_type.to_metadata(), written);
        }
    }

    #[test]
    fn raw_bytes_are_parsed_as_raw_bits() {
        let raw = DataType::from_v3(&configured("raw_bytes", json!({ "length_bytes": 3 })));
        assert_eq!(raw, Ok(DataType::RawBits { bytes: 3 }));
    }

    #[test]
    fn microseconds_may_be_spelled_with_any_of_three_letters() {
        for unit in ["us", "\u{3bc}s", "\u{b5}s"] {
            let step = TimeStep::new(TimeUnit::Microsecond, 10).unwrap();
            assert_eq!(DataType::from_v3(&time(unit, json!(10))), Ok(DataType::DateTime64(step)));
        }
    }

    #[test]
    fn unknown_types_are_named_in_the_error() {
        for name in [
            "json",
            "variable_array",
            "int3",
            "float8_e4m9",
            "complex_int8",
            "r99999999999",
            "<f8",
            "https://x.y/z",
        ] {
            assert_eq!(DataType::from_v3(&json!(name)), Err(MetadataError::unsupported("data type", name)));
        }
    }

    #[test]
    fn text_longer_than_the_limit_is_unsupported() {
        for name in ["fixed_length_utf32", "null_terminated_bytes", "raw_bytes"] {
            for length in [(1_u64 << 20) + 4, 1 << 31, 1 << 32, u64::MAX - 3] {
                let read = DataType::from_v3(&configured(name, json!({ "length_bytes": length })));
                assert!(matches!(read, Err(MetadataError::Unsupported { .. })), "{name} {length}");
            }
        }
    }

    #[test]
    fn invalid_types_are_rejected() {
        for data_type in [
            json!("r12"),
            json!("r0"),
            json!(""),
            json!(3),
            json!(null),
            json!({ "name": "int8", "must_understand": false }),
            configured("int8", json!({ "unit": "s" })),
        ] {
            assert!(
                matches!(DataType::from_v3(&data_type), Err(MetadataError::Invalid { .. })),
                "{data_type}"
            );
        }
    }

    #[test]
    fn configurations_with_missing_wrong_or_unknown_members_are_rejected() {
        let mut bad = vec![
            json!("numpy.datetime64"),
            time("ns", json!(0)),
            time("ns", json!(-1)),
            time("ns", json!(1.0)),
            time("ns", json!("1")),
            time("ns", json!(1_u64 << 31)),
            time("ns", json!(u64::MAX)),
            time("ns", json!(null)),
            time("sec", json!(1)),
            time("", json!(1)),
            configured("numpy.timedelta64", json!({ "unit": "s" })),
            configured("numpy.timedelta64", json!({ "scale_factor": 1 })),
            configured("numpy.timedelta64", json!({ "unit": 1, "scale_factor": 1 })),
            configured("numpy.timedelta64", json!({ "unit": "s", "scale_factor": 1, "zone": "UTC" })),
            configured("fixed_length_utf32", json!({ "length_bytes": 6 })),
        ];
        for name in ["fixed_length_utf32", "null_terminated_bytes", "raw_bytes"] {
            bad.push(json!(name));
            for length in [json!(0), json!(-4), json!(4.0), json!("4"), json!(null), json!([4])] {
                bad.push(configured(name, json!({ "length_bytes": length })));
            }
            bad.push(configured(name, json!({ "length_bytes": 4, "endian": "little" })));
        }
        for data_type in bad {
            let read = DataType::from_v3(&data_type);
            assert!(matches!(read, Err(MetadataError::Invalid { .. })), "{data_type}: {read:?}");
        }
    }
}
