//! [`Verified`]: a cache of an issuer's verified tokens, so that each is verified once.
//!
//! The key of an entry is the SHA-256 of the whole token with its signature. A token is accepted until it expires, as
//! long as the issuer still has the key that signed it. The number of entries is bounded: a full cache drops the
//! oldest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::algorithm::VerifyingKey;
use super::principal::Principal;

/// Largest number of tokens.
const MOST: usize = 4096;

/// Verified tokens.
#[derive(Debug, Default)]
pub(super) struct Verified(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    tokens: HashMap<[u8; 32], Arc<Before>>,
    /// In the order of insertion.
    order: VecDeque<[u8; 32]>,
}

/// The result of a verification.
#[derive(Debug)]
pub(super) struct Before {
    key: VerifyingKey,
    good_until: u64,
    holder: Arc<Principal>,
}

impl Before {
    /// The holder of the token, if this key signed it.
    pub(super) fn holder_by(&self, key: &VerifyingKey) -> Option<Arc<Principal>> {
        (self.key == *key).then(|| Arc::clone(&self.holder))
    }
}

impl Verified {
    /// The result of an earlier verification, if the token has not expired.
    pub(super) fn find(&self, token: &str, now: u64) -> Option<Arc<Before>> {
        let digest = digest(token);
        // No code panics while it holds the lock.
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.tokens.get(&digest).filter(|before| now < before.good_until).map(Arc::clone)
    }

    /// Inserts the result of a verification.
    pub(super) fn keep(&self, token: &str, key: &VerifyingKey, good_until: u64, holder: &Arc<Principal>) {
        let digest = digest(token);
        let before = Arc::new(Before { key: key.clone(), good_until, holder: Arc::clone(holder) });
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.tokens.insert(digest, before).is_none() {
            kept.order.push_back(digest);
        }
        if kept.order.len() > MOST
            && let Some(first) = kept.order.pop_front()
        {
            kept.tokens.remove(&first);
        }
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(letter: &str) -> VerifyingKey {
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": letter.repeat(43) });
        VerifyingKey::of_jwk(jwk.as_object().unwrap()).unwrap()
    }

    #[test]
    fn a_token_is_accepted_with_the_same_key_until_it_expires() {
        let (verified, holder) = (Verified::default(), Arc::new(Principal::named("alice", Vec::new())));
        verified.keep("a.b.c", &key("A"), 10, &holder);
        let found = |token: &str, by: &str, now| {
            verified.find(token, now).is_some_and(|before| before.holder_by(&key(by)).is_some())
        };
        assert!(found("a.b.c", "A", 9));
        assert!(!found("a.b.c", "A", 10));
        assert!(!found("a.b.c", "E", 9));
        assert!(!found("a.b.d", "A", 9));
        verified.keep("a.b.c", &key("E"), 20, &holder);
        assert!(found("a.b.c", "E", 19) && !found("a.b.c", "A", 9));
    }

    #[test]
    fn many_tokens_take_bounded_memory() {
        let (verified, holder) = (Verified::default(), Arc::new(Principal::named("alice", Vec::new())));
        for number in 0..3 * MOST {
            verified.keep(&number.to_string(), &key("A"), 10, &holder);
        }
        let kept = verified.0.lock().unwrap();
        assert_eq!((kept.tokens.len(), kept.order.len()), (MOST, MOST));
        drop(kept);
        assert!(verified.find("0", 0).is_none() && verified.find(&(3 * MOST - 1).to_string(), 0).is_some());
    }
}
