//! S3 keys: an identifier, and a secret that signs requests and is never sent.
//!
//! A signature can be checked only with the secret itself, so that the configuration has it, and not a digest as of
//! tokens. A new key has 192 bits of the system's randomness.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};

use super::options::{AccessOptions, GrantOptions, is_token_name, to_hex};
use super::principal::Principal;
use super::sigv4::{AwsError, AwsSignature, ChunkSigner};
use crate::store::Secret;

/// Random bytes of a new identifier, and of a new secret.
const RANDOM_BYTES: (usize, usize) = (8, 24);

/// All S3 keys, by their identifiers.
#[derive(Debug)]
pub(super) struct S3Keys(HashMap<String, Known>);

/// A configured key.
#[derive(Debug)]
struct Known {
    secret: Secret,
    /// The end of its validity, in seconds since 1970.
    expires: Option<u64>,
    holder: Arc<Principal>,
}

impl S3Keys {
    pub(super) fn new(options: &AccessOptions) -> Self {
        let keys = options.s3_keys.iter().map(|(name, key)| {
            let grants = key.grants.iter().filter_map(GrantOptions::grant).collect();
            let known = Known {
                secret: key.secret_access_key.clone(),
                expires: key.expires.as_ref().map(super::timestamp::Timestamp::seconds),
                holder: Arc::new(Principal::named(name.as_str(), grants)),
            };
            (key.access_key_id.clone(), known)
        });
        Self(keys.collect())
    }

    /// The holder of the key that signed a request, and what checks the chunks of its body.
    ///
    /// # Errors
    /// [`AwsError`] for an unknown or expired key, a wrong signature, and one that is too old or too new.
    pub(super) fn authenticate(
        &self,
        signature: &AwsSignature,
        now: u64,
    ) -> Result<(Arc<Principal>, ChunkSigner), AwsError> {
        let known = self.0.get(&signature.access_key_id);
        let known = known.filter(|known| known.expires.is_none_or(|expires| now < expires));
        let known = known.ok_or(AwsError::UnknownKey)?;
        let chunks = signature.verify(known.secret.expose(), now)?;
        Ok((Arc::clone(&known.holder), chunks))
    }
}

/// A new S3 key of this name, as the lines of configuration for it; `None` if the name is not valid for a key, or the
/// system has no randomness.
#[must_use]
pub fn new_s3_key(name: &str) -> Option<String> {
    if !is_token_name(name) {
        return None;
    }
    let random = |bytes: usize| {
        let mut random = vec![0; bytes];
        SystemRandom::new().fill(&mut random).ok().map(|()| to_hex(&random))
    };
    let (id, secret) = (random(RANDOM_BYTES.0)?.to_ascii_uppercase(), random(RANDOM_BYTES.1)?);
    let mut text = format!(
        "# For its holder: AWS_ACCESS_KEY_ID=ZARRD{id}\n#                 AWS_SECRET_ACCESS_KEY={secret}\n"
    );
    // Writing into a String cannot fail.
    let _ = writeln!(
        text,
        "[access.s3_keys.\"{name}\"]\naccess_key_id = \"ZARRD{id}\"\nsecret_access_key = \"{secret}\"\n# expires = 2030-01-31\n\
         grants = [{{ mount = \"*\", scopes = [\"read\", \"list\", \"write\", \"delete\"] }}]"
    );
    Some(text)
}
