//! One connection: TLS if configured, then HTTP/1.1 or HTTP/2, until it ends, exceeds a timeout, or the server shuts down.

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

/// The smallest buffer that hyper accepts.
const LEAST_BUFFER_BYTES: usize = 8 << 10;
/// hyper's own limit of headers. With any other it initialises memory for them in each request.
const HYPER_MAX_HEADERS: usize = 100;
/// The configuration of hyper, for all connections of a listener.
pub(super) fn builder(limits: &ConnectionLimits) -> Builder<TokioExecutor> {
    let server = &limits.server;
    let bytes = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut builder = Builder::new(TokioExecutor::new());
    // hyper's header timeout stays off: `ConnectionMonitor` measures from the first byte, and covers idle connections too.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(bytes(server.http1_buffer_size).max(LEAST_BUFFER_BYTES));
    if limits.max_headers != HYPER_MAX_HEADERS {
        builder.http1().max_headers(limits.max_headers);
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(server.http2_max_streams)
        // hyper rejects what is exactly as long as the limit.
        .max_header_list_size(server.http2_max_header_list_size.saturating_add(1))
        .max_send_buf_size(bytes(server.http2_send_buffer_size))
        .keep_alive_interval(server.http2_keepalive_interval)
        .keep_alive_timeout(server.http2_keepalive_timeout);
    builder
}

/// What the connections of a listener share.
#[derive(Clone, Debug)]
pub(super) struct ConnectionConfig<R> {
    pub(super) builder: Builder<TokioExecutor>,
    pub(super) routes: R,
    pub(super) tls: Option<Tls>,
    pub(super) limits: ConnectionLimits,
    pub(super) shutdown: Shutdown,
}

/// Serves one connection to its end. Dropping the future closes it.
pub(super) async fn serve<R: RequestHandler>(
    config: ConnectionConfig<R>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    // Without it, small responses wait for acknowledgements. If it fails, the socket is about to fail anyway.
    let _ = stream.set_nodelay(true);
    let monitor = ConnectionMonitor::new(Instant::now());
    let socket = Socket::new(stream, monitor.clone());
    match &config.tls {
        None => serve_requests(&config, socket, peer, monitor, false).await,
        Some(tls) => {
            if let Some(stream) = handshake(tls, socket, peer, &config).await {
                monitor.on_encrypted(Instant::now());
                // Boxed, so that connections without TLS are smaller.
                Box::pin(serve_requests(&config, stream, peer, monitor, true)).await;
            }
        }
    }
}

/// The TLS handshake, with its timeout.
async fn handshake<R>(
    tls: &Tls,
    socket: Socket,
    peer: SocketAddr,
    config: &ConnectionConfig<R>,
) -> Option<TlsStream<Socket>> {
    let drained = async {
        // A client in the middle of a handshake may have a request to send.
        let phase = config.shutdown.reached(Phase::Draining).await;
        if phase == Phase::Draining {
            tokio::time::timeout(DRAINED_HANDSHAKE, config.shutdown.reached(Phase::Forced))
                .await
                .unwrap_or(Phase::Forced);
        }
    };
    tokio::select! {
        biased;
        stream = tokio::time::timeout(config.limits.server.tls_handshake_timeout, Box::pin(tls.accept(socket))) => match stream {
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

/// Serves requests until the connection ends.
async fn serve_requests<R: RequestHandler, S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    config: &ConnectionConfig<R>,
    stream: S,
    peer: SocketAddr,
    monitor: ConnectionMonitor,
    is_encrypted: bool,
) {
    let ConnectionConfig { builder, routes, limits, shutdown, .. } = config;
    let from = Peer { address: peer.ip(), is_encrypted };
    let handler = routes.clone();
    let service = ConnectionService { routes: routes.clone(), peer: from, monitor: monitor.clone() };
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
                // Responses that follow announce that they are the last. An idle connection may have a request waiting in its
                // socket: it is shut down after a moment.
                if !monitor.is_idle() {
                    connection.as_mut().graceful_shutdown();
                }
            }
            _ = ticks.tick() => {
                if draining {
                    // hyper's graceful shutdown waits for the rest of an incomplete head, which may never come.
                    if settled && monitor.is_idle() {
                        return;
                    }
                    settled = true;
                    connection.as_mut().graceful_shutdown();
                }
                // An idle one may have a request waiting in its socket; its response will announce that it is the last.
                if !draining && !handler.keeps_connections() && !monitor.is_idle() {
                    connection.as_mut().graceful_shutdown();
                }
                if let Some(overdue) = monitor.timed_out(&limits.server, Instant::now()) {
                    tracing::debug!(%peer, ?overdue, "a connection is closed");
                    if overdue.is_slow_reader() {
                        monitor.abort();
                    }
                    return;
                }
            }
        }
    }
}

/// Idle connections are closed twice this time after the signal to stop: time to read what has arrived, and to send GOAWAY.
const GRACE: Duration = Duration::from_millis(50);
/// Time that a handshake has left once the shutdown has begun.
const DRAINED_HANDSHAKE: Duration = Duration::from_secs(1);

/// The interval of timeout checks, short enough that no timeout is exceeded by much.
fn tick(limits: &ServerOptions) -> Duration {
    let shortest = limits
        .first_byte_timeout
        .min(limits.header_timeout)
        .min(limits.idle_timeout)
        .min(limits.write_stall_timeout)
        .min(limits.min_write_rate_window);
    (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
}
