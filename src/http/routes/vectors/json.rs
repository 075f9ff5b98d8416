//! Parts that several documents have, as JSON.

use serde_json::{Value, json};

use crate::vectors::{Amplification, Link};

/// The four numbers.
pub(super) fn amplification_of(found: &Amplification) -> Value {
    json!({
        "formula": found.formula, "per_loaded": found.per_loaded, "rows": found.rows, "bytes": found.bytes,
    })
}

/// A box as JSON.
pub(super) fn bounds_of((low, high): (Vec<f64>, Vec<f64>)) -> Value {
    json!({ "min": low, "max": high })
}

/// A record as JSON.
pub(super) fn endpoints_of(link: &Link) -> Value {
    link.endpoints.iter().map(|(chunk, row)| json!([chunk, row])).collect()
}

/// A count as JSON holds it.
pub(super) fn clamped(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
