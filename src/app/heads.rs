//! [`Heads`]: a stream that rejects heads of HTTP/1.1 that could be read in two ways, against request smuggling.
//!
//! hyper's parser accepts a line feed alone as the end of a line (RFC 9112, section 2.2) and cuts request targets at `#` (section
//! 3.2), silently. A proxy in front may do neither, and would then see another request than this server. This stream replaces
//! such a byte by one that is invalid in a head: the parser answers 400 and closes the connection. So nothing here answers, waits,
//! or buffers more than the beginning of one line.
//!
//! To know what is a head, it follows the framing of messages (section 6): bodies are skipped by their length, or chunk by chunk.
//! If framing is broken, the parser closes the connection by itself, and nothing more is checked. HTTP/2 is not checked: its
//! heads are compressed and have no lines.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::{memchr, memchr2};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a line that are buffered: enough for each field that gives the length of a body. A longer field of those is rejected.
const LINE_BYTES: usize = 64;
/// The first line of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// A byte that is invalid in the head of a request.
const REFUSED: u8 = 0;

/// A stream whose heads are checked.
#[derive(Debug)]
pub(super) struct Heads<S> {
    stream: S,
    framing: Framing,
}

/// The position of a stream in its messages.
#[derive(Debug, Default)]
struct Framing {
    part: Part,
    line: PartialLine,
    /// The body that the current head announces.
    body: Body,
}

#[derive(Debug, Default)]
enum Part {
    /// The line of a request, or empty lines before it.
    #[default]
    Request,
    Fields,
    /// The number of bytes left of a body.
    Body(u64),
    ChunkSize,
    /// The number of bytes left of a chunk and the end of its line.
    Chunk(u64),
    Trailers,
    /// The rest of the stream, which is not checked.
    Rest,
}

/// The length of a body.
#[derive(Clone, Copy, Debug, Default)]
enum Body {
    #[default]
    None,
    Length(u64),
    Chunked,
}

/// What arrived of a line before the rest of it.
#[derive(Debug)]
struct PartialLine {
    /// Its beginning.
    buffered: [u8; LINE_BYTES],
    length: usize,
    last: u8,
}

impl Default for PartialLine {
    fn default() -> Self {
        Self { buffered: [0; LINE_BYTES], length: 0, last: 0 }
    }
}

impl PartialLine {
    fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        if let Some(free) = self.buffered.get_mut(self.length..) {
            free.iter_mut().zip(bytes).for_each(|(free, byte)| *free = *byte);
        }
        self.length = self.length.saturating_add(bytes.len());
        self.last = *last;
    }

    fn finished(&self) -> Line<'_> {
        let beginning = self.buffered.get(..self.length).unwrap_or(self.buffered.as_slice());
        Line { beginning, length: self.length, last: self.last }
    }
}

/// A whole line, without its line feed.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    beginning: &'a [u8],
    length: usize,
    last: u8,
}

impl<'a> Line<'a> {
    /// A line that arrived at once.
    fn new(line: &'a [u8]) -> Self {
        Self {
            beginning: line.get(..LINE_BYTES).unwrap_or(line),
            length: line.len(),
            last: line.last().copied().unwrap_or_default(),
        }
    }

    /// Its beginning, without the carriage return at its end.
    fn text(self) -> &'a [u8] {
        self.beginning.strip_suffix(b"\r").unwrap_or(self.beginning)
    }

    /// Whether it is empty except for its carriage return.
    fn is_empty(self) -> bool {
        self.length <= 1
    }
}

/// A line that could be read in two ways.
struct Ambiguous;

