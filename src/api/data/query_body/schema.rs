//! [`SelectionSchema`]: the body of POST in the API document.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

/// A selection. Further members are the other parameters of GET, such as `endian`, `fields` and `reduce`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request for the API document")]
#[schema(example = json!({
    "points": { "lat": [45.2, 60.1], "lon": [7.6, 25.0] }, "method": "nearest", "tolerance": 0.3,
    "isel": { "time": [0, 5, 9] }, "format": "json"
}))]
pub(crate) struct SelectionSchema {
    /// As in a query: `0:10,::2,...,-1`.
    slice: Option<String>,
    /// For each named dimension an index, a slice, or a list of them.
    isel: Option<BTreeMap<String, Value>>,
    /// For each named dimension what `sel.NAME` takes; a list of labels; `{"label": …}` or `{"from": …, "to": …}` with labels that
    /// are taken literally, as they are in lists.
    sel: Option<BTreeMap<String, Value>>,
    /// Elements one by one: for each of some dimensions a list of labels, or in `isel` a list of positions. All lists have as many
    /// items. The response has the dimension `points` first, then the other dimensions.
    points: Option<BTreeMap<String, Value>>,
    /// For each named dimension a condition on its labels, such as `>= 60`, or a list of conditions.
    #[schema(rename = "where")]
    conditions: Option<BTreeMap<String, Value>>,
    /// For labels that no element has: `nearest`, `ffill` or `bfill`. Without labels, how to reduce.
    method: Option<String>,
    /// With such a method: how far away a label may be, along all dimensions or for each named one.
    tolerance: Option<Value>,
    /// The format of the response.
    format: Option<String>,
    /// `cf` or `none`.
    decode: Option<String>,
}
