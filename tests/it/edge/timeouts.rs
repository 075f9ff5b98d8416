//! Timeouts: every way to keep the server waiting ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};
use zarrd::config::ServerOptions;
use zarrd::http::HttpOptions;
use zarrd::services::Mount;

use super::frames::{self, END_HEADERS, END_STREAM, Frame, Framed, HEADERS};
use super::{BOUND, OK, Plain, SHORT, Served, long_timeouts, until, until_closed};
use crate::support::hierarchy::memory;
use crate::support::server::Server;

#[tokio::test]
async fn every_kind_of_silent_connection_times_out() {
    let routes = Router::new().route("/ok", get(|| async { "ok" }));
    let limits = ServerOptions {
        first_byte_timeout: SHORT,
        header_timeout: SHORT,
        idle_timeout: SHORT,
        ..long_timeouts()
    };
    let served = Served::start(Plain(routes), limits).await;
    let preface = [frames::PREFACE, &Frame::of(frames::SETTINGS, 0, 0, []).bytes()].concat();
    for begun in [&b""[..], b"G", b"GET /ok HTTP/1.1\r\nHo", frames::PREFACE, &preface, &preface[..30]] {
        until_closed(served.send(begun).await).await;
    }
    // Single bytes at short intervals do not extend the timeout of the head.
    for head in [&b"GET /ok HTTP/1.1\r\nA: "[..], frames::PREFACE] {
        let mut stream = served.send(head).await;
        let dribble = async {
            while stream.write_all(b"x").await.is_ok() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(BOUND, dribble).await.expect("the connection is closed");
    }
    // Half a head of HTTP/2.
    let mut framed = Framed::open(served.address, &[]).await;
    framed.send(&[Frame::of(HEADERS, END_STREAM, 1, &frames::get("/ok")[..10])]).await;
    framed.rest().await;
    // Nothing after an answer.
    assert!(until_closed(served.send(OK).await).await.ends_with("ok"));
    let mut framed = Framed::open(served.address, &[]).await;
    framed.send(&[Frame::of(HEADERS, END_STREAM | END_HEADERS, 1, frames::get("/ok"))]).await;
    framed.until(HEADERS).await;
    framed.rest().await;
    served.serves_others().await;
}

/// Routes with an endless answer, and whether it was given up.
fn endless() -> (Router, Arc<AtomicBool>) {
    struct Guard(Arc<AtomicBool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let endless = move || {
        let guard = Guard(Arc::clone(&flag));
        async move {
            Body::from_stream(stream::repeat(Bytes::from(vec![0; 1 << 14])).map(move |part| {
                let _ = &guard;
                Ok::<_, std::io::Error>(part)
            }))
        }
    };
    (Router::new().route("/endless", get(endless)).route("/ok", get(|| async { "ok" })), dropped)
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_reset_and_its_buffers_are_freed() {
    let (routes, dropped) = endless();
    let served =
        Served::start(Plain(routes), ServerOptions { write_stall_timeout: SHORT, ..long_timeouts() }).await;
    let mut stream = served.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let given_up = async {
        while !dropped.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(BOUND, given_up).await.expect("the answer is given up");
    // Without a reset, the bytes in the kernel's buffer would arrive, and then a regular end.
    let ended = timeout(BOUND, stream.read_to_end(&mut Vec::new())).await.expect("an end");
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_reads_below_the_minimum_rate_is_disconnected() {
    let (routes, dropped) = endless();
    // The client never stalls for long, but it reads less than the minimum rate.
    let limits =
        ServerOptions { min_write_rate: 256 << 20, min_write_rate_window: 2 * SHORT, ..long_timeouts() };
    let served = Served::start(Plain(routes), limits).await;
    let mut stream = served.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let dribble = async {
        let mut part = vec![0; 1 << 14];
        while !dropped.load(Ordering::SeqCst) {
            // Reading ends when the connection is cut.
            if !stream.read(&mut part).await.is_ok_and(|read| read > 0) {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(BOUND, dribble).await.expect("the connection is cut off");
}

#[tokio::test]
async fn a_client_that_reads_steadily_is_not_disconnected() {
    let (routes, dropped) = endless();
    let limits = ServerOptions {
        min_write_rate: 1,
        min_write_rate_window: SHORT,
        write_stall_timeout: SHORT * 20,
        ..long_timeouts()
    };
    let served = Served::start(Plain(routes), limits).await;
    let mut stream = served.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut part = vec![0; 1 << 16];
    let start = std::time::Instant::now();
    while start.elapsed() < 4 * SHORT {
        assert!(timeout(BOUND, stream.read(&mut part)).await.unwrap().unwrap() > 0);
    }
    assert!(!dropped.load(Ordering::SeqCst));
}

/// The complete API with short timeouts of bodies.
async fn surface() -> Served {
    let options = HttpOptions {
        body_stall_timeout: Duration::from_millis(300),
        min_body_rate: 1 << 30,
        ..HttpOptions::default()
    };
    let mut builder = Server::build(Mount { writable: true, ..Mount::read_only("m", memory()) });
    builder.http = options;
    Served::start(builder.finish().site(), long_timeouts()).await
}

#[tokio::test]
async fn a_missing_body_is_408_and_nothing_is_stored() {
    let served = surface().await;
    for (method, path) in
        [("PUT", "/store/m/a"), ("POST", "/v1/partial/m"), ("PROPFIND", "/store/m/"), ("POST", "/v1/erase/m")]
    {
        for body in [
            "Content-Length: 100\r\n\r\n",
            "Content-Length: 100\r\n\r\n{",
            "Transfer-Encoding: chunked\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        ] {
            let answer = served.ask(format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{body}")).await;
            assert!(answer.starts_with("HTTP/1.1 408 "), "{method} {path} {body:?}: {answer}");
            assert!(answer.contains("connection: close\r\n"), "{answer}");
        }
    }
    let missing = served.ask("GET /store/m/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
}

#[tokio::test]
async fn a_body_below_the_minimum_rate_is_408() {
    let served = surface().await;
    let mut stream =
        served.send("PUT /store/m/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n").await;
    let (mut reading, mut writing) = stream.split();
    let dribble = async {
        while writing.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = dribble => {}
        answer = until(&mut reading, "\r\n\r\n") => assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}"),
    }
}
