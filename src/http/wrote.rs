//! [`Wrote`]: marks responses to requests that wrote, where the method and the route do not say so.

use axum::response::{IntoResponse, Response};

/// A response extension: the request wrote or was to write, although others to its route with the same method read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrote;

impl Wrote {
    /// Marks a response.
    pub(crate) fn mark(response: impl IntoResponse) -> Response {
        let mut response = response.into_response();
        response.extensions_mut().insert(Self);
        response
    }
}
