//! [`Problem`]: an error response as a problem document (RFC 9457).
//!
//! This is the only place that maps an [`ErrorClass`] to a status. The response of a problem has no body at first: the
//! outermost layer (`frame`), which knows the request id, writes the document and logs the causes once. For an error in the
//! request or in the stored data, `detail` is the text of the error. For a backend failure, `detail` is a fixed short text:
//! the errors of backends contain hosts, buckets and paths.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use super::problem_text::{bounded, bounded_member, query_text, text_of};
use super::trouble::store_failure;
use crate::error::{Classify, ErrorClass, WriteEffect};
use crate::store::{StoreError, trouble};

/// The methods that every mount supports.
pub(crate) const READ_METHODS: &str = "GET, HEAD, OPTIONS";

/// An error with everything that its response needs.
#[derive(Clone, Debug)]
pub(crate) struct Problem(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    status: StatusCode,
    code: &'static str,
    detail: Option<Cow<'static, str>>,
    extensions: Map<String, Value>,
    headers: HeaderMap,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// A problem document (RFC 9457, section 3).
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    request_id: &'a str,
    #[serde(flatten)]
    extensions: &'a Map<String, Value>,
}

/// Another error format than the problem document. A layer of routes with such a format puts it into the extensions of the
/// response.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    /// The requested resource: a raw path.
    pub(crate) resource: String,
    /// The media type of the error document.
    pub(crate) content_type: HeaderValue,
    /// Writes the error document from the problem, the resource and the request id.
    pub(crate) write: fn(&Problem, &str, &str) -> String,
}

