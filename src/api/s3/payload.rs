//! The body of an S3 request that writes: plain or in the coding `aws-chunked`, its hash and its checksums.
//!
//! `x-amz-content-sha256` says what the body is: a SHA-256 that it must have, unsigned, or one of the forms of streaming.
//! The signatures of chunks are checked where the signature of the request was; otherwise they are ignored. A store
//! sees the end of a body only after everything about it was found right.

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::try_unfold;
use sha2::{Digest, Sha256};

use super::tags::quote;
use crate::api::store::write::{Incoming, check_coding, length_in};
use crate::auth::ChunkSigner;
use crate::cpu::ComputePool;
use crate::error::ErrorClass;
use crate::http::aws_chunked::{ChunkDecoder, ChunkEvent, ChunkedError, TRAILER_SIGNATURE};
use crate::http::digest::{Checking, Trailer};
use crate::http::problem::Problem;
use crate::http::s3_query::Query;
use crate::http::validators::put_validators;
use crate::services::state::AppState;
use crate::store::{SetResult, ValueInfo};

const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const DECODED_LENGTH: HeaderName = HeaderName::from_static("x-amz-decoded-content-length");
const TRAILER: HeaderName = HeaderName::from_static("x-amz-trailer");
/// What the names of checksums begin with.
const CHECKSUM: &str = "x-amz-checksum-";
/// Number of pieces of a chunk that are digested together.
const PIECES_AT_ONCE: usize = 32;

/// The forms of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form<'a> {
    /// As it is.
    Plain,
    /// As it is, with this SHA-256.
    Hashed(&'a str),
    /// In chunks.
    Chunked { is_signed: bool },
}

impl<'a> Form<'a> {
    fn of(text: Option<&'a str>) -> Result<Self, Problem> {
        Ok(match text {
            None | Some("UNSIGNED-PAYLOAD") => Self::Plain,
            Some("STREAMING-UNSIGNED-PAYLOAD-TRAILER") => Self::Chunked { is_signed: false },
            Some("STREAMING-AWS4-HMAC-SHA256-PAYLOAD" | "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER") => {
                Self::Chunked { is_signed: true }
            }
            Some(text) if text.starts_with("STREAMING-") => {
                return Err(Problem::from_class(ErrorClass::Unsupported)
                    .detail("the chunks of a body are signed by AWS4-HMAC-SHA256 here, or not at all"));
            }
            Some(hash) => Self::Hashed(hash),
        })
    }
}

/// A body to be stored, and the checksums that the client sent for it.
pub(super) struct Payload {
    pub(super) head: Parts,
    pub(super) incoming: Incoming,
    checksums: Checksums,
}

/// The checksums of a body, in its head and in its trailer.
#[derive(Debug)]
pub(super) struct Checksums {
    head: HeaderMap,
    names: Vec<String>,
    trailer: Trailer,
}

impl Payload {
    /// Checks the head of a request.
    ///
    /// # Errors
    /// A problem for a body that cannot be stored, or whose hash or checksum is invalid.
    pub(super) fn new(state: &AppState, request: Request) -> Result<Self, Problem> {
        let (mut head, body) = request.into_parts();
        quote(&mut head.headers);
        let chunks = head.extensions.remove::<ChunkSigner>();
        let query = Query::of(&head.uri)?;
        let text = head.headers.get(CONTENT_SHA256).and_then(|value| value.to_str().ok());
        let form = Form::of(text.or(query.value("X-Amz-Content-Sha256")?))?;
        let mut checking = Checking::from_headers(&head.headers, &state.engine.cpu)?;
        let names: Vec<String> = trailer_names(&head.headers).map(str::to_ascii_lowercase).collect();
        let trailer = checking.expect_trailer(names.iter().map(String::as_str));
        let (body, declared) = match form {
            Form::Plain | Form::Hashed(_) => {
                check_coding(&head.headers, &[])?;
                if let Form::Hashed(hash) = form {
                    checking.expect_sha256(hash)?;
                }
                (body, length_in(&head.headers, &header::CONTENT_LENGTH))
            }
            Form::Chunked { is_signed } => {
                check_coding(&head.headers, &["aws-chunked"])?;
                let declared = length_in(&head.headers, &DECODED_LENGTH).ok_or_else(no_length)?;
                let decoding = Decoding {
                    body: body.into_data_stream(),
                    piece: Bytes::new(),
                    decoder: ChunkDecoder::new(),
                    chunks: chunks.filter(|_| is_signed),
                    signs_trailer: !names.is_empty(),
                    digest: ChunkDigest::default(),
                    cpu: state.engine.cpu.clone(),
                    trailer: trailer.clone(),
                    left: declared,
                };
                (decoding.into_body(), Some(declared))
            }
        };
        let incoming = Incoming::of_body(state, &head, body, declared, checking)?;
        let mut checksums = head.headers.clone();
        checksums = checksums.drain().filter_map(only_checksums).collect();
        let checksums = Checksums { head: checksums, names, trailer };
        Ok(Self { head, incoming, checksums })
    }

    /// The head, the body, and the checksums for the response.
    pub(super) fn into_parts(self) -> (Parts, Incoming, Checksums) {
        (self.head, self.incoming, self.checksums)
    }
}

