//! [`Grant`]: a set of scopes on a part of a mount; and [`Permission`]: a scope and a place that a request needs.
//!
//! A grant is for one mount, or for all of them, and for a prefix of whole segments: `a/b` stands for the key `a/b` and
//! the keys below it, never for `a/bc`. A single grant has to cover a permission. Whether the mount exists is not
//! checked here.

use crate::key::{StoreKey, StorePrefix};

use super::scope::{Scope, Scopes};

/// A set of keys of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyScope {
    /// One key.
    Key(StoreKey),
    /// Every key that begins with a prefix.
    Prefix(StorePrefix),
    /// Every key that begins with a text, which may end within a segment: what S3 lists, and all tags of a repository.
    StringPrefix(String),
}

/// A grant: scopes on a part of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The mount's name; `None` for every mount.
    pub(crate) mount: Option<String>,
    /// The keys that the grant covers.
    pub(crate) reach: KeyScope,
    /// The granted scopes.
    pub(crate) scopes: Scopes,
}

/// A permission that a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permission {
    /// The needed scope.
    pub(crate) scope: Scope,
    /// The keys in the mount that it is needed for.
    pub(crate) reach: KeyScope,
    /// Whether the server may read other keys of the node on the way, because the response is derived from a node.
    pub(crate) is_derived: bool,
}

impl Permission {
    /// The permission for stored values as they are.
    pub(crate) fn stored(scope: Scope, reach: KeyScope) -> Self {
        Self { scope, reach, is_derived: false }
    }

    /// The permission for what is derived from stored values.
    pub(crate) fn derived(scope: Scope, reach: KeyScope) -> Self {
        Self { scope, reach, is_derived: true }
    }
}

impl Grant {
    /// Whether the grant is for a mount.
    pub(crate) fn is_of(&self, mount: &str) -> bool {
        self.mount.as_deref().is_none_or(|name| name == mount)
    }

    /// Whether the grant covers a permission.
    pub(crate) fn allows(&self, mount: &str, need: &Permission) -> bool {
        self.is_of(mount) && self.scopes.has(need.scope) && self.covers(need)
    }

    fn covers(&self, need: &Permission) -> bool {
        match (&self.reach, &need.reach) {
            (KeyScope::Prefix(prefix), KeyScope::Key(key)) => {
                let (prefix, key) = (prefix.as_str(), key.as_str());
                key.starts_with(prefix) || prefix.strip_suffix('/') == Some(key)
            }
            (KeyScope::Prefix(prefix), KeyScope::Prefix(wanted)) => {
                wanted.as_str().starts_with(prefix.as_str())
            }
            (KeyScope::Prefix(prefix), KeyScope::StringPrefix(text)) => text.starts_with(prefix.as_str()),
            // One key of a node is not enough to derive anything from the node.
            (KeyScope::Key(key), KeyScope::Key(wanted)) => key == wanted && !need.is_derived,
            (KeyScope::StringPrefix(text), KeyScope::Key(key)) => key.as_str().starts_with(text.as_str()),
            (KeyScope::StringPrefix(text), KeyScope::Prefix(wanted)) => {
                wanted.as_str().starts_with(text.as_str())
            }
            (KeyScope::StringPrefix(text), KeyScope::StringPrefix(wanted)) => {
                wanted.starts_with(text.as_str())
            }
            (KeyScope::Key(_), KeyScope::Prefix(_) | KeyScope::StringPrefix(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> KeyScope {
        KeyScope::Key(StoreKey::parse(text).unwrap())
    }

    fn below(text: &str) -> KeyScope {
        KeyScope::Prefix(StorePrefix::parse(text).unwrap())
    }

    fn meets(reach: KeyScope, need: &Permission) -> bool {
        let scopes = [need.scope].into_iter().collect();
        Grant { mount: Some("m".to_owned()), reach, scopes }.allows("m", need)
    }

    #[test]
    fn a_prefix_matches_whole_segments() {
        for (granted, wanted, is_met) in [
            ("a/b/", key("a/b/c"), true),
            ("a/b/", key("a/b"), true),
            ("a/b/", key("a/bc"), false),
            ("a/b/", key("a"), false),
            ("a/b/", below("a/b/"), true),
            ("a/b/", below("a/b/c/"), true),
            ("a/b/", below("a/"), false),
            ("a/b/", below(""), false),
            ("a/b/", below("a/bc/"), false),
            ("", below(""), true),
            ("", key("x"), true),
            ("a/", KeyScope::StringPrefix("a/b".to_owned()), true),
            ("a/", KeyScope::StringPrefix("a".to_owned()), false),
            ("", KeyScope::StringPrefix(String::new()), true),
        ] {
            let need = Permission::stored(Scope::Read, wanted);
            assert_eq!(meets(below(granted), &need), is_met, "{granted} {need:?}");
        }
    }

    #[test]
    fn a_grant_of_one_key_covers_its_stored_value_only() {
        assert!(meets(key("a"), &Permission::stored(Scope::Read, key("a"))));
        for need in [
            Permission::stored(Scope::Read, key("a/b")),
            Permission::stored(Scope::Read, key("ab")),
            Permission::stored(Scope::Read, below("a/")),
            Permission::stored(Scope::List, KeyScope::StringPrefix("a".to_owned())),
            Permission::derived(Scope::Read, key("a")),
        ] {
            assert!(!meets(key("a"), &need), "{need:?}");
        }
    }

    #[test]
    fn a_grant_covers_its_mount_and_its_scopes() {
        let scopes = [Scope::Read].into_iter().collect();
        let grant = |mount: Option<&str>| Grant { mount: mount.map(str::to_owned), reach: below(""), scopes };
        let need = |scope| Permission::stored(scope, key("a"));
        assert!(grant(Some("m")).allows("m", &need(Scope::Read)));
        assert!(!grant(Some("m")).allows("M", &need(Scope::Read)));
        assert!(!grant(Some("m")).allows("m", &need(Scope::List)));
        assert!(grant(None).allows("any", &need(Scope::Read)));
    }
}
