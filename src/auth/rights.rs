//! [`Rights`]: the rights of a caller. Every caller has those of anonymous callers.

use std::sync::Arc;

use super::access::Access;
use super::grant::{Grant, KeyScope, Permission};
use super::principal::Principal;
use crate::key::StorePrefix;

/// The rights of a caller.
#[derive(Clone, Debug, Default)]
pub(crate) enum Rights {
    /// No rights: there is no decision yet.
    #[default]
    Undecided,
    /// All that the mounts offer: callers have equal rights.
    All,
    /// The grants of a principal, and those of every caller.
    Of {
        /// The tables of grants.
        access: Arc<Access>,
        /// The principal.
        principal: Arc<Principal>,
    },
}

impl Rights {
    /// The name of an authenticated caller.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Undecided | Self::All => None,
            Self::Of { principal, .. } => principal.name.as_ref(),
        }
    }

    /// Which of the fair shares of its name the caller has.
    pub(crate) fn part(&self) -> u8 {
        match self {
            Self::Undecided | Self::All => 0,
            Self::Of { principal, .. } => principal.part,
        }
    }

    /// Whether the grants cover a permission.
    pub(crate) fn allows(&self, mount: &str, need: &Permission) -> bool {
        match self {
            Self::Undecided => false,
            Self::All => true,
            Self::Of { access, principal } => {
                let of = |grants: &[Grant]| grants.iter().any(|grant| grant.allows(mount, need));
                access.anonymous(mount).has(need.scope)
                    || (of(&principal.grants) && principal.within.as_deref().is_none_or(of))
            }
        }
    }

    /// Whether every caller has a permission: what is found with it is not private.
    pub(crate) fn are_those_of_all(&self, mount: &str, need: &Permission) -> bool {
        match self {
            Self::Undecided => false,
            Self::All => true,
            Self::Of { access, .. } => access.anonymous(mount).has(need.scope),
        }
    }

    /// The widest granted prefix of whole segments that covers a permission for a key or a prefix; `None` if no grant covers
    /// it.
    pub(crate) fn covering_grant(&self, mount: &str, need: &Permission) -> Option<StorePrefix> {
        let (access, principal) = match self {
            Self::Undecided => return None,
            Self::All => return Some(StorePrefix::root()),
            Self::Of { access, principal } => (access, principal),
        };
        if access.anonymous(mount).has(need.scope) {
            return Some(StorePrefix::root());
        }
        let own = widest(&principal.grants, mount, need)?;
        match &principal.within {
            None => Some(own),
            // Both limits hold, so the narrower prefix is the granted one.
            Some(within) => {
                let outer = widest(within, mount, need)?;
                Some(if outer.as_str().len() > own.as_str().len() { outer } else { own })
            }
        }
    }

    /// Whether the caller may do anything with a mount.
    pub(crate) fn can_see(&self, mount: &str) -> bool {
        match self {
            Self::Undecided => false,
            Self::All => true,
            Self::Of { access, principal } => {
                let of = |grants: &[Grant]| grants.iter().any(|grant| grant.is_of(mount));
                !access.anonymous(mount).is_empty()
                    || (of(&principal.grants) && principal.within.as_deref().is_none_or(of))
            }
        }
    }

    /// Whether every caller has a permission.
    pub(crate) fn is_for_all(&self, mount: &str, need: &Permission) -> bool {
        match self {
            Self::Undecided => false,
            Self::All => true,
            Self::Of { access, .. } => access.anonymous(mount).has(need.scope),
        }
    }
}

/// The shortest prefix among the grants that cover a permission. A grant of one key counts as that key's prefix.
fn widest(grants: &[Grant], mount: &str, need: &Permission) -> Option<StorePrefix> {
    let met = grants.iter().filter(|grant| grant.allows(mount, need));
    let prefixes = met.filter_map(|grant| match &grant.reach {
        KeyScope::Prefix(prefix) => Some(prefix.clone()),
        KeyScope::Key(key) => Some(key.as_prefix()),
        KeyScope::StringPrefix(text) => segments_within(text, &need.reach),
    });
    prefixes.min_by_key(|prefix| prefix.as_str().len())
}

/// The shortest prefix of whole segments that begins with a text and that a key or prefix is below.
fn segments_within(text: &str, wanted: &KeyScope) -> Option<StorePrefix> {
    let wanted = match wanted {
        KeyScope::Key(key) => key.as_str(),
        KeyScope::Prefix(prefix) => prefix.as_str(),
        KeyScope::StringPrefix(_) => return None,
    };
    let rest = wanted.strip_prefix(text)?.split('/').next()?;
    StorePrefix::parse(&format!("{text}{rest}/")).ok()
}
