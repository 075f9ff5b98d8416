//! [`AccessOptions`]: access control as configured: `[access]` and `anonymous` of the mounts.
//!
//! Of a token's secret the configuration has only the SHA-256; it has the keys that sign URLs themselves.
//! [`AccessOptions::check`] checks what types cannot; its errors repeat no value that could be a secret.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::algorithm::Algorithm;
use super::grant::{Grant, KeyScope};
use super::scope::{Scope, Scopes};
use super::timestamp::Timestamp;
use crate::error::{Classify, ErrorClass};
use crate::key::{KeyError, StorePrefix};
use crate::store::Secret;

/// The name that stands for every mount.
pub(super) const EVERY_MOUNT: &str = "*";
/// Longest name of a token, an issuer or a key, in bytes.
const NAME_BYTES: usize = 64;
/// Shortest secret that signs URLs, in bytes of its text.
const SIGNING_SECRET_BYTES: usize = 32;

/// Credentials and what they permit. Without tokens, issuers, signing keys and S3 keys, everyone may do what the mounts permit. As soon as
/// there is one of them, callers without a credential may do what the `anonymous` of a mount grants, and nothing else.
///
/// A grant says what may be done where: `{ mount = "NAME", prefix = "a/b", scopes = ["read", "list"] }`. The mount `"*"` is every
/// mount. Without a prefix, a grant is for the whole mount; with one, for that key and all keys below it; `"@tag."` and `"@branch."`
/// stand for all tags and all branches of an Icechunk repository. Scopes are `"read"`
/// (values, and what is derived from them), `"list"`, `"write"`, `"delete"` and `"admin"` (caches); none includes another. A
/// prefix inside an array's directory permits requests to `/store` and `/s3` only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccessOptions {
    /// Whether URLs of GET and HEAD may hold a token, as `?token=`, for viewers that cannot set headers. Such a URL is as secret
    /// as the token, and appears in browser histories and in the logs of proxies.
    pub query_tokens: bool,
    /// Static tokens, by the name that is part of the token.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, TokenOptions>,
    /// Trusted issuers of JSON Web Tokens.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub issuers: BTreeMap<String, IssuerOptions>,
    /// Keys for signed URLs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub signing_keys: BTreeMap<String, SigningKeyOptions>,
    /// Keys for clients of S3.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub s3_keys: BTreeMap<String, S3KeyOptions>,
}

/// A static token. Its text is `zs_NAME_SECRET`, sent as `Authorization: Bearer`; a name has letters, digits, `-` and `.`.
/// `zarrd token NAME` generates one. The configuration holds only the SHA-256 of the secret.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TokenOptions {
    /// SHA-256 of the secret, in hexadecimal digits.
    ///
    /// Example: `"…"`
    pub sha256: Secret,
    /// When the token expires. Without it, never.
    ///
    /// Example: `2030-01-31T00:00:00Z`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// What the token permits.
    ///
    /// Example: `[{ mount = "NAME", scopes = ["read", "list"] }]`
    pub grants: Vec<GrantOptions>,
}

/// A grant: scopes on a part of a mount.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GrantOptions {
    /// Name of a mount, or `*` for every mount.
    pub mount: String,
    /// The key or prefix, of whole segments; empty for the whole mount. `@tag.` is all tags of a repository, `@branch.` all its
    /// branches.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The granted scopes.
    pub scopes: Vec<Scope>,
    /// For the tokens of an issuer: the claim that the grant depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The value that the claim must have, or that must be among its words or members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A trusted issuer of JSON Web Tokens. Its keys come from a URL or from a file. A grant can depend on a claim of the token: the
/// claim must be equal to `value`, or have it among its members or words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerOptions {
    /// The `iss` of its tokens, exactly.
    ///
    /// Example: `"https://login.example"`
    pub issuer: String,
    /// What the `aud` of its tokens must contain.
    ///
    /// Example: `"zarrd"`
    pub audience: String,
    /// Permitted signature algorithms: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384`, `EdDSA`.
    ///
    /// Example: `["RS256"]`
    pub algorithms: Vec<Algorithm>,
    /// URL of its keys. They are fetched again when they change.
    ///
    /// Example: `"https://login.example/keys"`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// File with its keys, instead of a URL.
    ///
    /// Example: `"/etc/zarrd/keys.json"`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_path: Option<PathBuf>,
    /// What its tokens permit.
    ///
    /// Example: `[{ mount = "NAME", scopes = ["read"], claim = "groups", value = "staff" }]`
    pub grants: Vec<GrantOptions>,
}

