//! Boolean query parameters: on if present, unless the value is `false` or `0`.

/// Whether a boolean parameter with this value is on.
pub(crate) fn is_on(value: &str) -> bool {
    value != "false" && value != "0"
}
