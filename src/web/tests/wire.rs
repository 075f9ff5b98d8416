//! Tests on real connections: lengths, aborted bodies, and clients that disconnect.

use std::time::Duration;

use axum::extract::Request;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Server;
use crate::http::{HttpOptions, Peer};
use crate::store::StoreError;

async fn connect(server: &Server) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let site = server.site.clone();
    let answer = move |request: Request| {
        let site = site.clone();
        async move { site.handle(request, Peer::LOOPBACK).await }
    };
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    TcpStream::connect(address).await.unwrap()
}

/// Sends a request and reads to the end of the connection; returns head and body.
async fn exchange(server: &Server, request: &str) -> (String, String) {
    let mut stream = connect(server).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A reset is one way of aborting a response.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

fn request(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n")
}

#[tokio::test]
async fn content_length_is_that_of_the_value_or_absent() {
    let server = Server::new(&[("a", b"0123456789")]);
    for (line, headers, status, length, body) in [
        ("GET /store/m/a", "", "200", Some(10), "0123456789"),
        ("GET /store/m/a", "Range: bytes=-3\r\n", "206", Some(3), "789"),
        ("HEAD /store/m/a", "", "200", Some(10), ""),
        ("GET /store/m/a", "If-None-Match: \"v1\"\r\n", "304", None, ""),
        ("DELETE /store/m/none", "", "204", None, ""),
    ] {
        let (head, got) = exchange(&server, &request(line, headers)).await;
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{head}");
        let said = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(said, length.map(|length: u64| length.to_string()).as_deref(), "{line} {head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
        assert_eq!(got, body);
    }
}

#[tokio::test]
async fn a_value_that_fails_midway_ends_the_connection_before_its_length() {
    // A shorter one is read before its response begins.
    static VALUE: [u8; 100_000] = [b'7'; 100_000];
    let server = Server::new(&[("a", &VALUE)]);
    *server.store.cut.lock().unwrap() = Some((4, StoreError::WrongLength));
    let mut stream = connect(&server).await;
    stream.write_all(b"GET /store/m/a HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // Returning at all means that the server closed a connection that it was not asked to close.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    // The head may be lost with the connection, or announce bytes that do not arrive.
    if let Some((head, body)) = answer.split_once("\r\n\r\n") {
        assert!(head.contains("content-length: 100000") && body.len() < 100_000, "{head}");
    }
}

#[tokio::test]
async fn an_upload_that_is_too_long_is_refused_without_100_continue() {
    let server = Server::with_options(&[], HttpOptions { max_value_size: 8, ..HttpOptions::default() });
    let headers = "Content-Length: 9\r\nExpect: 100-continue\r\n";
    let (head, _) = exchange(&server, &request("PUT /store/m/a", headers)).await;
    assert!(head.starts_with("http/1.1 413 "), "{head}");
}

#[tokio::test]
async fn a_client_that_disconnects_before_the_last_byte_stores_nothing() {
    let server = Server::new(&[("a", b"before")]);
    for (headers, part) in [
        ("Content-Length: 10\r\n", "0123"),
        ("Transfer-Encoding: chunked\r\n", "4\r\n0123\r\n"),
        ("Transfer-Encoding: chunked\r\n", "4\r\n01"),
    ] {
        let mut stream = connect(&server).await;
        stream.write_all(request("PUT /store/m/a", headers).as_bytes()).await.unwrap();
        stream.write_all(part.as_bytes()).await.unwrap();
        while server.store.take_asked() != ["set"] {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(stream);
        while *server.store.aborted.lock().unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        *server.store.aborted.lock().unwrap() = 0;
        assert_eq!(server.store.value("a").unwrap(), "before", "{headers}");
    }
    let whole = request("PUT /store/m/a", "Transfer-Encoding: chunked\r\n") + "4\r\n0123\r\n0\r\n\r\n";
    assert!(exchange(&server, &whole).await.0.starts_with("http/1.1 204 "));
    assert_eq!(server.store.value("a"), Some(Bytes::from_static(b"0123")));
}
