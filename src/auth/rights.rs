//! [`Rights`]: what a caller may do. What anonymous callers may do, all callers may.

use std::sync::Arc;

use super::access::Access;
use super::grant::{Grant, KeyScope, Permission};
use super::principal::Principal;
use crate::key::StorePrefix;

/// What a caller may do.
#[derive(Clone, Debug, Default)]
pub(crate) enum Rights {
    /// Nothing: nobody has decided.
    #[default]
    Undecided,
    /// Whatever the mounts offer: nobody is told from anybody.
    All,
    /// What is granted to somebody, or to all.
    Of {
        /// By these tables.
        access: Arc<Access>,
        /// To whom.
        principal: Arc<Principal>,
    },
}

impl Rights {
    /// The name, if the caller has shown one.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Undecided | Self::All => None,
            Self::Of { principal, .. } => principal.name.as_ref(),
        }
    }

    /// Which of several callers of its name the caller is.
    pub(crate) fn part(&self) -> u8 {
        match self {
            Self::Undecided | Self::All => 0,
            Self::Of { principal, .. } => principal.part,
        }
    }

    /// Whether a need is met.
    pub(crate) fn allows(&self, mount: &str, need: &Permission) -> bool {
        self.covering_grant(mount, need).is_some()
    }

    /// The widest prefix by which a need is met, where that is by a prefix; `None` if it is not met.
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
            // Both hold, so the narrower of the two is what is granted.
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

    /// Whether a need is met for anybody who asks.
    pub(crate) fn is_for_all(&self, mount: &str, need: &Permission) -> bool {
        match self {
            Self::Undecided => false,
            Self::All => true,
            Self::Of { access, .. } => access.anonymous(mount).has(need.scope),
        }
    }
}

/// The shortest prefix among the grants that meet a need. Of one key, the key as a prefix: nothing is wider than it.
fn widest(grants: &[Grant], mount: &str, need: &Permission) -> Option<StorePrefix> {
    let met = grants.iter().filter(|grant| grant.allows(mount, need));
    let prefixes = met.filter_map(|grant| match &grant.reach {
        KeyScope::Prefix(prefix) => Some(prefix.clone()),
        KeyScope::Key(key) => Some(key.as_prefix()),
        KeyScope::StringPrefix(_) => None,
    });
    prefixes.min_by_key(|prefix| prefix.as_str().len())
}
