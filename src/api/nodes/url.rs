//! The place of a node in URLs.

use crate::http::path::encode;
use crate::key::NodePath;
use crate::services::mount::Mount;

/// `mount/a/b`, percent-encoded; `mount/` for the root.
pub(super) fn url_path(mount: &Mount, path: &NodePath) -> String {
    let segments: Vec<String> = path.as_str().split('/').map(encode).collect();
    format!("{}/{}", encode(&mount.name), segments.join("/"))
}
