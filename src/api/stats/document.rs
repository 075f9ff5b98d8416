//! The JSON document of statistics.

use serde_json::{Map, Number, Value, json};

use super::query::StatsQuery;
use crate::reduce::CfValues;
use crate::reduce::statistics::{Distribution, Partial};

/// What was computed.
pub(crate) struct Computed {
    pub(crate) partial: Partial,
    /// The edges of the histogram and the values between them.
    pub(crate) histogram: Option<(Vec<f64>, Vec<u64>)>,
    pub(crate) distribution: Option<Distribution>,
    pub(crate) is_exact: bool,
    /// Elements and chunks.
    pub(crate) seen: (u64, u64),
}

/// The document of the requested statistics. Without values they are null.
pub(crate) fn document(query: &StatsQuery, values: &CfValues, computed: &Computed) -> Value {
    let Computed { partial, histogram, distribution, is_exact, seen: (elements, chunks) } = computed;
    let mut members = Map::new();
    for &name in query.ops() {
        let value = match name {
            "count" => json!(partial.count),
            "missing" => json!(partial.missing),
            "nan" => json!(partial.nan),
            "mean" => optional(partial.mean()),
            "std" => optional(partial.deviation()),
            "sum" => sum(values, partial),
            "min" => extreme(values, partial, |(low, _)| low, |(low, _)| low),
            _ => extreme(values, partial, |(_, high)| high, |(_, high)| high),
        };
        members.insert(name.to_owned(), value);
    }
    if let Some(distribution) = distribution {
        let one =
            |(text, percent): &(String, f64)| (text.clone(), optional(distribution.percentile(*percent)));
        members
            .insert("percentiles".to_owned(), Value::Object(query.percentiles().iter().map(one).collect()));
    }
    if let Some((edges, counts)) = histogram {
        members.insert("histogram".to_owned(), json!({ "edges": edges, "counts": counts }));
    }
    members.insert("exact".to_owned(), json!(is_exact));
    members.insert("seen".to_owned(), json!({ "elements": elements, "chunks": chunks }));
    Value::Object(members)
}

/// A float as JSON: what is not finite is the text that JSON elements have for it.
fn float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => json!("NaN"),
        None => json!(if number > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

fn optional(number: Option<f64>) -> Value {
    number.map_or(Value::Null, float)
}

/// The sum: exact for integers.
fn sum(values: &CfValues, partial: &Partial) -> Value {
    if values.are_integers() && partial.float_sum == 0.0 {
        return partial.integer_sum.to_string().parse().map_or(Value::Null, Value::Number);
    }
    float(partial.sum())
}

/// An extreme, which is an integer if all values are.
fn extreme(
    values: &CfValues,
    partial: &Partial,
    integer: impl Fn((i64, i64)) -> i64,
    number: impl Fn((f64, f64)) -> f64,
) -> Value {
    let is_integer = values.are_integers() && partial.float_sum == 0.0;
    match (is_integer, partial.extent.integers) {
        (true, Some(extent)) => json!(integer(extent)),
        _ => partial.extent.floats.map_or(Value::Null, |extent| float(number(extent))),
    }
}
