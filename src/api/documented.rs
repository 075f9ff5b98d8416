//! What several routes document alike for the API document: parameters in paths and headers, and responses.
//!
//! Nothing here is parsed. The structs of query parameters are beside the code that parses them.

#![expect(dead_code, reason = "describes requests and responses for the API document")]

use utoipa::{IntoParams, IntoResponses, ToResponse};

use super::store::listing_page::ListingPage;

/// The mount in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct MountParam {
    /// Name of a mount
    mount: String,
}

/// The key of a value to write, in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct WritablePath {
    /// Name of a writable mount
    mount: String,
    /// A store key
    key: String,
}

/// The headers of a read of a value.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct ReadHeaders {
    /// `bytes=0-99`, `bytes=100-` or `bytes=-20`
    #[param(rename = "Range")]
    range: Option<String>,
    /// A list of entity tags, or `*`
    #[param(rename = "If-Match")]
    if_match: Option<String>,
    /// A list of entity tags, or `*`
    #[param(rename = "If-None-Match")]
    if_none_match: Option<String>,
    /// Entity tag of the value to which `Range` applies; a changed value is returned whole
    #[param(rename = "If-Range")]
    if_range: Option<String>,
}

/// The conditions of a write.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct WriteConditions {
    /// Write only if the current value has this entity tag
    #[param(rename = "If-Match")]
    if_match: Option<String>,
    /// `*`: write only if there is no value
    #[param(rename = "If-None-Match")]
    if_none_match: Option<String>,
}

/// Responses to a read of a value, whatever the store.
#[derive(IntoResponses)]
pub(crate) enum ValueResponses {
    /// The whole value
    #[response(status = 200, content_type = "application/octet-stream")]
    Whole,
    /// The requested byte range of the value
    #[response(status = 206, content_type = "application/octet-stream")]
    Range,
    /// The key is a prefix; redirect to its listing at the path with a trailing slash
    #[response(status = 301)]
    Prefix,
    /// The value still has an entity tag of `If-None-Match`
    #[response(status = 304)]
    NotModified,
    /// The path is not a valid store key
    #[response(status = 400)]
    InvalidKey,
    /// The value has none of the entity tags of `If-Match`
    #[response(status = 412)]
    PreconditionFailed,
    /// The range starts after the end of the value
    #[response(status = 416)]
    RangeNotSatisfiable,
    /// The backend failed
    #[response(status = 502)]
    BackendFailed,
    /// The server is overloaded; retry after the time in `Retry-After`
    #[response(status = 503)]
    Overloaded,
    /// The backend timed out
    #[response(status = 504)]
    BackendTimedOut,
}

/// Further responses to a read of a value of a view.
#[derive(IntoResponses)]
pub(crate) enum ViewResponses {
    /// The view has no value of this key
    #[response(status = 404)]
    NotFound,
    /// Views are read-only
    #[response(status = 405)]
    ReadOnly,
    /// The stored bytes do not match the metadata
    #[response(status = 500)]
    Corrupt,
}

/// The listing
#[derive(ToResponse)]
pub(crate) enum Listing {
    Json(#[content("application/json")] ListingPage),
    Html(#[content("text/html")] String),
}

/// Responses to a listing of a root.
#[derive(IntoResponses)]
pub(crate) enum ListingResponses {
    /// The listing
    #[response(status = 200)]
    Listing(#[to_response] Listing),
    /// No mount has this name
    #[response(status = 404)]
    NotFound,
    /// The backend cannot list
    #[response(status = 405)]
    NotListable,
    /// The backend failed
    #[response(status = 502)]
    BackendFailed,
}

/// The response to a mount or view without its slash.
#[derive(IntoResponses)]
pub(crate) enum RootRedirect {
    /// Redirect to the listing of the root at the path with a trailing slash
    #[response(status = 301)]
    WithSlash,
}

/// Responses to the conditions of a request for what has an entity tag.
#[derive(IntoResponses)]
pub(crate) enum ConditionResponses {
    /// Not modified: the response still has an entity tag of `If-None-Match`.
    #[response(status = 304)]
    NotModified,
    /// The precondition failed.
    #[response(status = 412)]
    PreconditionFailed,
}

/// Further responses to a read of elements of an array.
#[derive(IntoResponses)]
pub(crate) enum ArrayResponses {
    /// The array does not have the shape in `expected_shape`, or another array also claims its chunks.
    #[response(status = 409)]
    AnotherShape,
    /// The declaration of a dependent array is invalid.
    #[response(status = 422)]
    NotUsable,
    /// Stored chunks or metadata are corrupt.
    #[response(status = 500)]
    Corrupt,
    /// The array uses an unsupported codec, data type or extension.
    #[response(status = 501)]
    Unsupported,
}

/// Responses to a write of a value, or of a part of one.
#[derive(IntoResponses)]
pub(crate) enum WriteResponses {
    /// The body was not received in time; nothing was written
    #[response(status = 408)]
    BodyTimedOut,
    /// The precondition failed; nothing was written
    #[response(status = 412)]
    PreconditionFailed,
    /// The body is content-encoded; nothing was written
    #[response(status = 415)]
    Encoded,
    /// The backend has no storage space left; nothing was written
    #[response(status = 507)]
    NoSpace,
}
