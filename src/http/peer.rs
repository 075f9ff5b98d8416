//! [`Peer`]: the other end of a connection.

use std::net::{IpAddr, Ipv4Addr};

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Whether the connection of the client is encrypted (TLS).
    pub is_encrypted: bool,
}

impl Peer {
    /// A process on this machine.
    pub const LOOPBACK: Self = Self { address: IpAddr::V4(Ipv4Addr::LOCALHOST), is_encrypted: false };
}
