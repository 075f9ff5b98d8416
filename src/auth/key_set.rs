//! [`VerifyingKeySet`]: the public keys of an issuer (RFC 7517, section 5), by name.
//!
//! Keys for other algorithms are skipped, and so are keys without a name, because a token names the key that signed it.
//! The length and the number of keys are bounded.

use serde_json::Value;

use super::algorithm::{Algorithm, VerifyingKey};

/// Largest document, in bytes.
pub(super) const KEY_SET_BYTES: usize = 256 << 10;
/// Largest number of keys.
const MOST_KEYS: usize = 256;

/// The keys of an issuer.
#[derive(Clone, Default)]
pub(super) struct VerifyingKeySet(Vec<(String, VerifyingKey)>);

impl std::fmt::Debug for VerifyingKeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl VerifyingKeySet {
    /// Parses a document; `None` if it is not a key set, or has no key for any of these algorithms.
    pub(super) fn parse(document: &[u8], algorithms: &[Algorithm]) -> Option<Self> {
        if document.len() > KEY_SET_BYTES {
            return None;
        }
        let document: Value = serde_json::from_slice(document).ok()?;
        let keys = document.get("keys")?.as_array()?.iter().take(MOST_KEYS);
        let keys = keys.filter_map(|jwk| {
            let jwk = jwk.as_object()?;
            let key = VerifyingKey::of_jwk(jwk)?;
            let is_used = algorithms.iter().any(|algorithm| key.is_for(*algorithm));
            is_used.then_some((jwk.get("kid")?.as_str()?.to_owned(), key))
        });
        let keys: Vec<_> = keys.collect();
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The key of this name for this algorithm.
    pub(super) fn find(&self, name: &str, algorithm: Algorithm) -> Option<&VerifyingKey> {
        self.0.iter().find(|(known, key)| known == name && key.is_for(algorithm)).map(|(_, key)| key)
    }
}
