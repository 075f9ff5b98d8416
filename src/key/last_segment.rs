//! [`last_segment`]: the name at the end of a path.

/// The part of a path after its last slash; empty if it ends in one.
pub(crate) fn last_segment(path: &str) -> &str {
    // By bytes: it is short, and every request asks for some.
    let start = path.bytes().rposition(|byte| byte == b'/').map_or(0, |slash| slash + 1);
    path.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_follows_the_last_slash() {
        for (path, expected) in
            [("", ""), ("a", "a"), ("/", ""), ("a/", ""), ("a/b/é.json", "é.json"), ("é/日", "日")]
        {
            assert_eq!(last_segment(path), expected, "{path}");
        }
    }
}
