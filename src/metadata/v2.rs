//! Zarr v2 documents: `.zarray`, `.zgroup` and `.zattrs` (Zarr v2, "Metadata").
//!
//! Documents are converted to the common model: order F to a `transpose`, the byte order of `dtype` to a `bytes` codec,
//! filters and compressor to codecs with their v3 names. Unknown members are ignored, as v2 requires. The module
//! `consolidated` parses `.zmetadata`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::attributes::parse_zattrs;
use super::extension::{self, into_object, optional, required};
use super::json::parse_document;
use super::{
    ArrayMetadata, Attributes, ChunkGridMetadata, ChunkKeyEncodingMetadata, CodecMetadata, CodecStage,
    DataType, Endianness, FillValue, GroupMetadata, MetadataError, MetadataLimits, Separator, V2ByteOrder,
    V2CodecLookup, V2Objects, ZarrFormat,
};

/// The attribute in which xarray stores the dimension names.
pub const ARRAY_DIMENSIONS: &str = "_ARRAY_DIMENSIONS";
/// The object codecs that would run code from the document.
const CODE_IN_DATA: [&str; 3] = ["pickle", "msgpack", "msgpack2"];

/// Parses `.zarray`, and `.zattrs` if present.
///
/// # Errors
/// [`MetadataError`] names the invalid or unsupported member.
pub fn parse_array(
    zarray: &[u8],
    zattrs: Option<&[u8]>,
    codecs: V2CodecLookup,
    limits: &MetadataLimits,
) -> Result<ArrayMetadata, MetadataError> {
    let members = into_object(parse_document(zarray, limits)?)?;
    check_format(&members)?;
    array(&members, attributes(zattrs, limits)?, codecs, limits)
}

/// The array described by the members of a document.
pub(super) fn array(
    members: &Map<String, Value>,
    attributes: Attributes,
    lookup: V2CodecLookup,
    limits: &MetadataLimits,
) -> Result<ArrayMetadata, MetadataError> {
    let shape = extension::lengths(required(members, "shape")?, "shape", limits.rank)?;
    let chunk_shape = extension::chunk_shape(required(members, "chunks")?, "chunks", &shape)?;
    let (data_type, orders) = data_type(members, lookup)?;
    let chunk_key_encoding = chunk_key_encoding(members, shape.len())?;
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V2,
        codecs: codecs(members, shape.len(), &orders, lookup, limits)?,
        fill_value: fill_value(&data_type, &orders, members.get("fill_value"))?,
        has_fill_value: members.get("fill_value").is_some_and(|value| !value.is_null()),
        dimension_names: dimension_names(&attributes, shape.len()),
        shape,
        data_type,
        chunk_grid: ChunkGridMetadata::Regular { chunk_shape },
        chunk_key_encoding,
        attributes,
    })
}

/// Parses `.zgroup`, and `.zattrs` if present.
///
/// # Errors
/// [`MetadataError`] names the invalid or unsupported member.
pub fn parse_group(
    zgroup: &[u8],
    zattrs: Option<&[u8]>,
    limits: &MetadataLimits,
) -> Result<GroupMetadata, MetadataError> {
    check_format(&into_object(parse_document(zgroup, limits)?)?)?;
    let attributes = attributes(zattrs, limits)?;
    Ok(GroupMetadata { zarr_format: ZarrFormat::V2, is_consolidated: false, attributes })
}

/// The fill value. For a struct, it is an element in stored byte orders, which are reversed here.
fn fill_value(
    data_type: &DataType,
    orders: &[Endianness],
    value: Option<&Value>,
) -> Result<FillValue, MetadataError> {
    let fill_value = FillValue::from_v2(data_type, value)?;
    let is_stored = matches!(data_type, DataType::Struct(_)) && value.is_some_and(Value::is_string);
    if !is_stored || orders.iter().all(|order| *order == Endianness::Little) {
        return Ok(fill_value);
    }
    let mut element = fill_value.as_bytes().to_vec();
    let mut rest = element.as_mut_slice();
    for (bytes, unit) in data_type.stored_units(orders) {
        let Some((run, behind)) = rest.split_at_mut_checked(bytes) else { break };
        run.chunks_exact_mut(unit.max(1)).for_each(<[u8]>::reverse);
        rest = behind;
    }
    Ok(FillValue::from_bytes(&element))
}

