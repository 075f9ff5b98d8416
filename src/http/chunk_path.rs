//! The path of a chunk: the path of its array, `c`, and the chunk coordinates (Zarr core 3.1, chunk key encoding `default`).

use crate::key::NodePath;

/// Splits `a/b/c/0/1` into the path of the node and the key of the chunk. All trailing numbers are chunk coordinates.
pub(crate) fn split_chunk(path: &NodePath) -> Option<(NodePath, &str)> {
    let text = path.as_str();
    let mut start = text.len();
    loop {
        let segment_start = text.get(..start)?.rfind('/').map_or(0, |slash| slash + 1);
        let segment = text.get(segment_start..start)?;
        if segment == "c" {
            let node = text.get(..segment_start)?.trim_end_matches('/');
            return Some((NodePath::parse(node).ok()?, text.get(segment_start..)?));
        }
        if segment.is_empty() || !segment.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        start = segment_start.checked_sub(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_path_is_split_at_the_c_before_its_coordinates() {
        for (text, split) in [
            ("a/b/c/0/1", Some(("a/b", "c/0/1"))),
            ("c/0", Some(("", "c/0"))),
            ("a/c", Some(("a", "c"))),
            ("a/c/0/c/3", Some(("a/c/0", "c/3"))),
            ("c", Some(("", "c"))),
            ("a/b", None),
            ("a/c/x", None),
            ("0/1", None),
            ("", None),
        ] {
            let path = NodePath::parse(text).unwrap();
            assert_eq!(
                split_chunk(&path).map(|(node, chunk)| (node.as_str().to_owned(), chunk)),
                split.map(|(node, chunk)| (node.to_owned(), chunk)),
                "{text}"
            );
        }
    }
}
