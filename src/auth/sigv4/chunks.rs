//! [`ChunkSigner`]: checks the signatures of the chunks of a body and of its trailer, each of which depends on the one
//! before.

use std::fmt;

use ring::hmac;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::auth::options::{from_hex, to_hex};

/// The key and the last signature of a request. It is an extension of a request whose signature is right.
#[derive(Clone)]
pub(crate) struct ChunkSigner {
    key: hmac::Key,
    /// The time and the scope, as in the signed texts.
    context: String,
    /// In hexadecimal digits.
    last: String,
}

impl fmt::Debug for ChunkSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChunkSigner")
    }
}

impl ChunkSigner {
    pub(super) fn new(key: hmac::Key, time: &str, scope: &str, seed: String) -> Self {
        Self { key, context: format!("{time}\n{scope}"), last: seed }
    }

    /// Whether a chunk with this SHA-256 has this signature.
    pub(crate) fn check_chunk(&mut self, sha256: &[u8; 32], signature: &str) -> bool {
        let nothing = to_hex(&Sha256::digest(b""));
        let text = format!(
            "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{nothing}\n{}",
            self.context,
            self.last,
            to_hex(sha256)
        );
        self.check(&text, signature)
    }

    /// Whether a trailer with these fields has this signature.
    pub(crate) fn check_trailer(&mut self, fields: &[(String, String)], signature: &str) -> bool {
        let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let digest = to_hex(&Sha256::digest(lines.concat().as_bytes()));
        let text = format!("AWS4-HMAC-SHA256-TRAILER\n{}\n{}\n{digest}", self.context, self.last);
        self.check(&text, signature)
    }

    fn check(&mut self, text: &str, signature: &str) -> bool {
        let expected = hmac::sign(&self.key, text.as_bytes());
        let given = from_hex(signature.as_bytes()).unwrap_or_default();
        self.last = to_hex(expected.as_ref());
        bool::from(expected.as_ref().ct_eq(&given))
    }
}
