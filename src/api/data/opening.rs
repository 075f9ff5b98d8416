//! The array that a request names, and the problem of a chunk that it does not have.

use std::sync::Arc;

use axum::http::request::Parts;

use crate::api::dependents::{check_collision, reading};
use crate::api::nodes::missing;
use crate::api::selection::ArrayParams;
use crate::array::OpenNode;
use crate::auth::caller::Caller;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::services::extract::NodeTarget;

/// Opens the node whose elements are requested.
pub(crate) async fn open(
    head: &Parts,
    target: &NodeTarget,
    path: &NodePath,
    params: &ArrayParams,
) -> Result<Arc<OpenNode>, Problem> {
    let node = match target.opener.open_as(path, reading(params.is_strict())).await {
        Ok(node) => node,
        Err(error) => {
            let rights = Caller::of(&head.extensions).rights();
            return Err(Box::pin(missing::problem_of(error, rights, target, path)).await);
        }
    };
    check_collision(&node, params.allows_collision())?;
    Ok(node)
}

/// The problem of a chunk that an array does not have.
pub(super) fn no_such_chunk() -> Problem {
    Problem::from_class(ErrorClass::NotFound).detail(
        "there is no such chunk; after the array's path comes `c` and one decimal number without leading zeros for each \
         dimension, within the grid that `/v1/nodes` shows",
    )
}
