//! An HTTP/2 client by hand (RFC 9113, RFC 7541), for frames that no client library sends.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::BOUND;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const ACK: u8 = 1;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn of(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap().to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// The error code of `RST_STREAM` and `GOAWAY`.
    pub fn reason(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// Headers as literals that are not indexed and not compressed.
pub fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        // A number with a prefix of 7 bits.
        match text.len() {
            short @ 0..=126 => bytes.push(u8::try_from(short).unwrap()),
            long => {
                bytes.push(127);
                let mut rest = long - 127;
                while rest >= 128 {
                    bytes.push(u8::try_from(rest % 128).unwrap() | 128);
                    rest /= 128;
                }
                bytes.push(u8::try_from(rest).unwrap());
            }
        }
        bytes.extend(text.as_bytes());
    };
    for (name, value) in headers {
        bytes.push(0);
        text(&mut bytes, name);
        text(&mut bytes, value);
    }
    bytes
}

/// The headers of a GET.
pub fn get(path: &str) -> Vec<u8> {
    block(&[(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "x")])
}

/// A connection on which frames pass.
pub struct Framed {
    pub stream: TcpStream,
}

impl Framed {
    /// Sends the HTTP/2 preface with these settings, and waits for the server's settings.
    pub async fn open(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(PREFACE).await.unwrap();
        stream.write_all(&Frame::of(SETTINGS, 0, 0, payload).bytes()).await.unwrap();
        let mut framed = Self { stream };
        let first = framed.next().await.expect("settings");
        assert_eq!((first.kind, first.flags), (SETTINGS, 0));
        framed.send(&[Frame::of(SETTINGS, ACK, 0, [])]).await;
        framed
    }

    /// Sends frames; the server may have closed.
    pub async fn send(&mut self, frames: &[Frame]) -> bool {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        timeout(BOUND, self.stream.write_all(&bytes)).await.is_ok_and(|sent| sent.is_ok())
    }

    /// The next frame; nothing when the connection is closed.
    pub async fn next(&mut self) -> Option<Frame> {
        let read = async {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.stream.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            Some(Frame { kind: head[3], flags: head[4], stream, payload })
        };
        timeout(BOUND, read).await.expect("a frame, or the end")
    }

    /// Reads up to a frame of a kind; fails if the connection is closed before.
    pub async fn until(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("closed before a frame of kind {kind}"));
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// The rest, up to the end of the connection; fails if it does not end.
    pub async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

/// The status that a block of headers begins with, as the server's encoder writes it: from the static table, or as a
/// literal with the name of its entry 8.
pub fn status(block: &[u8]) -> u16 {
    // A change of the table's size may stand before.
    let block = if block[0] & 0xe0 == 0x20 { &block[1..] } else { block };
    match block[0] {
        0x88 => 200,
        0x89 => 204,
        0x8a => 206,
        0x8b => 304,
        0x8c => 400,
        0x8d => 404,
        0x8e => 500,
        _ => match block[1] {
            3 => std::str::from_utf8(&block[2..5]).unwrap().parse().unwrap(),
            // Digits are 5 bits, `0` to `2` from 0, or 6 bits from `3`.
            length => huffman(&block[2..2 + usize::from(length & 0x7f)]),
        },
    }
}

/// A number in the code of RFC 7541, appendix B.
fn huffman(bytes: &[u8]) -> u16 {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let number = |bits: &[u8]| bits.iter().fold(0_u16, |number, bit| number * 2 + u16::from(*bit));
    let (mut at, mut found) = (0, 0);
    for _ in 0..3 {
        let short = number(&bits[at..at + 5]);
        let digit = if short < 3 {
            at += 5;
            short
        } else {
            at += 6;
            number(&bits[at - 6..at]) - 0x19 + 3
        };
        found = found * 10 + digit;
    }
    found
}

#[test]
fn statuses_are_decoded_in_every_hpack_form() {
    for (block, expected) in [
        (&[0x88][..], 200),
        (&[0x3f, 0x88][..], 200),
        (&[0x48, 3, b'4', b'3', b'1'], 431),
        // `431`: 0x1a, 0x19, 0x1 in 6, 6 and 5 bits.
        (&[0x48, 0x83, 0b0110_1001, 0b1001_0000, 0b1111_1111], 431),
    ] {
        assert_eq!(status(block), expected);
    }
}
