//! [`AccessControl`]: who may do what, and which origins are the server's own.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::mounts::Mounts;
use crate::auth::origin::OriginRules;
use crate::auth::{Access, Authorizer, FailedAuthLimiter};
use crate::http::options::HttpOptions;

/// The access rules for the mounts of a server.
#[derive(Debug)]
pub struct AccessControl {
    rules: ArcSwap<Access>,
    /// The failed authentications, which outlive the rules.
    failures: Arc<FailedAuthLimiter>,
    mounts: Arc<Mounts>,
    options: Arc<HttpOptions>,
}

impl AccessControl {
    /// The rules of a new server: every caller may do what mounts offer.
    pub(super) fn open(mounts: Arc<Mounts>, options: Arc<HttpOptions>) -> Self {
        Self { rules: ArcSwap::from_pointee(Access::open()), failures: Arc::default(), mounts, options }
    }

    /// The same for other mounts and rules; without rules, for those in effect.
    pub(super) fn with_mounts(&self, mounts: Arc<Mounts>, rules: Option<Access>) -> Self {
        let in_effect = self.rules.load_full();
        let rules = match rules {
            Some(mut rules) => {
                rules.take_over_keys(&in_effect);
                Arc::new(rules)
            }
            None => in_effect,
        };
        Self {
            rules: ArcSwap::new(rules),
            failures: Arc::clone(&self.failures),
            mounts,
            options: Arc::clone(&self.options),
        }
    }

    /// Replaces the rules from the next request on. Fetched keys of issuers are kept.
    pub fn set_rules(&self, mut rules: Access) {
        rules.take_over_keys(&self.rules.load());
        self.rules.store(Arc::new(rules));
    }

    /// The current rules, for a short borrow.
    pub(crate) fn rules(&self) -> impl Deref<Target = Arc<Access>> {
        self.rules.load()
    }

    /// The authorizer of requests.
    pub(crate) fn authorizer(&self) -> Authorizer<'_> {
        Authorizer { access: &self.rules, failures: &self.failures, mounts: &*self.mounts }
    }

    /// Calls `check` with the rules that decide which hosts and origins are the server's own.
    pub(crate) fn with_origin_rules<T>(&self, check: impl FnOnce(&OriginRules<'_>) -> T) -> T {
        let serves_host = |host: &str| self.mounts.of_host(host).is_some();
        check(&OriginRules { options: &self.options, serves_host: &serves_host })
    }
}