impl Framing {
    /// Checks bytes that were read, and replaces those that make a head ambiguous.
    fn check(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let passed = match &mut self.part {
                Part::Rest => return,
                Part::Body(left) | Part::Chunk(left) => {
                    let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= passed as u64;
                    passed
                }
                Part::Request | Part::Fields | Part::ChunkSize | Part::Trailers => self.check_line(bytes),
            };
            self.part = match std::mem::take(&mut self.part) {
                Part::Body(0) => Part::Request,
                Part::Chunk(0) => Part::ChunkSize,
                part => part,
            };
            bytes = bytes.get_mut(passed..).unwrap_or_default();
        }
    }

    /// Checks up to the end of a line, or of the bytes.
    fn check_line(&mut self, bytes: &mut [u8]) -> usize {
        let found = match self.part {
            Part::Request => memchr2(b'\n', b'#', bytes),
            _ => memchr(b'\n', bytes),
        };
        let length = found.unwrap_or(bytes.len());
        let Some((line, rest)) = bytes.split_at_mut_checked(length) else { return length };
        let end = match rest.first_mut() {
            None => {
                self.line.push(line);
                return length;
            }
            // In the line of a request, where alone it was searched for.
            Some(odd @ b'#') => {
                *odd = REFUSED;
                self.part = Part::Rest;
                return length + 1;
            }
            Some(end) => end,
        };
        // Most lines arrive at once and are not buffered.
        let next = if self.line.length == 0 {
            self.next(Line::new(line))
        } else {
            let mut partial = std::mem::take(&mut self.line);
            partial.push(line);
            self.next(partial.finished())
        };
        self.part = next.unwrap_or_else(|Ambiguous| {
            *end = REFUSED;
            Part::Rest
        });
        length + 1
    }

    /// The part after a line.
    fn next(&mut self, line: Line<'_>) -> Result<Part, Ambiguous> {
        if line.last != b'\r' {
            return Err(Ambiguous);
        }
        Ok(match self.part {
            Part::Request | Part::Trailers if line.is_empty() => Part::Request,
            Part::Request if line.text() == PREFACE => Part::Rest,
            Part::Request => Part::Fields,
            Part::Fields if line.is_empty() => match std::mem::take(&mut self.body) {
                Body::None | Body::Length(0) => Part::Request,
                Body::Length(length) => Part::Body(length),
                Body::Chunked => Part::ChunkSize,
            },
            Part::Fields => return self.field(line),
            Part::ChunkSize => match chunk_size(line.text()) {
                Some(0) => Part::Trailers,
                Some(size) => size.checked_add(2).map_or(Part::Rest, Part::Chunk),
                None => Part::Rest,
            },
            Part::Trailers => Part::Trailers,
            Part::Body(_) | Part::Chunk(_) | Part::Rest => Part::Rest,
        })
    }

    /// Takes the length of the body from a field.
    fn field(&mut self, line: Line<'_>) -> Result<Part, Ambiguous> {
        let text = line.text();
        let Some(colon) = text.iter().position(|byte| *byte == b':') else { return Ok(Part::Fields) };
        let Some((name, value)) = text.split_at_checked(colon) else { return Ok(Part::Fields) };
        let is_chunked = name.eq_ignore_ascii_case(b"transfer-encoding");
        if !is_chunked && !name.eq_ignore_ascii_case(b"content-length") {
            return Ok(Part::Fields);
        }
        if line.length > LINE_BYTES {
            return Err(Ambiguous);
        }
        // The encoding takes precedence over the length (RFC 9112, section 6.3).
        match (self.body, decimal(value.get(1..).unwrap_or_default().trim_ascii())) {
            _ if is_chunked => self.body = Body::Chunked,
            (Body::Chunked, _) => {}
            (_, Some(length)) => self.body = Body::Length(length),
            (_, None) => return Ok(Part::Rest),
        }
        Ok(Part::Fields)
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    let is_decimal = text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_decimal)?.parse().ok()
}

/// The size of a chunk, which its extensions may follow.
fn chunk_size(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    u64::from_str_radix(std::str::from_utf8(text.get(..digits)?).ok()?, 16).ok()
}

