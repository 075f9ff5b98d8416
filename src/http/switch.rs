//! Switches in queries: parameters that are on where they are given, unless as `false` or `0`.

/// Whether a switch is on.
pub(crate) fn is_on(value: &str) -> bool {
    value != "false" && value != "0"
}