fn check_format(members: &Map<String, Value>) -> Result<(), MetadataError> {
    match required(members, "zarr_format")?.as_u64() {
        Some(2) => Ok(()),
        _ => Err(MetadataError::invalid("zarr_format", "must be 2")),
    }
}

/// Parses an optional `.zattrs`; no attributes if absent.
pub(super) fn attributes(
    zattrs: Option<&[u8]>,
    limits: &MetadataLimits,
) -> Result<Attributes, MetadataError> {
    zattrs.map_or_else(|| Ok(Attributes::default()), |document| parse_zattrs(document, limits))
}

/// The chunk key encoding. Keys of arrays with at most one dimension have no separator, so none is missing for them.
fn chunk_key_encoding(
    members: &Map<String, Value>,
    rank: usize,
) -> Result<ChunkKeyEncodingMetadata, MetadataError> {
    const MEMBER: &str = "dimension_separator";
    match optional(members, MEMBER) {
        None if rank >= 2 => Ok(ChunkKeyEncodingMetadata::V2Unspecified),
        given => Separator::parse(given, MEMBER, Separator::Dot).map(ChunkKeyEncodingMetadata::V2),
    }
}

/// The dimension names in the attributes, if there is one for each dimension.
fn dimension_names(attributes: &Attributes, rank: usize) -> Option<Vec<Option<String>>> {
    let names = attributes.get(ARRAY_DIMENSIONS)?;
    let names = names.as_array().filter(|names| names.len() == rank)?;
    names.iter().map(|name| name.as_str().map(|name| Some(name.to_owned()))).collect()
}

/// The type of the elements, and the byte order of each of its parts.
fn data_type(
    members: &Map<String, Value>,
    lookup: V2CodecLookup,
) -> Result<(DataType, Vec<Endianness>), MetadataError> {
    let dtype = required(members, "dtype")?;
    match dtype.as_str() {
        Some("|O" | "<O" | ">O" | "O") => {
            object_type(members, lookup).map(|data_type| (data_type, Vec::new()))
        }
        _ => match DataType::from_v2(dtype)? {
            (data_type, _) if data_type.endian_unit_bytes() == Some(1) => Ok((data_type, Vec::new())),
            ordered => Ok(ordered),
        },
    }
}

