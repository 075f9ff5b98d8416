//! [`SharedTexts`]: long texts that several responses in flight share, each held and charged once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::admission::Permit;
use crate::http::problem::Problem;
use crate::store::Version;

/// Shorter texts are not shared: every request is assumed to hold as much.
const SHORT_BYTES: usize = 128 << 10;

/// Long texts in flight, by their versions, which are digests.
#[derive(Debug, Default)]
pub(crate) struct SharedTexts(Mutex<HashMap<Version, Weak<Charged>>>);

/// A text with its permit.
#[derive(Debug)]
struct Charged {
    text: Bytes,
    _permit: Permit,
}

/// The share of one response in a text.
struct Hold(Arc<Charged>);

impl AsRef<[u8]> for Hold {
    fn as_ref(&self) -> &[u8] {
        &self.0.text
    }
}

impl SharedTexts {
    /// The copy of the text that responses in flight share. Without one, `permit` grows to cover `text`, and is held
    /// until the last response with the text has been sent.
    ///
    /// # Errors
    /// 503 if the budget has not enough free bytes, 413 if it never can.
    pub(crate) fn hold(&self, version: &Version, text: Bytes, mut permit: Permit) -> Result<Bytes, Problem> {
        if text.len() <= SHORT_BYTES {
            return Ok(text);
        }
        // No code panics while it holds the lock.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(charged) = held.get(version).and_then(Weak::upgrade) {
            return Ok(Bytes::from_owner(Hold(charged)));
        }
        permit.grow(text.len() as u64)?;
        let charged = Arc::new(Charged { text, _permit: permit });
        held.retain(|_, charged| charged.strong_count() > 0);
        held.insert(version.clone(), Arc::downgrade(&charged));
        Ok(Bytes::from_owner(Hold(charged)))
    }
}
