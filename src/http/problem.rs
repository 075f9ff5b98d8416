//! [`Problem`]: an error on its way to the client, as a problem document (RFC 9457).
//!
//! This is the one place where an [`ErrorClass`] becomes a status. An answer made of a problem has a head and no
//! body: the outermost layer (`frame`), which knows the request id, writes the document and logs the causes, once.
//! What the caller did wrong, and what is wrong with the caller's own data, is told in `detail`, by the error's own
//! text. Of a backend nothing is told but what is wrong with it in a few words of ours: its errors name hosts, buckets and
//! paths.

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

use super::trouble::store_failure;
use crate::error::{Classify, ErrorClass, Written};
use crate::store::{StoreError, trouble};

/// The methods that every mount answers.
pub(crate) const READ_METHODS: &str = "GET, HEAD, OPTIONS";

/// An error, ready to be told.
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

/// How an answer's problem is written where that is no problem document: a layer of routes that speak another
/// dialect puts it into the answer's extensions.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    /// What was asked for: a raw path.
    pub(crate) resource: String,
    /// The type of what is written.
    pub(crate) content_type: HeaderValue,
    /// Writes the problem of a resource and a request id.
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

    /// A problem of a class, under the class's own name.
    pub(crate) fn from_class(class: ErrorClass) -> Self {
        let problem = Self::new(status_of(class), class.as_str());
        if class == ErrorClass::NotAllowed { problem.allow(READ_METHODS) } else { problem }
    }

    /// What is wrong with the parameters of a query.
    pub(crate) fn from_query_error(rejection: &QueryRejection) -> Self {
        Self::from_class(ErrorClass::InvalidRequest).detail(rejection.body_text())
    }

    /// A problem from nothing but a status, for answers that did not come from this room's handlers.
    pub(crate) fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::from_class(ErrorClass::NotFound).detail(
                "there is nothing at this URL: `/v1/mounts` lists what is served, and `/docs/` the routes",
            ),
            StatusCode::METHOD_NOT_ALLOWED => Self::new(status, ErrorClass::NotAllowed.as_str())
                .detail("the method is not offered here; the `Allow` header says which are"),
            StatusCode::PAYLOAD_TOO_LARGE => Self::from_class(ErrorClass::TooLarge),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::new(status, "unsupported-media-type"),
            _ if status.is_client_error() => Self::new(status, ErrorClass::InvalidRequest.as_str()),
            _ => Self::new(status, ErrorClass::Internal.as_str()),
        }
    }

    /// A defect of this server, with what is known of it for the log.
    pub(crate) fn internal(source: Arc<dyn Error + Send + Sync>) -> Self {
        let mut problem = Self::from_class(ErrorClass::Internal);
        problem.0.source = Some(source);
        problem
    }

    /// Says what to do about it.
    pub(crate) fn detail(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = Some(text.into());
        self
    }

    /// Adds a member of the document's own.
    pub(crate) fn extension(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.extensions.insert(name.to_owned(), value.into());
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

    /// What the caller is told: the detail, or what the status says.
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
        // Whoever is turned away is in the access log; more would be a burden just when there is too much to do.
        let is_turned_away = *status == StatusCode::SERVICE_UNAVAILABLE && source.is_none();
        if status.is_server_error() && !is_turned_away {
            tracing::error!(request_id, status = status.as_u16(), code, causes, "request failed");
        } else {
            tracing::debug!(request_id, status = status.as_u16(), code, causes, "request refused");
        }
    }
}

