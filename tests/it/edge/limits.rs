//! Limits of requests and connections: values just below each limit, at it, and just above it.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures::{StreamExt, stream};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use zarrd::config::ServerOptions;
use zarrd::http::HttpOptions;
use zarrd::services::Mount;

use super::frames::{self, DATA, END_HEADERS, END_STREAM, Frame, Framed, HEADERS, RST_STREAM, status};
use super::{BOUND, OK, Plain, SHORT, Served, long_timeouts, until, until_closed};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// The complete API over a writable mount `m`.
async fn surface(options: impl FnOnce(&mut HttpOptions)) -> Served {
    let store = memory();
    put(&store, "key", "value").await;
    let mut builder = Server::build(Mount { writable: true, ..Mount::read_only("m", store) });
    options(&mut builder.http);
    Served::start(builder.finish().site(), long_timeouts()).await
}

/// The status of an answer.
fn code(answer: &str) -> u16 {
    answer.get(9..12).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

/// The status of a request in HTTP/1.1 of these lines.
async fn status_of(served: &Served, lines: &str) -> u16 {
    code(&served.ask(format!("{lines}Connection: close\r\n\r\n")).await)
}

/// The status of a request in HTTP/2.
async fn status_in_http2(served: &Served, headers: &[(&str, &str)]) -> u16 {
    let mut framed = Framed::open(served.address, &[]).await;
    let block = frames::block(headers);
    let (first, rest) = block.split_at(block.len().min(16_000));
    let end = if rest.is_empty() { END_HEADERS } else { 0 };
    let mut sent = vec![Frame::of(HEADERS, END_STREAM | end, 1, first)];
    for (index, part) in rest.chunks(16_000).enumerate() {
        let end = if (index + 1) * 16_000 >= rest.len() { END_HEADERS } else { 0 };
        sent.push(Frame::of(frames::CONTINUATION, end, 1, part));
    }
    framed.send(&sent).await;
    status(&framed.until(HEADERS).await.payload)
}

#[tokio::test]
async fn urls_over_the_length_limit_are_refused() {
    let served = surface(|_| {}).await;
    for (length, expected) in [(8191, 404), (8192, 404), (8193, 414), (16_000, 414), (70_000, 414)] {
        let url = format!("/nowhere?{}", "x".repeat(length - "/nowhere?".len()));
        let found = status_of(&served, &format!("GET {url} HTTP/1.1\r\nHost: x\r\n")).await;
        // Longer than the buffer, a URL is not distinguished from headers.
        let expected_here = if length > 65_000 { [414, 431] } else { [expected; 2] };
        assert!(expected_here.contains(&found), "{length}: {found}");
        if length < 10_000 {
            let headers = [(":method", "GET"), (":scheme", "http"), (":path", &*url), (":authority", "x")];
            assert_eq!(status_in_http2(&served, &headers).await, expected, "{length} in HTTP/2");
        }
    }
}

#[tokio::test]
async fn more_headers_than_the_limit_are_refused() {
    let served = surface(|_| {}).await;
    for (count, expected) in [(99, 200), (100, 200), (101, 431)] {
        // `Host` and `Connection` are two of them.
        let more = "X: y\r\n".repeat(count - 2);
        let found = status_of(&served, &format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{more}")).await;
        assert_eq!(found, expected, "{count}");
        let mut headers =
            vec![(":method", "GET"), (":scheme", "http"), (":path", "/healthz"), (":authority", "x")];
        headers.extend(vec![("x", "y"); count]);
        assert_eq!(status_in_http2(&served, &headers).await, expected, "{count} in HTTP/2");
    }
}

#[tokio::test]
async fn headers_over_the_limit_of_their_total_length_are_refused() {
    let served = surface(|_| {}).await;
    for (bytes, expected) in [(32_767, 200), (32_768, 200), (32_769, 431), (60_000, 431), (100_000, 431)] {
        let others = "Host: x\r\nConnection: close\r\n".len();
        let value = "x".repeat(bytes - others - "A: \r\n".len());
        let found = status_of(&served, &format!("GET /healthz HTTP/1.1\r\nHost: x\r\nA: {value}\r\n")).await;
        assert_eq!(found, expected, "{bytes}");
    }
}

#[tokio::test]
async fn http2_header_lists_over_the_length_limit_are_refused() {
    let served = surface(|_| {}).await;
    let pseudo = [(":method", "GET"), (":scheme", "http"), (":path", "/healthz"), (":authority", "x")];
    let counted = |headers: &[(&str, &str)]| -> usize {
        headers.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
    };
    for (bytes, expected) in [(16_383, 200), (16_384, 200), (16_385, 431)] {
        let value = "x".repeat(bytes - counted(&pseudo) - counted(&[("a", "")]));
        let headers = [&pseudo[..], &[("a", &value)]].concat();
        assert_eq!(counted(&headers), bytes);
        assert_eq!(status_in_http2(&served, &headers).await, expected, "{bytes}");
    }
}

#[tokio::test]
async fn a_refused_head_has_cors_headers() {
    let served = surface(|_| {}).await;
    let long = "x".repeat(40_000);
    let answer = served
        .ask(format!(
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: https://a.example\r\nA: {long}\r\n\r\n"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    for part in ["access-control-allow-origin: *\r\n", "\"code\":\"headers-too-large\"", "x-request-id: "] {
        assert!(answer.contains(part), "{part} in {answer}");
    }
}

#[tokio::test]
async fn no_more_of_a_head_is_buffered_than_its_limit() {
    // Only the buffer is a limit.
    let served = surface(|options| options.max_headers_size = 1 << 30).await;
    for (bytes, expected) in [(60_000, 200), (65_535, 200), (65_536 + 8192, 431), (400_000, 431)] {
        let begin = "GET /healthz HTTP/1.1\r\nHost: x\r\nA: ";
        let end = "\r\nConnection: close\r\n\r\n";
        let value = "x".repeat(bytes - begin.len() - end.len());
        assert_eq!(code(&served.ask(format!("{begin}{value}{end}")).await), expected, "{bytes}");
    }
    // An endless head: the bytes read of it are bounded by the buffers of both kernels and ours.
    let mut stream = served.send("GET /healthz HTTP/1.1\r\nA: ").await;
    let flood = async {
        let mut taken = 0_usize;
        while stream.write_all(&[b'x'; 1 << 14]).await.is_ok() {
            taken += 1 << 14;
            assert!(taken < 64 << 20, "a head without end is read without end");
        }
    };
    timeout(BOUND, flood).await.expect("the connection is closed");
}

#[tokio::test]
async fn concurrent_requests_of_an_http2_connection_over_the_limit_are_refused() {
    let routes = Router::new()
        .route("/never", get(std::future::pending::<&'static str>))
        .route("/ok", get(|| async { "ok" }));
    let served = Served::start(Plain(routes), long_timeouts()).await;
    let mut framed = Framed::open(served.address, &[]).await;
    let ask = |number: u32, path: &str| {
        Frame::of(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, frames::get(path))
    };
    let open: Vec<Frame> = (0..99).map(|number| ask(number, "/never")).collect();
    framed.send(&open).await;
    // The hundredth fits.
    framed.send(&[ask(99, "/ok")]).await;
    assert_eq!(framed.until(HEADERS).await.stream, 199);
    framed.until(DATA).await;
    framed.send(&[ask(100, "/never"), ask(101, "/ok")]).await;
    let refused = framed.until(RST_STREAM).await;
    // REFUSED_STREAM: it was not processed, and can be sent again.
    assert_eq!((refused.stream, refused.reason()), (203, 7));
    served.serves_others().await;
}

#[tokio::test]
async fn little_is_buffered_for_an_http2_client_that_reads_nothing() {
    const PART: usize = 16 << 10;
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let endless = move || {
        let made = Arc::clone(&counted);
        async move {
            Body::from_stream(stream::repeat(Bytes::from_static(&[0; PART])).map(move |part| {
                made.fetch_add(part.len(), Ordering::SeqCst);
                Ok::<_, std::io::Error>(part)
            }))
        }
    };
    let routes = Router::new().route("/endless", get(endless)).route("/ok", get(|| async { "ok" }));
    let served = Served::start(Plain(routes), long_timeouts()).await;
    // SETTINGS_INITIAL_WINDOW_SIZE of nothing.
    let mut framed = Framed::open(served.address, &[(4, 0)]).await;
    let streams = 10;
    for number in 0..streams {
        let ask = Frame::of(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, frames::get("/endless"));
        framed.send(&[ask]).await;
        assert_eq!(framed.until(HEADERS).await.stream, 2 * number + 1);
    }
    sleep(SHORT).await;
    let (made, limit) = (
        made.load(Ordering::SeqCst),
        usize::try_from(ServerOptions::default().http2_send_buffer_size).unwrap(),
    );
    // For each, the buffer, and the bytes in transit to it.
    let most = usize::try_from(streams).unwrap() * (limit + 2 * PART);
    assert!(made > 0 && made <= most, "{made} bytes were produced for {streams} unread responses");
    served.serves_others().await;
}

#[tokio::test]
async fn connections_over_the_limit_are_closed_and_others_kept() {
    let routes = Router::new().route("/ok", get(|| async { "ok" }));
    let served = Served::start(Plain(routes), ServerOptions { max_connections: 3, ..long_timeouts() }).await;
    let mut held: Vec<TcpStream> = Vec::new();
    for _ in 0..3 {
        let mut stream = served.send(OK).await;
        until(&mut stream, "\r\n\r\nok").await;
        held.push(stream);
    }
    for _ in 0..3 {
        assert_eq!(until_closed(served.connect().await).await, "");
    }
    for mut stream in held {
        stream.write_all(OK.as_bytes()).await.unwrap();
        until(&mut stream, "\r\n\r\nok").await;
    }
}

/// The statuses of a PUT of this many bytes: with `Content-Length`, and chunked.
async fn stored(served: &Served, key: &str, bytes: usize) -> [u16; 2] {
    let body = "x".repeat(bytes);
    let head = format!("PUT /store/m/{key} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    let answer = served.ask(format!("{head}Content-Length: {bytes}\r\n\r\n{body}")).await;
    let mut chunks = String::new();
    for part in body.as_bytes().chunks(100) {
        write!(chunks, "{:x}\r\n{}\r\n", part.len(), "x".repeat(part.len())).unwrap();
    }
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    [code(&answer), code(&served.ask(chunked).await)]
}

#[tokio::test]
async fn values_over_the_length_limit_are_refused_and_not_stored() {
    let served = surface(|options| options.max_value_size = 1000).await;
    for (bytes, expected) in
        [(999, [201, 204]), (1000, [201, 204]), (1001, [413, 413]), (100_000, [413, 413])]
    {
        let key = format!("k{bytes}");
        assert_eq!(stored(&served, &key, bytes).await, expected, "{bytes}");
        let expected = if bytes <= 1000 { 200 } else { 404 };
        assert_eq!(
            status_of(&served, &format!("HEAD /store/m/{key} HTTP/1.1\r\nHost: x\r\n")).await,
            expected
        );
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_100_continue() {
    let served = surface(|options| options.max_value_size = 1000).await;
    let expecting = |bytes: u64| {
        format!(
            "PUT /store/m/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {bytes}\r\n\r\n"
        )
    };
    for bytes in [1001, 1 << 40] {
        let refused = served.ask(expecting(bytes)).await;
        assert!(refused.starts_with("HTTP/1.1 413 ") && !refused.contains(" 100 "), "{bytes}: {refused}");
        assert!(refused.contains("connection: close\r\n"), "{refused}");
    }
    let mut stream = served.send(expecting(1000)).await;
    assert!(until(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 100 "));
    stream.write_all(&[b'x'; 1000]).await.unwrap();
    assert!(until(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 201 "));
    // A body refused for another reason gets no 100 Continue either.
    let missing = expecting(10).replace("/store/m/", "/store/none/");
    let refused = served.ask(missing).await;
    assert!(refused.starts_with("HTTP/1.1 404 ") && !refused.contains(" 100 "), "{refused}");
}
