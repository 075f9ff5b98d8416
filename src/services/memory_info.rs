//! [`MemoryInfo`]: the upper bounds of the server's memory, as `/v1/mounts` reports them. The code that reads the
//! configuration computes them.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// How much memory the server takes at most.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MemoryInfo {
    /// Bytes there are for it: its container's or its configured limit, or what the machine has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Bytes that it takes at most, without those of connections.
    pub most_bytes: u64,
    /// Bytes that each connection may take besides.
    pub connection_bytes: u64,
    /// Its budgets in bytes, configured or chosen, by the names of their settings.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub budgets: BTreeMap<String, u64>,
}
