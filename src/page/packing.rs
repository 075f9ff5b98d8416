//! What the scripts of a page are given of the numbers that elements stand for (CF conventions, sections 2.5.1, 3.1 and 8.1):
//! those of pictures and statistics.

use serde_json::{Map, Value, json};

use super::facts::{ShownArray, cut};
use crate::reduce::CfValues;

/// Most numbers of a range.
const MOST_NUMBERS: usize = 256;

/// How the scripts turn stored numbers of a type into values.
pub(super) fn of_values(values: &CfValues, type_name: &str) -> Map<String, Value> {
    let read_as = values.data_type().name();
    let (scale, offset) = values.packing().unzip();
    let missing = values.missing_numbers();
    let members = [
        ("as", json!((read_as != type_name).then_some(read_as))),
        ("scale", json!(scale)),
        ("offset", json!(offset)),
        ("missing", json!((!missing.is_empty()).then_some(missing))),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The values of an array and what their attributes say of them; those of its stored numbers, which have no units, if the
/// request is for these.
pub(super) fn of_array(facts: &ShownArray, attributes: &Map<String, Value>, is_stored: bool) -> Value {
    let values = &facts.values;
    let number = |name: &str| attributes.get(name).filter(|value| value.is_number() && !is_stored);
    let text = |name: &str| {
        attributes.get(name).and_then(Value::as_str).filter(|_| !is_stored).map(|text| cut(text, 100))
    };
    let numbers = |name: &str| {
        let values = attributes.get(name).and_then(Value::as_array);
        let are_few =
            |values: &Vec<Value>| values.len() <= MOST_NUMBERS && values.iter().all(Value::is_number);
        attributes.get(name).filter(|_| !is_stored && values.is_some_and(are_few))
    };
    let stored = CfValues::stored(&facts.data_type);
    let mut members = of_values(if is_stored { &stored } else { values }, &facts.data_type.name());
    let described = [
        ("units", json!(text("units"))),
        ("range", json!(numbers("valid_range").or(numbers("actual_range")))),
        ("min", json!(number("valid_min"))),
        ("max", json!(number("valid_max"))),
    ];
    members.extend(described.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Value::Object(members)
}
