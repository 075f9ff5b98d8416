//! One connection: HTTP/1.1 or HTTP/2 by prior knowledge, under its limits, until it ends, tires us, or must stop.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;

use super::patience::{Limits, Patience};
use super::service::{Routes, Watched};
use super::shutdown::{Phase, Shutdown};
use super::socket::Socket;
use crate::http::Peer;

/// Most headers of a request.
const MAX_HEADERS: usize = 100;
/// Buffer of an HTTP/1 connection: the head of a request must fit in it.
const HTTP1_BUFFER_BYTES: usize = 64 << 10;
/// Most requests at a time on an HTTP/2 connection.
const HTTP2_STREAMS: u32 = 100;
/// Most bytes of a head in HTTP/2.
const HTTP2_HEADER_LIST_BYTES: u32 = 16 << 10;
/// What is buffered for an HTTP/2 client that does not take it.
const HTTP2_SEND_BUFFER_BYTES: usize = 64 << 10;
/// Bytes of answers that the kernel holds of a connection before it has sent them, where it can be told so.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNSENT_BYTES: u32 = 512 << 10;
/// A quiet HTTP/2 client with open requests is asked whether it is there, and must answer.
const HTTP2_PING: Duration = Duration::from_secs(20);
const HTTP2_PONG: Duration = Duration::from_secs(10);

/// How hyper is set up, once for all connections.
pub(super) fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // hyper's header timer stays off: `Patience` measures from the first byte, and covers idling too.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .max_buf_size(HTTP1_BUFFER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_header_list_size(HTTP2_HEADER_LIST_BYTES)
        .max_send_buf_size(HTTP2_SEND_BUFFER_BYTES)
        .keep_alive_interval(HTTP2_PING)
        .keep_alive_timeout(HTTP2_PONG);
    builder
}

/// Has the kernel hold no more of an answer than keeps the connection busy. Otherwise it takes megabytes at once: of few
/// connections, whose answers are then sent before those of others, and for clients that may never read them.
fn hold_little(stream: &TcpStream) {
    #[cfg(any(target_os = "android", target_os = "linux"))]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
    #[cfg(not(any(target_os = "android", target_os = "linux")))]
    let _ = stream;
}

/// Serves one connection to its end. Dropping the future cuts it off.
pub(super) async fn serve<R: Routes>(
    builder: Builder<TokioExecutor>,
    stream: TcpStream,
    peer: SocketAddr,
    routes: R,
    limits: Limits,
    shutdown: Shutdown,
) {
    // Without it small answers wait for acknowledgements; a socket that refuses is about to fail anyway.
    let _ = stream.set_nodelay(true);
    hold_little(&stream);
    let patience = Patience::new(Instant::now());
    let from = Peer { address: peer.ip(), is_encrypted: false };
    let keeps = routes.clone();
    let service = Watched { routes, peer: from, patience: patience.clone() };
    let io = TokioIo::new(Socket::new(stream, patience.clone()));
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut ticks = tokio::time::interval(tick(&limits));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut draining = false;
    let mut settled = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, error = &*error, "a connection ended badly");
                }
                return;
            }
            phase = shutdown.reached(if draining { Phase::Cut } else { Phase::Draining }) => {
                if phase == Phase::Cut {
                    return;
                }
                draining = true;
                ticks = tokio::time::interval_at(tokio::time::Instant::now() + SETTLE, SETTLE);
                // Answers still to come say that they are the last. A connection at rest may have a request waiting
                // in its socket: it is told after a moment.
                if !patience.is_at_rest() {
                    connection.as_mut().graceful_shutdown();
                }
            }
            _ = ticks.tick() => {
                if draining {
                    // hyper's graceful end waits for the rest of half a head; there is nothing in it to wait for.
                    if settled && patience.is_at_rest() {
                        return;
                    }
                    settled = true;
                    connection.as_mut().graceful_shutdown();
                }
                // One at rest may have a request waiting in its socket; its answer will say that it is the last.
                if !draining && !keeps.keeps_connections() && !patience.is_at_rest() {
                    connection.as_mut().graceful_shutdown();
                }
                if let Some(overdue) = patience.overdue(&limits, Instant::now()) {
                    tracing::debug!(%peer, ?overdue, "a connection is closed");
                    return;
                }
            }
        }
    }
}

/// Twice this is between the signal to stop and the closing of connections at rest: time to read what has arrived,
/// and to say GOAWAY.
const SETTLE: Duration = Duration::from_millis(50);

/// How often patience is questioned: often enough that no limit is overdrawn by much.
fn tick(limits: &Limits) -> Duration {
    let shortest = limits.first_byte.min(limits.header).min(limits.idle).min(limits.write_stall);
    (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
}
