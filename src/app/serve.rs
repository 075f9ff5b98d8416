//! [`serve`]: the accept loop and the graceful shutdown.
//!
//! Not axum's, because that has no timeouts and waits without bound for connections that never finish a head. TLS handshakes are
//! part of each connection, not of this loop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::connection::{self, ConnectionConfig};
use super::connection_timeouts::ConnectionLimits;
use super::service::RequestHandler;
use super::shutdown::{Phase, Shutdown};
use super::tls::Tls;
use crate::metrics::ConnectionCounts;

/// Pauses after a failed `accept`, from the first to the longest.
const BACK_OFF: Duration = Duration::from_millis(10);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1);
/// Most connections that wait to be accepted (the backlog that tokio sets).
const BACKLOG: usize = 1024;
/// Time for connections to end after they were closed.
const FORCED_CLOSE_WAIT: Duration = Duration::from_secs(1);

/// A listener and its endpoint.
#[derive(Debug)]
pub struct BoundListener<R> {
    /// Where connections come from.
    pub listener: TcpListener,
    /// The handler of their requests.
    pub routes: R,
    /// Their encryption, if any.
    pub tls: Option<Tls>,
}

/// Serves connections until the shutdown begins, then lets requests in flight finish for `server.drain_timeout`, and closes the
/// rest. Returns when no connection is left.
pub async fn serve<R: RequestHandler>(
    listener: TcpListener,
    routes: R,
    limits: ConnectionLimits,
    shutdown: Shutdown,
) {
    serve_all(vec![BoundListener { listener, routes, tls: None }], limits, shutdown).await;
}

/// [`serve`] for several listeners, each with its own handler. They share the limit of connections, and end together.
pub async fn serve_all<R: RequestHandler>(
    listeners: Vec<BoundListener<R>>,
    limits: ConnectionLimits,
    shutdown: Shutdown,
) {
    let permits =
        Arc::new(Semaphore::new(usize::try_from(limits.server.max_connections).unwrap_or(usize::MAX)));
    // As many at a time as the configuration has listeners.
    join_all(listeners.into_iter().map(|listener| accept(listener, limits.clone(), &shutdown, &permits)))
        .await;

    // Every connection holds a permit: all permits back means that none is left.
    let all_gone = || permits.acquire_many(limits.server.max_connections);
    tokio::select! {
        _ = all_gone() => return,
        () = tokio::time::sleep(limits.server.drain_timeout) => {}
        _ = shutdown.reached(Phase::Forced) => {}
    }
    let left =
        usize::try_from(limits.server.max_connections).unwrap_or(usize::MAX) - permits.available_permits();
    tracing::warn!(connections = left, "closing connections that did not finish");
    shutdown.force();
    let _ = tokio::time::timeout(FORCED_CLOSE_WAIT, all_gone()).await;
}

/// Accepts until the drain begins; the listener is closed on return.
async fn accept<R: RequestHandler>(
    BoundListener { listener, routes, tls }: BoundListener<R>,
    limits: ConnectionLimits,
    shutdown: &Shutdown,
    permits: &Arc<Semaphore>,
) {
    let builder = connection::builder(&limits);
    let config = ConnectionConfig { builder, routes, tls, limits, shutdown: shutdown.clone() };
    let spawn = |stream, peer| {
        // Too many connections: dropping the stream closes it at once.
        let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
            tracing::debug!(%peer, "rejected: too many connections");
            if let Some(counts) = config.routes.connections() {
                counts.refused();
            }
            return;
        };
        let open = config.routes.connections().as_ref().map(ConnectionCounts::opened);
        let connection = connection::serve(config.clone(), stream, peer);
        // An async block would hold the connection's future, which is large, twice.
        tokio::spawn(connection.map(|()| drop((permit, open))));
    };
    let mut back_off = BACK_OFF;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = shutdown.reached(Phase::Draining) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                back_off = BACK_OFF;
                spawn(stream, peer);
            }
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                // Out of descriptors or memory: retrying at once would spin, and giving up would end the service.
                tracing::error!(%error, pause = ?back_off, "cannot accept connections");
                tokio::select! {
                    () = tokio::time::sleep(back_off) => {}
                    _ = shutdown.reached(Phase::Draining) => break,
                }
                back_off = (back_off * 2).min(LONGEST_BACK_OFF);
            }
        }
    }
    // Closing the listener resets connections that the system has accepted already, so they are accepted first. That asks the
    // system itself, because tokio may not know of them yet.
    let Ok(listener) = listener.into_std() else {
        return;
    };
    for _ in 0..BACKLOG {
        let Ok((stream, peer)) = listener.accept() else {
            return;
        };
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            spawn(stream, peer);
        }
    }
}

/// Whether a failed `accept` concerns one client only, which is gone already.
fn is_the_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
