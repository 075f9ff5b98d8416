//! [`ClientBucket`]: the caller of a request, as a number for fair sharing between callers.
//!
//! A keyed hash stands in for the caller's name or address. Two callers have the same number only by chance; no client
//! can bring that about, as each process draws its own key.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::LazyLock;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use crate::auth::caller::{Caller, ClientKey};

/// A caller that shares a limited resource with other callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientBucket(u64);

impl ClientBucket {
    /// The bucket of a request's caller.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        // Nothing else distinguishes callers.
        Self(match Caller::of(extensions).client_key() {
            ClientKey::Name(name, part) => HASHES.hash_one((name, part)),
            // One number: every request hashes an address, and each part of one takes as long as the whole.
            ClientKey::Address(IpAddr::V4(address)) => HASHES.hash_one(address.to_bits()),
            ClientKey::Address(IpAddr::V6(address)) => HASHES.hash_one(address.to_bits()),
        })
    }

    /// The caller's hash.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The bucket's index in a table of `of` entries.
    pub(super) fn bucket(self, of: usize) -> usize {
        usize::try_from(self.0 % (of as u64).max(1)).unwrap_or_default()
    }
}

#[cfg(test)]
impl ClientBucket {
    /// A caller with a given hash.
    pub(crate) const fn numbered(number: u64) -> Self {
        Self(number)
    }
}

impl<S: Sync> FromRequestParts<S> for ClientBucket {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