/// A key for signed URLs. `zarrd sign` generates such URLs, which are valid for GET and HEAD of one key, or of all keys below a
/// prefix, until a given time. They permit no more than the grants of the key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SigningKeyOptions {
    /// The secret, of at least 32 characters. It is best set by an environment variable.
    ///
    /// Example: `"…"`
    pub secret: Secret,
    /// What can be signed with it.
    ///
    /// Example: `[{ mount = "NAME", scopes = ["read", "list"] }]`
    pub grants: Vec<GrantOptions>,
}

/// A key for clients of S3, which sign their requests to `/s3` with it. `zarrd token --s3 NAME` generates one. A signature can
/// be checked only with the secret itself, so that the configuration has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct S3KeyOptions {
    /// What identifies the key in requests: 3 to 128 letters, digits, `-`, `_` or `.`.
    ///
    /// Example: `"…"`
    pub access_key_id: String,
    /// The secret, of at least 32 characters. It is best set by an environment variable.
    ///
    /// Example: `"…"`
    pub secret_access_key: Secret,
    /// When the key expires. Without it, never.
    ///
    /// Example: `2030-01-31T00:00:00Z`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// What the key permits.
    ///
    /// Example: `[{ mount = "NAME", scopes = ["read", "list", "write", "delete"] }]`
    pub grants: Vec<GrantOptions>,
}

/// An error in a setting, and the setting's path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct AccessError {
    /// The path below `access`.
    pub path: Vec<String>,
    /// The error.
    pub fault: AccessFault,
}

/// The kinds of errors in a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessFault {
    /// A name that is not valid in a token or URL.
    #[error("expected a name of 1 to {NAME_BYTES} letters, digits, `-` or `.`")]
    Name,
    /// Not a digest.
    #[error(
        "expected the SHA-256 of the token's secret, 64 hexadecimal digits; never the secret itself: `zarrd token NAME` \
         makes a token and prints what to write here"
    )]
    Digest,
    /// A key that could be guessed.
    #[error("expected at least {SIGNING_SECRET_BYTES} characters; `openssl rand -hex 32` prints such a key")]
    ShortSecret,
    /// Not an identifier of an S3 key.
    #[error("expected 3 to 128 letters, digits, `-`, `_` or `.`; `zarrd token --s3 NAME` makes a key")]
    AccessKeyId,
    /// Two S3 keys of one identifier.
    #[error("another key here has the same `access_key_id`")]
    DuplicateAccessKeyId,
    /// No grant.
    #[error("at least one grant is needed, such as {{ mount = \"NAME\", scopes = [\"read\"] }}")]
    NoGrants,
    /// A grant without scopes.
    #[error("a grant needs `scopes`: some of read, list, write, delete, admin")]
    NoScopes,
    /// A grant that a signed URL cannot give.
    #[error("signed URLs can give only `read` and `list`")]
    SignedScopes,
    /// An invalid prefix.
    #[error("the prefix of a grant: {0}")]
    Prefix(KeyError),
    /// An unknown mount.
    #[error("there is no mount `{0}`; `*` means every mount")]
    UnknownMount(String),
    /// A claim in a grant that is not for an issuer's tokens.
    #[error("`claim` and `value` are for the grants of issuers, both or neither")]
    Claim,
    /// An issuer without a name or an audience.
    #[error("must not be empty")]
    Empty,
    /// Two issuers of one name.
    #[error("another issuer here has the same `issuer`")]
    DuplicateIssuer,
    /// No algorithm.
    #[error("expected some of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA")]
    NoAlgorithms,
    /// Neither source of keys, or both.
    #[error("set either `jwks_url` or `jwks_path`")]
    KeySource,
    /// A URL without transport security, where keys could be replaced on the way.
    #[error("expected an https:// URL; http:// is for this machine alone")]
    KeyUrl,
    /// A file that cannot be read.
    #[error("the file cannot be read: {0}")]
    KeyFile(String),
    /// Keys that cannot be used.
    #[error("expected a JSON Web Key Set with a key for one of the algorithms")]
    KeySet,
}

