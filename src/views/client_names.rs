//! Data type names and fill values as common clients spell them, where these differ from the specification.
//!
//! zarr-python 3.1 knows raw bits as `raw_bytes` and structs as `structured`, with the bytes of their fill values in
//! base64. tensorstore 0.1.86 knows these too, but structs only of numbers. So views use the names that more clients
//! open, and `/v1/nodes` uses those of the specification (Zarr core 3.1, "Data types"; Zarr extensions, "struct").

use serde_json::{Map, Value, json};

use crate::metadata::{DataType, Field, FillValue};

const DATA_TYPE: &str = "data_type";
const FILL_VALUE: &str = "fill_value";

/// Spells the data type and the fill value of an array's document as clients know them. Returns whether anything
/// changed.
pub(super) fn use_client_names(document: &mut Map<String, Value>, data_type: &DataType) -> bool {
    let data_type_as_known = has_client_name(data_type).then(|| client_name(data_type));
    let fill_value_as_known = client_fill_value(data_type, document.get(FILL_VALUE));
    let mut changed = false;
    for (member, known) in [(DATA_TYPE, data_type_as_known), (FILL_VALUE, fill_value_as_known)] {
        let Some(known) = known else { continue };
        changed |= document.get(member) != Some(&known);
        document.insert(member.to_owned(), known);
    }
    changed
}

fn has_client_name(data_type: &DataType) -> bool {
    matches!(data_type, DataType::RawBits { .. } | DataType::Struct(_))
}

fn client_name(data_type: &DataType) -> Value {
    let configured =
        |name: &str, configuration: Value| json!({ "name": name, "configuration": configuration });
    match data_type {
        DataType::RawBits { bytes } => configured("raw_bytes", json!({ "length_bytes": bytes })),
        DataType::Struct(structure) => {
            let field = |field: &Field| json!([*field.name, client_name(&field.data_type)]);
            let fields: Vec<Value> = structure.fields().iter().map(field).collect();
            configured("structured", json!({ "fields": fields }))
        }
        other => other.to_metadata(),
    }
}

/// A replacement for the fill value; `None` if every client reads the stored one, or if it cannot be parsed.
fn client_fill_value(data_type: &DataType, written: Option<&Value>) -> Option<Value> {
    let read = FillValue::from_v3_leniently(data_type, written).ok()?;
    if has_client_name(data_type) {
        // Base64, as in v2.
        return Some(read.to_v2(data_type));
    }
    let is_known = written.is_some_and(|written| {
        let is_list_of_bytes = *data_type == DataType::VariableBytes && written.is_array();
        !written.is_null() && !is_list_of_bytes && FillValue::from_v3(data_type, Some(written)).is_ok()
    });
    (!is_known).then(|| read.to_json(data_type))
}
