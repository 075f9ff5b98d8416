//! [`ServerOptions`]: listeners, connections, timeouts and proxies.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::tls::TlsOptions;
use crate::http::Network;
use crate::units::{duration, size};

/// Listeners, connections and proxies.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerOptions {
    /// Address and port of the server. Port 0 lets the system choose one. To be reachable from other machines:
    /// `"0.0.0.0:8000"` or `"[::]:8000"`. The only host name that can replace an address is `localhost` (127.0.0.1).
    #[serde(deserialize_with = "listen_address")]
    pub listen: SocketAddr,
    /// Address and port for operators: `/metrics`, `/healthz`, `/readyz` and `/v1/cache`. Everyone who can connect to it may
    /// use it, so it should be an address that only operators can reach. Requests from pages of other origins are rejected
    /// there, and the `Host` must be an address, a loopback name, or a name in `http.hosts` or in the `hosts` of a mount (else
    /// 421). `http.rate_limit` does not apply. There is none by default.
    ///
    /// Example: `"127.0.0.1:8002"`
    #[serde(deserialize_with = "some_listen_address", skip_serializing_if = "Option::is_none")]
    pub admin_listen: Option<SocketAddr>,
    /// Whether the pages for people are served: `/` and `/view/`. They show nothing that a caller may not read by other
    /// routes.
    pub ui: bool,
    /// Threads that run the server. 0: one for each core.
    pub workers: u16,
    /// Memory that the process may use. `"auto"` (or 0) is the limit of the control group, such as a container, if it has one.
    /// Budgets that are `"auto"` together take four fifths of it, and the server does not start with budgets that exceed it. At
    /// 90 % of it, half of all caches is evicted and connections are closed after their response. At 97 %, requests are
    /// rejected with 503, except those for health.
    #[serde(with = "size")]
    pub max_memory: u64,
    /// Concurrent connections. Further ones are closed at once. It is lowered to 256 below the limit on open files, if that is
    /// less.
    pub max_connections: u32,
    /// A connection that has sent nothing for this long after it was opened is closed.
    #[serde(with = "duration")]
    pub first_byte_timeout: Duration,
    /// A TLS handshake must end this long after the connection was opened.
    #[serde(with = "duration")]
    pub tls_handshake_timeout: Duration,
    /// The head of a request must be complete this long after its first byte.
    #[serde(with = "duration")]
    pub header_timeout: Duration,
    /// A connection without a request is closed after this time.
    #[serde(with = "duration")]
    pub idle_timeout: Duration,
    /// A connection whose client reads nothing of a response for this long is closed.
    #[serde(with = "duration")]
    pub write_stall_timeout: Duration,
    /// Bytes per second of a response that a client must read at least; slower connections are closed. It is measured over
    /// `min_write_rate_window`. 0: no minimum.
    #[serde(with = "size")]
    pub min_write_rate: u32,
    /// The time over which `min_write_rate` is measured. Only time in which the server waits for nothing but the client counts.
    #[serde(with = "duration")]
    pub min_write_rate_window: Duration,
    /// After SIGTERM or SIGINT, requests in flight may take this long to finish. A second signal ends them at once.
    #[serde(with = "duration")]
    pub drain_timeout: Duration,
    /// Buffer of an HTTP/1 connection, at least 8 KiB: the head of a request must fit in it.
    #[serde(with = "size")]
    pub http1_buffer_size: u32,
    /// Concurrent requests of an HTTP/2 connection. Further ones are refused in a way that lets clients send them again.
    pub http2_max_streams: u32,
    /// Size of a request's headers in HTTP/2: names and values, and 32 bytes for each header. Larger ones are 431.
    #[serde(with = "size")]
    pub http2_max_header_list_size: u32,
    /// Bytes of a response that are buffered for an HTTP/2 client that does not read them.
    #[serde(with = "size")]
    pub http2_send_buffer_size: u32,
    /// An HTTP/2 client with open requests is sent a PING after this time without traffic.
    #[serde(with = "duration")]
    pub http2_keepalive_interval: Duration,
    /// The connection is closed if the PING is not answered within this time.
    #[serde(with = "duration")]
    pub http2_keepalive_timeout: Duration,
    /// Proxies in front of this server: addresses, or networks such as `"10.0.0.0/8"`. Only from these, `Forwarded` or
    /// `X-Forwarded-For` gives the client (the last address that is not a trusted proxy), `X-Forwarded-Proto` and
    /// `X-Forwarded-Host` give scheme and host, and `X-Forwarded-Prefix` the part of the path that the proxy has removed. Let
    /// each proxy set either `Forwarded` or `X-Forwarded-For` itself (if a request has both and they differ, both are
    /// ignored), and set or remove the others.
    pub trusted_proxies: Vec<Network>,
    /// Whether a proxy in front of this server terminates TLS. Without that, and without TLS of its own, a server with
    /// credentials listens on loopback addresses only, because tokens could be read in transit. Set `trusted_proxies` as well:
    /// otherwise all clients of the proxy count as one address.
    pub behind_proxy: bool,
    /// TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000),
            admin_listen: None,
            ui: true,
            workers: 0,
            max_memory: 0,
            max_connections: 16_384,
            first_byte_timeout: Duration::from_secs(10),
            tls_handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            write_stall_timeout: Duration::from_secs(30),
            min_write_rate: 16 << 10,
            min_write_rate_window: Duration::from_mins(1),
            drain_timeout: Duration::from_secs(25),
            http1_buffer_size: 64 << 10,
            http2_max_streams: 100,
            http2_max_header_list_size: 16 << 10,
            http2_send_buffer_size: 64 << 10,
            http2_keepalive_interval: Duration::from_secs(20),
            http2_keepalive_timeout: Duration::from_secs(10),
            trusted_proxies: Vec::new(),
            behind_proxy: false,
            tls: None,
        }
    }
}