impl Problem {
    /// A problem with a status and a stable code.
    pub(crate) fn new(status: StatusCode, code: &'static str) -> Self {
        let mut headers = HeaderMap::new();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, retry_after());
        }
        let (detail, extensions, source) = (None, Map::new(), None);
        Self(Box::new(Inner { status, code, detail, extensions, headers, source }))
    }

    /// A problem of a class, with the name of the class as its code.
    pub(crate) fn from_class(class: ErrorClass) -> Self {
        let problem = Self::new(status_of(class), class.as_str());
        if class == ErrorClass::NotAllowed { problem.allow(READ_METHODS) } else { problem }
    }

    /// The problem of invalid query parameters.
    pub(crate) fn from_query_error(rejection: &QueryRejection) -> Self {
        let text = rejection.body_text();
        let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
        Self::from_class(ErrorClass::InvalidRequest).detail(query_text(text))
    }

    /// A problem derived from a status alone, for responses that do not come from a handler of this server.
    pub(crate) fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => {
                Self::from_class(ErrorClass::NotFound).detail("there is nothing at this URL")
            }
            StatusCode::METHOD_NOT_ALLOWED => Self::new(status, ErrorClass::NotAllowed.as_str())
                .detail("the method is not supported here; the `Allow` header lists the supported methods"),
            StatusCode::PAYLOAD_TOO_LARGE => Self::from_class(ErrorClass::TooLarge),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::new(status, "unsupported-media-type"),
            _ if status.is_client_error() => Self::new(status, ErrorClass::InvalidRequest.as_str()),
            _ => Self::new(status, ErrorClass::Internal.as_str()),
        }
    }

    /// An internal error of the server, with its cause for the log.
    pub(crate) fn internal(source: Arc<dyn Error + Send + Sync>) -> Self {
        let mut problem = Self::from_class(ErrorClass::Internal);
        problem.0.source = Some(source);
        problem
    }

    /// The response to a change that takes longer than a response may. It goes on.
    pub(crate) fn unfinished_change() -> Self {
        Self::unknown_outcome(
            "the change takes longer than a response may (`http.response_timeout`), and goes on: read what is there before it is sent \
             again",
        )
    }

    /// The response to a change whose outcome is not known when a response should begin. It may go on.
    pub(crate) fn late_change() -> Self {
        Self::unknown_outcome(
            "the change takes longer than a response may (`http.response_timeout`): nothing of it may be done, a part or all, and it may \
             go on. Read what is there before it is sent again",
        )
    }

    fn unknown_outcome(detail: &'static str) -> Self {
        Self::from_class(ErrorClass::TimedOut).detail(detail).extension("written", "unknown")
    }

    /// Sets the detail: what is wrong and what to do. Of a long text, the rest is left out.
    pub(crate) fn detail(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = Some(bounded(text.into()));
        self
    }

    /// Adds an extension member (RFC 9457, section 3.2). Of long texts in it, the rest is left out.
    pub(crate) fn extension(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.extensions.insert(name.to_owned(), bounded_member(value.into()));
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// Sets `Allow`.
    pub(crate) fn allow(self, methods: &'static str) -> Self {
        self.header(header::ALLOW, HeaderValue::from_static(methods))
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// The detail, if there is one.
    pub(crate) fn detail_text(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The extension members.
    pub(crate) fn extensions(&self) -> &Map<String, Value> {
        &self.0.extensions
    }

    /// The message for the client: the detail, or the reason phrase of the status.
    pub(crate) fn message(&self) -> &str {
        let reason = || self.0.status.canonical_reason().unwrap_or("Error");
        self.0.detail.as_deref().unwrap_or_else(reason)
    }

    /// The document.
    fn document(&self, request_id: &str) -> String {
        let Inner { status, code, detail, extensions, .. } = &*self.0;
        let title = status.canonical_reason().unwrap_or("Error");
        let (detail, status) = (detail.as_deref(), status.as_u16());
        let document = Document { kind: "about:blank", title, status, code, detail, request_id, extensions };
        serde_json::to_string(&document).unwrap_or_default()
    }

    /// Logs the problem with all its causes.
    fn log(&self, request_id: &str) {
        let Inner { status, code, source, .. } = &*self.0;
        let causes = source.as_deref().map(|error| causes(error)).unwrap_or_default();
        // A rejected request is in the access log; further log lines would add load during overload.
        let is_rejected = *status == StatusCode::SERVICE_UNAVAILABLE && source.is_none();
        if status.is_server_error() && !is_rejected {
            tracing::error!(request_id, status = status.as_u16(), code, causes, "request failed");
        } else {
            tracing::debug!(request_id, status = status.as_u16(), code, causes, "request refused");
        }
    }
}

/// The status of each error class.
fn status_of(class: ErrorClass) -> StatusCode {
    match class {
        ErrorClass::InvalidRequest => StatusCode::BAD_REQUEST,
        ErrorClass::NotFound => StatusCode::NOT_FOUND,
        ErrorClass::NotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorClass::Conflict => StatusCode::CONFLICT,
        ErrorClass::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorClass::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorClass::RangeNotSatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
        // An unusable link is not a 403: some clients read 403 as a missing chunk and show fill values.
        ErrorClass::InvalidMetadata
        | ErrorClass::CorruptData
        | ErrorClass::UnusableLink
        | ErrorClass::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorClass::Unsupported | ErrorClass::OverBudget => StatusCode::NOT_IMPLEMENTED,
        // Never 404: a client would read fill values.
        ErrorClass::BackendFailed
        | ErrorClass::ReferencesRefused
        | ErrorClass::ReferenceRefused
        | ErrorClass::ReferenceBroken => StatusCode::BAD_GATEWAY,
        ErrorClass::Overloaded | ErrorClass::BeingBuilt => StatusCode::SERVICE_UNAVAILABLE,
        ErrorClass::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        ErrorClass::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// Whether the text of an error concerns the request or the stored data, so that the client may see it.
fn is_tellable(class: ErrorClass) -> bool {
    class.is_caller_fault()
        || matches!(
            class,
            ErrorClass::InvalidMetadata
                | ErrorClass::CorruptData
                | ErrorClass::UnusableLink
                | ErrorClass::ReferencesRefused
                | ErrorClass::ReferenceRefused
                | ErrorClass::ReferenceBroken
                | ErrorClass::Unsupported
                | ErrorClass::OverBudget
                | ErrorClass::BeingBuilt
        )
}

impl<E: Classify> From<E> for Problem {
    fn from(error: E) -> Self {
        let class = error.class();
        let mut problem = Self::from_class(class);
        // These are rejections by this server, not failures of a backend.
        let is_backends = |failure: &&StoreError| {
            !matches!(
                failure,
                StoreError::NoUploadMemory | StoreError::OverBudget(_) | StoreError::NotBuilt { .. }
            )
        };
        let failure = store_failure(&error).filter(is_backends);
        let is_rejected =
            class == ErrorClass::BeingBuilt || (class == ErrorClass::Overloaded && failure.is_none());
        if is_tellable(class) {
            problem.0.detail = Some(text_of(&error).into());
        } else if let Some(failure) = failure {
            problem.0.detail = Some(of_backend(&trouble(failure)).into());
        } else if is_rejected {
            problem.0.detail =
                Some(format!("{}; retry after the time in `Retry-After`", text_of(&error)).into());
        }
        problem = match error.written() {
            None => problem,
            Some(WriteEffect::No) => problem.extension("written", false),
            Some(WriteEffect::Unknown) => problem.extension("written", "unknown"),
        };
        if !is_rejected {
            problem.0.source = Some(Arc::new(error));
        }
        problem
    }
}

/// A sentence about a backend's failure, whose description begins with the backend, or with what is wrong with it.
fn of_backend(trouble: &str) -> String {
    match trouble.strip_prefix("it ").or_else(|| trouble.strip_prefix("the backend ")) {
        Some(rest) => format!("a backend of this mount {rest}"),
        None => format!("a backend of this mount: {trouble}"),
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.0.status;
        *response.headers_mut() = std::mem::take(&mut self.0.headers);
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the document of an error response and logs its causes. Other responses are unchanged.
pub(crate) fn render(mut response: Response, request_id: &str) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let problem = response.extensions_mut().remove().unwrap_or_else(|| Problem::from_status(status));
    problem.log(request_id);
    let (content_type, document) = match response.extensions_mut().remove::<Dialect>() {
        Some(dialect) => {
            let document = (dialect.write)(&problem, &dialect.resource, request_id);
            (dialect.content_type, document)
        }
        None => (HeaderValue::from_static("application/problem+json"), problem.document(request_id)),
    };
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    *response.body_mut() = Body::from(document);
    response
}

/// An error and all its sources in one line, without repetitions. Queries of URLs are removed: they can contain signatures
/// and tokens.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        // Many errors include the text of their source.
        if !line.contains(text.as_str()) {
            // Writing to a `String` cannot fail.
            let _ = write!(line, ": {text}");
        }
        next = source.source();
    }
    without_queries(line)
}

/// Removes the queries of all URLs in a text.
fn without_queries(text: String) -> String {
    if !text.contains('?') || !text.contains("://") {
        return text;
    }
    let ends = |c: char| c.is_whitespace() || "()<>\"`".contains(c);
    let mut cleaned = String::with_capacity(text.len());
    for word in text.split_inclusive(ends) {
        match word.split_once('?') {
            Some((before, query)) if before.contains("://") => {
                cleaned.push_str(before);
                cleaned.push_str("?…");
                cleaned.extend(query.chars().rev().take(1).filter(|&last| ends(last)));
            }
            _ => cleaned.push_str(word),
        }
    }
    cleaned
}

/// 1 to 5 seconds at random, so that rejected clients do not retry all at once.
fn retry_after() -> HeaderValue {
    HeaderValue::from(1 + RandomState::new().hash_one(0_u8) % 5)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("403 from https://secret-bucket.example")]
    struct Backend;

    #[test]
    fn the_log_names_a_backend_and_the_response_does_not() {
        for error in [
            StoreError::Backend(Arc::new(Backend)),
            StoreError::Busy(Arc::new(Backend)),
            StoreError::TimedOut(Arc::new(Backend)),
            StoreError::StorageFull(Arc::new(Backend)),
        ] {
            assert!(causes(&error).ends_with(": 403 from https://secret-bucket.example"));
            let document = Problem::from(error).document("id-1");
            assert!(!document.contains("secret"), "{document}");
            assert!(document.contains("\"detail\":\"a backend of this mount"), "{document}");
            assert!(document.contains("\"request_id\":\"id-1\""), "{document}");
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("GET failed: {0}")]
    struct Repeats(#[source] Backend);

    #[test]
    fn a_repeated_cause_is_logged_once() {
        let error = StoreError::Backend(Arc::new(Repeats(Backend)));
        assert_eq!(causes(&error), "the backend failed: GET failed: 403 from https://secret-bucket.example");
    }

    #[test]
    fn queries_of_urls_are_removed_from_logs() {
        for (text, expected) in [
            ("cannot reach https://a.example/b?sig=secret", "cannot reach https://a.example/b?…"),
            ("for url (https://a.example/b?sig=a&se=b): refused", "for url (https://a.example/b?…): refused"),
            ("\"http://a/?a\" and http://b/?b twice", "\"http://a/?…\" and http://b/?… twice"),
            ("is it? see http://a/b", "is it? see http://a/b"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without_queries(text.to_owned()), expected);
        }
    }

    #[test]
    fn a_write_error_states_whether_anything_was_written() {
        let outcome = |error: StoreError| {
            let document: Value = serde_json::from_str(&Problem::from(error).document("id")).unwrap();
            (document["status"].as_u64().unwrap(), document.get("written").cloned())
        };
        assert_eq!(outcome(StoreError::OutcomeUnknown(Arc::new(Backend))), (503, Some(json!("unknown"))));
        assert_eq!(outcome(StoreError::Contended(Some(Arc::new(Backend)))), (503, Some(json!(false))));
        assert_eq!(outcome(StoreError::StorageFull(Arc::new(Backend))), (507, Some(json!(false))));
        assert_eq!(outcome(StoreError::Backend(Arc::new(Backend))), (502, None));
    }

    #[test]
    fn a_caller_error_has_its_text_as_detail() {
        let document = Problem::from(StoreError::BodyTooLarge { limit: 7 }).document("id");
        assert!(document.contains("\"detail\":\"the body is longer than 7 bytes\""), "{document}");
        let value: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(value["status"], 413);
        assert_eq!(value["code"], "too-large");
        assert_eq!(value["title"], "Payload Too Large");
    }

    #[test]
    fn only_overload_has_retry_after_and_only_method_errors_have_allow() {
        for class in [ErrorClass::Overloaded, ErrorClass::NotAllowed, ErrorClass::BackendFailed] {
            let headers = Problem::from_class(class).into_response().headers().clone();
            assert_eq!(headers.contains_key(header::RETRY_AFTER), class == ErrorClass::Overloaded);
            assert_eq!(headers.contains_key(header::ALLOW), class == ErrorClass::NotAllowed);
        }
        for _ in 0..100 {
            let seconds: u64 = retry_after().to_str().unwrap().parse().unwrap();
            assert!((1..=5).contains(&seconds));
        }
    }
}
