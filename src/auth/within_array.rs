//! Whether a granted prefix lies inside an array; if so, responses derived from its nodes are refused.
//!
//! The keys below an array belong to it: arrays that it declares take their chunks from there, so a node below it may
//! be derived from keys beside it. Nothing that is derived from a node reads keys above its nearest stored document,
//! and only an array reads keys beside it; so a prefix with no array above it contains everything that is read for its
//! nodes. Pyramids are the exception: the levels of an image are made from each other, and an array has the place of the
//! group above it.

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
    is_inside(opener, prefix, |node| matches!(node, Node::Array(_))).await
}

/// Whether any node above a prefix is an array or a group whose attributes pyramids below it depend on, or may be one.
///
/// # Errors
/// As [`is_in_an_array`].
pub(super) async fn is_in_an_image(opener: &NodeOpener, prefix: &StorePrefix) -> Result<bool, Problem> {
    is_inside(opener, prefix, |node| match node {
        Node::Array(_) => true,
        Node::Group(group) => {
            let is_image = ["ome", "multiscales"].iter().any(|name| group.attributes.contains_key(name));
            is_image || ["\"spatial:", "\"proj:"].iter().any(|name| group.attributes.text().contains(name))
        }
    })
    .await
}

/// Whether a node above a prefix is of some kind, or may be.
async fn is_inside(
    opener: &NodeOpener,
    prefix: &StorePrefix,
    is_around: impl Fn(&Node) -> bool,
) -> Result<bool, Problem> {
    let mut above = NodePath::parse(prefix.as_str()).ok().and_then(|path| path.parent());
    while let Some(path) = above {
        match opener.open(&path).await {
            Ok(opened) if !is_around(&opened.node) => {}
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
