//! [`Issuer`]: who issues JSON Web Tokens that are believed, and its keys, which change.
//!
//! Keys come from a file once, or from the web: at the first token, for a token whose key is not known, and before they are
//! older than [`REFRESH`]: from half that time on beside the requests, which wait for them only after all of it. They are
//! asked for at most once in [`PAUSE`], by one request at a time, however many forged tokens name keys that there are not,
//! and whether or not whoever asked is still there. When they cannot be had, those that are known stay good for [`KEEP`],
//! and tokens signed with them no longer wait for others; after that it cannot be told who is who, and the answer is 503.

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
use super::key_set::{KEY_SET_BYTES, KeySet};
use super::options::{GrantOptions, IssuerOptions};
use super::principal::Principal;
use super::verified::Verified;
use crate::http::problem::causes;
use crate::store::StoreError;

/// Least time between two times that keys are asked for.
const PAUSE: Duration = Duration::from_mins(1);
/// Keys that are older have been asked for anew.
const REFRESH: Duration = Duration::from_mins(10);
/// For how long keys are good that cannot be had anew.
const KEEP: Duration = Duration::from_hours(24);
/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fetches keys from the web: who serves knows no client for that.
pub trait FetchKeys: std::fmt::Debug + Send + Sync + 'static {
    /// What stands at a URL, if it has at most so many bytes. Redirects are not followed.
    ///
    /// # Errors
    /// Whatever stands in the way.
    fn fetch(&self, url: String, most_bytes: usize) -> BoxFuture<'static, Result<Bytes, StoreError>>;
}

/// Why a token is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthError {
    /// It is no good.
    Bad,
    /// Nobody can tell now.
    Unknown,
    /// To tell would take work that is not to be done.
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
    /// When they were last asked for; held while they are.
    asked: Arc<Mutex<Option<Instant>>>,
    /// Whether they could not be had when they were last asked for.
    is_failing: AtomicBool,
}

/// Keys, and since when they are known.
#[derive(Debug)]
struct Known {
    keys: KeySet,
    since: Instant,
}

impl Issuer {
    /// An issuer whose keys are in this document, or are fetched by these means.
    pub(super) fn new(
        name: &str,
        options: &IssuerOptions,
        document: Option<KeySet>,
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

    /// Takes over the keys that were fetched for another, if they are of the same issuer and from the same place: they are as
    /// good as before, though whoever serves them may not answer now.
    pub(super) fn take_over_keys(&mut self, before: &Self) {
        if self.iss == before.iss && self.keys.are_fetched_like(&before.keys) {
            self.keys = Arc::clone(&before.keys);
        }
    }

    /// Whether a token says that it is from here.
    pub(super) fn has_issued(&self, token: &Unverified<'_>) -> bool {
        token.issuer() == Some(self.iss.as_str())
    }

    /// Whoever holds a token, `text` as it came. One that was verified before with the same key is believed at once; another
    /// is verified where work may be done.
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
        // Keys are not fetched either for whoever brings one bad token after the other.
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
    /// Whether both are fetched from the same place, and are for the same algorithms.
    fn are_fetched_like(&self, other: &Self) -> bool {
        let url = |keys: &Self| keys.source.as_ref().map(|(url, _)| url.clone());
        url(self).is_some() && url(self) == url(other) && self.algorithms == other.algorithms
    }

    /// The keys among which a token's is, if there is one.
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

    /// Has keys fetched, unless that was done a moment ago. Whether they are being fetched now.
    fn ask(self: &Arc<Self>) -> bool {
        let Some((url, web)) = self.source.clone() else { return false };
        // Who has it fetches them.
        let Ok(mut asked) = Arc::clone(&self.asked).try_lock_owned() else { return true };
        if asked.is_some_and(|asked| asked.elapsed() < PAUSE) {
            return false;
        }
        *asked = Some(Instant::now());
        let keys = Arc::clone(self);
        // A task of its own: whoever began it may leave.
        tokio::spawn(async move {
            let fetched = timeout(PATIENCE, web.fetch(url, KEY_SET_BYTES)).await;
            let fetched = fetched.unwrap_or_else(|late| Err(StoreError::TimedOut(Arc::new(late))));
            let found = match fetched.map(|document| KeySet::parse(&document, &keys.algorithms)) {
                Ok(Some(found)) => Some(Arc::new(Known { keys: found, since: Instant::now() })),
                Ok(None) => {
                    tracing::warn!("what an issuer serves is no set of keys for its algorithms");
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

    /// Waits until the keys that are being fetched are there, or are not to be had.
    async fn asked(&self) {
        drop(self.asked.lock().await);
    }
}
