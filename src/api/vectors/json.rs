//! JSON fragments that several documents share.

use serde_json::{Value, json};

use crate::vectors::{Amplification, Link};

/// The four ratios of read amplification.
pub(crate) fn amplification_json(found: &Amplification) -> Value {
    json!({
        "formula": found.formula, "per_loaded": found.per_loaded, "rows": found.rows, "bytes": found.bytes,
    })
}

/// The corners of a box.
pub(crate) fn bounds_json((low, high): (Vec<f64>, Vec<f64>)) -> Value {
    json!({ "min": low, "max": high })
}

/// The endpoints of a link: pairs of chunk and row.
pub(crate) fn endpoints_json(link: &Link) -> Value {
    link.endpoints.iter().map(|(chunk, row)| json!([chunk, row])).collect()
}

/// A count as a JSON integer.
pub(crate) fn saturating_u64(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
