//! Whether what is granted lies inside an array: then what is made of its nodes is refused.
//!
//! An array's directory is its own: arrays that it declares take their chunks from it, and so a node below it may be made of
//! keys beside it. Nothing that is made of a node reads keys above its nearest stored document, and only an array reads keys
//! beside it; so a prefix with no array above it holds all that is read for the nodes in it.

use crate::array::NodeOpener;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::{NodePath, StorePrefix};

/// Whether any node above a prefix is an array, or may be one.
///
/// # Errors
/// What stands in the way of telling, without what it is about: that is not for whoever asks.
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