impl Classify for AccessError {
    fn class(&self) -> ErrorClass {
        ErrorClass::InvalidRequest
    }
}

impl AccessOptions {
    /// Whether any credential is configured.
    #[must_use]
    pub fn has_credentials(&self) -> bool {
        self.has_bearer_tokens() || !(self.signing_keys.is_empty() && self.s3_keys.is_empty())
    }

    /// Whether clients send a secret with requests.
    #[must_use]
    pub fn has_bearer_tokens(&self) -> bool {
        !(self.tokens.is_empty() && self.issuers.is_empty())
    }

    /// Checks what types cannot; `is_mount` says whether a mount exists.
    ///
    /// # Errors
    /// [`AccessError`] for the first invalid setting.
    pub fn check(&self, is_mount: impl Fn(&str) -> bool) -> Result<(), AccessError> {
        let grants = |section: &str, name: &str, grants: &[GrantOptions]| {
            let fault = check_grants(section, grants, &is_mount);
            fault.map_or(Ok(()), |fault| wrong(&[section, name, "grants"], fault))
        };
        for (name, token) in &self.tokens {
            check_name("tokens", name)?;
            if digest(&token.sha256).is_none() {
                return wrong(&["tokens", name, "sha256"], AccessFault::Digest);
            }
            grants("tokens", name, &token.grants)?;
        }
        for (name, key) in &self.signing_keys {
            check_name("signing_keys", name)?;
            if key.secret.expose().len() < SIGNING_SECRET_BYTES {
                return wrong(&["signing_keys", name, "secret"], AccessFault::ShortSecret);
            }
            grants("signing_keys", name, &key.grants)?;
        }
        for (name, key) in &self.s3_keys {
            check_name("s3_keys", name)?;
            let id = &key.access_key_id;
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if !(3..=128).contains(&id.len()) || !id.bytes().all(is_plain) {
                return wrong(&["s3_keys", name, "access_key_id"], AccessFault::AccessKeyId);
            }
            if self.s3_keys.values().filter(|other| other.access_key_id == *id).count() > 1 {
                return wrong(&["s3_keys", name, "access_key_id"], AccessFault::DuplicateAccessKeyId);
            }
            if key.secret_access_key.expose().len() < SIGNING_SECRET_BYTES {
                return wrong(&["s3_keys", name, "secret_access_key"], AccessFault::ShortSecret);
            }
            grants("s3_keys", name, &key.grants)?;
        }
        for (name, issuer) in &self.issuers {
            check_name("issuers", name)?;
            if let Some((key, fault)) = issuer.fault() {
                return wrong(&["issuers", name, key], fault);
            }
            if self.issuers.values().filter(|other| other.issuer == issuer.issuer).count() > 1 {
                return wrong(&["issuers", name, "issuer"], AccessFault::DuplicateIssuer);
            }
            grants("issuers", name, &issuer.grants)?;
        }
        Ok(())
    }
}

impl IssuerOptions {
    fn fault(&self) -> Option<(&'static str, AccessFault)> {
        if self.issuer.is_empty() {
            return Some(("issuer", AccessFault::Empty));
        }
        if self.audience.is_empty() {
            return Some(("audience", AccessFault::Empty));
        }
        if self.algorithms.is_empty() {
            return Some(("algorithms", AccessFault::NoAlgorithms));
        }
        match (&self.jwks_url, &self.jwks_path) {
            (Some(url), None) if !is_safe(url) => Some(("jwks_url", AccessFault::KeyUrl)),
            (Some(_), None) | (None, Some(_)) => None,
            (Some(_), Some(_)) | (None, None) => Some(("jwks_url", AccessFault::KeySource)),
        }
    }
}

/// Whether no one in transit can replace what is fetched there.
fn is_safe(url: &str) -> bool {
    let host = |rest: &str| rest.split(['/', '?', '#', ':']).next().unwrap_or_default().to_owned();
    match url.split_once("://") {
        Some(("https", rest)) => !host(rest).is_empty(),
        Some(("http", rest)) => matches!(host(rest).as_str(), "127.0.0.1" | "localhost"),
        _ => false,
    }
}

