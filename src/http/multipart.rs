//! [`Boundary`]: responses as the parts of one (RFC 2046, section 5.1).

use std::fmt::Write as _;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of randomness in a boundary, so that no element can have it.
const RANDOM_BYTES: usize = 18;

/// The line between parts.
#[derive(Clone, Debug)]
pub(crate) struct Boundary(String);

impl Boundary {
    /// A new boundary; `None` if the system has no randomness.
    pub(crate) fn new() -> Option<Self> {
        let mut random = [0; RANDOM_BYTES];
        SystemRandom::new().fill(&mut random).ok()?;
        let mut text = String::with_capacity(2 * RANDOM_BYTES);
        for byte in random {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Some(Self(text))
    }

    /// The media type of a response with parts.
    pub(crate) fn media_type(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&format!("multipart/mixed; boundary={}", self.0)).ok()
    }

    /// The line after the last part.
    pub(crate) fn end(&self) -> Bytes {
        format!("--{}--\r\n", self.0).into()
    }

    /// A response as a part.
    pub(crate) fn part(
        &self,
        answer: Response,
    ) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + use<> {
        let (parts, body) = answer.into_parts();
        let mut head = format!("--{}\r\nStatus: {}\r\n", self.0, parts.status.as_str()).into_bytes();
        for (name, value) in &parts.headers {
            // A part is no response of its own: it has no ranges, and no cache keeps it.
            if [header::ACCEPT_RANGES, header::CACHE_CONTROL, header::VARY].contains(name) {
                continue;
            }
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let known = |bytes: Bytes| stream::once(std::future::ready(Ok(bytes)));
        known(head.into()).chain(body.into_data_stream()).chain(known(Bytes::from_static(b"\r\n")))
    }
}
