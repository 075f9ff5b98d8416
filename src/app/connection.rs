//! One connection: TLS where it is spoken, then HTTP/1.1 or HTTP/2, under its limits, until it ends, tires us, or must
//! stop.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::connection_timeouts::{ConnectionLimits, ConnectionMonitor};
use super::heads::Heads;
use super::service::{ConnectionService, RequestHandler};
use super::shutdown::{Phase, Shutdown};
use super::socket::Socket;
use super::tls::Tls;
use crate::config::ServerOptions;
use crate::http::Peer;

/// hyper takes no smaller one.
const LEAST_BUFFER_BYTES: usize = 8 << 10;
/// Bytes of answers that the kernel holds of a connection before it has sent them, where it can be told so.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNSENT_BYTES: u32 = 512 << 10;
/// How hyper is set up, once for all connections.
pub(super) fn builder(limits: &ConnectionLimits) -> Builder<TokioExecutor> {
    let server = &limits.server;
    let bytes = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut builder = Builder::new(TokioExecutor::new());
    // hyper's header timer stays off: `TimeoutOptions` measures from the first byte, and covers idling too.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(limits.max_headers)
        .max_buf_size(bytes(server.http1_buffer_size).max(LEAST_BUFFER_BYTES));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(server.http2_max_streams)
        // It refuses what is as long as the limit.
        .max_header_list_size(server.http2_max_header_list_size.saturating_add(1))
        .max_send_buf_size(bytes(server.http2_send_buffer_size))
        .keep_alive_interval(server.http2_keepalive_interval)
        .keep_alive_timeout(server.http2_keepalive_timeout);
    builder
}

/// Has the kernel hold no more of an answer than keeps the connection busy. Otherwise it takes megabytes at once: of few
/// connections, whose answers are then sent before those of others, and for clients that may never read them.
fn limit_unsent_bytes(stream: &TcpStream) {
    #[cfg(any(target_os = "android", target_os = "linux"))]
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
    #[cfg(not(any(target_os = "android", target_os = "linux")))]
    let _ = stream;
}

/// What connections to a listener have in common.
#[derive(Clone, Debug)]
pub(super) struct ConnectionConfig<R> {
    pub(super) builder: Builder<TokioExecutor>,
    pub(super) routes: R,
    pub(super) tls: Option<Tls>,
    pub(super) limits: ConnectionLimits,
    pub(super) shutdown: Shutdown,
}

/// Serves one connection to its end. Dropping the future cuts it off.
pub(super) async fn serve<R: RequestHandler>(
    terms: ConnectionConfig<R>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    // Without it small answers wait for acknowledgements; a socket that refuses is about to fail anyway.
    let _ = stream.set_nodelay(true);
    limit_unsent_bytes(&stream);
    let patience = ConnectionMonitor::new(Instant::now());
    let socket = Socket::new(stream, patience.clone());
    match &terms.tls {
        None => serve_requests(&terms, socket, peer, patience, false).await,
        Some(tls) => {
            if let Some(stream) = handshake(tls, socket, peer, &terms).await {
                patience.is_encrypted(Instant::now());
                // Boxed, as connections without TLS should not be as large.
                Box::pin(serve_requests(&terms, stream, peer, patience, true)).await;
            }
        }
    }
}

/// The handshake of TLS, within its time.
async fn handshake<R>(
    tls: &Tls,
    socket: Socket,
    peer: SocketAddr,
    terms: &ConnectionConfig<R>,
) -> Option<TlsStream<Socket>> {
    let drained = async {
        // Who is in the middle of it may have a request to send.
        let phase = terms.shutdown.reached(Phase::Draining).await;
        if phase == Phase::Draining {
            tokio::time::timeout(DRAINED_HANDSHAKE, terms.shutdown.reached(Phase::Forced))
                .await
                .unwrap_or(Phase::Forced);
        }
    };
    tokio::select! {
        biased;
        stream = tokio::time::timeout(terms.limits.server.tls_handshake_timeout, Box::pin(tls.accept(socket))) => match stream {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%peer, %error, "a handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!(%peer, "a handshake took too long");
                None
            }
        },
        () = drained => None,
    }
}

/// Requests and their answers, until the connection ends.
async fn serve_requests<R: RequestHandler, S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    terms: &ConnectionConfig<R>,
    stream: S,
    peer: SocketAddr,
    patience: ConnectionMonitor,
    is_encrypted: bool,
) {
    let ConnectionConfig { builder, routes, limits, shutdown, .. } = terms;
    let from = Peer { address: peer.ip(), is_encrypted };
    let keeps = routes.clone();
    let service = ConnectionService { routes: routes.clone(), peer: from, patience: patience.clone() };
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Heads::new(stream)), service));
    let mut ticks = tokio::time::interval(tick(&limits.server));
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
            phase = shutdown.reached(if draining { Phase::Forced } else { Phase::Draining }) => {
                if phase == Phase::Forced {
                    return;
                }
                draining = true;
                ticks = tokio::time::interval_at(tokio::time::Instant::now() + GRACE, GRACE);
                // Answers still to come say that they are the last. A connection at rest may have a request waiting
                // in its socket: it is told after a moment.
                if !patience.is_idle() {
                    connection.as_mut().graceful_shutdown();
                }
            }
            _ = ticks.tick() => {
                if draining {
                    // hyper's graceful end waits for the rest of half a head; there is nothing in it to wait for.
                    if settled && patience.is_idle() {
                        return;
                    }
                    settled = true;
                    connection.as_mut().graceful_shutdown();
                }
                // One at rest may have a request waiting in its socket; its answer will say that it is the last.
                if !draining && !keeps.keeps_connections() && !patience.is_idle() {
                    connection.as_mut().graceful_shutdown();
                }
                if let Some(overdue) = patience.timed_out(&limits.server, Instant::now()) {
                    tracing::debug!(%peer, ?overdue, "a connection is closed");
                    if overdue.is_of_a_reader() {
                        patience.abort();
                    }
                    return;
                }
            }
        }
    }
}

/// Twice this is between the signal to stop and the closing of connections at rest: time to read what has arrived,
/// and to say GOAWAY.
const GRACE: Duration = Duration::from_millis(50);
/// How long a handshake may still take once the server is told to stop.
const DRAINED_HANDSHAKE: Duration = Duration::from_secs(1);

/// How often patience is questioned: often enough that no limit is overdrawn by much.
fn tick(limits: &ServerOptions) -> Duration {
    let shortest = limits
        .first_byte_timeout
        .min(limits.header_timeout)
        .min(limits.idle_timeout)
        .min(limits.write_stall_timeout)
        .min(limits.min_write_rate_window);
    (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
}
