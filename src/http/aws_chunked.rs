//! The content coding `aws-chunked`: a body in chunks, each of which may be signed, and a trailer (AWS Signature Version 4
//! for S3, "Signature calculations for the Authorization header: transferring payload in multiple chunks").
//!
//! A chunk is `SIZE;chunk-signature=SIGNATURE`, a line end, the bytes and a line end; an unsigned one has its size alone.
//! The last one has no bytes, and the trailer follows it: a field on each line, and an empty line. [`ChunkDecoder`] takes
//! the coding apart without I/O, and holds no more than one line. It checks no signature.

use std::fmt;

use axum::http::StatusCode;
use bytes::{Buf, Bytes, BytesMut};

use super::problem::Problem;
use crate::error::ErrorClass;

/// Longest line of a chunk or a trailer, in bytes.
const LINE_BYTES: usize = 1024;
/// The most fields of a trailer.
const TRAILER_FIELDS: usize = 16;
/// The name of the parameter with the signature of a chunk.
const SIGNATURE: &str = "chunk-signature=";
/// The field with the signature of the trailer.
pub(crate) const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// Why a body in this coding is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkedError {
    /// The connection broke.
    #[error("the connection broke")]
    Broken,
    /// The coding is not valid.
    #[error("the body is not in the coding `aws-chunked`: {0}; nothing was written")]
    Malformed(&'static str),
    /// The body ends before its last chunk.
    #[error("the body ends before its last chunk; nothing was written")]
    Incomplete,
    /// The decoded length is not the declared one.
    #[error("the decoded body is not as long as `x-amz-decoded-content-length` says; nothing was written")]
    Length,
    /// A chunk or the trailer has another signature.
    #[error("the signature of a chunk or of the trailer does not match; nothing was written")]
    Signature,
    /// The server could not check a signature.
    #[error("the signatures of the body could not be checked; nothing was written")]
    Unchecked,
}

impl From<ChunkedError> for Problem {
    fn from(error: ChunkedError) -> Self {
        let problem = match error {
            ChunkedError::Broken | ChunkedError::Malformed(_) => Self::from_class(ErrorClass::InvalidRequest),
            ChunkedError::Incomplete | ChunkedError::Length => {
                Self::new(StatusCode::BAD_REQUEST, "incomplete-body")
            }
            ChunkedError::Signature => Self::new(StatusCode::FORBIDDEN, "signature-mismatch"),
            ChunkedError::Unchecked => Self::from_class(ErrorClass::Overloaded),
        };
        problem.detail(error.to_string()).extension("written", false)
    }
}

/// A part of a body.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum ChunkEvent {
    /// Bytes of the chunk.
    Bytes(Bytes),
    /// The end of a chunk, and its signature if it has one, as it was written.
    End(Option<String>),
    /// The end of the body: the fields of the trailer, with names in lower case.
    Trailer(Vec<(String, String)>),
}

impl fmt::Debug for ChunkEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::End(signature) => write!(f, "End({})", signature.is_some()),
            Self::Trailer(fields) => write!(f, "Trailer({})", fields.len()),
        }
    }
}

/// What comes next.
#[derive(Debug)]
enum State {
    /// The line with the size of a chunk.
    Size,
    /// This number of bytes of a chunk.
    Bytes(u64),
    /// The line end after them.
    BytesEnd,
    /// The lines of the trailer.
    Trailer(Vec<(String, String)>),
    /// Nothing.
    Done,
}

/// A decoder: give it the pieces of a body as they come.
#[derive(Debug)]
pub(crate) struct ChunkDecoder {
    state: State,
    line: BytesMut,
    signature: Option<String>,
}

impl ChunkDecoder {
    pub(crate) fn new() -> Self {
        Self { state: State::Size, line: BytesMut::new(), signature: None }
    }

    /// Takes the next event off a piece of the body; `None` once the piece is used up.
    ///
    /// # Errors
    /// [`ChunkedError::Malformed`].
    pub(crate) fn next(&mut self, piece: &mut Bytes) -> Result<Option<ChunkEvent>, ChunkedError> {
        loop {
            if piece.is_empty() {
                return Ok(None);
            }
            match &mut self.state {
                State::Size => {
                    let Some(line) = self.take_line(piece)? else { return Ok(None) };
                    let (size, signature) = size_line(&line)?;
                    self.signature = signature;
                    if size > 0 {
                        self.state = State::Bytes(size);
                        continue;
                    }
                    self.state = State::Trailer(Vec::new());
                    return Ok(Some(ChunkEvent::End(self.signature.take())));
                }
                State::Bytes(left) => {
                    let taken = usize::try_from(*left).map_or(piece.len(), |left| left.min(piece.len()));
                    *left -= taken as u64;
                    if *left == 0 {
                        self.state = State::BytesEnd;
                    }
                    return Ok(Some(ChunkEvent::Bytes(piece.split_to(taken))));
                }
                State::BytesEnd => {
                    let Some(line) = self.take_line(piece)? else { return Ok(None) };
                    if !line.is_empty() {
                        return Err(ChunkedError::Malformed("a chunk is longer than its size"));
                    }
                    self.state = State::Size;
                    return Ok(Some(ChunkEvent::End(self.signature.take())));
                }
                State::Trailer(_) => {
                    let Some(line) = self.take_line(piece)? else { return Ok(None) };
                    if line.is_empty() {
                        return Ok(self.finish().map(ChunkEvent::Trailer));
                    }
                    let field = field_line(&line)?;
                    if let State::Trailer(fields) = &mut self.state {
                        if fields.len() >= TRAILER_FIELDS {
                            return Err(ChunkedError::Malformed("the trailer has too many fields"));
                        }
                        // The empty line may stand between the checksum and its signature.
                        fields.push(field);
                    }
                }
                State::Done if piece.iter().all(|byte| matches!(byte, b'\r' | b'\n')) => piece.clear(),
                State::Done => return Err(ChunkedError::Malformed("bytes follow its last chunk")),
            }
        }
    }

