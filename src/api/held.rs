//! [`Held`]: what a store holds of a body that it is given, charged before it is held.
//!
//! Some stores take a value only whole, or in large parts ([`Store::held_by_set`]); then a body is in memory for as long as its
//! sender likes. What is said beforehand to be that long is charged before a byte is read, and else what comes as it comes.
//! Nobody waits: where there is no room, nothing is written and the sender is told so.

use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{StreamExt, TryStreamExt};

use crate::admission::Permit;
use crate::http::problem::Problem;
use crate::store::{Store, StoreError, ValueStream, WriteCondition};

/// Bytes that a store holds, with their permit. Clones share it; it lasts as long as the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Held(Arc<Mutex<Permit>>);

impl Held {
    pub(crate) fn new(permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(permit)))
    }

    /// Charges so many bytes, in place of those before.
    ///
    /// # Errors
    /// 503 if there is no room for them, 413 if there never is.
    pub(crate) fn charge(&self, bytes: u64) -> Result<(), Problem> {
        let mut permit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        permit.resize(bytes).map_err(|problem| problem.extension("written", false))
    }

    /// Charges what a store will hold of a body of so many bytes, beside `bytes` that are held already.
    ///
    /// # Errors
    /// [`StoreError::NoUploadMemory`].
    pub(crate) fn charge_set(
        &self,
        store: &dyn Store,
        condition: &WriteCondition,
        bytes: u64,
        length: u64,
    ) -> Result<(), StoreError> {
        let held = store.held_by_set(condition).min(length);
        self.charge(bytes.saturating_add(held)).map_err(|_no_room| StoreError::NoUploadMemory)
    }

    /// Charges what a store holds of a body, of which it holds `most` bytes at once: all that is declared at once, or what
    /// comes as it comes.
    ///
    /// # Errors
    /// As [`Held::charge`]. The stream ends in [`StoreError::NoUploadMemory`].
    pub(crate) fn charge_body(
        &self,
        declared: Option<u64>,
        most: u64,
        body: ValueStream,
    ) -> Result<ValueStream, Problem> {
        if let Some(declared) = declared {
            return self.charge(declared.min(most)).map(|()| body);
        }
        let (held, mut received) = (self.clone(), 0_u64);
        let charged = body.and_then(move |piece| {
            received = received.saturating_add(piece.len() as u64);
            let charged = held.charge(received.min(most));
            std::future::ready(charged.map(|()| piece).map_err(|_no_room| StoreError::NoUploadMemory))
        });
        Ok(charged.boxed())
    }
}
