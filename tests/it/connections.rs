//! The accept loop and graceful shutdown, by raw TCP: clients that send nothing, send half a request, or read nothing.
//!
//! Timeouts are short and bounds generous: the tests assert that a connection ends, and how.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use futures::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;
use zarrd::app::{ConnectionLimits, RequestHandler, Shutdown, serve};
use zarrd::config::ServerOptions;
use zarrd::http::Peer;

/// A limit that a test waits for.
const SHORT: Duration = Duration::from_millis(300);
/// A limit that no test waits for.
const LONG: Duration = Duration::from_hours(1);
/// The time limit of every expected event, on the slowest machine.
const BOUND: Duration = Duration::from_secs(20);

fn long_timeouts() -> ServerOptions {
    ServerOptions {
        first_byte_timeout: LONG,
        tls_handshake_timeout: LONG,
        header_timeout: LONG,
        idle_timeout: LONG,
        write_stall_timeout: LONG,
        min_write_rate: 0,
        min_write_rate_window: LONG,
        drain_timeout: LONG,
        max_connections: 100,
        ..ServerOptions::default()
    }
}

struct Server {
    address: SocketAddr,
    shutdown: Shutdown,
    task: JoinHandle<()>,
    /// Set when the body of `/endless` has been dropped.
    dropped: Arc<AtomicBool>,
}

/// Routes that are not the server's own.
#[derive(Clone)]
struct Plain(Router);

impl RequestHandler for Plain {
    async fn handle(self, request: Request<Body>, _from: Peer) -> Response {
        self.0.clone().oneshot(request).await.unwrap()
    }
}

