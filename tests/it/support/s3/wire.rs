//! Requests and responses as bytes on a connection. Written by hand, because no library offers a server that lies about its
//! lengths and breaks off.

use std::fmt::Write;

use bytes::{Bytes, BytesMut};
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bucket::BUCKET;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Get,
    Head,
    Put,
    Delete,
    List,
    /// Of an upload in parts: its beginning, a part, its end, its withdrawal.
    Create,
    Part,
    Complete,
    Abort,
}

#[derive(Debug)]
pub struct Request {
    pub method: String,
    /// The key in the bucket, decoded; empty for the bucket itself.
    pub key: String,
    query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Request {
    /// The next request of a connection; `None` if the client closed it.
    pub async fn read(socket: &mut TcpStream, buffer: &mut BytesMut) -> Option<Self> {
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if socket.read_buf(buffer).await.unwrap_or(0) == 0 {
                return None;
            }
        };
        let head = String::from_utf8(buffer.split_to(end).to_vec()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        let headers: Vec<(String, String)> = lines
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (name.to_ascii_lowercase(), value.trim().to_owned())
            })
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, length)| length.parse().unwrap());
        while buffer.len() < length {
            if socket.read_buf(buffer).await.unwrap_or(0) == 0 {
                return None;
            }
        }
        let body = buffer.split_to(length).freeze();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (name.to_owned(), decoded(&value.replace('+', " ")))
            })
            .collect();
        let key = path.strip_prefix(&format!("/{BUCKET}")).unwrap_or_else(|| panic!("{path}"));
        Some(Self { method, key: decoded(key.trim_start_matches('/')), query, headers, body })
    }

    /// The same request with the headers that pass the filter.
    pub fn of(other: &Self, passes: impl Fn(&str) -> bool) -> Self {
        let headers = other.headers.iter().filter(|(name, _)| passes(name)).cloned().collect();
        let (method, key, query) = (other.method.clone(), other.key.clone(), other.query.clone());
        Self { method, key, query, headers, body: other.body.clone() }
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A member of the query; empty if there is none.
    pub fn query(&self, name: &str) -> &str {
        self.query.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn has(&self, name: &str) -> bool {
        self.query.iter().any(|(known, _)| known == name)
    }

    pub fn kind(&self) -> Kind {
        match self.method.as_str() {
            "GET" if self.key.is_empty() => Kind::List,
            "GET" => Kind::Get,
            "HEAD" => Kind::Head,
            "PUT" if self.has("partNumber") => Kind::Part,
            "PUT" => Kind::Put,
            "DELETE" if self.has("uploadId") => Kind::Abort,
            "DELETE" => Kind::Delete,
            "POST" if self.has("uploads") => Kind::Create,
            "POST" => Kind::Complete,
            method => panic!("{method}"),
        }
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Response {
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// A failure as S3 writes it, with things in it that no client of ours may see.
    pub fn error(status: u16, code: &str) -> Self {
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
             <BucketName>canary-bucket</BucketName></Error>"
        );
        Self::new(status).header("content-type", "application/xml").body(body.into())
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// The head of the response, with this length of the body, or without a length.
    pub fn head(&self, length: Option<usize>) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        match length {
            _ if self.status == 204 => {}
            Some(length) => write!(head, "content-length: {length}\r\n").unwrap(),
            None => head.push_str("connection: close\r\n"),
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// The state of a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is kept for the next request.
    Keep,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
    /// Nothing more comes.
    Hang,
}

/// A response in transfer: bytes, in pieces, and the end of the connection.
pub struct Sent {
    pub bytes: Vec<u8>,
    pub piece_bytes: usize,
    pub end: End,
}

impl Sent {
    /// Sends it. Returns whether the connection can be used again.
    pub async fn send(self, socket: &mut TcpStream) -> bool {
        for piece in self.bytes.chunks(self.piece_bytes) {
            if socket.write_all(piece).await.is_err() {
                return false;
            }
        }
        match self.end {
            End::Keep => return true,
            End::Close => {
                let _ = socket.shutdown().await;
            }
            End::Reset => {
                // Read what was sent first: a reset discards unread bytes.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                let _ = socket.set_zero_linger();
            }
            End::Hang => {
                // Until the client leaves.
                let mut rest = [0; 1024];
                while socket.read(&mut rest).await.is_ok_and(|read| read > 0) {}
            }
        }
        false
    }
}