    /// The end of the body. Returns the trailer, unless the body had an end already.
    ///
    /// # Errors
    /// [`ChunkedError::Incomplete`].
    pub(crate) fn end(&mut self) -> Result<Option<Vec<(String, String)>>, ChunkedError> {
        match self.state {
            State::Done => Ok(None),
            State::Trailer(_) if self.line.is_empty() => Ok(self.finish()),
            _ => Err(ChunkedError::Incomplete),
        }
    }

    fn finish(&mut self) -> Option<Vec<(String, String)>> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Trailer(fields) => Some(fields),
            _ => None,
        }
    }

    /// Takes the rest of a line off a piece; `None` if the line goes on in the next piece.
    fn take_line(&mut self, piece: &mut Bytes) -> Result<Option<String>, ChunkedError> {
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(piece.len());
        if self.line.len() + taken > LINE_BYTES {
            return Err(ChunkedError::Malformed("a line is too long"));
        }
        self.line.extend_from_slice(&piece.split_to(taken));
        if end.is_none() {
            return Ok(None);
        }
        piece.advance(1);
        let line = self.line.split();
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let text = str::from_utf8(line).map_err(|_not_utf8| ChunkedError::Malformed("a line is not text"))?;
        Ok(Some(text.to_owned()))
    }
}

/// Parses `SIZE` or `SIZE;chunk-signature=SIGNATURE`; other parameters are ignored.
fn size_line(line: &str) -> Result<(u64, Option<String>), ChunkedError> {
    let mut parts = line.split(';');
    let size = parts.next().unwrap_or_default();
    let is_hex = (1..=16).contains(&size.len()) && size.bytes().all(|digit| digit.is_ascii_hexdigit());
    let size = u64::from_str_radix(size, 16).ok().filter(|_| is_hex);
    let size = size.ok_or(ChunkedError::Malformed("a chunk has no size"))?;
    let signature = parts.find_map(|part| part.trim().strip_prefix(SIGNATURE));
    Ok((size, signature.map(str::to_owned)))
}

/// Parses `name:value`.
fn field_line(line: &str) -> Result<(String, String), ChunkedError> {
    let (name, value) = line.split_once(':').ok_or(ChunkedError::Malformed("the trailer has no field"))?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a body, the number of its signed chunks, and its trailer.
    type Decoded = (String, usize, Vec<(String, String)>);

    /// All that a body holds, given in pieces of this length.
    fn decoded(body: &str, length: usize) -> Result<Decoded, ChunkedError> {
        let (mut decoder, mut text, mut signed, mut trailer) = (ChunkDecoder::new(), Vec::new(), 0, None);
        for piece in body.as_bytes().chunks(length) {
            let mut piece = Bytes::copy_from_slice(piece);
            while let Some(event) = decoder.next(&mut piece)? {
                match event {
                    ChunkEvent::Bytes(bytes) => text.extend_from_slice(&bytes),
                    ChunkEvent::End(signature) => signed += usize::from(signature.is_some()),
                    ChunkEvent::Trailer(fields) => trailer = Some(fields),
                }
            }
        }
        if let Some(fields) = decoder.end()? {
            trailer = Some(fields);
        }
        Ok((String::from_utf8(text).unwrap(), signed, trailer.unwrap()))
    }

    #[test]
    fn a_body_is_the_same_in_pieces_of_any_length() {
        let sum = ("x-amz-checksum-crc32".to_owned(), "AAAAAA==".to_owned());
        for (body, text, signed, fields) in [
            ("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", "abc0123456789", 0, vec![]),
            ("3\r\nabc\r\n0\r\n", "abc", 0, vec![]),
            ("0\r\n\r\n", "", 0, vec![]),
            ("3\r\nabc\r\n0\r\nX-Amz-Checksum-Crc32: AAAAAA==\r\n\r\n", "abc", 0, vec![sum.clone()]),
            ("3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n\r\n", "abc", 0, vec![sum]),
            ("3;chunk-signature=ab\r\na\r\n\r\n0;chunk-signature=cd\r\n\r\n", "a\r\n", 2, vec![]),
        ] {
            for length in 1..=body.len() {
                let found = decoded(body, length);
                assert_eq!(found, Ok((text.to_owned(), signed, fields.clone())), "{body:?} by {length}");
            }
        }
    }

    #[test]
    fn hostile_bodies_are_refused_and_held_to_one_line() {
        for body in ["", "3\r\nabc\r\n", "3\r\nab", "3", "0\r\nx"] {
            assert_eq!(decoded(body, 5), Err(ChunkedError::Incomplete), "{body:?}");
        }
        let long = "0".repeat(LINE_BYTES + 1);
        let fields = format!("0\r\n{}\r\n", "a:b\r\n".repeat(TRAILER_FIELDS + 1));
        for body in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            "10000000000000000\r\n",
            "2\r\nabc\r\n0\r\n\r\n",
            "0\r\n\r\nabc",
            "0\r\nabc\r\n\r\n",
            &long,
            &fields,
        ] {
            assert!(matches!(decoded(body, 7), Err(ChunkedError::Malformed(_))), "{body:?}");
        }
    }
}
