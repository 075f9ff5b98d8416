//! [`Issuer`]: an issuer of accepted JSON Web Tokens, and its keys, which change.
//!
//! Keys come from a file once, or from the web: at the first token, for a token whose key is unknown, and before they
//! are older than [`REFRESH`]. From half that age on a fetch runs in the background; requests wait for it only after
//! the full age. One fetch runs at a time, at most once per [`PAUSE`], however many forged tokens name unknown keys,
//! and whether or not the client that started it is still connected. If a fetch fails, known keys stay valid for
//! [`KEEP`], and tokens signed with them no longer wait for a fetch; after that no token can be verified, and the
//! response is 503.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::algorithm::Algorithm;
use super::grant::Grant;
use super::jwt::{Claims, Unverified};
use super::key_set::{KEY_SET_BYTES, VerifyingKeySet};
use super::options::{GrantOptions, IssuerOptions};
use super::principal::Principal;
use super::verified::Verified;
use crate::http::problem::causes;
use crate::store::StoreError;

/// Least time between two fetches of keys.
const PAUSE: Duration = Duration::from_mins(1);
/// Age up to which keys are refreshed.
const REFRESH: Duration = Duration::from_mins(10);
/// Age up to which keys stay valid if they cannot be fetched again.
const KEEP: Duration = Duration::from_hours(24);
/// Timeout of a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches keys from the web: this layer has no HTTP client of its own.
pub trait FetchKeys: std::fmt::Debug + Send + Sync + 'static {
    /// Fetches the document at a URL, of at most `most_bytes` bytes. Redirects are not followed.
    ///
    /// # Errors
    /// [`StoreError`] if the document cannot be fetched.
    fn fetch(&self, url: String, most_bytes: usize) -> BoxFuture<'static, Result<Bytes, StoreError>>;
}

/// The reasons why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthError {
    /// The token is not valid.
    Bad,
    /// The keys of the issuer are not available now.
    Unknown,
    /// The verification would take work that is not allowed now.
    Unverified,
}

/// An issuer of tokens.
#[derive(Debug)]
pub(super) struct Issuer {
    /// Its name in the configuration.
    name: String,
    /// `iss` of its tokens.
    iss: String,
    audience: String,
    algorithms: Vec<Algorithm>,
    grants: Vec<(Grant, Option<(String, String)>)>,
    keys: Arc<Keys>,
    verified: Verified,
}

/// An issuer's keys.
#[derive(Debug)]
struct Keys {
    source: Option<(String, Arc<dyn FetchKeys>)>,
    algorithms: Vec<Algorithm>,
    known: ArcSwapOption<Known>,
    /// The time of the last fetch; locked during a fetch.
    asked: Arc<Mutex<Option<Instant>>>,
    /// Whether the last fetch failed.
    is_failing: AtomicBool,
}

/// Keys, and the time when they were fetched.
#[derive(Debug)]
struct Known {
    keys: VerifyingKeySet,
    since: Instant,
}

impl Issuer {
    /// An issuer whose keys are in this document, or are fetched from the web.
    pub(super) fn new(
        name: &str,
        options: &IssuerOptions,
        document: Option<VerifyingKeySet>,
        web: &Arc<dyn FetchKeys>,
    ) -> Self {
        let condition = |grant: &GrantOptions| grant.claim.clone().zip(grant.value.clone());
        let grants = options.grants.iter().filter_map(|grant| Some((grant.grant()?, condition(grant))));
        let known = document.map(|keys| Arc::new(Known { keys, since: Instant::now() }));
        let keys = Keys {
            source: options.jwks_url.clone().map(|url| (url, Arc::clone(web))),
            algorithms: options.algorithms.clone(),
            known: ArcSwapOption::new(known),
            asked: Arc::default(),
            is_failing: AtomicBool::new(false),
        };
        Self {
            name: name.to_owned(),
            iss: options.issuer.clone(),
            audience: options.audience.clone(),
            algorithms: options.algorithms.clone(),
            grants: grants.collect(),
            keys: Arc::new(keys),
            verified: Verified::default(),
        }
    }

    /// Takes over the fetched keys of `before` if it is the same issuer with the same URL: they are still valid, and
    /// the URL may not respond now.
    pub(super) fn take_over_keys(&mut self, before: &Self) {
        if self.iss == before.iss && self.keys.are_fetched_like(&before.keys) {
            self.keys = Arc::clone(&before.keys);
        }
    }

    /// Whether a token names this issuer.
    pub(super) fn has_issued(&self, token: &Unverified<'_>) -> bool {
        token.issuer() == Some(self.iss.as_str())
    }

