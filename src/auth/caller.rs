//! [`Caller`]: on whose behalf a request is answered.
//!
//! It travels with the request, so that whoever shares something out (room for answers, turns at a backend) can do so
//! between callers. Who a caller has shown to be, and what it may do, is decided in `access`, and told here.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use super::rights::Rights;
use crate::http::peer::Peer;

/// Bits of an address of IPv6 that one subscriber has.
const SUBSCRIBER_BITS: u32 = 64;

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    peer: Peer,
    rights: Rights,
}

/// Those who share what one is given: all requests of one name, or of one part of it, or without one of one address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientKey {
    /// Of whoever has shown to be this, and which of several: holders of different URLs that one key signed are several.
    Name(Arc<str>, u8),
    /// Of whoever is there.
    Address(IpAddr),
}

impl Caller {
    /// Whoever is at the other end of a connection.
    pub(crate) const fn at(peer: Peer) -> Self {
        Self { peer, rights: Rights::Undecided }
    }

    /// Says of the caller of a request what it may do.
    pub(crate) fn decide(extensions: &mut Extensions, rights: Rights) {
        match extensions.get_mut::<Self>() {
            Some(caller) => caller.rights = rights,
            None => drop(extensions.insert(Self { rights, ..Self::at(Peer::LOOPBACK) })),
        }
    }

    /// What the caller may do.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// With whom the caller shares.
    pub(crate) fn client_key(&self) -> ClientKey {
        match self.rights.name() {
            Some(name) => ClientKey::Name(Arc::clone(name), self.rights.part()),
            None => ClientKey::Address(self.address()),
        }
    }

    /// The caller of a request; requests that nobody brought are this machine's own.
    pub(crate) fn of(extensions: &Extensions) -> &Self {
        const OWN: &Caller = &Caller::at(Peer::LOOPBACK);
        extensions.get().unwrap_or(OWN)
    }

    /// The address that the caller shares with nobody else: of IPv6, the network of one subscriber.
    pub(crate) fn address(&self) -> IpAddr {
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
pub(crate) struct Administrator;

impl Administrator {
    /// Whether whoever asks runs the server.
    pub(crate) fn is_asking(extensions: &Extensions) -> bool {
        extensions.get::<Self>().is_some()
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions).clone())
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
    fn a_name_shares_from_wherever_it_comes_and_strangers_by_address() {
        let mut extensions = Extensions::new();
        let at = |number: u8| Caller::at(Peer { address: [192, 0, 2, number].into(), is_encrypted: true });
        assert_ne!(at(1).client_key(), at(2).client_key());
        assert_eq!(at(1).client_key(), at(1).client_key());
        let mut named = |number: u8| {
            extensions.insert(at(number));
            let access = Arc::new(crate::auth::Access::open());
            let principal = Arc::new(crate::auth::Principal::named("alice", Vec::new()));
            Caller::decide(&mut extensions, Rights::Of { access, principal });
            Caller::of(&extensions).client_key()
        };
        assert_eq!(named(1), ClientKey::Name("alice".into(), 0));
        assert_eq!(named(1), named(2));
    }

    #[test]
    fn requests_of_nobody_are_this_machines_own() {
        assert_eq!(Caller::of(&Extensions::new()).address().to_string(), "127.0.0.1");
    }
}