impl ServerOptions {
    /// The first setting that is out of its range, and what is wrong with it.
    pub(super) fn first_error(&self) -> Option<(&'static str, String)> {
        const SECOND: Duration = Duration::from_secs(1);
        const DAY: Duration = Duration::from_hours(24);
        let between = |low: u32, high: u32, value: u32| {
            (value < low || value > high).then(|| format!("must be between {low} and {high}"))
        };
        let sized = |low: u32, high: u32, value: u32| {
            (value < low || value > high).then(|| {
                format!("must be between {} and {}", size::format(low.into()), size::format(high.into()))
            })
        };
        let lasting = |low: Duration, value: Duration| {
            (value < low || value > DAY).then(|| format!("must be between {} and 24h", duration::format(low)))
        };
        [
            ("workers", between(0, 1024, u32::from(self.workers))),
            ("max_connections", between(1, 1_000_000, self.max_connections)),
            ("first_byte_timeout", lasting(SECOND, self.first_byte_timeout)),
            ("tls_handshake_timeout", lasting(SECOND, self.tls_handshake_timeout)),
            ("header_timeout", lasting(SECOND, self.header_timeout)),
            ("idle_timeout", lasting(SECOND, self.idle_timeout)),
            ("write_stall_timeout", lasting(SECOND, self.write_stall_timeout)),
            ("min_write_rate_window", lasting(SECOND, self.min_write_rate_window)),
            ("drain_timeout", lasting(Duration::ZERO, self.drain_timeout)),
            ("http1_buffer_size", sized(8 << 10, 16 << 20, self.http1_buffer_size)),
            ("http2_max_streams", between(1, 10_000, self.http2_max_streams)),
            ("http2_max_header_list_size", sized(1 << 10, 1 << 20, self.http2_max_header_list_size)),
            ("http2_send_buffer_size", sized(1 << 10, 16 << 20, self.http2_send_buffer_size)),
            ("http2_keepalive_interval", lasting(SECOND, self.http2_keepalive_interval)),
            ("http2_keepalive_timeout", lasting(SECOND, self.http2_keepalive_timeout)),
        ]
        .into_iter()
        .find_map(|(key, reason)| Some((key, reason?)))
        .or_else(|| {
            // Port 0 is another port each time.
            let clashes = self.listen.port() != 0 && self.admin_listen == Some(self.listen);
            clashes.then(|| ("admin_listen", "the server itself listens there already".to_owned()))
        })
    }

    /// A warning about settings that are valid and probably a mistake.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        (self.behind_proxy && self.trusted_proxies.is_empty()).then_some(
            "`server.behind_proxy` is set and `server.trusted_proxies` is empty: all clients of the proxy count as one address, \
             and share its rate limits and its failed logins",
        )
    }

    /// Whether others could read what clients send to an address: neither TLS nor a loopback address protects it.
    #[must_use]
    pub fn is_readable_by_others(&self, listen: SocketAddr) -> bool {
        !(self.behind_proxy || self.tls.is_some() || listen.ip().to_canonical().is_loopback())
    }
}

/// An address to listen on, of a key that can be absent.
pub(super) fn some_listen_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    listen_address(deserializer).map(Some)
}

fn listen_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_listen(&text).ok_or_else(|| {
        serde::de::Error::custom(
            "expected ADDRESS:PORT, as in \"127.0.0.1:8000\", \"[::1]:8000\" or \"localhost:8000\": no other name is resolved, \
             and an IPv6 address stands in brackets",
        )
    })
}

/// An address to listen on. The only name is `localhost`: what others resolve to can change.
pub(super) fn parse_listen(text: &str) -> Option<SocketAddr> {
    match text.split_once(':') {
        Some((host, port)) if host.eq_ignore_ascii_case("localhost") => {
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?))
        }
        _ => text.parse().ok(),
    }
}