    /// The holder of a token; `text` is the token as it was sent. A token that was verified before with the same key is
    /// accepted at once; another is verified where work is allowed.
    pub(super) async fn authenticate(
        &self,
        text: &str,
        token: Unverified<'_>,
        now: u64,
        may_work: impl Fn() -> bool,
    ) -> Result<Arc<Principal>, AuthError> {
        if !self.algorithms.contains(&token.algorithm) {
            return Err(AuthError::Bad);
        }
        let before = self.verified.find(text, now);
        // A series of bad tokens does not start fetches of keys either.
        if before.is_none() && !may_work() {
            return Err(AuthError::Unverified);
        }
        let known = self.keys.for_token(&token).await?;
        let key = known.keys.find(&token.key, token.algorithm).ok_or(AuthError::Bad)?;
        if let Some(principal) = before.and_then(|before| before.holder_by(key)) {
            return Ok(principal);
        }
        if !may_work() {
            return Err(AuthError::Unverified);
        }
        let claims = token.verify(key, &self.audience, now).ok_or(AuthError::Bad)?;
        let principal = Arc::new(self.principal(&claims));
        self.verified.keep(text, key, claims.good_until(), &principal);
        Ok(principal)
    }

    fn principal(&self, claims: &Claims) -> Principal {
        let holds = |condition: &Option<(String, String)>| {
            condition.as_ref().is_none_or(|(claim, value)| claims.has(claim, value))
        };
        let grants = self.grants.iter().filter(|(_, condition)| holds(condition));
        let name = format!("{}/{}", self.name, claims.subject().unwrap_or_default());
        Principal::named(name, grants.map(|(grant, _)| grant.clone()).collect())
    }
}

impl Keys {
    /// Whether both are fetched from the same URL for the same algorithms.
    fn are_fetched_like(&self, other: &Self) -> bool {
        let url = |keys: &Self| keys.source.as_ref().map(|(url, _)| url.clone());
        url(self).is_some() && url(self) == url(other) && self.algorithms == other.algorithms
    }

    /// The known keys, with a fetch first if a token's key is not among them.
    async fn for_token(self: &Arc<Self>, token: &Unverified<'_>) -> Result<Arc<Known>, AuthError> {
        let is_good = |known: &Arc<Known>| self.source.is_none() || known.since.elapsed() < KEEP;
        let has_key = |known: &Arc<Known>| known.keys.find(&token.key, token.algorithm).is_some();
        if let Some(known) = self.known.load_full().filter(|known| has_key(known) && is_good(known)) {
            let age = if self.source.is_some() { known.since.elapsed() } else { Duration::ZERO };
            if age >= REFRESH / 2 {
                let is_begun = self.ask();
                if is_begun && age >= REFRESH && !self.is_failing.load(Ordering::Relaxed) {
                    self.asked().await;
                    return self.known.load_full().filter(is_good).ok_or(AuthError::Unknown);
                }
            }
            return Ok(known);
        }
        if self.ask() {
            self.asked().await;
        }
        self.known.load_full().filter(is_good).ok_or(AuthError::Unknown)
    }

    /// Starts a fetch, unless the last one was a moment ago; returns whether one is in flight.
    fn ask(self: &Arc<Self>) -> bool {
        let Some((url, web)) = self.source.clone() else { return false };
        // The holder of the lock fetches the keys.
        let Ok(mut asked) = Arc::clone(&self.asked).try_lock_owned() else { return true };
        if asked.is_some_and(|asked| asked.elapsed() < PAUSE) {
            return false;
        }
        *asked = Some(Instant::now());
        let keys = Arc::clone(self);
        // A separate task, because the client that started it may disconnect.
        tokio::spawn(async move {
            let fetched = timeout(FETCH_TIMEOUT, web.fetch(url, KEY_SET_BYTES)).await;
            let fetched = fetched.unwrap_or_else(|late| Err(StoreError::TimedOut(Arc::new(late))));
            let found = match fetched.map(|document| VerifyingKeySet::parse(&document, &keys.algorithms)) {
                Ok(Some(found)) => Some(Arc::new(Known { keys: found, since: Instant::now() })),
                Ok(None) => {
                    tracing::warn!("the document of an issuer is not a key set for its algorithms");
                    None
                }
                Err(error) => {
                    tracing::warn!(causes = causes(&error), "the keys of an issuer cannot be fetched");
                    None
                }
            };
            keys.is_failing.store(found.is_none(), Ordering::Relaxed);
            if found.is_some() {
                keys.known.store(found);
            }
            drop(asked);
        });
        true
    }

    /// Waits for the end of the fetch in flight.
    async fn asked(&self) {
        drop(self.asked.lock().await);
    }
}