/// Says that it was dropped.
struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Server {
    async fn start(limits: ServerOptions) -> Self {
        let dropped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&dropped);
        let endless = move || async move {
            let guard = Guard(flag);
            Body::from_stream(stream::repeat(Bytes::from(vec![0; 1 << 16])).map(move |part| {
                let _ = &guard;
                Ok::<_, std::io::Error>(part)
            }))
        };
        let slow = || async {
            sleep(Duration::from_secs(1)).await;
            "done"
        };
        let echo = |body: Body| async move {
            match axum::body::to_bytes(body, 1 << 20).await {
                Ok(bytes) => (StatusCode::OK, bytes),
                Err(_) => (StatusCode::REQUEST_TIMEOUT, Bytes::new()),
            }
        };
        let routes = Router::new()
            .route("/ok", get(|| async { "ok" }))
            .route("/slow", get(slow))
            .route("/never", get(std::future::pending::<&'static str>))
            .route("/endless", get(endless))
            .route("/echo", post(echo));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = Shutdown::default();
        let task = tokio::spawn(serve(
            listener,
            Plain(routes),
            ConnectionLimits::new(limits, 100),
            shutdown.clone(),
        ));
        Self { address, shutdown, task, dropped }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a text on a connection of its own.
    async fn send(&self, text: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// The response to a complete request, up to the end of the connection.
    async fn ask(&self, text: &str) -> String {
        until_closed(self.send(text).await).await
    }

    async fn ended(self) {
        timeout(BOUND, self.task).await.expect("the server ends").unwrap();
    }

    async fn body_is_dropped(&self) {
        let dropped = async {
            while !self.dropped.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(BOUND, dropped).await.expect("the response is given up");
    }
}

/// Everything the server sends until it closes; fails if it does not close.
async fn until_closed(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset is a way to close.
    let _ = timeout(BOUND, stream.read_to_end(&mut answer)).await.expect("the connection is closed");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads until the text has come.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut answer = String::new();
    while !answer.contains(text) {
        let mut part = [0; 4096];
        let read = timeout(BOUND, stream.read(&mut part)).await.expect("an answer").unwrap();
        assert!(read > 0, "closed after {answer:?}");
        answer.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    answer
}

/// Whether the connection is still open after a while.
async fn stays_open(stream: &mut TcpStream) -> bool {
    timeout(Duration::from_millis(500), stream.read(&mut [0; 64])).await.is_err()
}

const OK: &str = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n";
const HALF: &str = "GET /ok HTTP/1.1\r\nHo";
const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0";

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed() {
    let server = Server::start(ServerOptions { first_byte_timeout: SHORT, ..long_timeouts() }).await;
    assert_eq!(until_closed(server.connect().await).await, "");
}

#[tokio::test]
async fn a_connection_with_an_unfinished_head_is_closed() {
    let server = Server::start(ServerOptions { header_timeout: SHORT, ..long_timeouts() }).await;
    for beginning in ["G", HALF, "\r\n", "P", "PRI * HT"] {
        until_closed(server.send(beginning).await).await;
    }
}

#[tokio::test]
async fn a_connection_that_sends_only_the_http2_preface_is_closed() {
    let server = Server::start(ServerOptions { header_timeout: SHORT, ..long_timeouts() }).await;
    until_closed(server.send(PREFACE).await).await;
}

#[tokio::test]
async fn a_connection_whose_head_arrives_too_slowly_is_closed() {
    let server = Server::start(ServerOptions {
        header_timeout: SHORT,
        first_byte_timeout: SHORT,
        idle_timeout: SHORT,
        ..long_timeouts()
    })
    .await;
    let mut stream = server.send("GET /ok HTTP/1.1\r\nX: ").await;
    let dribble = async {
        while stream.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(BOUND, dribble).await.expect("the connection is closed");
}

#[tokio::test]
async fn a_connection_that_idles_after_a_request_is_closed() {
    let server = Server::start(ServerOptions { idle_timeout: SHORT, ..long_timeouts() }).await;
    let answer = server.ask(OK).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[tokio::test]
async fn each_timeout_applies_to_its_own_phase() {
    let server =
        Server::start(ServerOptions { first_byte_timeout: SHORT, idle_timeout: SHORT, ..long_timeouts() })
            .await;
    let mut half = server.send(HALF).await;
    assert!(stays_open(&mut half).await, "half a head is the header limit's");
    half.write_all(b"st: x\r\n\r\n").await.unwrap();
    assert!(until_closed(half).await.ends_with("ok"));

    let server =
        Server::start(ServerOptions { header_timeout: SHORT, first_byte_timeout: SHORT, ..long_timeouts() })
            .await;
    let mut idle = server.send(OK).await;
    until(&mut idle, "\r\n\r\nok").await;
    assert!(stays_open(&mut idle).await, "idling is the idle limit's");

    let server = Server::start(ServerOptions {
        header_timeout: SHORT,
        first_byte_timeout: SHORT,
        idle_timeout: SHORT,
        ..long_timeouts()
    })
    .await;
    assert!(
        server.ask("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.ends_with("done"),
        "work does not count as idle time"
    );
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let server = Server::start(ServerOptions { write_stall_timeout: SHORT, ..long_timeouts() }).await;
    let _stream = server.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    server.body_is_dropped().await;
}

fn http2_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().http2_prior_knowledge().build().unwrap()
}

#[tokio::test]
async fn an_http2_client_that_opens_no_window_is_disconnected() {
    let server = Server::start(ServerOptions { write_stall_timeout: SHORT, ..long_timeouts() }).await;
    let client = http2_client();
    let response = client.get(format!("http://{}/endless", server.address)).send().await.unwrap();
    assert_eq!(response.version(), reqwest::Version::HTTP_2);
    server.body_is_dropped().await;
    drop(response);
}

#[tokio::test]
async fn a_disconnected_client_cancels_its_request() {
    let server = Server::start(long_timeouts()).await;
    let mut stream = server.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
    until(&mut stream, "200 OK").await;
    drop(stream);
    server.body_is_dropped().await;
}

#[tokio::test]
async fn connections_over_the_limit_are_closed_at_once() {
    let server = Server::start(ServerOptions { max_connections: 1, ..long_timeouts() }).await;
    let mut first = server.send(OK).await;
    until(&mut first, "\r\n\r\nok").await;
    assert_eq!(until_closed(server.connect().await).await, "");
    drop(first);
    let next_one = async {
        loop {
            let closing = "GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            let mut next = server.connect().await;
            let sent = next.write_all(closing.as_bytes()).await;
            if sent.is_ok() && until_closed(next).await.ends_with("ok") {
                break;
            }
        }
    };
    timeout(BOUND, next_one).await.expect("capacity is released when a connection ends");
}

#[tokio::test]
async fn requests_with_the_wrong_framing_are_refused() {
    let server = Server::start(ServerOptions { idle_timeout: SHORT, ..long_timeouts() }).await;
    let many = "X: y\r\n".repeat(101);
    let long = "y".repeat(70_000);
    for (head, status) in [
        ("GET /ok HTTP/1.1\r\n", 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nHost: y\r\n", 400),
        ("GET /ok HTTP/1.0\r\n", 200),
        ("GET /ok HTTP/1.0\r\nHost: x\r\nHost: x\r\n", 400),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n", 501),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n", 501),
        (
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            501,
        ),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n", 400),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n", 400),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4, 5\r\n", 400),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n", 400),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n", 400),
        ("GET /ok HTTP/1.1\r\nHost : x\r\n", 400),
        (&format!("GET /ok HTTP/1.1\r\nHost: x\r\n{many}"), 431),
        (&format!("GET /ok HTTP/1.1\r\nHost: x\r\nX: {long}\r\n"), 431),
    ] {
        let answer = server.ask(&format!("{head}\r\n")).await;
        let shown: String = head.chars().take(80).collect();
        assert!(answer.contains(&format!(" {status} ")), "{shown:?} was answered {answer:?}");
        assert_eq!(answer.matches("HTTP/1.").count(), 1, "{shown:?}: one answer, in {answer:?}");
    }
}

#[tokio::test]
async fn a_request_with_two_lengths_is_the_last_of_its_connection() {
    let server = Server::start(long_timeouts()).await;
    let chunked = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = server.ask(&format!("{chunked}3\r\nabc\r\n0\r\n\r\n{OK}")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nabc"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

#[tokio::test]
async fn an_unread_body_gets_connection_close() {
    let server = Server::start(long_timeouts()).await;
    // Refused before the body has come.
    let refused = server.ask("POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("connection: close\r\n"), "{refused}");
    // A body that was read leaves the connection to the next request.
    let body = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd";
    let mut stream = server.send(body).await;
    let echoed = until(&mut stream, "abcd").await;
    assert!(echoed.starts_with("HTTP/1.1 200") && !echoed.contains("connection:"), "{echoed}");
    let chunked = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n";
    stream.write_all(chunked.as_bytes()).await.unwrap();
    let echoed = until(&mut stream, "xy").await;
    assert!(echoed.starts_with("HTTP/1.1 200") && !echoed.contains("connection:"), "{echoed}");
}

#[tokio::test]
async fn a_refusal_arrives_though_the_body_is_not_read() {
    let server = Server::start(long_timeouts()).await;
    let mut stream =
        server.send("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n").await;
    // The refusal has long been sent when the body still comes; a reset would destroy it unread.
    for _ in 0..4 {
        sleep(Duration::from_millis(50)).await;
        stream.write_all(&vec![b'x'; 1 << 16]).await.expect("the body is still let in");
    }
    sleep(Duration::from_millis(50)).await;
    let answer = until_closed(stream).await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer:?}");
}

#[tokio::test]
async fn shutdown_does_not_wait_for_silent_or_idle_connections() {
    let server = Server::start(long_timeouts()).await;
    let silent = server.connect().await;
    let half = server.send(HALF).await;
    let preface = server.send(PREFACE).await;
    let mut idle = server.send(OK).await;
    until(&mut idle, "\r\n\r\nok").await;
    server.shutdown.advance();
    for stream in [silent, half, preface, idle] {
        until_closed(stream).await;
    }
    server.ended().await;
}

#[tokio::test]
async fn connections_in_the_accept_queue_are_served_before_shutdown() {
    let server = Server::start(long_timeouts()).await;
    // Blocking calls on the only thread: the server cannot accept before it is asked to stop.
    let connect = |_| {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        std::io::Write::write_all(&mut stream, OK.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        TcpStream::from_std(stream).unwrap()
    };
    let waiting: Vec<TcpStream> = (0..10).map(connect).collect();
    server.shutdown.advance();
    for stream in waiting {
        let answer = until_closed(stream).await;
        assert!(answer.ends_with("\r\n\r\nok"), "{answer:?}");
    }
    server.ended().await;
}

#[tokio::test]
async fn shutdown_waits_for_requests_in_flight() {
    let server = Server::start(long_timeouts()).await;
    let slow = server.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut upload = server.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc").await;
    let client = http2_client();
    let http2 = tokio::spawn(client.get(format!("http://{}/slow", server.address)).send());
    sleep(SHORT).await;
    server.shutdown.advance();
    sleep(SHORT).await;
    assert!(TcpStream::connect(server.address).await.is_err(), "no new connection is accepted");
    upload.write_all(b"def").await.unwrap();
    assert!(until_closed(upload).await.ends_with("\r\n\r\nabcdef"));
    let answer = until_closed(slow).await;
    assert!(answer.contains("connection: close") && answer.ends_with("\r\n\r\ndone"), "{answer}");
    assert_eq!(http2.await.unwrap().unwrap().text().await.unwrap(), "done");
    server.ended().await;
}

#[tokio::test]
async fn shutdown_ends_at_its_deadline() {
    let server = Server::start(ServerOptions { drain_timeout: SHORT, ..long_timeouts() }).await;
    let never = server.send("GET /never HTTP/1.1\r\nHost: x\r\n\r\n").await;
    sleep(SHORT).await;
    server.shutdown.advance();
    assert_eq!(until_closed(never).await, "");
    server.ended().await;
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let server = Server::start(long_timeouts()).await;
    let never = server.send("GET /never HTTP/1.1\r\nHost: x\r\n\r\n").await;
    sleep(SHORT).await;
    server.shutdown.advance();
    server.shutdown.advance();
    assert_eq!(until_closed(never).await, "");
    server.ended().await;
}
