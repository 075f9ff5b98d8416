//! JSON Web Tokens (RFC 7519) signed with public keys, in the compact serialization (RFC 7515, section 7.1).
//!
//! Strict where the standards leave a choice: a header that contains or references a key, or requires an extension, is
//! refused; the algorithm has to be on the issuer's list and match the key; `exp`, `iss` and `aud` are required.
//! Nothing in a token is trusted before its signature is verified, but for the names of its issuer and its key, which
//! select the verifying key.
//!
//! The crate `jsonwebtoken` (version 11) is not used. It verifies signatures by `aws-lc-rs`, which is a second crypto
//! library in C, by `RustCrypto`, which is dozens of crates, or by code of the application; so `algorithm` would stay as
//! it is, on `ring`, which TLS uses too. It takes the time from the system's clock, rounds fractions of seconds, ignores
//! `iat`, and accepts headers with `crit`, so these checks would stay as well. It would replace only the decoding of the
//! three parts.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::algorithm::{Algorithm, VerifyingKey};

/// Tolerated difference of clocks, in seconds.
const LEEWAY: f64 = 60.0;
/// Members of a header that contain or reference keys, or require extensions: the server understands none of them.
const REFUSED: [&str; 7] = ["crit", "jwk", "jku", "x5u", "x5c", "b64", "zip"];

/// A well-formed token that is not verified yet.
#[derive(Clone, Debug)]
pub(super) struct Unverified<'a> {
    /// The algorithm in its header.
    pub(super) algorithm: Algorithm,
    /// The name of the key in its header.
    pub(super) key: String,
    /// The signed part of the token.
    message: &'a str,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

/// The claims of a verified token that is valid now.
#[derive(Clone, Debug)]
pub(super) struct Claims(Map<String, Value>);

impl<'a> Unverified<'a> {
    /// Parses a token; `None` if it is malformed, or its header requires what the server does not support.
    pub(super) fn parse(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let header = object(header)?;
        if REFUSED.iter().any(|name| header.contains_key(*name)) {
            return None;
        }
        let kind = header.get("typ").map(Value::as_str);
        let is_token = |kind: &str| ["jwt", "at+jwt"].iter().any(|known| kind.eq_ignore_ascii_case(known));
        if kind.is_some_and(|kind| !kind.is_some_and(is_token)) {
            return None;
        }
        Some(Self {
            algorithm: Algorithm::of_name(header.get("alg")?.as_str()?)?,
            key: header.get("kid")?.as_str()?.to_owned(),
            message,
            signature: BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?,
            claims: object(claims)?,
        })
    }

    /// The issuer that it names.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }

    /// The claims, if this key signed the token, and the token is for this audience and valid at `now`.
    pub(super) fn verify(self, key: &VerifyingKey, audience: &str, now: u64) -> Option<Claims> {
        if !key.has_signed(self.algorithm, self.message.as_bytes(), &self.signature) {
            return None;
        }
        let claims = self.claims;
        let is_ours = match claims.get("aud")? {
            Value::String(one) => one == audience,
            Value::Array(several) => several.iter().any(|one| one == audience),
            _ => return None,
        };
        // Exact below 2^53 seconds.
        let now = now.to_string().parse::<f64>().ok()?;
        let is_past = time(claims.get("exp")?)? + LEEWAY <= now;
        let is_ahead = |name: &str| match claims.get(name) {
            None => Some(false),
            Some(value) => Some(time(value)? - LEEWAY > now),
        };
        let is_early = is_ahead("nbf")? || is_ahead("iat")?;
        (is_ours && !is_past && !is_early).then_some(Self::claims(claims))
    }

    fn claims(claims: Map<String, Value>) -> Claims {
        Claims(claims)
    }
}

impl Claims {
    /// The first second since 1970 at which the token is no longer valid.
    pub(super) fn good_until(&self) -> u64 {
        let expires = self.0.get("exp").and_then(time).unwrap_or_default();
        // Exact up to 2^53, and never later than the end that `verify` accepts.
        format!("{:.0}", (expires + LEEWAY).floor()).parse().unwrap_or(u64::MAX)
    }

    /// The subject, if the token has one.
    pub(super) fn subject(&self) -> Option<&str> {
        self.0.get("sub")?.as_str()
    }

    /// Whether a claim is this value, or contains it as an array member or as one of the words of a string, as in
    /// `scope`.
    pub(super) fn has(&self, claim: &str, value: &str) -> bool {
        match self.0.get(claim) {
            Some(Value::String(text)) => text == value || text.split(' ').any(|word| word == value),
            Some(Value::Array(members)) => members.iter().any(|member| member == value),
            Some(Value::Bool(truth)) => value == if *truth { "true" } else { "false" },
            _ => false,
        }
    }
}

/// A part of a token, decoded as a JSON object.
fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// Seconds since 1970, possibly with a fraction.
fn time(value: &Value) -> Option<f64> {
    value.as_number()?.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
}
