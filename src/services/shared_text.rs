//! [`SharedTexts`]: long texts that several answers in flight hold, each held and charged once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::admission::Permit;
use crate::http::problem::Problem;
use crate::store::Version;

/// Shorter texts are what a request is taken to hold in any case.
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

/// One answer's hold of a text.
struct Hold(Arc<Charged>);

impl AsRef<[u8]> for Hold {
    fn as_ref(&self) -> &[u8] {
        &self.0.text
    }
}

impl SharedTexts {
    /// The text, as whoever answers with it now holds it. If that is nobody, `permit` is made to be for it, until the last
    /// answer with it has been sent.
    ///
    /// # Errors
    /// 503 if there is no room for it.
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
