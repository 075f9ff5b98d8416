//! [`ServerOptions`]: where to listen, how much patience connections get, and what stands in front.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Deserializer, Serialize};

use super::tls::TlsOptions;
use crate::http::Network;

/// Where to listen, how much patience connections get, and what stands in front.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerOptions {
    /// Address and port. Port 0 lets the system choose.
    #[serde(deserialize_with = "listen_address")]
    pub listen: SocketAddr,
    /// Address and port for whoever runs the server; none without it.
    #[serde(deserialize_with = "some_listen_address", skip_serializing_if = "Option::is_none")]
    pub admin_listen: Option<SocketAddr>,
    /// Threads that run the server; 0 means as many as there are cores.
    pub workers: u16,
    /// Bytes of memory that the process may take; 0 means as many as its control group may.
    pub max_memory: u64,
    /// Most connections at a time; what comes above is closed at once.
    pub max_connections: u32,
    /// A connection that sends nothing is closed after this many seconds.
    pub first_byte_timeout: u32,
    /// The handshake of TLS must be done this many seconds after the connection came about.
    pub tls_handshake_timeout: u32,
    /// The head of a request must be whole this many seconds after its first byte.
    pub header_timeout: u32,
    /// A connection without a request is closed after this many seconds.
    pub idle_timeout: u32,
    /// A client that takes nothing of a response for this many seconds is cut off.
    pub write_stall_timeout: u32,
    /// A client that takes less than this many bytes a second of a response is cut off; 0 for any speed.
    pub min_write_rate: u32,
    /// That is counted over so many seconds in which nothing but the client is waited for.
    pub min_write_rate_window: u32,
    /// After the signal to stop, requests under way may take this many seconds to finish.
    pub drain_timeout: u32,
    /// Buffer of an HTTP/1 connection, in bytes: the head of a request must fit in it.
    pub http1_buffer_size: u32,
    /// Most requests at a time on an HTTP/2 connection.
    pub http2_max_streams: u32,
    /// Most bytes of a head in HTTP/2, as that counts them; more are 431.
    pub http2_max_header_list_size: u32,
    /// Most bytes of an answer that are held for an HTTP/2 client that does not take them.
    pub http2_send_buffer_size: u32,
    /// A quiet HTTP/2 client is asked after this many seconds whether it is there.
    pub http2_keepalive_interval: u32,
    /// It must answer within this many seconds.
    pub http2_keepalive_timeout: u32,
    /// Proxies whose word is taken for who asks, by which scheme, for which host: addresses, or networks as in
    /// `10.0.0.0/8`.
    pub trusted_proxies: Vec<Network>,
    /// Whether something in front of this server speaks TLS to its clients.
    pub behind_proxy: bool,
    /// With it, this server speaks TLS itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000),
            admin_listen: None,
            workers: 0,
            max_memory: 0,
            max_connections: 16_384,
            first_byte_timeout: 10,
            tls_handshake_timeout: 10,
            header_timeout: 10,
            idle_timeout: 30,
            write_stall_timeout: 30,
            min_write_rate: 16 << 10,
            min_write_rate_window: 60,
            drain_timeout: 25,
            http1_buffer_size: 64 << 10,
            http2_max_streams: 100,
            http2_max_header_list_size: 16 << 10,
            http2_send_buffer_size: 64 << 10,
            http2_keepalive_interval: 20,
            http2_keepalive_timeout: 10,
            trusted_proxies: Vec::new(),
            behind_proxy: false,
            tls: None,
        }
    }
}

impl ServerOptions {
    /// The first setting that is out of its range, and what is wrong with it.
    pub(super) fn complaint(&self) -> Option<(&'static str, String)> {
        const LONGEST: u32 = 24 * 60 * 60;
        let between = |low: u32, high: u32, value: u32| {
            (value < low || value > high).then(|| format!("must be between {low} and {high}"))
        };
        [
            ("workers", between(0, 1024, u32::from(self.workers))),
            ("max_connections", between(1, 1_000_000, self.max_connections)),
            ("first_byte_seconds", between(1, LONGEST, self.first_byte_timeout)),
            ("handshake_seconds", between(1, LONGEST, self.tls_handshake_timeout)),
            ("header_seconds", between(1, LONGEST, self.header_timeout)),
            ("idle_seconds", between(1, LONGEST, self.idle_timeout)),
            ("write_stall_seconds", between(1, LONGEST, self.write_stall_timeout)),
            ("write_pace_seconds", between(1, LONGEST, self.min_write_rate_window)),
            ("drain_seconds", between(0, LONGEST, self.drain_timeout)),
            ("http1_buffer_bytes", between(8 << 10, 16 << 20, self.http1_buffer_size)),
            ("http2_streams", between(1, 10_000, self.http2_max_streams)),
            ("http2_header_list_bytes", between(1 << 10, 1 << 20, self.http2_max_header_list_size)),
            ("http2_send_buffer_bytes", between(1 << 10, 16 << 20, self.http2_send_buffer_size)),
            ("http2_ping_seconds", between(1, LONGEST, self.http2_keepalive_interval)),
            ("http2_pong_seconds", between(1, LONGEST, self.http2_keepalive_timeout)),
        ]
        .into_iter()
        .find_map(|(key, reason)| Some((key, reason?)))
        .or_else(|| {
            // Port 0 is another port each time.
            let clashes = self.listen.port() != 0 && self.admin_listen == Some(self.listen);
            clashes.then(|| ("admin_listen", "the server itself listens there already".to_owned()))
        })
    }

    /// What is valid and seldom meant.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        (self.behind_proxy && self.trusted_proxies.is_empty()).then_some(
            "`server.behind_proxy` is set and `server.trusted_proxies` is empty: all clients behind the proxy count as one \
             address, whose bad credentials and share of the server are those of all",
        )
    }

    /// Whether what is sent to an address can be read by others on its way: passwords and tokens should not pass there.
    #[must_use]
    pub fn is_readable_by_others(&self, listen: SocketAddr) -> bool {
        !(self.behind_proxy || self.tls.is_some() || listen.ip().to_canonical().is_loopback())
    }
}

/// An address that may be left out.
pub(super) fn some_listen_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    listen_address(deserializer).map(Some)
}

fn listen_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_listen(&text).ok_or_else(|| {
        serde::de::Error::custom(
            "expected ADDRESS:PORT, as in \"127.0.0.1:8000\", \"[::1]:8000\" or \"localhost:8000\"",
        )
    })
}

/// An address to listen on. Of names only `localhost` is known: who is looked up would depend on the day.
pub(super) fn parse_listen(text: &str) -> Option<SocketAddr> {
    match text.split_once(':') {
        Some((host, port)) if host.eq_ignore_ascii_case("localhost") => {
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?))
        }
        _ => text.parse().ok(),
    }
}
