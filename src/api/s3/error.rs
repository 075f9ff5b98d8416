//! The errors of the S3 dialect: the S3 error code of each problem, and its XML document.
//!
//! Handlers of the dialect return the same problems as all others. The format is selected outside all layers that can
//! reject a request, so that limits, timeouts, panics and overload are also reported in this dialect. A failure of a
//! backend is an `InternalError` or `SlowDown` with its own status, and never `NoSuchKey`.

use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::xml::{XML, Xml};
use crate::error::ErrorClass;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::{Problem, READ_METHODS};
use crate::http::route::RouteSpec;
use crate::http::{path, problem};
use crate::services::extract::StoreTarget;

/// The methods of a key in a writable mount.
pub(super) const WRITE_METHODS: &str = "GET, HEAD, PUT, POST, DELETE, OPTIONS";

const X_AMZ_REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// The error format for responses of the S3 routes and of the layers before them.
#[derive(Debug)]
pub(crate) struct ErrorFormat {
    /// The requested resource: a raw path.
    resource: String,
}

impl ErrorFormat {
    /// The S3 error format, if a request is for an S3 route.
    pub(crate) fn of(route: Option<&RouteSpec>, uri: &Uri) -> Option<Self> {
        is_s3(route, uri).then(|| Self { resource: uri.path().to_owned() })
    }

    /// Selects the S3 error format for a response.
    pub(crate) fn render(self, request_id: &HeaderValue, answer: &mut Response) {
        answer.headers_mut().insert(X_AMZ_REQUEST_ID, request_id.clone());
        let Self { resource } = self;
        answer.extensions_mut().insert(problem::Dialect { resource, content_type: XML, write: document });
    }
}

/// Whether a request is for an S3 route. A path below `/s3` without a route also comes from an S3 client.
fn is_s3(route: Option<&RouteSpec>, uri: &Uri) -> bool {
    match route {
        Some(route) => route.speaks_s3,
        None => path::segments(uri.path()).next() == Some("s3"),
    }
}

/// Responds to OPTIONS without a store request, and to all other unsupported methods with an error.
pub(crate) async fn other_method(method: Method, target: Result<StoreTarget, Problem>) -> Response {
    let is_writable =
        |target: StoreTarget| target.mount.writable && matches!(target.place, KeyOrPrefix::Key(_));
    let allow = if target.is_ok_and(is_writable) { WRITE_METHODS } else { READ_METHODS };
    match method {
        Method::OPTIONS => (StatusCode::NO_CONTENT, [(header::ALLOW, allow)]).into_response(),
        Method::PUT | Method::POST | Method::DELETE => Problem::from_class(ErrorClass::Unsupported)
            .detail("buckets are the mounts of the server's configuration: they are neither made nor erased")
            .into_response(),
        _ => Problem::from_status(StatusCode::METHOD_NOT_ALLOWED).allow(allow).into_response(),
    }
}

/// The XML document of an error.
fn document(problem: &Problem, resource: &str, request_id: &str) -> String {
    let error = Xml::plain("Error", |xml| {
        xml.text("Code", code_of(problem));
        xml.text("Message", problem.message());
        xml.text("Resource", resource);
        xml.text("RequestId", request_id);
    });
    error.into_text()
}

/// The S3 error codes of problems that have one of their own.
const CODES: &[(&str, &str)] = &[
    ("unknown-mount", "NoSuchBucket"),
    ("no-such-upload", "NoSuchUpload"),
    ("invalid-part", "InvalidPart"),
    ("invalid-part-order", "InvalidPartOrder"),
    ("entity-too-small", "EntityTooSmall"),
    ("malformed-xml", "MalformedXML"),
    ("missing-content-length", "MissingContentLength"),
    ("incomplete-body", "IncompleteBody"),
    ("digest-mismatch", "BadDigest"),
    ("content-sha256-mismatch", "XAmzContentSHA256Mismatch"),
    ("malformed-authorization", "AuthorizationHeaderMalformed"),
    ("unknown-access-key", "InvalidAccessKeyId"),
    ("signature-mismatch", "SignatureDoesNotMatch"),
    ("request-time-skewed", "RequestTimeTooSkewed"),
];

/// The S3 error code of a problem (S3 API reference, "Error responses").
pub(super) fn code_of(problem: &Problem) -> &'static str {
    if let Some((_, code)) = CODES.iter().find(|(known, _)| *known == problem.code()) {
        return code;
    }
    match problem.status() {
        StatusCode::NOT_FOUND => "NoSuchKey",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "AccessDenied",
        StatusCode::BAD_REQUEST => "InvalidArgument",
        StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
        StatusCode::REQUEST_TIMEOUT => "RequestTimeout",
        StatusCode::CONFLICT => "OperationAborted",
        StatusCode::PRECONDITION_FAILED => "PreconditionFailed",
        StatusCode::PAYLOAD_TOO_LARGE => "EntityTooLarge",
        StatusCode::URI_TOO_LONG => "InvalidURI",
        StatusCode::RANGE_NOT_SATISFIABLE => "InvalidRange",
        StatusCode::NOT_IMPLEMENTED => "NotImplemented",
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => "SlowDown",
        status if status.is_client_error() => "InvalidRequest",
        _ => "InternalError",
    }
}
