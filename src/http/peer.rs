//! [`Peer`]: the other end of a connection.

use std::net::{IpAddr, Ipv4Addr};

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Whether nobody in between can read along.
    pub is_encrypted: bool,
}

impl Peer {
    /// A program of this machine.
    pub const LOOPBACK: Self = Self { address: IpAddr::V4(Ipv4Addr::LOCALHOST), is_encrypted: false };
}