/// The type of objects, which exactly one codec must determine.
fn object_type(members: &Map<String, Value>, lookup: V2CodecLookup) -> Result<DataType, MetadataError> {
    let codecs = optional(members, "filters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .chain(optional(members, "compressor"))
        .filter_map(|codec| Some((codec.get("id")?.as_str()?, codec)));
    let mut known = Vec::new();
    for (id, codec) in codecs {
        if CODE_IN_DATA.contains(&id) {
            return Err(MetadataError::unsupported("object codec", id));
        }
        if let Some(objects) = lookup(id).and_then(|(_, codec)| codec.objects) {
            known.push((objects, codec));
        }
    }
    match known[..] {
        [(V2Objects::Strings, _)] => Ok(DataType::String),
        [(V2Objects::Bytes, _)] => Ok(DataType::VariableBytes),
        [(V2Objects::Json, _)] => Ok(DataType::Json),
        [(V2Objects::Arrays, codec)] => {
            let item = DataType::from_v2(required_in(codec, "dtype")?)?.0;
            if item.is_variable() {
                return Err(MetadataError::unsupported("data type", "objects in arrays of variable length"));
            }
            Ok(DataType::VariableArray(Arc::new(item)))
        }
        [] => Err(MetadataError::unsupported("data type", "|O without an object codec")),
        _ => Err(MetadataError::invalid("filters", "must have exactly one object codec")),
    }
}

fn required_in<'a>(codec: &'a Value, member: &'static str) -> Result<&'a Value, MetadataError> {
    codec.get(member).ok_or_else(|| MetadataError::invalid("filters", format!("`{member}` is missing")))
}

/// The chain in encoding order: `transpose` if the order is F, the filters that work on elements (which see them
/// in stored order), what makes bytes of the elements, the filters that work on bytes, the compressor.
fn codecs(
    members: &Map<String, Value>,
    rank: usize,
    orders: &[Endianness],
    lookup: V2CodecLookup,
    limits: &MetadataLimits,
) -> Result<Vec<CodecMetadata>, MetadataError> {
    let mut written = Vec::new();
    if let Some(filters) = optional(members, "filters") {
        for filter in extension::items(filters, "filters", limits.codecs)? {
            written.push(codec(filter, "filters")?);
        }
    }
    let filters = written.len();
    if let Some(compressor) = optional(members, "compressor") {
        written.push(codec(compressor, "compressor")?);
    }
    let mut codecs = Vec::new();
    match required(members, "order")?.as_str() {
        Some("F") if rank >= 2 && !written.iter().any(|(id, _)| is_json(id, lookup)) => {
            let reversed: Vec<usize> = (0..rank).rev().collect();
            codecs.push(CodecMetadata::new("transpose", json!({ "order": reversed })));
        }
        Some("C" | "F") => {}
        _ => return Err(MetadataError::invalid("order", "must be \"C\" or \"F\"")),
    }
    let mut order = ByteOrder::of(orders);
    let mut are_bytes = false;
    for (place, (id, configuration)) in written.into_iter().enumerate() {
        let known = lookup(&id);
        let stage = known.map(|(stage, _)| stage);
        let makes_bytes = stage == Some(CodecStage::ArrayToBytes);
        let is_of_numbers = makes_bytes && known.is_some_and(|(_, codec)| codec.objects.is_none());
        if is_of_numbers && order.is_big() {
            return Err(MetadataError::unsupported("compressor", format!("{id} for big-endian elements")));
        }
        let takes_bytes = place == filters || stage == Some(CodecStage::BytesToBytes);
        if makes_bytes && are_bytes {
            return Err(MetadataError::invalid(
                "filters",
                format!("`{id}` follows a codec whose output is bytes"),
            ));
        }
        // v2 documents do not contain the codec that encodes numbers as bytes.
        if takes_bytes && !makes_bytes && !are_bytes {
            codecs.push(order.bytes_codec());
            are_bytes = true;
        }
        are_bytes |= makes_bytes;
        if !are_bytes {
            let change = known.map_or(V2ByteOrder::Kept, |(_, codec)| codec.byte_order);
            order = order.behind(change, &id, &configuration)?;
        }
        let name = known.map_or_else(|| format!("numcodecs.{id}"), |(_, codec)| codec.name.to_owned());
        codecs.push(CodecMetadata { name, configuration, must_understand: true });
    }
    if !are_bytes {
        codecs.push(order.bytes_codec());
    }
    Ok(codecs)
}

/// The byte orders of the elements at a point of the chain.
enum ByteOrder {
    /// No byte order, or an unknown one.
    None,
    /// One for all parts of an element.
    One(Endianness),
    /// One for each part.
    Each(Vec<Endianness>),
}

impl ByteOrder {
    fn of(orders: &[Endianness]) -> Self {
        match orders {
            [] => Self::None,
            [first, rest @ ..] if rest.iter().all(|order| order == first) => Self::One(*first),
            _ => Self::Each(orders.to_vec()),
        }
    }

    /// Whether any part is big-endian.
    fn is_big(&self) -> bool {
        match self {
            Self::None => false,
            Self::One(order) => *order == Endianness::Big,
            Self::Each(orders) => orders.contains(&Endianness::Big),
        }
    }

    fn bytes_codec(&self) -> CodecMetadata {
        let configuration = match self {
            Self::None => json!({}),
            Self::One(order) => json!({ "endian": order.name() }),
            Self::Each(orders) => {
                json!({ "endian": orders.iter().map(|order| order.name()).collect::<Vec<_>>() })
            }
        };
        CodecMetadata::new("bytes", configuration)
    }

    /// The byte order of what a filter on elements makes: filters name their types, and their types' byte orders. One
    /// that takes its elements for numbers of the other order is refused.
    fn behind(
        self,
        change: V2ByteOrder,
        id: &str,
        configuration: &Map<String, Value>,
    ) -> Result<Self, MetadataError> {
        let (decoded, encoded) = match change {
            V2ByteOrder::Named { decoded, encoded } => (decoded, encoded),
            V2ByteOrder::SingleBytes => return Ok(Self::None),
            V2ByteOrder::Kept => return Ok(self),
        };
        let order = |member: &str| {
            // What is no type is refused by the filter itself.
            let (_, order) = DataType::from_numpy(configuration.get(member)?.as_str()?).ok()?;
            Some(order.map_or(Self::None, Self::One))
        };
        match (&self, decoded.and_then(order)) {
            (Self::One(before), Some(Self::One(decoded))) if *before != decoded => {
                Err(MetadataError::unsupported("filter", format!("{id} of the other byte order")))
            }
            (_, decoded) => Ok(order(encoded).or(decoded).unwrap_or(self)),
        }
    }
}

/// A codec's `id`, and its configuration as written.
fn codec(value: &Value, member: &str) -> Result<(String, Map<String, Value>), MetadataError> {
    let Value::Object(codec) = value else {
        return Err(MetadataError::invalid(member, "must be an object"));
    };
    let mut configuration = codec.clone();
    match configuration.shift_remove("id") {
        Some(Value::String(id)) if !id.is_empty() => Ok((id, configuration)),
        _ => Err(MetadataError::invalid(member, "must have an `id`")),
    }
}

/// Whether the codec encodes JSON values. A list of them is nested as the array is, whatever its order.
fn is_json(id: &str, lookup: V2CodecLookup) -> bool {
    lookup(id).is_some_and(|(_, codec)| codec.objects == Some(V2Objects::Json))
}

#[cfg(test)]
mod tests {
    use super::super::test_codecs::test_codec;
    use super::*;

    /// A valid array document of shape [20, 30] with some members replaced.
    fn zarray_with(members: Value) -> Vec<u8> {
        let mut document = json!({
            "zarr_format": 2, "shape": [20, 30], "chunks": [7, 8], "dtype": "<i4", "compressor": null,
            "fill_value": 0, "order": "C", "filters": null,
        });
        let Value::Object(members) = members else { panic!("members") };
        document.as_object_mut().unwrap().extend(members);
        document.to_string().into_bytes()
    }

    fn array_with(members: Value) -> Result<ArrayMetadata, MetadataError> {
        parse_array(&zarray_with(members), None, test_codec, &MetadataLimits::default())
    }

    fn codecs_with(members: Value) -> Vec<CodecMetadata> {
        array_with(members).unwrap().codecs
    }

    #[test]
    fn an_array_document_is_parsed() {
        let array = array_with(json!({"dtype": ">f4", "fill_value": "NaN", "unknown": 1})).unwrap();
        assert_eq!(array.zarr_format, ZarrFormat::V2);
        assert_eq!(array.shape, [20, 30]);
        assert_eq!(array.data_type, DataType::Float32);
        assert_eq!(array.chunk_grid, ChunkGridMetadata::Regular { chunk_shape: vec![7, 8] });
        assert_eq!(array.chunk_key_encoding, ChunkKeyEncodingMetadata::V2Unspecified);
        assert_eq!(array.fill_value.as_bytes(), 0x7fc0_0000_u32.to_le_bytes());
        assert_eq!(array.codecs, [CodecMetadata::new("bytes", json!({"endian": "big"}))]);
        assert!(array.attributes.is_empty());
        assert_eq!(array.dimension_names, None);
    }

    #[test]
    fn order_f_is_a_transpose_that_reverses_the_dimensions() {
        let codecs = codecs_with(json!({"order": "F", "shape": [2, 3, 4], "chunks": [1, 2, 3]}));
        assert_eq!(codecs.first(), Some(&CodecMetadata::new("transpose", json!({"order": [2, 1, 0]}))));
        assert_eq!(codecs.len(), 2);
        for shape in [json!([]), json!([5])] {
            let codecs = codecs_with(json!({"order": "F", "shape": shape, "chunks": shape}));
            assert_eq!(codecs, [CodecMetadata::new("bytes", json!({"endian": "little"}))]);
        }
    }

    #[test]
    fn a_type_of_single_bytes_has_no_byte_order() {
        assert_eq!(codecs_with(json!({"dtype": "|u1"})), [CodecMetadata::new("bytes", json!({}))]);
    }

    #[test]
    fn a_compressor_keeps_its_configuration_under_its_v3_name() {
        let blosc = json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0});
        let expected = json!({"cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0});
        assert_eq!(
            codecs_with(json!({"compressor": blosc})).last(),
            Some(&CodecMetadata::new("blosc", expected))
        );
        let zlib = json!({"level": "1", "id": "zlib"});
        let expected = CodecMetadata::new("zlib", json!({"level": "1"}));
        assert_eq!(codecs_with(json!({"compressor": zlib})).last(), Some(&expected));
        let lz4 = codecs_with(json!({"compressor": {"id": "lz4", "acceleration": 1}}));
        assert_eq!(lz4.last(), Some(&CodecMetadata::new("numcodecs.lz4", json!({"acceleration": 1}))));
    }

    #[test]
    fn filters_on_elements_are_before_the_bytes_codec_and_filters_on_bytes_after_it() {
        let filters = json!([{"id": "delta", "dtype": "<i4"}, {"id": "zlib"}]);
        let names: Vec<String> =
            codecs_with(json!({"filters": filters, "order": "F", "compressor": {"id": "zstd"}}))
                .into_iter()
                .map(|codec| codec.name)
                .collect();
        assert_eq!(names, ["transpose", "numcodecs.delta", "bytes", "zlib", "zstd"]);
    }

    #[test]
    fn a_number_codec_replaces_the_bytes_codec() {
        let names = |members: Value| -> Vec<String> {
            codecs_with(members).into_iter().map(|codec| codec.name).collect()
        };
        let (pcodec, delta) = (json!({"id": "pcodec"}), json!({"id": "delta", "dtype": "<i4"}));
        assert_eq!(names(json!({"compressor": pcodec})), ["numcodecs.pcodec"]);
        assert_eq!(
            names(json!({"order": "F", "filters": [delta], "compressor": pcodec})),
            ["transpose", "numcodecs.delta", "numcodecs.pcodec"]
        );
        assert_eq!(
            names(json!({"filters": [{"id": "zfpy"}], "compressor": {"id": "zlib"}})),
            ["numcodecs.zfpy", "zlib"]
        );
        assert_eq!(
            names(json!({"filters": [{"id": "base64"}], "compressor": {"id": "zlib"}})),
            ["bytes", "numcodecs.base64", "zlib"]
        );
        let big = array_with(json!({"dtype": ">i4", "compressor": pcodec}));
        assert!(matches!(big, Err(MetadataError::Unsupported { .. })), "{big:?}");
        let behind_bytes = array_with(json!({"filters": [{"id": "shuffle"}], "compressor": pcodec}));
        assert!(matches!(behind_bytes, Err(MetadataError::Invalid { .. })), "{behind_bytes:?}");
    }

    #[test]
    fn the_bytes_codec_has_the_byte_order_of_the_last_filters_output() {
        let endian = |dtype: &str, filters: Value| {
            let codecs = codecs_with(json!({"dtype": dtype, "fill_value": null, "filters": filters}));
            codecs
                .into_iter()
                .find(|codec| codec.name == "bytes")
                .unwrap()
                .configuration
                .get("endian")
                .cloned()
        };
        let delta = |dtype: &str, astype: &str| json!({"id": "delta", "dtype": dtype, "astype": astype});
        assert_eq!(endian(">i4", json!([delta(">i4", "<i2")])), Some(json!("little")));
        assert_eq!(endian("<i4", json!([delta("<i4", ">i2"), delta(">i2", ">i2")])), Some(json!("big")));
        assert_eq!(endian("<i4", json!([delta("<i4", ">i2"), {"id": "zlib"}])), Some(json!("big")));
        assert_eq!(endian(">f4", json!([{"id": "bitround", "keepbits": 3}])), Some(json!("big")));
        assert_eq!(endian(">f4", json!([{"id": "quantize", "dtype": ">f4"}])), Some(json!("big")));
        let astype = json!({"id": "astype", "decode_dtype": "<f4", "encode_dtype": "|i1"});
        assert_eq!(endian("<f4", json!([astype])), None);
        assert_eq!(endian("|b1", json!([{"id": "packbits"}])), None);
    }

    #[test]
    fn filters_for_the_other_byte_order_are_rejected() {
        let filters = json!([{"id": "delta", "dtype": "<i4", "astype": "<i4"}]);
        let result = array_with(json!({"dtype": ">i4", "filters": filters}));
        assert!(matches!(result, Err(MetadataError::Unsupported { .. })), "{result:?}");
    }

    #[test]
    fn an_empty_list_of_filters_is_none() {
        assert_eq!(codecs_with(json!({"filters": []})), codecs_with(json!({"filters": null})));
    }

    fn objects(filters: &Value, compressor: &Value) -> Result<ArrayMetadata, MetadataError> {
        array_with(json!({"dtype": "|O", "filters": filters, "compressor": compressor}))
    }

    #[test]
    fn the_object_codec_determines_the_data_type() {
        let item = DataType::VariableArray(Arc::new(DataType::Int16));
        for (codec, data_type, name) in [
            (json!({"id": "vlen-utf8"}), DataType::String, "vlen-utf8"),
            (json!({"id": "vlen-bytes"}), DataType::VariableBytes, "vlen-bytes"),
            (json!({"id": "vlen-array", "dtype": "<i2"}), item, "numcodecs.vlen-array"),
            (json!({"id": "json2"}), DataType::Json, "numcodecs.json2"),
        ] {
            let array = objects(&json!([codec, {"id": "zlib"}]), &json!({"id": "lz4"})).unwrap();
            assert_eq!(array.data_type, data_type);
            let names: Vec<String> = array.codecs.into_iter().map(|codec| codec.name).collect();
            assert_eq!(names, [name, "zlib", "numcodecs.lz4"]);
            assert_eq!(objects(&json!(null), &codec).unwrap().data_type, data_type);
        }
    }

    #[test]
    fn pickles_are_rejected_at_any_position() {
        let pickle = json!({"id": "pickle"});
        let text = json!({"id": "vlen-utf8"});
        for (filters, compressor) in [
            (json!([pickle]), json!(null)),
            (json!([text, pickle]), json!(null)),
            (json!([pickle, text]), json!({"id": "zlib"})),
            (json!([text]), pickle.clone()),
        ] {
            let refused = MetadataError::unsupported("object codec", "pickle");
            assert_eq!(objects(&filters, &compressor), Err(refused));
        }
    }

    #[test]
    fn an_array_of_objects_needs_exactly_one_object_codec_in_front() {
        let none = objects(&json!([{"id": "zlib"}]), &json!(null));
        assert!(matches!(none, Err(MetadataError::Unsupported { .. })), "{none:?}");
        let two = objects(&json!([{"id": "vlen-utf8"}, {"id": "vlen-bytes"}]), &json!(null));
        assert!(matches!(two, Err(MetadataError::Invalid { .. })), "{two:?}");
        let behind = objects(&json!([{"id": "zlib"}, {"id": "vlen-utf8"}]), &json!(null));
        assert!(matches!(behind, Err(MetadataError::Invalid { .. })), "{behind:?}");
    }

    #[test]
    fn members_that_writers_omit_have_defaults() {
        let document = br#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<u2","order":"C"}"#;
        let array = parse_array(document, None, test_codec, &MetadataLimits::default()).unwrap();
        assert_eq!(array.fill_value, FillValue::zero(&DataType::UInt16));
        assert_eq!(array.codecs, [CodecMetadata::new("bytes", json!({"endian": "little"}))]);
    }

    #[test]
    fn the_dimension_separator_is_kept() {
        use ChunkKeyEncodingMetadata::{V2, V2Unspecified};
        for (separator, expected) in [
            (json!("/"), V2(Separator::Slash)),
            (json!("."), V2(Separator::Dot)),
            (json!(null), V2Unspecified),
        ] {
            let array = array_with(json!({"dimension_separator": separator})).unwrap();
            assert_eq!(array.chunk_key_encoding, expected);
        }
        let array = array_with(json!({"shape": [20], "chunks": [7]})).unwrap();
        assert_eq!(array.chunk_key_encoding, V2(Separator::Dot), "there is nothing to separate");
    }

    #[test]
    fn dimension_names_are_those_of_the_attribute_if_it_fits() {
        let limits = MetadataLimits::default();
        let names = |zattrs: &str| {
            parse_array(&zarray_with(json!({})), Some(zattrs.as_bytes()), test_codec, &limits)
                .unwrap()
                .dimension_names
        };
        let expected = Some(vec![Some("y".to_owned()), Some("x".to_owned())]);
        assert_eq!(names(r#"{"_ARRAY_DIMENSIONS":["y","x"]}"#), expected);
        assert_eq!(names(r#"{"_ARRAY_DIMENSIONS":["y"]}"#), None);
        assert_eq!(names(r#"{"_ARRAY_DIMENSIONS":["y",1]}"#), None);
        assert_eq!(names(r#"{"_ARRAY_DIMENSIONS":"yx"}"#), None);
        assert_eq!(names("{}"), None);
    }

    #[test]
    fn an_edge_of_0_is_accepted_only_where_the_length_is_0() {
        assert!(array_with(json!({"shape": [0, 30], "chunks": [0, 8]})).is_ok());
        assert!(array_with(json!({"shape": [0], "chunks": [1]})).is_ok());
        assert!(array_with(json!({"shape": [1], "chunks": [0]})).is_err());
    }

    #[test]
    fn a_group_is_parsed_with_and_without_attributes() {
        let limits = MetadataLimits::default();
        let group = parse_group(br#"{"zarr_format":2}"#, None, &limits).unwrap();
        let expected = GroupMetadata {
            zarr_format: ZarrFormat::V2,
            is_consolidated: false,
            attributes: Attributes::default(),
        };
        assert_eq!(group, expected);
        let group = parse_group(br#"{"zarr_format":2}"#, Some(br#"{"a":NaN}"#), &limits).unwrap();
        assert_eq!(group.attributes.get("a"), Some(json!("NaN")));
        assert!(parse_group(br#"{"zarr_format":3}"#, None, &limits).is_err());
        assert!(parse_group(br#"{"zarr_format":2}"#, Some(b""), &limits).is_err());
    }
}