impl<S> Heads<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, framing: Framing::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.framing.check(buffer.filled_mut().get_mut(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    /// The output for bytes that are read in parts of these lengths.
    fn passed(bytes: &[u8], parts: &[usize]) -> Vec<u8> {
        let (mut framing, mut bytes, mut parts) = (Framing::default(), bytes.to_vec(), parts.iter().cycle());
        let mut rest = &mut *bytes;
        while !rest.is_empty() {
            let length = (*parts.next().unwrap()).clamp(1, rest.len());
            let (part, behind) = rest.split_at_mut(length);
            framing.check(part);
            rest = behind;
        }
        bytes
    }

    /// An unambiguous request, with bytes in its body that would be ambiguous in a head.
    fn requests() -> impl Strategy<Value = Vec<u8>> {
        let body = "[a#\r\n:0 ]{0,40}";
        let head = prop_oneof![Just(""), Just("\r\n")].prop_flat_map(|before| {
            "[a-z/?=%]{0,90}"
                .prop_map(move |target| format!("{before}PUT /{target} HTTP/1.1\r\nHost: x\r\nA: b#c\r\n"))
        });
        let by_length =
            (head.clone(), body, 0..4_usize, any::<bool>()).prop_map(|(head, body, zeros, shouts)| {
                let name = if shouts { "CONTENT-LENGTH:" } else { "content-length: " };
                format!("{head}{name}{}{}\r\nB: c\r\n\r\n{body}", "0".repeat(zeros), body.len())
            });
        let chunks = prop::collection::vec(("[a#\r\n]{1,20}", "(;[a-z]{1,80}=\"#\")?"), 0..4);
        let chunked = (head.clone(), chunks, "(T: #\r\n)?").prop_map(|(head, chunks, trailers)| {
            let mut text = format!("{head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
            for (chunk, extension) in chunks {
                write!(text, "{:x}{extension}\r\n{chunk}\r\n", chunk.len()).unwrap();
            }
            text + "0\r\n" + &trailers + "\r\n"
        });
        prop_oneof![by_length, chunked, head.prop_map(|head| head + "\r\n")].prop_map(String::into_bytes)
    }

    proptest! {
        #[test]
        fn unambiguous_heads_pass_unchanged_and_ambiguous_ones_are_rejected(
            before in prop::collection::vec(requests(), 0..5),
            parts in prop::collection::vec(1..60_usize, 1..8),
            odd in prop::sample::select(vec![
                "GET /a@b HTTP/1.1\r\n",
                "GET /a HTTP/1.1@Host: x\r\n\r\n",
                "GET /a HTTP/1.1\r\nHost: x@\r\n",
                "GET /a HTTP/1.1\r\nHost: x\r\n@",
                "@GET /a HTTP/1.1\r\n",
                "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: a@\r\n",
            ]),
        ) {
            let before = before.concat();
            prop_assert_eq!(&passed(&before, &parts), &before);
            let byte = if odd.contains("/a@") { "#" } else { "\n" };
            let sent = [&*before, odd.replace('@', byte).as_bytes()].concat();
            let spoilt = [&*before, odd.replace('@', "\0").as_bytes()].concat();
            prop_assert_eq!(passed(&sent, &parts), spoilt);
        }

        #[test]
        fn any_bytes_pass_in_any_parts(bytes in prop::collection::vec(any::<u8>(), 0..400), parts in prop::collection::vec(1..60_usize, 1..8)) {
            let whole = passed(&bytes, &[usize::MAX]);
            prop_assert_eq!(passed(&bytes, &parts), whole);
        }
    }

    #[test]
    fn http2_is_not_checked() {
        let bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n#\n\n#";
        assert_eq!(passed(bytes, &[5]), bytes);
    }

    #[test]
    fn a_length_or_coding_header_longer_than_the_buffer_is_rejected() {
        for name in ["Content-Length", "Transfer-Encoding"] {
            let head = format!("PUT /a HTTP/1.1\r\n{name}:{}4\r\n\r\n", " ".repeat(LINE_BYTES));
            assert!(passed(head.as_bytes(), &[7]).contains(&REFUSED), "{name}");
        }
    }
}
