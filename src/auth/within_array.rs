//! Whether a granted prefix lies inside an array; if so, responses derived from its nodes are refused.
//!
//! The keys below an array belong to it: arrays that it declares take their chunks from there, so a node below it may
//! be derived from keys beside it. Nothing that is derived from a node reads keys above its nearest stored document,
//! and only an array reads keys beside it; so a prefix with no array above it contains everything that is read for its
//! nodes.

use crate::array::NodeOpener;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::{NodePath, StorePrefix};

/// Whether any node above a prefix is an array, or may be one.
///
/// # Errors
/// A failure of the backend, without its subject, which is not for this caller to see.
pub(super) async fn is_in_an_array(opener: &NodeOpener, prefix: &StorePrefix) -> Result<bool, Problem> {
    let mut above = NodePath::parse(prefix.as_str()).ok().and_then(|path| path.parent());
    while let Some(path) = above {
        match opener.open(&path).await {
            Ok(opened) if matches!(opened.node, Node::Group(_)) => {}
            Ok(_) => return Ok(true),
            Err(error) => match error.class() {
                ErrorClass::NotFound => {}
                class @ (ErrorClass::BackendFailed | ErrorClass::Overloaded | ErrorClass::TimedOut) => {
                    return Err(Problem::from_class(class));
                }
                _ => return Ok(true),
            },
        }
        above = path.parent();
    }
    Ok(false)
}
