//! The JSON document of statistics.

use serde_json::{Number, Value, json};

use super::query::StatsQuery;
use crate::reduce::CfValues;
use crate::reduce::statistics::{CellDistributions, Cells, Distribution, Statistic};

/// What was computed.
pub(crate) struct Computed {
    pub(crate) cells: Cells,
    /// The edges of the histograms.
    pub(crate) edges: Option<Vec<f64>>,
    pub(crate) distributions: Option<Distributions>,
    /// The dimensions of the groups, each with its name; `None` for one group.
    pub(crate) dimensions: Option<Vec<(Option<String>, u64)>>,
    pub(crate) is_exact: bool,
    /// Elements and chunks.
    pub(crate) seen: (u64, u64),
}

/// The values for percentiles.
pub(crate) enum Distributions {
    /// Of all elements.
    One(Distribution),
    /// Of each group.
    Groups(CellDistributions),
}

impl Distributions {
    fn percentile(&self, group: usize, percent: f64) -> Option<f64> {
        match self {
            Self::One(distribution) => distribution.percentile(percent),
            Self::Groups(distributions) => distributions.percentile(group, percent),
        }
    }
}

/// The document of the requested statistics, as text: sums may be longer than the integers of the JSON library. Without values
/// they are null. Of groups each member is a nested list.
pub(crate) fn document(query: &StatsQuery, values: &CfValues, computed: &Computed) -> String {
    let Computed { cells, edges, distributions, dimensions, is_exact, seen: (elements, chunks) } = computed;
    let shape: Vec<u64> = dimensions.iter().flatten().map(|(_, length)| *length).collect();
    let list = |of_one: &dyn Fn(usize) -> String| nested(&shape, (0..cells.len()).map(of_one).collect());
    let mut members: Vec<(&str, String)> = Vec::new();
    for &statistic in query.ops() {
        members.push((statistic.name(), list(&|cell| one(statistic, values, cells, cell))));
    }
    if let Some(distributions) = distributions {
        let member = |(text, percent): &(String, f64)| {
            let listed = list(&|cell| optional(distributions.percentile(cell, *percent)).to_string());
            format!("{}:{listed}", Value::from(text.as_str()))
        };
        let percentiles: Vec<String> = query.percentiles().iter().map(member).collect();
        members.push(("percentiles", format!("{{{}}}", percentiles.join(","))));
    }
    if let Some(edges) = edges {
        let counts = list(&|cell| json!(cells.counts(cell)).to_string());
        let outside = list(&|cell| outside(cells, cell).to_string());
        let edges = json!(edges);
        members
            .push(("histogram", format!("{{\"edges\":{edges},\"counts\":{counts},\"outside\":{outside}}}")));
    }
    if let Some(dimensions) = dimensions {
        let names: Vec<&Option<String>> = dimensions.iter().map(|(name, _)| name).collect();
        members.push(("shape", json!(shape).to_string()));
        members.push(("dimension_names", json!(names).to_string()));
    }
    members.push(("exact", is_exact.to_string()));
    members.push(("seen", json!({ "elements": elements, "chunks": chunks }).to_string()));
    // No name has a character that JSON escapes.
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

/// Values in C order as nested lists of this shape.
fn nested(shape: &[u64], mut values: Vec<String>) -> String {
    let lists = shape.iter().scan(1_u64, |lists, length| {
        let these = *lists;
        *lists = lists.saturating_mul(*length);
        Some((these, *length))
    });
    // From the innermost lists outwards.
    let lists: Vec<(u64, u64)> = lists.collect();
    for (lists, length) in lists.into_iter().rev() {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut rest = values.into_iter();
        let list = |_| format!("[{}]", rest.by_ref().take(length).collect::<Vec<_>>().join(","));
        values = (0..lists).map(list).collect();
    }
    values.pop().unwrap_or_default()
}

/// The values of a group that are in no bin. Where the edges are those of the data, they are the infinite ones.
fn outside(cells: &Cells, cell: usize) -> u64 {
    cells.count(cell).saturating_sub(cells.counts(cell).iter().sum())
}

/// One statistic of a group.
fn one(statistic: Statistic, values: &CfValues, cells: &Cells, cell: usize) -> String {
    match statistic {
        Statistic::Count => cells.count(cell).to_string(),
        Statistic::Missing => cells.missing(cell).to_string(),
        Statistic::Nan => cells.nan(cell).to_string(),
        Statistic::Mean => optional(cells.mean(cell)).to_string(),
        Statistic::Std => optional(cells.deviation(cell)).to_string(),
        Statistic::Sum => {
            cells.integer_sum(cell).map_or_else(|| float(cells.sum(cell)).to_string(), |sum| sum.to_string())
        }
        Statistic::Min => extreme(values, cells, cell, |(low, _)| low, |(low, _)| low),
        Statistic::Max => extreme(values, cells, cell, |(_, high)| high, |(_, high)| high),
    }
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

/// An extreme, which is an integer if all values are.
fn extreme(
    values: &CfValues,
    cells: &Cells,
    cell: usize,
    integer: impl Fn((i128, i128)) -> i128,
    number: impl Fn((f64, f64)) -> f64,
) -> String {
    let extremes = cells.extremes(cell);
    match (values.are_integers(), extremes.integers, extremes.floats) {
        (true, Some(extent), _) => integer(extent).to_string(),
        (_, _, Some(extent)) => float(number(extent)).to_string(),
        _ => Value::Null.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::nested;

    fn listed(shape: &[u64], values: &[&str]) -> String {
        nested(shape, values.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn values_are_nested_by_their_shape() {
        assert_eq!(listed(&[], &["7"]), "7");
        assert_eq!(listed(&[2], &["1", "2"]), "[1,2]");
        assert_eq!(listed(&[2, 1, 2], &["1", "2", "3", "4"]), "[[[1,2]],[[3,4]]]");
        assert_eq!(listed(&[2, 0], &[]), "[[],[]]");
        assert_eq!(listed(&[0, 2], &[]), "[]");
    }
}
