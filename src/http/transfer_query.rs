//! The query parameters `copy` and `move`, by which a PUT of a node takes another one.

use axum::http::Uri;

/// The name of the parameter of a copy.
pub(crate) const COPY: &str = "copy";
/// The name of the parameter of a move.
pub(crate) const MOVE: &str = "move";

/// The parameter by which a request takes another node, and its value as it was written. The audit log has it whether or not the
/// handler accepts it.
pub(crate) fn transferred(uri: &Uri) -> Option<(&'static str, String)> {
    let mut pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.find_map(|(name, value)| {
        let known = [COPY, MOVE].into_iter().find(|known| *known == name)?;
        Some((known, value.into_owned()))
    })
}

/// The mount and the path in a value of such a parameter: `PATH` of the mount `own`, or `MOUNT:PATH`. A path whose first name has a
/// colon begins with a slash.
pub(crate) fn mount_and_path<'a>(value: &'a str, own: &'a str) -> (&'a str, &'a str) {
    match value.split_once(':') {
        Some((mount, path)) if !mount.contains('/') => (mount, path.trim_matches('/')),
        _ => (own, value.trim_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_is_found_however_it_is_spelled() {
        for (query, expected) in [
            ("copy=a/b", Some((COPY, "a/b"))),
            ("x=1&%6dove=m%3Aa", Some((MOVE, "m:a"))),
            ("like=copy", None),
            ("", None),
        ] {
            let uri: Uri = format!("/v1/nodes/m/a?{query}").parse().unwrap();
            let found = transferred(&uri);
            assert_eq!(found.as_ref().map(|(name, value)| (*name, value.as_str())), expected, "{query}");
        }
    }

    #[test]
    fn a_source_is_a_path_with_or_without_a_mount() {
        for (value, expected) in [
            ("a/b", ("own", "a/b")),
            ("/a/b/", ("own", "a/b")),
            ("m:a/b", ("m", "a/b")),
            ("m:/a", ("m", "a")),
            ("m:", ("m", "")),
            ("", ("own", "")),
            ("/a:b", ("own", "a:b")),
            ("g/a:b", ("own", "g/a:b")),
            ("m:a:b", ("m", "a:b")),
        ] {
            assert_eq!(mount_and_path(value, "own"), expected, "{value}");
        }
    }
}
