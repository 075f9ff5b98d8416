//! HTTP/2 attacks: the cost of one connection is bounded, and other connections are served meanwhile.
//!
//! The tests count and do not time: requests that are answered at once, and the memory of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use zarrd::config::ServerOptions;

use super::frames::{
    self, CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, Framed, GOAWAY, HEADERS, PING, RST_STREAM,
    SETTINGS,
};
use super::{Plain, SHORT, Served, long_timeouts, until_closed};
use crate::support::process::{Running, peak, serving};

/// Requests that are being answered, and the most there were.
#[derive(Clone, Default)]
struct Busy(Arc<(AtomicUsize, AtomicUsize)>);

struct One(Busy);

impl Busy {
    fn one(&self) -> One {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        One(self.clone())
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn server(limits: ServerOptions) -> (Served, Busy) {
    let busy = Busy::default();
    let counted = busy.clone();
    let never = move || {
        let one = counted.one();
        async move {
            std::future::pending::<()>().await;
            drop(one);
            "never"
        }
    };
    let routes = Router::new().route("/never", get(never)).route("/ok", get(|| async { "ok" }));
    (Served::start(Plain(routes), limits).await, busy)
}

/// Sends the same frames over and over, reading nothing, until this many were sent or the server ends the connection.
async fn flood(framed: &mut Framed, times: usize, mut frames: impl FnMut(usize) -> Vec<Frame>) -> usize {
    for sent in 0..times {
        let frames = frames(sent);
        let send = framed.send(&frames);
        // If the server stops reading, the sender blocks, which is a bound too.
        if !timeout(SHORT * 10, send).await.unwrap_or(false) {
            return sent;
        }
    }
    times
}

#[tokio::test]
async fn rapidly_reset_streams_end_the_connection() {
    let (served, busy) = server(long_timeouts()).await;
    let mut framed = Framed::open(served.address, &[]).await;
    let sent = flood(&mut framed, 1000, |round| {
        let stream = |number: usize| u32::try_from(2 * (round * 100 + number) + 1).unwrap();
        let pair = |number| {
            let ask = Frame::of(HEADERS, END_STREAM | END_HEADERS, stream(number), frames::get("/never"));
            [ask, Frame::of(RST_STREAM, 0, stream(number), 8_u32.to_be_bytes())]
        };
        (0..100).flat_map(pair).collect()
    })
    .await;
    let received = framed.rest().await;
    let end = received.iter().find(|frame| frame.kind == GOAWAY);
    // ENHANCE_YOUR_CALM, if it still came through.
    assert!(end.is_none_or(|end| end.reason() == 11), "{end:?}");
    assert!(sent < 1000 || end.is_some(), "the server did not react to 100000 cancelled requests");
    assert!(busy.most() <= 100, "{} requests were answered at once", busy.most());
    served.serves_others().await;
}

#[tokio::test]
async fn an_endless_header_block_ends_the_connection() {
    let (served, _) = server(long_timeouts()).await;
    for part in [&b""[..], &frames::block(&[("a", &"x".repeat(8000))])] {
        let mut framed = Framed::open(served.address, &[]).await;
        framed.send(&[Frame::of(HEADERS, END_STREAM, 1, frames::get("/ok"))]).await;
        let sent = flood(&mut framed, 10_000, |_| vec![Frame::of(CONTINUATION, 0, 1, part); 10]).await;
        let received = framed.rest().await;
        let minded = sent < 10_000 || received.iter().any(|frame| frame.kind == GOAWAY);
        assert!(minded, "100000 frames of one head were read");
    }
    served.serves_others().await;
}

/// A server in a process of its own, whose memory can be measured apart from that of the tests.
fn process() -> Running {
    let mut command = serving();
    command.env("ZARRD__LOG__LEVEL", "error").env("ZARRD__SERVER__DRAIN_TIMEOUT", "0s");
    Running::of(command)
}

/// Fails unless a process answers others, and has not taken much more memory than before.
async fn is_well(server: &Running, before: u64, after_what: &str) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(until_closed(stream).await.starts_with("HTTP/1.1 200 "), "after {after_what}");
    let more = peak(server).saturating_sub(before);
    assert!(more < 32 << 20, "{after_what} took {more} bytes");
}

#[tokio::test]
async fn frames_that_require_unread_replies_are_bounded() {
    let server = process();
    let before = peak(&server);
    for frame in [
        Frame::of(PING, 0, 0, [0; 8]),
        Frame::of(SETTINGS, 0, 0, []),
        Frame::of(SETTINGS, 0, 0, [0, 4, 0, 0, 0, 1]),
    ] {
        let mut framed = Framed::open(server.address, &[]).await;
        flood(&mut framed, 2000, |_| vec![frame.clone(); 1000]).await;
        is_well(&server, before, &format!("a flood of frames of kind {}", frame.kind)).await;
    }
}

#[tokio::test]
async fn empty_frames_and_unknown_ones_are_bounded() {
    let server = process();
    let before = peak(&server);
    let mut framed = Framed::open(server.address, &[]).await;
    let post = [(":method", "POST"), (":scheme", "http"), (":path", "/v1/partial/m"), (":authority", "x")];
    framed.send(&[Frame::of(HEADERS, END_HEADERS, 1, frames::block(&post))]).await;
    for frame in [Frame::of(DATA, 0, 1, []), Frame::of(0x42, 0, 1, [0; 100])] {
        flood(&mut framed, 200, |_| vec![frame.clone(); 1000]).await;
        is_well(&server, before, &format!("a flood of frames of kind {}", frame.kind)).await;
    }
}

#[tokio::test]
async fn clients_that_open_no_window_are_disconnected() {
    let (served, _) = server(ServerOptions { write_stall_timeout: SHORT, ..long_timeouts() }).await;
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut framed = Framed::open(served.address, &[(4, 0)]).await;
        for stream in [1, 3, 5] {
            framed.send(&[Frame::of(HEADERS, END_STREAM | END_HEADERS, stream, frames::get("/ok"))]).await;
        }
        held.push(framed);
    }
    served.serves_others().await;
    for mut framed in held {
        let received = framed.rest().await;
        assert!(received.iter().all(|frame| frame.kind != DATA), "{received:?}");
    }
}

#[tokio::test]
async fn invalid_frames_after_the_preface_end_the_connection() {
    let (served, _) = server(long_timeouts()).await;
    for frames in [
        vec![Frame::of(HEADERS, END_STREAM | END_HEADERS, 2, frames::get("/ok"))],
        vec![Frame::of(HEADERS, END_STREAM | END_HEADERS, 0, frames::get("/ok"))],
        vec![Frame::of(DATA, 0, 1, [0; 4])],
        vec![Frame::of(CONTINUATION, END_HEADERS, 1, [])],
        vec![Frame::of(PING, 0, 0, [0; 7])],
        vec![Frame::of(SETTINGS, 0, 0, [0; 5])],
        vec![Frame::of(HEADERS, END_HEADERS, 1, [0xff; 40])],
        vec![Frame::of(DATA, 0, 1, vec![0; 100_000])],
    ] {
        let mut framed = Framed::open(served.address, &[]).await;
        framed.send(&frames).await;
        let received = framed.rest().await;
        assert!(received.iter().any(|frame| frame.kind == GOAWAY), "{frames:?}: {received:?}");
    }
    served.serves_others().await;
}
