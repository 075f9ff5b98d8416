//! Parts that several documents have, as JSON.

use serde_json::{Value, json};

use crate::vectors::{Amplification, Link};

/// The four numbers.
pub(super) fn amplification_json(found: &Amplification) -> Value {
    json!({
        "formula": found.formula, "per_loaded": found.per_loaded, "rows": found.rows, "bytes": found.bytes,
    })
}

/// A box as JSON.
pub(super) fn bounds_json((low, high): (Vec<f64>, Vec<f64>)) -> Value {
    json!({ "min": low, "max": high })
}

/// A record as JSON.
pub(super) fn endpoints_json(link: &Link) -> Value {
    link.endpoints.iter().map(|(chunk, row)| json!([chunk, row])).collect()
}

/// A count as JSON holds it.
pub(super) fn saturating_u64(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
