//! [`SummaryLevel`]: a resolution level of an image.

use super::facts::Neighbours;
use crate::key::NodePath;

/// A resolution level.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryLevel {
    /// Its path below the group.
    pub path: String,
    /// Its shape, if it could be read.
    pub shape: Option<Vec<u64>>,
    /// Whether it exists; `None` if its documents cannot be read.
    pub exists: Option<bool>,
    /// How many elements of the first level one element stands for, along each dimension; `None` if unknown.
    pub factors: Option<Vec<f64>>,
}

/// The levels at these paths below a group, each with the scale that the attributes declare for it.
pub(super) fn levels(
    group: &NodePath,
    declared: &[(String, Option<Vec<f64>>)],
    neighbours: &Neighbours,
) -> Vec<SummaryLevel> {
    let shape_of = |path: &str| {
        let node = NodePath::parse(&format!("{}{path}", group.prefix())).ok()?;
        Some(neighbours.array(&node)?.metadata.shape.clone())
    };
    let first_shape = declared.first().and_then(|(path, _)| shape_of(path));
    let first_scale = declared.first().and_then(|(_, scale)| scale.clone());
    let level = |(path, scale): &(String, Option<Vec<f64>>)| {
        let node = NodePath::parse(&format!("{}{path}", group.prefix())).ok();
        let shape = shape_of(path);
        let factors = match (&first_shape, &shape) {
            (Some(first), Some(shape)) if first.len() == shape.len() => {
                let ratios = first.iter().zip(shape).enumerate().map(|(axis, (&first, &length))| {
                    let declared = first_scale.as_ref().zip(scale.as_ref());
                    let declared = declared.and_then(|(from, to)| Some(to.get(axis)? / from.get(axis)?));
                    factor(first, length, declared)
                });
                Some(ratios.collect())
            }
            _ => {
                first_scale.as_ref().zip(scale.as_ref()).filter(|(from, to)| from.len() == to.len()).and_then(
                    |(from, to)| {
                        let ratios: Vec<f64> = from.iter().zip(to).map(|(from, to)| to / from).collect();
                        ratios.iter().all(|ratio| ratio.is_finite()).then_some(ratios)
                    },
                )
            }
        };
        // A path that no node can have names none.
        let exists = node.map_or(Some(false), |node| neighbours.exists(&node));
        SummaryLevel { path: path.clone(), shape, exists, factors }
    };
    declared.iter().map(level).collect()
}

/// How many elements one element stands for: a whole number where the lengths fit one, else what the scales declare, else
/// the ratio of the lengths.
fn factor(first: u64, length: u64, declared: Option<f64>) -> f64 {
    if length == 0 || first == 0 {
        return 1.0;
    }
    let ratio = as_f64(first) / as_f64(length);
    // Writers round the length of a level up or down.
    let is_length = |rounded: f64| (rounded - as_f64(length)).abs() < 0.5;
    let fits = |whole: f64| {
        let exact = as_f64(first) / whole;
        is_length(exact.ceil()) || is_length(exact.floor())
    };
    let declared = declared.filter(|factor| factor.is_finite() && *factor > 0.0);
    let wholes = [declared.map(f64::round), Some(ratio.round())];
    let whole = wholes.into_iter().flatten().find(|&whole| whole >= 1.0 && fits(whole));
    whole.or(declared).unwrap_or(ratio)
}

/// A length as a number: exact up to 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "lengths above 2^53 are rounded, which a factor does not show"
)]
pub(super) fn as_f64(length: u64) -> f64 {
    length as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_whole_where_the_lengths_allow_it() {
        for (first, length, declared, expected) in [
            (1000, 500, None, 2.0),
            (1001, 501, None, 2.0),
            (1001, 500, None, 2.0),
            (1001, 501, Some(1001.0 / 501.0), 2.0),
            (10, 10, Some(1.0), 1.0),
            (10, 6, None, 10.0 / 6.0),
            (7, 2, Some(4.0), 4.0),
            (5, 0, Some(2.0), 1.0),
            (100, 40, Some(f64::NAN), 2.5),
        ] {
            let found = factor(first, length, declared);
            assert!((found - expected).abs() < 1e-12, "{first} {length} {declared:?}: {found}");
        }
    }
}