fn check_name(section: &str, name: &str) -> Result<(), AccessError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    if (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    wrong(&[section, name], AccessFault::Name)
}

/// Whether a name can be part of a token.
pub(super) fn is_token_name(name: &str) -> bool {
    check_name("tokens", name).is_ok()
}

fn check_grants(
    section: &str,
    grants: &[GrantOptions],
    is_mount: impl Fn(&str) -> bool,
) -> Option<AccessFault> {
    if grants.is_empty() {
        return Some(AccessFault::NoGrants);
    }
    grants.iter().find_map(|grant| {
        if grant.mount != EVERY_MOUNT && !is_mount(&grant.mount) {
            return Some(AccessFault::UnknownMount(grant.mount.clone()));
        }
        if grant.scopes.is_empty() {
            return Some(AccessFault::NoScopes);
        }
        let is_signed = section == "signing_keys";
        if is_signed && !grant.scopes.iter().all(|scope| Scopes::SIGNED.has(*scope)) {
            return Some(AccessFault::SignedScopes);
        }
        let (has_claim, has_value) = (grant.claim.is_some(), grant.value.is_some());
        if has_claim != has_value || (has_claim && section != "issuers") {
            return Some(AccessFault::Claim);
        }
        prefix(&grant.prefix).err().map(AccessFault::Prefix)
    })
}

fn wrong<T>(path: &[&str], fault: AccessFault) -> Result<T, AccessError> {
    Err(AccessError { path: path.iter().map(|&key| key.to_owned()).collect(), fault })
}

/// Parses a prefix such as `a/b`, with a slash at the end or without; an empty text is the root.
fn prefix(text: &str) -> Result<StorePrefix, KeyError> {
    match text.strip_suffix('/').unwrap_or(text) {
        "" if text.is_empty() => Ok(StorePrefix::root()),
        text => StorePrefix::parse(&format!("{text}/")),
    }
}

/// The keys that the prefix of a grant stands for: `@tag.` and `@branch.` stand for all tags and branches.
fn reach(text: &str) -> Result<KeyScope, KeyError> {
    if matches!(text, "@tag." | "@branch.") {
        return Ok(KeyScope::StringPrefix(text.to_owned()));
    }
    prefix(text).map(KeyScope::Prefix)
}

impl GrantOptions {
    /// The grant; `None` for an invalid prefix, which [`AccessOptions::check`] reports.
    pub(super) fn grant(&self) -> Option<Grant> {
        Some(Grant {
            mount: (self.mount != EVERY_MOUNT).then(|| self.mount.clone()),
            reach: reach(&self.prefix).ok()?,
            scopes: self.scopes.iter().copied().collect(),
        })
    }
}

/// Decodes 32 bytes from hexadecimal digits.
pub(super) fn digest(text: &Secret) -> Option<[u8; 32]> {
    from_hex(text.expose().as_bytes())
}

/// Decodes 32 bytes from hexadecimal digits.
pub(super) fn from_hex(text: &[u8]) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |letter: u8| char::from(letter).to_digit(16);
        *byte = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
    }
    Some(bytes)
}

