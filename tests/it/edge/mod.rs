//! Connections: what a client may do before, between and instead of requests, and proxies in front of the server.

mod cors;
mod descriptors;
mod floods;
mod frames;
mod framing;
mod limits;
mod methods;
mod multiplexed;
mod proxies;
mod shutdown;
mod timeouts;
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::ServiceExt;
use zarrd::app::{BoundListener, ConnectionLimits, RequestHandler, Shutdown, Tls, serve_all};
use zarrd::config::ServerOptions;
use zarrd::http::Peer;

/// A limit that a test waits for.
const SHORT: Duration = Duration::from_millis(300);
/// A limit that no test waits for.
const LONG: Duration = Duration::from_hours(1);
/// The time limit of every expected event, on the slowest machine.
const BOUND: Duration = Duration::from_mins(1);

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
        max_connections: 10_000,
        ..ServerOptions::default()
    }
}

const OK: &str = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n";

/// Routes that are not the server's own.
#[derive(Clone)]
struct Plain(axum::Router);

impl RequestHandler for Plain {
    async fn handle(self, request: Request<Body>, _from: Peer) -> Response {
        self.0.clone().oneshot(request).await.unwrap()
    }
}

/// Something that is served on a port of this machine.
struct Served {
    address: SocketAddr,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl Served {
    async fn start(routes: impl RequestHandler, limits: ServerOptions) -> Self {
        Self::start_with(routes, limits, None).await
    }

    async fn start_with(routes: impl RequestHandler, limits: ServerOptions, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = Shutdown::default();
        let task = tokio::spawn(serve_all(
            vec![BoundListener { listener, routes, tls }],
            ConnectionLimits::new(limits, 100),
            shutdown.clone(),
        ));
        Self { address, shutdown, task }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes on a connection of their own.
    async fn send(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = self.connect().await;
        // A refusal may come before all is sent.
        let _ = stream.write_all(bytes.as_ref()).await;
        stream
    }

    /// The response up to the end of the connection.
    async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        until_closed(self.send(bytes).await).await
    }

    /// Fails unless a client that does nothing odd is answered.
    async fn serves_others(&self) {
        let answer = self.ask("GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{answer:?}");
    }

    async fn ended(self) {
        timeout(BOUND, self.task).await.expect("the server ends").unwrap();
    }
}

/// Everything the server sends until it closes; fails if it does not close.
async fn until_closed(mut stream: impl AsyncRead + Unpin) -> String {
    let mut answer = Vec::new();
    // A reset is a way to close.
    let _ = timeout(BOUND, stream.read_to_end(&mut answer)).await.expect("the connection is closed");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads until the text has come.
async fn until(stream: &mut (impl AsyncRead + Unpin), text: &str) -> String {
    let mut answer = String::new();
    while !answer.contains(text) {
        let mut part = [0; 4096];
        let read = timeout(BOUND, stream.read(&mut part)).await.expect("an answer").unwrap();
        assert!(read > 0, "closed after {answer:?}");
        answer.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    answer
}
