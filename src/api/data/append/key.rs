//! `Idempotency-Key`: what a client calls an append, so that it can be sent again.

use axum::http::{HeaderMap, HeaderName};
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

/// A key with the digest of what it stands for: the bytes of each part of a request, and what says where they go.
pub(super) fn with_digest<'p>(
    name: String,
    parts: impl IntoIterator<Item = (&'p str, &'p [u8])>,
) -> AppendKey {
    let mut digest = Sha256::new();
    for (meaning, bytes) in parts {
        for text in [meaning.as_bytes(), bytes] {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
    }
    AppendKey { name, digest: format!("{:x}", digest.finalize()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_text_of_visible_characters() {
        let of = |keys: &[&str]| {
            let mut headers = HeaderMap::new();
            for key in keys {
                headers.append(IDEMPOTENCY_KEY, key.parse().unwrap());
            }
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