impl Checksums {
    /// The response to a body that was stored: its version and its checksums, which were found right.
    pub(super) fn stored(&self, outcome: SetResult) -> Response {
        let mut headers = self.head.clone();
        if let Some(version) = outcome.version {
            put_validators(&mut headers, &ValueInfo { size: 0, version, modified: None });
        }
        for name in self.names.iter().filter(|name| name.starts_with(CHECKSUM)) {
            let value = self.trailer.value(name).and_then(|value| HeaderValue::from_str(value).ok());
            if let (Ok(name), Some(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
                headers.insert(name, value);
            }
        }
        (StatusCode::OK, headers).into_response()
    }
}

fn only_checksums((name, value): (Option<HeaderName>, HeaderValue)) -> Option<(HeaderName, HeaderValue)> {
    let is_checksum = |name: &HeaderName| {
        let algorithm = name.as_str().strip_prefix(CHECKSUM);
        algorithm.is_some_and(|algorithm| !matches!(algorithm, "algorithm" | "type" | "mode"))
    };
    Some((name.filter(is_checksum)?, value))
}

fn trailer_names(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(TRAILER).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

fn no_length() -> Problem {
    Problem::new(StatusCode::LENGTH_REQUIRED, "missing-content-length")
        .detail("a body in the coding `aws-chunked` has its decoded length in `x-amz-decoded-content-length`")
}

/// A body in chunks that is being decoded.
struct Decoding {
    body: BodyDataStream,
    piece: Bytes,
    decoder: ChunkDecoder,
    /// What checks the signatures of chunks, where the request was signed.
    chunks: Option<ChunkSigner>,
    signs_trailer: bool,
    digest: ChunkDigest,
    cpu: ComputePool,
    trailer: Trailer,
    /// Bytes that are still to come.
    left: u64,
}

impl Decoding {
    fn into_body(self) -> Body {
        Body::from_stream(try_unfold(self, |mut decoding| async move {
            Ok::<_, ChunkedError>(decoding.next().await?.map(|bytes| (bytes, decoding)))
        }))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, ChunkedError> {
        loop {
            match self.decoder.next(&mut self.piece)? {
                Some(ChunkEvent::Bytes(bytes)) => {
                    self.left = self.left.checked_sub(bytes.len() as u64).ok_or(ChunkedError::Length)?;
                    if self.chunks.is_some() {
                        self.digest.add(&bytes, &self.cpu).await?;
                    }
                    return Ok(Some(bytes));
                }
                Some(ChunkEvent::End(signature)) => {
                    if let Some(chunks) = &mut self.chunks {
                        let sha256 = self.digest.finish(&self.cpu).await?;
                        let signature = signature.ok_or(ChunkedError::Signature)?;
                        if !chunks.check_chunk(&sha256, &signature) {
                            return Err(ChunkedError::Signature);
                        }
                    }
                }
                Some(ChunkEvent::Trailer(fields)) => self.take_trailer(fields)?,
                None => match self.body.next().await {
                    Some(Ok(piece)) => self.piece = piece,
                    Some(Err(_)) => return Err(ChunkedError::Broken),
                    None => {
                        if let Some(fields) = self.decoder.end()? {
                            self.take_trailer(fields)?;
                        }
                        return if self.left == 0 { Ok(None) } else { Err(ChunkedError::Length) };
                    }
                },
            }
        }
    }

    fn take_trailer(&mut self, mut fields: Vec<(String, String)>) -> Result<(), ChunkedError> {
        let mut signature = None;
        fields.retain(|(name, value)| {
            let is_signature = name == TRAILER_SIGNATURE;
            if is_signature {
                signature = Some(value.clone());
            }
            !is_signature
        });
        if let Some(chunks) = self.chunks.as_mut().filter(|_| self.signs_trailer || !fields.is_empty()) {
            let signature = signature.ok_or(ChunkedError::Signature)?;
            if !chunks.check_trailer(&fields, &signature) {
                return Err(ChunkedError::Signature);
            }
        }
        self.trailer.set(fields);
        Ok(())
    }
}

/// The SHA-256 of a chunk, digested on the compute pool some pieces at a time.
#[derive(Default)]
struct ChunkDigest {
    digest: Sha256,
    waiting: Vec<Bytes>,
}

impl ChunkDigest {
    async fn add(&mut self, bytes: &Bytes, cpu: &ComputePool) -> Result<(), ChunkedError> {
        self.waiting.push(bytes.clone());
        if self.waiting.len() < PIECES_AT_ONCE { Ok(()) } else { self.digest(cpu).await }
    }

    async fn finish(&mut self, cpu: &ComputePool) -> Result<[u8; 32], ChunkedError> {
        if !self.waiting.is_empty() {
            self.digest(cpu).await?;
        }
        Ok(std::mem::take(&mut self.digest).finalize().into())
    }

    async fn digest(&mut self, cpu: &ComputePool) -> Result<(), ChunkedError> {
        let (mut digest, pieces) = (std::mem::take(&mut self.digest), std::mem::take(&mut self.waiting));
        let digested = cpu.run(move || {
            for piece in &pieces {
                digest.update(piece);
            }
            digest
        });
        self.digest = digested.await.map_err(|_busy| ChunkedError::Unchecked)?;
        Ok(())
    }
}
