//! [`ServerOptions`]: where to listen and how much patience connections get.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Deserializer, Serialize};

/// Where to listen and how much patience connections get.
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
    /// Most connections at a time; what comes above is closed at once.
    pub max_connections: u32,
    /// A connection that sends nothing is closed after this many seconds.
    pub first_byte_seconds: u32,
    /// The head of a request must be whole this many seconds after its first byte.
    pub header_seconds: u32,
    /// A connection without a request is closed after this many seconds.
    pub idle_seconds: u32,
    /// A client that takes nothing of a response for this many seconds is cut off.
    pub write_stall_seconds: u32,
    /// After the signal to stop, requests under way may take this many seconds to finish.
    pub drain_seconds: u32,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000),
            admin_listen: None,
            workers: 0,
            max_connections: 16_384,
            first_byte_seconds: 10,
            header_seconds: 10,
            idle_seconds: 30,
            write_stall_seconds: 30,
            drain_seconds: 25,
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
            ("first_byte_seconds", between(1, LONGEST, self.first_byte_seconds)),
            ("header_seconds", between(1, LONGEST, self.header_seconds)),
            ("idle_seconds", between(1, LONGEST, self.idle_seconds)),
            ("write_stall_seconds", between(1, LONGEST, self.write_stall_seconds)),
            ("drain_seconds", between(0, LONGEST, self.drain_seconds)),
        ]
        .into_iter()
        .find_map(|(key, reason)| Some((key, reason?)))
        .or_else(|| {
            // Port 0 is another port each time.
            let clashes = self.listen.port() != 0 && self.admin_listen == Some(self.listen);
            clashes.then(|| ("admin_listen", "the server itself listens there already".to_owned()))
        })
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
    text.parse().map_err(|_refused: std::net::AddrParseError| {
        serde::de::Error::custom("expected ADDRESS:PORT, as in \"127.0.0.1:8000\" or \"[::1]:8000\"")
    })
}
