//! [`Caller`]: the client on whose behalf a request is answered.
//!
//! The request carries it, so that limited resources (bytes of responses, calls to a backend) can be shared fairly
//! between callers. The module `authorize` decides who the caller is and what it may do, and records that here.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use super::rights::Rights;
use crate::http::peer::Peer;

/// Prefix length of the IPv6 network of one subscriber, in bits.
const SUBSCRIBER_BITS: u32 = 64;

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    peer: Peer,
    rights: Rights,
}

/// The key of a fair share: all requests with one name, or one part of it, or all requests without a name from one
/// address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientKey {
    /// An authenticated name, and one of its parts: holders of different URLs that one key signed are in different
    /// parts.
    Name(Arc<str>, u8),
    /// The address of a caller without a name.
    Address(IpAddr),
}

impl Caller {
    /// The caller at the other end of a connection.
    pub(crate) const fn at(peer: Peer) -> Self {
        Self { peer, rights: Rights::Undecided }
    }

    /// Records the rights of a request's caller.
    pub(crate) fn decide(extensions: &mut Extensions, rights: Rights) {
        match extensions.get_mut::<Self>() {
            Some(caller) => caller.rights = rights,
            None => drop(extensions.insert(Self { rights, ..Self::at(Peer::LOOPBACK) })),
        }
    }

    /// The rights of the caller.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Whether the caller's connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.peer.is_encrypted
    }

    /// The key of the caller's fair share.
    pub(crate) fn client_key(&self) -> ClientKey {
        match self.rights.name() {
            Some(name) => ClientKey::Name(Arc::clone(name), self.rights.part()),
            None => ClientKey::Address(self.network()),
        }
    }

    /// The caller of a request; requests without a connection count as local.
    pub(crate) fn of(extensions: &Extensions) -> &Self {
        const OWN: &Caller = &Caller::at(Peer::LOOPBACK);
        extensions.get().unwrap_or(OWN)
    }

    /// The caller's address.
    pub(crate) fn address(&self) -> IpAddr {
        self.peer.address.to_canonical()
    }

    /// The caller's address as far as limits distinguish callers: for IPv6, the network of one subscriber.
    pub(crate) fn network(&self) -> IpAddr {
        match self.address() {
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - SUBSCRIBER_BITS))))
            }
            v4 @ IpAddr::V4(_) => v4,
        }
    }
}

/// A request extension: the request came to the administrator's listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Administrator;

impl Administrator {
    /// Whether the request came to the administrator's listener.
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
        let of = |text: &str| {
            let caller = Caller::at(Peer { address: text.parse().unwrap(), is_encrypted: true });
            [caller.address(), caller.network()].map(|address| address.to_string())
        };
        assert_eq!(of("192.0.2.1"), ["192.0.2.1"; 2]);
        assert_eq!(of("::ffff:192.0.2.1"), ["192.0.2.1"; 2]);
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"]);
        assert_eq!(of("2001:db8:1:2::7")[1], of("2001:db8:1:2:ffff::")[1]);
    }

    #[test]
    fn named_callers_share_by_name_and_others_by_address() {
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
    fn requests_without_a_connection_are_local() {
        assert_eq!(Caller::of(&Extensions::new()).address().to_string(), "127.0.0.1");
    }
}
