//! [`Writers`]: who else writes to a backend.

use serde::{Deserialize, Serialize};

/// Who writes to a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Writers {
    /// Other programs may, and other servers.
    #[default]
    Any,
    /// This server alone.
    One,
}
