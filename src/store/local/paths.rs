//! The paths of directories as texts.

/// A prefix as the path of a directory.
pub(super) fn parent_path(prefix: &str) -> &str {
    prefix.strip_suffix('/').unwrap_or(prefix)
}

/// `a`, `a/b`, `a/b/c` of `a/b/c`; nothing of the root.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.filter_map(|end| path.get(..end)).filter(|directory| !directory.is_empty())
}
