//! [`Access`]: the grants of the configuration, with the tables that requests are checked against.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::issuer::FetchKeys;
use super::issuer::Issuer;
use super::key_set::VerifyingKeySet;
use super::options::{AccessError, AccessFault, AccessOptions, IssuerOptions};
use super::principal::Principal;
use super::s3_key::S3Keys;
use super::scope::{Scope, Scopes};
use super::signed_url::SigningKeys;
use super::token::Tokens;
use crate::units::Clock;

/// What [`Access`] needs from outside: the time and the web.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The clock.
    pub clock: Clock,
    /// Fetches the keys of issuers.
    pub web: Arc<dyn FetchKeys>,
}

/// The grants, and everything needed to check a credential.
#[derive(Debug)]
pub struct Access {
    /// What every caller may do with a mount that has no `anonymous` of its own.
    pub(super) otherwise: Scopes,
    /// What every caller may do, by mount.
    pub(super) anonymous: HashMap<String, Scopes>,
    pub(super) query_tokens: bool,
    pub(super) tokens: Tokens,
    pub(super) issuers: Vec<Issuer>,
    pub(super) signing_keys: SigningKeys,
    pub(super) s3_keys: S3Keys,
    /// Whether any credential is configured: else signatures of S3 clients are ignored.
    pub(super) has_credentials: bool,
    pub(super) anonymous_principal: Arc<Principal>,
    pub(super) world: Option<Environment>,
}

impl Access {
    /// Access without credentials: every caller may do what the mounts offer.
    #[must_use]
    pub fn open() -> Self {
        Self {
            otherwise: Scopes::ALL,
            anonymous: HashMap::new(),
            query_tokens: false,
            tokens: Tokens::new(&AccessOptions::default()),
            issuers: Vec::new(),
            signing_keys: SigningKeys::new(&AccessOptions::default()),
            s3_keys: S3Keys::new(&AccessOptions::default()),
            has_credentials: false,
            anonymous_principal: Arc::default(),
            world: None,
        }
    }

    /// The access that the configuration describes: `anonymous` has the scopes that mounts grant to every caller;
    /// `key_sets` has the key files of issuers, by the issuers' names in the configuration.
    ///
    /// # Errors
    /// [`AccessError`] if keys cannot be used; [`AccessOptions::check`] has to come first.
    pub fn new(
        options: &AccessOptions,
        anonymous: &BTreeMap<String, Vec<Scope>>,
        key_sets: &BTreeMap<String, Vec<u8>>,
        world: Environment,
    ) -> Result<Self, AccessError> {
        let scopes = |scopes: &Vec<Scope>| scopes.iter().copied().collect();
        let issuers = options.issuers.iter().map(|(name, issuer)| {
            let keys = key_set(name, issuer, key_sets)?;
            Ok(Issuer::new(name, issuer, keys, &world.web))
        });
        Ok(Self {
            otherwise: if options.has_credentials() { Scopes::NONE } else { Scopes::ALL },
            anonymous: anonymous.iter().map(|(name, granted)| (name.clone(), scopes(granted))).collect(),
            query_tokens: options.query_tokens,
            tokens: Tokens::new(options),
            issuers: issuers.collect::<Result<_, _>>()?,
            signing_keys: SigningKeys::new(options),
            s3_keys: S3Keys::new(options),
            has_credentials: options.has_credentials(),
            anonymous_principal: Arc::default(),
            world: Some(world),
        })
    }

    /// Takes over the fetched keys of issuers that have not changed from the previous configuration.
    pub(crate) fn take_over_keys(&mut self, before: &Self) {
        for issuer in &mut self.issuers {
            before.issuers.iter().for_each(|before| issuer.take_over_keys(before));
        }
    }

    /// Checks that the key files of issuers can be used.
    ///
    /// # Errors
    /// [`AccessError`] with [`AccessFault::KeySet`] for a file that is not a usable key set.
    pub fn check_key_sets(
        options: &AccessOptions,
        key_sets: &BTreeMap<String, Vec<u8>>,
    ) -> Result<(), AccessError> {
        options.issuers.iter().try_for_each(|(name, issuer)| key_set(name, issuer, key_sets).map(drop))
    }

    /// Whether every caller has the same rights.
    pub(crate) fn is_open(&self) -> bool {
        self.anonymous.is_empty() && self.otherwise == Scopes::ALL
    }

    /// What every caller may do with a mount.
    pub(super) fn anonymous(&self, mount: &str) -> Scopes {
        self.anonymous.get(mount).copied().unwrap_or(self.otherwise)
    }

    /// Seconds since 1970.
    pub(super) fn now(&self) -> u64 {
        // Without an environment no credential is configured and the time has no effect; this value makes all expire.
        self.world.as_ref().map_or(u64::MAX, |world| (world.clock)())
    }
}

/// The keys of an issuer that has them in a file; `None` for other issuers.
fn key_set(
    name: &str,
    issuer: &IssuerOptions,
    documents: &BTreeMap<String, Vec<u8>>,
) -> Result<Option<VerifyingKeySet>, AccessError> {
    if issuer.jwks_path.is_none() {
        return Ok(None);
    }
    let keys = documents.get(name).and_then(|document| VerifyingKeySet::parse(document, &issuer.algorithms));
    let path = || ["issuers", name, "jwks_path"].map(str::to_owned).to_vec();
    keys.map(Some).ok_or_else(|| AccessError { path: path(), fault: AccessFault::KeySet })
}
