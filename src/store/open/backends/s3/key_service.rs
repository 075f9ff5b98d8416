//! [`KeyService`]: the client that requests keys from the services of AWS, with the token of the container, and reads no answer
//! that is too long.

use async_trait::async_trait;
use futures::StreamExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use reqwest::header::AUTHORIZATION;

use super::container::ContainerToken;
use crate::store::object::Connector;
use crate::store::open::metadata_service::MAX_ANSWER_BYTES;

/// Codes of failures are words such as `InvalidIdentityToken`.
const MAX_CODE_BYTES: usize = 64;

/// Why an answer is not used.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error("the service of the keys answered with more than {} bytes", MAX_ANSWER_BYTES)]
    TooLong,
    #[error("the metadata service answered with a name or a token that cannot be sent back")]
    Characters,
}

impl From<AnswerError> for HttpError {
    fn from(error: AnswerError) -> Self {
        // Of this kind, requests are not repeated.
        Self::new(HttpErrorKind::Decode, error)
    }
}

/// Sends requests for keys.
#[derive(Clone, Debug)]
pub(super) struct KeyService {
    connector: Connector,
    /// That of the container, if its service is the one.
    token: Option<ContainerToken>,
}

impl KeyService {
    /// Sends requests as they are, with this client.
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, token: None }
    }

    /// Sends requests with this token and no other.
    pub(super) fn with_token(self, token: ContainerToken) -> Self {
        Self { token: Some(token), ..self }
    }
}

impl HttpConnector for KeyService {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for KeyService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(token) = &self.token {
            let header = token.header().await;
            request.headers_mut().remove(AUTHORIZATION);
            if let Some(value) = header.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))? {
                request.headers_mut().insert(AUTHORIZATION, value);
            }
        }
        let is_name = is_answered_with_a_name(request.uri().path());
        let (parts, body) = self.connector.call(request).await?.into_parts();
        let mut bytes = bytes_of(body).await?;
        if !parts.status.is_success() {
            // It becomes a part of the error, which is logged, and some services repeat the request in it, with its secrets.
            bytes = code_of(&bytes).into_bytes();
        }
        if is_name && parts.status.is_success() {
            bytes = checked_name(&bytes)?;
        }
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes)))
    }
}

/// The bytes of an answer.
async fn bytes_of(body: HttpResponseBody) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    let mut chunks = body.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(AnswerError::TooLong.into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The code in the document of a failure, in XML or JSON, in letters alone; empty if there is none.
fn code_of(document: &[u8]) -> String {
    let text = std::str::from_utf8(document).unwrap_or_default();
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map(|(code, _)| code.to_owned()).or_else(|| {
        let document: serde_json::Value = serde_json::from_str(text).ok()?;
        let code = document.get("code").or_else(|| document.get("Code"))?;
        code.as_str().map(str::to_owned)
    });
    let is_word =
        |code: &String| code.len() <= MAX_CODE_BYTES && code.bytes().all(|byte| byte.is_ascii_alphabetic());
    code.filter(is_word).unwrap_or_default()
}

/// Whether a path of the metadata service is answered with a text that the client sends back, in a header or a URL.
fn is_answered_with_a_name(path: &str) -> bool {
    path.ends_with("/latest/api/token") || path.ends_with("/meta-data/iam/security-credentials/")
}

/// The text of an answer that is sent back. The client panics if the next request cannot have it.
fn checked_name(bytes: &[u8]) -> Result<Vec<u8>, HttpError> {
    let name = bytes.trim_ascii();
    let is_sendable = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+=,.@_/-".contains(byte));
    if is_sendable { Ok(name.to_vec()) } else { Err(AnswerError::Characters.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_has_a_limit() {
        let answer = |length: usize| HttpResponseBody::from(vec![b'x'; length]);
        assert_eq!(bytes_of(answer(MAX_ANSWER_BYTES)).await.unwrap().len(), MAX_ANSWER_BYTES);
        let error = bytes_of(answer(MAX_ANSWER_BYTES + 1)).await.unwrap_err();
        assert!(error.to_string().contains("more than 65536 bytes"), "{error}");
    }

    #[test]
    fn of_a_failure_only_its_code_is_passed_on() {
        let document = |code: &str| {
            format!("<ErrorResponse><Error><Code>{code}</Code><Message>WebIdentityToken=secret</Message>")
        };
        assert_eq!(code_of(document("InvalidIdentityToken").as_bytes()), "InvalidIdentityToken");
        assert_eq!(code_of(br#"{"code":"AccessDenied","message":"token=secret"}"#), "AccessDenied");
        for odd in ["", "a=b", "a b", &"x".repeat(MAX_CODE_BYTES + 1)] {
            assert_eq!(code_of(document(odd).as_bytes()), "", "{odd}");
        }
        assert_eq!(code_of(b"POST /?WebIdentityToken=secret"), "");
        assert_eq!(code_of(b"<Code>\xff</Code>"), "");
    }

    #[test]
    fn a_name_is_sent_back_without_the_space_around_it_or_not_at_all() {
        assert_eq!(checked_name(b"role+=,.@_-1\n").unwrap(), b"role+=,.@_-1");
        for bad in ["a b", "a\r\nb: c", "<html>", "\u{e9}"] {
            assert!(checked_name(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
