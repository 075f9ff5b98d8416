//! [`Grant`]: what may be done where; and [`Permission`]: what a request wants to do where.
//!
//! A grant is for a mount, or for all of them, and for a prefix of it by whole segments: `a/b` is the key `a/b` and what is
//! below it, never `a/bc`. A need is met by one grant alone. Whether there is such a mount is not looked at.

use crate::key::{StoreKey, StorePrefix};

use super::scope::{Scope, Scopes};

/// A part of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyScope {
    /// One key.
    Key(StoreKey),
    /// Every key that begins with a prefix.
    Prefix(StorePrefix),
    /// Every key that begins with a text, which may end within a segment: what S3 lists.
    StringPrefix(String),
}

/// What may be done where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The mount's name; `None` for every mount.
    pub(crate) mount: Option<String>,
    /// Where in it.
    pub(crate) reach: KeyScope,
    /// What.
    pub(crate) scopes: Scopes,
}

/// What a request wants to do where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permission {
    /// What.
    pub(crate) scope: Scope,
    /// Where in the mount.
    pub(crate) reach: KeyScope,
    /// Whether other keys are read on the way than those of the reach: by whatever knows nodes.
    pub(crate) is_derived: bool,
}

impl Permission {
    /// Of stored values as they are.
    pub(crate) fn stored(scope: Scope, reach: KeyScope) -> Self {
        Self { scope, reach, is_derived: false }
    }

    /// Of what is made of stored values.
    pub(crate) fn derived(scope: Scope, reach: KeyScope) -> Self {
        Self { scope, reach, is_derived: true }
    }
}

impl Grant {
    /// Whether this is about a mount.
    pub(crate) fn is_of(&self, mount: &str) -> bool {
        self.mount.as_deref().is_none_or(|name| name == mount)
    }

    /// Whether a need is met.
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
            // One key of a node is not enough to make anything of it.
            (KeyScope::Key(key), KeyScope::Key(wanted)) => key == wanted && !need.is_derived,
            (KeyScope::Key(_), KeyScope::Prefix(_) | KeyScope::StringPrefix(_))
            | (KeyScope::StringPrefix(_), _) => false,
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
    fn a_prefix_is_matched_by_whole_segments() {
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
    fn one_key_is_that_key_as_it_is_stored() {
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
    fn a_grant_is_for_its_mount_and_its_scopes() {
        let scopes = [Scope::Read].into_iter().collect();
        let grant = |mount: Option<&str>| Grant { mount: mount.map(str::to_owned), reach: below(""), scopes };
        let need = |scope| Permission::stored(scope, key("a"));
        assert!(grant(Some("m")).allows("m", &need(Scope::Read)));
        assert!(!grant(Some("m")).allows("M", &need(Scope::Read)));
        assert!(!grant(Some("m")).allows("m", &need(Scope::List)));
        assert!(grant(None).allows("any", &need(Scope::Read)));
    }
}