/// Encodes bytes as hexadecimal digits.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), (String, AccessFault)> {
        let options: AccessOptions = serde_json::from_str(text).unwrap();
        options.check(|name| name == "m").map_err(|error| (error.path.join("."), error.fault))
    }

    fn token(sha256: &str, grants: &str) -> String {
        format!(r#"{{"tokens": {{"a": {{"sha256": "{sha256}", "grants": [{grants}]}}}}}}"#)
    }

    fn issuer(members: &str) -> String {
        let grants = r#""grants": [{"mount": "m", "scopes": ["read"], "claim": "g", "value": "x"}]"#;
        format!(r#"{{"issuers": {{"i": {{{members}, {grants}}}}}}}"#)
    }

    #[test]
    fn invalid_settings_are_reported_by_path_without_their_values() {
        let (digest, read) = ("0f".repeat(32), r#"{"mount": "m", "scopes": ["read"]}"#);
        assert_eq!(check(&token(&digest, read)), Ok(()));
        assert_eq!(
            check(&token(&digest.to_uppercase(), r#"{"mount": "*", "prefix": "a/b/", "scopes": ["admin"]}"#)),
            Ok(())
        );
        for (text, path, fault) in [
            (token("canary", read), "tokens.a.sha256", AccessFault::Digest),
            (token(&"0g".repeat(32), read), "tokens.a.sha256", AccessFault::Digest),
            (token(&digest, ""), "tokens.a.grants", AccessFault::NoGrants),
            (token(&digest, r#"{"mount": "m", "scopes": []}"#), "tokens.a.grants", AccessFault::NoScopes),
            (
                token(&digest, r#"{"mount": "n", "scopes": ["read"]}"#),
                "tokens.a.grants",
                AccessFault::UnknownMount("n".to_owned()),
            ),
            (
                token(&digest, r#"{"mount": "m", "prefix": "a/../b", "scopes": ["read"]}"#),
                "tokens.a.grants",
                AccessFault::Prefix(KeyError::DotSegment("..")),
            ),
            (
                token(&digest, r#"{"mount": "m", "scopes": ["read"], "claim": "g", "value": "x"}"#),
                "tokens.a.grants",
                AccessFault::Claim,
            ),
            (token(&digest, read).replace("\"a\"", "\"a_b\""), "tokens.a_b", AccessFault::Name),
            (token(&digest, read).replace("\"a\"", "\"\""), "tokens.", AccessFault::Name),
            (
                format!(r#"{{"signing_keys": {{"k": {{"secret": "short", "grants": [{read}]}}}}}}"#),
                "signing_keys.k.secret",
                AccessFault::ShortSecret,
            ),
            (
                format!(
                    r#"{{"signing_keys": {{"k": {{"secret": "{digest}", "grants": [{}]}}}}}}"#,
                    read.replace("read", "write")
                ),
                "signing_keys.k.grants",
                AccessFault::SignedScopes,
            ),
        ] {
            let error = check(&text).unwrap_err();
            assert_eq!(error, (path.to_owned(), fault), "{text}");
            assert!(!error.1.to_string().contains("canary"));
        }
    }

    #[test]
    fn issuers_need_algorithms_and_one_source_of_keys() {
        let keys = r#""jwks_url": "https://login.example/keys""#;
        let with = |members: &str| check(&issuer(members));
        let whole = format!(r#""issuer": "i", "audience": "z", "algorithms": ["RS256"], {keys}"#);
        assert_eq!(with(&whole), Ok(()));
        assert_eq!(with(&whole.replace("https://login.example", "http://127.0.0.1:1")), Ok(()));
        for (from, to, key, fault) in [
            (r#""issuer": "i""#, r#""issuer": """#, "issuer", AccessFault::Empty),
            (r#""audience": "z""#, r#""audience": """#, "audience", AccessFault::Empty),
            (r#"["RS256"]"#, "[]", "algorithms", AccessFault::NoAlgorithms),
            ("https://login.example", "http://login.example", "jwks_url", AccessFault::KeyUrl),
            ("https://login.example", "http://127.0.0.1.evil", "jwks_url", AccessFault::KeyUrl),
            ("https://login.example", "file://", "jwks_url", AccessFault::KeyUrl),
            (keys, r#""jwks_path": null"#, "jwks_url", AccessFault::KeySource),
            (keys, &format!(r#"{keys}, "jwks_path": "/x""#), "jwks_url", AccessFault::KeySource),
        ] {
            let error = with(&whole.replace(from, to)).unwrap_err();
            assert_eq!(error, (format!("issuers.i.{key}"), fault), "{to}");
        }
        for odd in ["none", "HS256", "rs256"] {
            let text = issuer(&whole.replace("RS256", odd));
            assert!(serde_json::from_str::<AccessOptions>(&text).is_err(), "{odd}");
        }
    }

    #[test]
    fn hexadecimal_digits_decode_to_bytes() {
        let bytes: [u8; 32] = std::array::from_fn(|place| place as u8 * 8);
        assert_eq!(from_hex(to_hex(&bytes).as_bytes()), Some(bytes));
        for odd in ["", "0", &"0".repeat(63), &"0".repeat(65), &"0".repeat(66), &"é".repeat(32)] {
            assert_eq!(from_hex(odd.as_bytes()), None);
        }
    }
}
