//! Static tokens: `zs_<name>_<secret>`, of which the configuration has the SHA-256 of the secret.
//!
//! The name finds the token, and digests are compared in constant time: for an unknown name a digest is computed and
//! compared as well. A new token has 192 bits of the system's randomness.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::options::{AccessOptions, TokenOptions, digest, is_token_name, to_hex};
use super::principal::Principal;

/// The prefix of every token.
const MARK: &str = "zs_";
/// Accepted lengths of a secret, in bytes: 128 bits need 22 letters.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 22..=256;
/// Random bytes of a new secret.
const RANDOM_BYTES: usize = 24;

/// All static tokens.
#[derive(Debug)]
pub(super) struct Tokens {
    by_name: HashMap<String, Known>,
    /// The digest that an unknown token is compared with.
    nobodys: [u8; 32],
}

/// A configured token.
#[derive(Debug)]
struct Known {
    digest: [u8; 32],
    /// The end of its validity, in seconds since 1970.
    expires: Option<u64>,
    holder: Arc<Principal>,
}

impl Known {
    fn of(name: &str, options: &TokenOptions) -> Option<Self> {
        let grants = options.grants.iter().filter_map(crate::auth::options::GrantOptions::grant).collect();
        Some(Self {
            digest: digest(&options.sha256)?,
            expires: options.expires.as_ref().map(crate::auth::timestamp::Timestamp::seconds),
            holder: Arc::new(Principal::named(name, grants)),
        })
    }
}

impl Tokens {
    pub(super) fn new(options: &AccessOptions) -> Self {
        let known =
            |(name, options): (&String, &TokenOptions)| Some((name.clone(), Known::of(name, options)?));
        let mut nobodys = [0; 32];
        // Any bytes will do: a token compared with them is refused.
        let _ = SystemRandom::new().fill(&mut nobodys);
        Self { by_name: options.tokens.iter().filter_map(known).collect(), nobodys }
    }

    /// Whether a text has the form of a static token.
    pub(super) fn is_one(text: &str) -> bool {
        text.starts_with(MARK)
    }

    /// The holder of a token; `None` if the token is unknown or has expired.
    pub(super) fn authenticate(&self, token: &str, now: u64) -> Option<&Arc<Principal>> {
        let (name, secret) = token.strip_prefix(MARK)?.split_once('_')?;
        if !SECRET_BYTES.contains(&secret.len()) {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        let known = self.by_name.get(name);
        let expected = known.map_or(&self.nobodys, |known| &known.digest);
        let is_same = bool::from(digest.ct_eq(expected));
        let known = known.filter(|_| is_same)?;
        known.expires.is_none_or(|expires| now < expires).then_some(&known.holder)
    }
}

/// A new token of this name, and the lines of configuration for it; `None` if the name is not valid for a token, or the
/// system has no randomness.
#[must_use]
pub fn new_token(name: &str) -> Option<String> {
    if !is_token_name(name) {
        return None;
    }
    let mut random = [0; RANDOM_BYTES];
    SystemRandom::new().fill(&mut random).ok()?;
    let secret = to_hex(&random);
    let mut text =
        format!("# The token, for its holder alone; it is shown only this once:\n# {MARK}{name}_{secret}\n");
    // Writing into a String cannot fail.
    let _ = writeln!(
        text,
        "[access.tokens.\"{name}\"]\nsha256 = \"{}\"\n# expires = 2030-01-31\ngrants = [{{ mount = \"*\", scopes = [\"read\", \
         \"list\"] }}]",
        to_hex(&Sha256::digest(secret.as_bytes()))
    );
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str) -> (String, AccessOptions) {
        let text = new_token(name).unwrap();
        let token = text.lines().find_map(|line| line.strip_prefix("# zs_")).unwrap();
        let sha256 = text.lines().find_map(|line| line.strip_prefix("sha256 = ")).unwrap();
        let grants = r#"[{"mount": "*", "scopes": ["read", "list"]}]"#;
        let options = format!(r#"{{"tokens": {{"{name}": {{"sha256": {sha256}, "grants": {grants}}}}}}}"#);
        (format!("zs_{token}"), serde_json::from_str(&options).unwrap())
    }

    #[test]
    fn a_new_token_is_accepted_with_the_printed_configuration() {
        let (token, mut options) = made("a-1.b");
        let knows = |options: &AccessOptions, token: &str, now| {
            Tokens::new(options).authenticate(token, now).is_some()
        };
        assert_eq!(options.check(|_| false), Ok(()));
        assert!(knows(&options, &token, 0));
        assert_ne!(token, made("a-1.b").0);
        options.tokens.get_mut("a-1.b").unwrap().expires = crate::auth::Timestamp::parse("2000-01-01");
        assert!(knows(&options, &token, 946_684_799));
        assert!(!knows(&options, &token, 946_684_800));
        for name in ["", "a_b", "a/b", "a b", "é", "a\n", &"x".repeat(65)] {
            assert_eq!(new_token(name), None, "{name:?}");
        }
    }
}
