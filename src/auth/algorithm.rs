//! [`Algorithm`]: the signature algorithms of tokens (RFC 7518, section 3.1; RFC 8037), and [`VerifyingKey`]: a public
//! key for them.
//!
//! Only public-key signatures: neither `none` nor HMAC, so that no public key can serve as a secret. `ring` verifies
//! the signatures.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A signature algorithm of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "each is the name that RFC 7518 gives it")]
pub enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    #[serde(rename = "EdDSA")]
    Ed25519,
}

impl Algorithm {
    const ALL: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::Ed25519,
    ];

    /// The algorithm of exactly this name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::RS256,
            "RS384" => Self::RS384,
            "RS512" => Self::RS512,
            "PS256" => Self::PS256,
            "PS384" => Self::PS384,
            "PS512" => Self::PS512,
            "ES256" => Self::ES256,
            "ES384" => Self::ES384,
            "EdDSA" => Self::Ed25519,
            _ => return None,
        })
    }
}

/// The key material, by the key's `kty` and `crv`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VerifyingKey {
    /// The only algorithm that the key may be used with, if its `alg` says one.
    only: Option<Algorithm>,
    material: Material,
}

impl VerifyingKey {
    /// Parses a JSON Web Key (RFC 7517); `None` if it is not a public key for one of the algorithms here.
    pub(super) fn of_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(text(name)?).ok();
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let only = match jwk.get("alg") {
            None => None,
            Some(name) => Some(Algorithm::of_name(name.as_str()?)?),
        };
        let point = |length: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == length && y.len() == length).then(|| [&[4], &*x, &*y].concat())
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let n = bytes("n")?;
                let leading = n.iter().take_while(|byte| **byte == 0).count();
                Material::Rsa { n: n.get(leading..)?.to_vec(), e: bytes("e")? }
            }
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            _ => return None,
        };
        let key = Self { only, material };
        Algorithm::ALL.into_iter().any(|algorithm| key.is_for(algorithm)).then_some(key)
    }

    /// Whether the key can be used with an algorithm.
    pub(super) fn is_for(&self, algorithm: Algorithm) -> bool {
        let fits = match &self.material {
            Material::Rsa { .. } => rsa(algorithm).is_some(),
            Material::P256(_) => algorithm == Algorithm::ES256,
            Material::P384(_) => algorithm == Algorithm::ES384,
            Material::Ed25519(_) => algorithm == Algorithm::Ed25519,
        };
        fits && self.only.is_none_or(|only| only == algorithm)
    }

    /// Whether the signature of the message is valid for this key and algorithm.
    pub(super) fn has_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.is_for(algorithm) {
            return false;
        }
        let plain = |by: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(by, key).verify(message, signature).is_ok()
        };
        match &self.material {
            Material::Rsa { n, e } => {
                let key = RsaPublicKeyComponents { n, e };
                rsa(algorithm).is_some_and(|by| key.verify(by, message, signature).is_ok())
            }
            Material::P256(point) => plain(&signature::ECDSA_P256_SHA256_FIXED, point),
            Material::P384(point) => plain(&signature::ECDSA_P384_SHA384_FIXED, point),
            Material::Ed25519(key) => plain(&signature::ED25519, key),
        }
    }
}

/// The RSA parameters of an algorithm, for keys of at least 2048 bits; `None` for other algorithms.
fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
        Algorithm::ES256 | Algorithm::ES384 | Algorithm::Ed25519 => return None,
    })
}
