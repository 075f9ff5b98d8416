//! [`Caller`]: on whose behalf a request is answered.
//!
//! It travels with the request, so that whoever shares something out (room for answers, turns at a backend) can do so
//! between callers. Whether a caller may do what it asks for is not decided here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::Extensions;

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

/// Bits of an address of IPv6 that one subscriber has.
const SUBSCRIBER_BITS: u32 = 64;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    peer: Peer,
}

impl Caller {
    /// Whoever is at the other end of a connection.
    pub(super) const fn at(peer: Peer) -> Self {
        Self { peer }
    }

    /// The caller of a request; requests that nobody brought are this machine's own.
    pub(super) fn of(extensions: &Extensions) -> &Self {
        const OWN: &Caller = &Caller::at(Peer::LOOPBACK);
        extensions.get().unwrap_or(OWN)
    }

    /// The address that the caller shares with nobody else: of IPv6, the network of one subscriber.
    pub(super) fn address(&self) -> IpAddr {
        match self.peer.address.to_canonical() {
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - SUBSCRIBER_BITS))))
            }
            v4 @ IpAddr::V4(_) => v4,
        }
    }
}

/// Says of a request that it came to the listener of whoever runs the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Administrator;

impl Administrator {
    /// Whether whoever asks runs the server.
    pub(super) fn is_asking(extensions: &Extensions) -> bool {
        extensions.get::<Self>().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_subscriber_are_one_caller() {
        let address = |text: &str| {
            Caller::at(Peer { address: text.parse().unwrap(), is_encrypted: true }).address().to_string()
        };
        assert_eq!(address("192.0.2.1"), "192.0.2.1");
        assert_eq!(address("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(address("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(address("2001:db8:1:2::7"), address("2001:db8:1:2:ffff::"));
    }

    #[test]
    fn requests_of_nobody_are_this_machines_own() {
        assert_eq!(Caller::of(&Extensions::new()).address().to_string(), "127.0.0.1");
    }
}