/// The one mapping from class to status.
fn status_of(class: ErrorClass) -> StatusCode {
    match class {
        ErrorClass::InvalidRequest => StatusCode::BAD_REQUEST,
        ErrorClass::NotFound => StatusCode::NOT_FOUND,
        ErrorClass::NotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorClass::Conflict => StatusCode::CONFLICT,
        ErrorClass::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorClass::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorClass::RangeNotSatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
        // A link is no matter of rights: some clients read 403 as "no such chunk", and show fill values.
        ErrorClass::InvalidMetadata
        | ErrorClass::CorruptData
        | ErrorClass::UnusableLink
        | ErrorClass::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorClass::Unsupported | ErrorClass::OverBudget => StatusCode::NOT_IMPLEMENTED,
        ErrorClass::BackendFailed => StatusCode::BAD_GATEWAY,
        ErrorClass::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        ErrorClass::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        ErrorClass::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// Whether the error's own text is about the caller's request or the caller's data, and may be told.
fn is_tellable(class: ErrorClass) -> bool {
    class.is_caller_fault()
        || matches!(
            class,
            ErrorClass::InvalidMetadata
                | ErrorClass::CorruptData
                | ErrorClass::UnusableLink
                | ErrorClass::Unsupported
                | ErrorClass::OverBudget
        )
}

impl<E: Classify> From<E> for Problem {
    fn from(error: E) -> Self {
        let class = error.class();
        let mut problem = Self::from_class(class);
        // For want of memory it is this server that turns away, and no backend.
        let is_backends = |failure: &&StoreError| {
            !matches!(failure, StoreError::NoUploadMemory | StoreError::OverBudget(_))
        };
        let failure = store_failure(&error).filter(is_backends);
        let is_turned_away = class == ErrorClass::Overloaded && failure.is_none();
        if is_tellable(class) {
            problem.0.detail = Some(error.to_string().into());
        } else if let Some(failure) = failure {
            problem.0.detail = Some(format!("the backend of this mount: {}", trouble(failure)).into());
        } else if is_turned_away {
            problem.0.detail = Some(format!("{error}; `Retry-After` says when to ask again").into());
        }
        problem = match error.written() {
            None => problem,
            Some(Written::No) => problem.extension("written", false),
            Some(Written::Unknown) => problem.extension("written", "unknown"),
        };
        if !is_turned_away {
            problem.0.source = Some(Arc::new(error));
        }
        problem
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

/// Gives an error answer its document, and the log its causes. Answers that are no errors pass as they are.
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

/// An error and all its sources in one line, each said once. What URLs ask for is not in it: there stand signatures and tokens.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        // Many errors repeat in their own text what they come from.
        if !line.contains(text.as_str()) {
            // Writing to a `String` cannot fail.
            let _ = write!(line, ": {text}");
        }
        next = source.source();
    }
    without_queries(line)
}

/// A text whose URLs have lost their queries.
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

/// 1 to 5 seconds at random, so that those who were turned away do not come back together.
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
    fn a_backend_is_not_named_to_the_client_but_is_to_the_log() {
        for error in [
            StoreError::Backend(Arc::new(Backend)),
            StoreError::Busy(Arc::new(Backend)),
            StoreError::TimedOut(Arc::new(Backend)),
            StoreError::StorageFull(Arc::new(Backend)),
        ] {
            assert!(causes(&error).ends_with(": 403 from https://secret-bucket.example"));
            let document = Problem::from(error).document("id-1");
            assert!(!document.contains("secret"), "{document}");
            assert!(document.contains("\"detail\":\"the backend of this mount: "), "{document}");
            assert!(document.contains("\"request_id\":\"id-1\""), "{document}");
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("GET failed: {0}")]
    struct Repeats(#[source] Backend);

    #[test]
    fn a_cause_that_is_said_already_is_not_said_again() {
        let error = StoreError::Backend(Arc::new(Repeats(Backend)));
        assert_eq!(causes(&error), "the backend failed: GET failed: 403 from https://secret-bucket.example");
    }

    #[test]
    fn what_urls_ask_for_is_in_no_log() {
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
    fn a_writer_is_told_whether_anything_was_written_where_that_is_known() {
        let told = |error: StoreError| {
            let document: Value = serde_json::from_str(&Problem::from(error).document("id")).unwrap();
            (document["status"].as_u64().unwrap(), document.get("written").cloned())
        };
        assert_eq!(told(StoreError::OutcomeUnknown(Arc::new(Backend))), (503, Some(json!("unknown"))));
        assert_eq!(told(StoreError::Contended(Some(Arc::new(Backend)))), (503, Some(json!(false))));
        assert_eq!(told(StoreError::StorageFull(Arc::new(Backend))), (507, Some(json!(false))));
        assert_eq!(told(StoreError::Backend(Arc::new(Backend))), (502, None));
    }

    #[test]
    fn callers_are_told_what_is_wrong() {
        let document = Problem::from(StoreError::BodyTooLarge { limit: 7 }).document("id");
        assert!(document.contains("\"detail\":\"the body is longer than 7 bytes\""), "{document}");
        let value: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(value["status"], 413);
        assert_eq!(value["code"], "too-large");
        assert_eq!(value["title"], "Payload Too Large");
    }

    #[test]
    fn only_overload_asks_to_come_back_and_only_method_errors_say_what_is_allowed() {
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
