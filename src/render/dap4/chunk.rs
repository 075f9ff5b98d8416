//! [`ChunkWriter`]: the chunks of a response ("DAP4", volume 1, section 4.2).
//!
//! A chunk has four bytes before its content: flags, and the length in 24 bits, big-endian.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// The chunk is the last one.
const LAST: u8 = 1;
/// The chunk has an error document, and ends the response.
const ERROR: u8 = 2;
/// Values are little-endian.
const LITTLE_ENDIAN: u8 = 4;
/// There are no checksums behind values.
const NO_CHECKSUM: u8 = 8;
/// Most bytes of a chunk's content.
pub const MAX_CHUNK_BYTES: usize = (1 << 24) - 1;
/// Shorter pieces are put together in one chunk.
const SHORT_BYTES: usize = 64 << 10;

/// Puts pieces of a response into chunks.
#[derive(Debug)]
pub struct ChunkWriter {
    flags: u8,
    /// Short pieces that are in no chunk yet.
    pending: BytesMut,
    ready: VecDeque<Bytes>,
}

impl ChunkWriter {
    /// Begins with a chunk that has the DMR, which must not be longer than a chunk.
    #[must_use]
    pub fn new(dmr: &[u8], has_checksums: bool) -> Self {
        let flags = if has_checksums { LITTLE_ENDIAN } else { LITTLE_ENDIAN | NO_CHECKSUM };
        let mut writer = Self { flags, pending: BytesMut::from(dmr), ready: VecDeque::new() };
        writer.end_chunk(0);
        writer
    }

    /// Appends a piece of the values. A long one is not copied.
    pub fn push(&mut self, piece: Bytes) {
        if self.pending.len() + piece.len() <= SHORT_BYTES {
            self.pending.extend_from_slice(&piece);
            return;
        }
        self.end_chunk(0);
        let mut rest = piece;
        while !rest.is_empty() {
            let content = rest.split_to(rest.len().min(MAX_CHUNK_BYTES));
            self.ready.push_back(self.head(content.len(), 0));
            self.ready.push_back(content);
        }
    }

    /// Ends the response with the last chunk, which may be empty.
    pub fn finish(&mut self) {
        let content = std::mem::take(&mut self.pending).freeze();
        self.ready.push_back(self.head(content.len(), LAST));
        self.ready.push_back(content);
    }

    /// Ends a response that cannot be finished with an error document, of which there are at most [`MAX_CHUNK_BYTES`].
    pub fn fail(&mut self, document: &str) {
        self.pending.clear();
        let document = document.as_bytes();
        let content = document.get(..MAX_CHUNK_BYTES).unwrap_or(document);
        self.ready.push_back(self.head(content.len(), ERROR | LAST));
        self.ready.push_back(Bytes::copy_from_slice(content));
    }

    /// The next bytes that are ready.
    pub fn pop(&mut self) -> Option<Bytes> {
        self.ready.pop_front()
    }

    fn end_chunk(&mut self, flags: u8) {
        if self.pending.is_empty() {
            return;
        }
        let content = std::mem::take(&mut self.pending).freeze();
        self.ready.push_back(self.head(content.len(), flags));
        self.ready.push_back(content);
    }

    fn head(&self, length: usize, flags: u8) -> Bytes {
        let [_, high, middle, low] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        Bytes::copy_from_slice(&[self.flags | flags, high, middle, low])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags and the content of each chunk.
    fn chunks(mut writer: ChunkWriter) -> Vec<(u8, Vec<u8>)> {
        let mut bytes = Vec::new();
        while let Some(some) = writer.pop() {
            bytes.extend_from_slice(&some);
        }
        let (mut rest, mut chunks) = (bytes.as_slice(), Vec::new());
        while let [flags, high, middle, low, content @ ..] = rest {
            let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            chunks.push((*flags, content[..length].to_vec()));
            rest = &content[length..];
        }
        assert!(rest.is_empty());
        chunks
    }

    #[test]
    fn pieces_become_chunks_of_bounded_length_and_the_last_one_says_so() {
        let mut writer = ChunkWriter::new(b"dmr", true);
        writer.push(Bytes::from_static(b"ab"));
        writer.push(Bytes::from_static(b"cd"));
        writer.push(Bytes::from(vec![7; MAX_CHUNK_BYTES + 1]));
        writer.push(Bytes::from_static(b"ef"));
        writer.finish();
        let found = chunks(writer);
        let lengths: Vec<(u8, usize)> =
            found.iter().map(|(flags, content)| (*flags, content.len())).collect();
        assert_eq!(lengths, [(4, 3), (4, 4), (4, MAX_CHUNK_BYTES), (4, 1), (5, 2)]);
        assert_eq!(found[1].1, b"abcd");
    }

    #[test]
    fn an_error_ends_a_response() {
        let mut writer = ChunkWriter::new(b"dmr", false);
        writer.push(Bytes::from_static(b"ab"));
        writer.fail("<Error/>");
        assert_eq!(chunks(writer), [(12, b"dmr".to_vec()), (15, b"<Error/>".to_vec())]);
    }
}
