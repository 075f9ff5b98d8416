//! [`ClientBucket`]: the caller as those see it who share something out between callers.
//!
//! A number in place of a name: two callers have the same one by chance alone, and nobody outside can bring that about,
//! for how it is made is another with each process.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use crate::auth::caller::Caller;

/// Whoever shares with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientBucket(u64);

impl ClientBucket {
    /// That of a request's caller.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        // Callers are told apart by this, and by nothing else.
        let identity = Caller::of(extensions).client_key();
        Self(HASHES.hash_one(identity))
    }

    /// The caller as a number.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Its place among so many.
    pub(super) fn bucket(self, of: usize) -> usize {
        usize::try_from(self.0 % (of as u64).max(1)).unwrap_or_default()
    }
}

#[cfg(test)]
impl ClientBucket {
    /// A caller by number.
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
