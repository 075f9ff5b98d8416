//! JSON Web Tokens (RFC 7519) signed with public keys, in their compact form (RFC 7515, section 7.1).
//!
//! Strict where others are lenient: a header that brings its own key, points to one, or asks for an extension is refused;
//! the algorithm is one of the issuer's list and of the key; `exp`, `iss` and `aud` must be there. Nothing of a token is
//! believed before its signature is found good, but for the names of its issuer and its key, which say where to look.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::algorithm::{Algorithm, VerifyingKey};

/// How far clocks may differ, in seconds.
const LEEWAY: f64 = 60.0;
/// Members of a header that bring or point to keys, or ask for extensions: none of them is understood here.
const REFUSED: [&str; 7] = ["crit", "jwk", "jku", "x5u", "x5c", "b64", "zip"];

/// A token that is well formed, and of which nothing else is known.
#[derive(Clone, Debug)]
pub(super) struct Unverified<'a> {
    /// How it says that it is signed.
    pub(super) algorithm: Algorithm,
    /// Which key it says that signed it.
    pub(super) key: String,
    /// What is signed.
    message: &'a str,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

/// What a token with a good signature says, at a time at which it is good.
#[derive(Clone, Debug)]
pub(super) struct Claims(Map<String, Value>);

impl<'a> Unverified<'a> {
    /// Takes a token apart; `None` if that cannot be done, or its header asks for what there is not.
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

    /// Who it says that issued it.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }

    /// What it says, if this key signed it, and it is for this audience, now.
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
        // Exact for as long as there are people.
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
    /// The second since 1970 from which it is no longer good.
    pub(super) fn good_until(&self) -> u64 {
        let expires = self.0.get("exp").and_then(time).unwrap_or_default();
        // Exact up to 2^53, and no later than it is refused by.
        format!("{:.0}", (expires + LEEWAY).floor()).parse().unwrap_or(u64::MAX)
    }

    /// Whom it is about, if it says so.
    pub(super) fn subject(&self) -> Option<&str> {
        self.0.get("sub")?.as_str()
    }

    /// Whether a claim is this value, or has it among its members, or among its words as `scope` has them.
    pub(super) fn has(&self, claim: &str, value: &str) -> bool {
        match self.0.get(claim) {
            Some(Value::String(text)) => text == value || text.split(' ').any(|word| word == value),
            Some(Value::Array(members)) => members.iter().any(|member| member == value),
            Some(Value::Bool(truth)) => value == if *truth { "true" } else { "false" },
            _ => false,
        }
    }
}

/// A part of a token that is an object.
fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// Seconds since 1970, perhaps with a fraction.
fn time(value: &Value) -> Option<f64> {
    value.as_number()?.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
}
