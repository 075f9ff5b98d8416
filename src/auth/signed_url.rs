//! Signed URLs: `?expires=<seconds since 1970>&key=<name>&signature=<hexadecimal digits>` gives read access to the one
//! key that the URL names, or with `&below=<prefix>` to everything below a prefix.
//!
//! The signature covers not the URL but what it gives access to, each on a line: the mount, the key or prefix as the
//! store has it, and the time. So the same access has only one signed form, and the server compares it with the key
//! that it serves, after all decoding. HMAC-SHA256, compared in constant time. A signing key can give no more than its
//! own grants.

use std::collections::HashMap;
use std::sync::Arc;

use ring::hmac;

use super::grant::{Grant, KeyScope};
use super::options::{AccessOptions, GrantOptions, from_hex, to_hex};
use super::principal::Principal;
use super::scope::{Scope, Scopes};
use crate::http::path::{KeyOrPrefix, encode};
use crate::key::StorePrefix;

/// The first line of the signed text: no other use of the same key signs the same text.
const PURPOSE: &str = "zarrd signed URL 1";
/// The number of callers that the holders of all URLs of one key count as, at most. Two of them seldom share one, and a
/// client that collects many URLs is still bounded.
const CALLERS: u8 = 64;
/// Largest number of digits of a time.
const TIME_DIGITS: usize = 12;

/// The parameters of a signed URL, as they are written.
#[derive(Clone, Debug, Default)]
pub(super) struct SignedQuery {
    pub(super) expires: Option<String>,
    pub(super) key: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) below: Option<String>,
}

/// The signature of a request that is valid for everything below a prefix: links from the response carry it on.
///
/// A token from a query is not carried on in links: it may grant more than reading, has no end of its own, and sharing
/// the link would share the token.
#[derive(Clone, Debug)]
pub(crate) struct SignedUrl {
    query: String,
    below: StorePrefix,
}

impl SignedUrl {
    pub(crate) fn new(query: &str, below: StorePrefix) -> Self {
        Self { query: query.to_owned(), below }
    }

    /// The signature of a request, after its verification; `None` if it is valid for one key alone. However the request writes
    /// it, links have it in one way, in which lines for programs can repeat it between quotes.
    pub(super) fn of(signed: &SignedQuery) -> Option<Self> {
        let below = signed.below.as_deref()?;
        let parts = [&signed.expires, &signed.key, &signed.signature].map(|part| part.as_deref().map(encode));
        let [Some(expires), Some(key), Some(signature)] = parts else { return None };
        let query = format!("expires={expires}&key={key}&signature={signature}&below={}", encode(below));
        Some(Self::new(&query, StorePrefix::parse(below).ok()?))
    }

    /// Its parameters, percent-encoded.
    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    /// Whether it gives access to everything below a prefix.
    pub(crate) fn reaches(&self, prefix: &StorePrefix) -> bool {
        prefix.as_str().starts_with(self.below.as_str())
    }

    /// The prefix that it gives access to.
    pub(crate) fn below(&self) -> &StorePrefix {
        &self.below
    }
}

/// All keys that sign URLs.
#[derive(Debug)]
pub(super) struct SigningKeys(HashMap<String, SigningKey>);

#[derive(Debug)]
struct SigningKey {
    key: hmac::Key,
    within: Arc<[Grant]>,
}

