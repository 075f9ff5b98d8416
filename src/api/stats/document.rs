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

/// The document of the requested statistics, as text: sums may be longer than the integers of the JSON library. Without values
/// they are null.
pub(crate) fn document(query: &StatsQuery, values: &CfValues, computed: &Computed) -> String {
    let Computed { partial, histogram, distribution, is_exact, seen: (elements, chunks) } = computed;
    let mut members: Vec<(&str, String)> = Vec::new();
    for &name in query.ops() {
        let value = match name {
            "count" => partial.count.to_string(),
            "missing" => partial.missing.to_string(),
            "nan" => partial.nan.to_string(),
            "mean" => optional(partial.mean()).to_string(),
            "std" => optional(partial.deviation()).to_string(),
            "sum" => sum(values, partial),
            "min" => extreme(values, partial, |(low, _)| low, |(low, _)| low),
            _ => extreme(values, partial, |(_, high)| high, |(_, high)| high),
        };
        members.push((name, value));
    }
    if let Some(distribution) = distribution {
        let one =
            |(text, percent): &(String, f64)| (text.clone(), optional(distribution.percentile(*percent)));
        let percentiles: Map<String, Value> = query.percentiles().iter().map(one).collect();
        members.push(("percentiles", Value::Object(percentiles).to_string()));
    }
    if let Some((edges, counts)) = histogram {
        members.push(("histogram", json!({ "edges": edges, "counts": counts }).to_string()));
    }
    members.push(("exact", is_exact.to_string()));
    members.push(("seen", json!({ "elements": elements, "chunks": chunks }).to_string()));
    // No name has a character that JSON escapes.
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
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
fn sum(values: &CfValues, partial: &Partial) -> String {
    if values.are_integers() { partial.integer_sum.to_string() } else { float(partial.sum()).to_string() }
}

/// An extreme, which is an integer if all values are.
fn extreme(
    values: &CfValues,
    partial: &Partial,
    integer: impl Fn((i128, i128)) -> i128,
    number: impl Fn((f64, f64)) -> f64,
) -> String {
    match (values.are_integers(), partial.extent.integers, partial.extent.floats) {
        (true, Some(extent), _) => integer(extent).to_string(),
        (_, _, Some(extent)) => float(number(extent)).to_string(),
        _ => Value::Null.to_string(),
    }
}
