//! [`Scope`]: one kind of operation on a mount, and [`Scopes`]: a set of them.
//!
//! No scope includes another: the right to write does not include the right to read.

use serde::{Deserialize, Serialize};

/// One kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read values, and everything derived from them.
    Read,
    /// List keys.
    List,
    /// Store values.
    Write,
    /// Erase values.
    Delete,
    /// Purge and warm caches.
    Admin,
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scopes(u8);

impl Scope {
    /// Its name in grants.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Scopes {
    /// No scope.
    pub(crate) const NONE: Self = Self(0);
    /// Every scope.
    pub(crate) const ALL: Self = Self(u8::MAX);
    /// The scopes that a signed URL can give.
    pub(crate) const SIGNED: Self = Self(Scope::Read.bit() | Scope::List.bit());

    /// Whether the set contains a scope.
    pub(crate) const fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether the set is empty.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scope_includes_another() {
        let each = [Scope::Read, Scope::List, Scope::Write, Scope::Delete, Scope::Admin];
        for one in each {
            let scopes: Scopes = [one].into_iter().collect();
            for other in each {
                assert_eq!(scopes.has(other), one == other);
                assert!(Scopes::ALL.has(other) && !Scopes::NONE.has(other));
            }
            assert!(!scopes.is_empty());
        }
        assert!(Scopes::NONE.is_empty());
    }
}
