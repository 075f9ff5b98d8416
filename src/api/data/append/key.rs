//! `Idempotency-Key`: what a client calls an append, so that it can be sent again.

use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::write::AppendKey;

/// The header.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// The key in a header, which may be in quotes.
///
/// # Errors
/// 400.
pub(super) fn name_in(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all(&IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let text = key.to_str().unwrap_or_default().trim();
    let name = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let is_fine = (1..=MAX_KEY_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    if is_fine && keys.next().is_none() {
        return Ok(Some(name.to_owned()));
    }
    Err(Problem::from_class(ErrorClass::InvalidRequest)
        .detail("`Idempotency-Key` is one text of 1 to 255 visible characters, such as a UUID")
        .extension("written", false))
}

/// A key with the digest of what it stands for: the parameters and the body.
pub(super) fn with_digest(name: String, parameters: &str, body: &Bytes) -> AppendKey {
    let digest = Sha256::new().chain_update(parameters).chain_update([0]).chain_update(body).finalize();
    AppendKey { name, digest: digest.iter().map(|byte| format!("{byte:02x}")).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_text_of_visible_characters() {
        let of = |keys: &[&str]| {
            let mut headers = HeaderMap::new();
            keys.iter().for_each(|key| drop(headers.append(IDEMPOTENCY_KEY, key.parse().unwrap())));
            name_in(&headers).ok()
        };
        assert_eq!(of(&[]), Some(None));
        assert_eq!(of(&["\"a-1\""]), Some(Some("a-1".to_owned())));
        assert_eq!(of(&["a-1"]), Some(Some("a-1".to_owned())));
        for refused in [&[""][..], &["\"\""], &["a b"], &["a", "a"], &["x".repeat(256).as_str()]] {
            assert_eq!(of(refused), None, "{refused:?}");
        }
    }
}