impl SigningKeys {
    pub(super) fn new(options: &AccessOptions) -> Self {
        let known = options.signing_keys.iter().map(|(name, options)| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, options.secret.expose().as_bytes());
            let within = options.grants.iter().filter_map(GrantOptions::grant).collect();
            (name.clone(), SigningKey { key, within })
        });
        Self(known.collect())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The holder of a URL that is signed for this place of a mount; `None` if the signature is not valid for it, or
    /// has expired.
    pub(super) fn authenticate(
        &self,
        query: &SignedQuery,
        mount: &str,
        place: Option<&KeyOrPrefix>,
        now: u64,
    ) -> Option<Principal> {
        let (name, expires) = (query.key.as_deref()?, query.expires.as_deref()?);
        let signature = from_hex(query.signature.as_deref()?.as_bytes())?;
        let SigningKey { key, within } = self.0.get(name)?;
        let reach = match (&query.below, place) {
            (Some(below), _) => KeyScope::Prefix(StorePrefix::parse(below).ok()?),
            (None, Some(KeyOrPrefix::Key(key))) => KeyScope::Key(key.clone()),
            (None, _) => return None,
        };
        hmac::verify(key, message(mount, &reach, expires)?.as_bytes(), &signature).ok()?;
        if seconds(expires)? <= now {
            return None;
        }
        let scopes = match &reach {
            KeyScope::Key(_) => [Scope::Read].into_iter().collect(),
            KeyScope::Prefix(_) | KeyScope::StringPrefix(_) => Scopes::SIGNED,
        };
        let grant = Grant { mount: Some(mount.to_owned()), reach, scopes };
        // The holder of a URL cannot choose its signature.
        let part = signature.first().map_or(0, |byte| byte % CALLERS);
        Some(Principal::signed(format!("signed/{name}"), part, grant, Arc::clone(within)))
    }
}

/// Parses seconds since 1970, in the one way to write them.
fn seconds(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    (is_plain && text.len() <= TIME_DIGITS).then(|| text.parse().ok()).flatten()
}

/// The signed text. Neither a mount's name nor a key contains a line end.
fn message(mount: &str, reach: &KeyScope, expires: &str) -> Option<String> {
    let (kind, text) = match reach {
        KeyScope::Key(key) => ("key", key.as_str()),
        KeyScope::Prefix(prefix) => ("below", prefix.as_str()),
        KeyScope::StringPrefix(_) => return None,
    };
    Some(format!("{PURPOSE}\n{mount}\n{kind}\n{text}\n{expires}"))
}

/// Whether a signing key is granted reading or listing of what [`sign`] signs for `text`, or of a part of it. A URL of a key
/// without this gives no more than callers without a credential have.
#[must_use]
pub fn is_granted(options: &AccessOptions, name: &str, mount: &str, text: &str) -> bool {
    let grants = options.signing_keys.get(name).map(|key| &key.grants);
    let mut grants = grants.into_iter().flatten().filter_map(GrantOptions::grant);
    grants.any(|grant| {
        let KeyScope::Prefix(prefix) = &grant.reach else { return false };
        let (prefix, is_below) = (prefix.as_str(), text.is_empty() || text.ends_with('/'));
        let overlaps = text.starts_with(prefix)
            || prefix.strip_suffix('/') == Some(text)
            || (is_below && prefix.starts_with(text));
        let scopes = grant.scopes;
        grant.is_of(mount) && overlaps && (scopes.has(Scope::Read) || (is_below && scopes.has(Scope::List)))
    })
}

/// The path and query of a URL that is valid until a time: for the key `text`, or, if `text` ends in a slash or is
/// empty, for everything below that prefix. `None` for an unknown signing key, or an invalid key, prefix or time.
#[must_use]
pub fn sign(options: &AccessOptions, name: &str, mount: &str, text: &str, expires: u64) -> Option<String> {
    let secret = options.signing_keys.get(name)?.secret.expose();
    let reach = if text.is_empty() || text.ends_with('/') {
        KeyScope::Prefix(StorePrefix::parse(text).ok()?)
    } else {
        KeyScope::Key(crate::key::StoreKey::parse(text).ok()?)
    };
    let expires = expires.to_string();
    seconds(&expires)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = to_hex(hmac::sign(&key, message(mount, &reach, &expires)?.as_bytes()).as_ref());
    let path: Vec<String> = text.split('/').map(encode).collect();
    let below = match &reach {
        KeyScope::Prefix(prefix) => format!("&below={}", encode(prefix.as_str())),
        KeyScope::Key(_) | KeyScope::StringPrefix(_) => String::new(),
    };
    let (mount, path) = (encode(mount), path.join("/"));
    Some(format!("/store/{mount}/{path}?expires={expires}&key={name}&signature={signature}{below}"))
}
