//! [`Held`]: the memory that a store needs to buffer a request body, charged to the memory budget before it is used.
//!
//! Some stores take a value only whole or in large parts ([`Store::held_by_set`]). The body then stays in memory for as
//! long as its sender takes. A declared length is charged before the first byte is read; a body without one is charged as
//! it arrives. A charge never waits: where the budget is exhausted, nothing is written and the client gets a problem.

use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{StreamExt, TryStreamExt};

use crate::admission::Permit;
use crate::http::problem::Problem;
use crate::store::{Store, StoreError, ValueStream, WriteCondition};

/// The permit for the bytes that a store buffers. Clones share it; it is released with the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Held(Arc<Mutex<Permit>>);

impl Held {
    pub(crate) fn new(permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(permit)))
    }

    /// Sets the charge to this number of bytes.
    ///
    /// # Errors
    /// 503 if the budget has too few free bytes now, 413 if it can never have enough.
    pub(crate) fn charge(&self, bytes: u64) -> Result<(), Problem> {
        let mut permit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        permit.resize(bytes).map_err(|problem| problem.extension("written", false))
    }

    /// Sets the charge to this number of bytes, or to all that one request can have, as a request is charged that says beforehand what
    /// it holds.
    ///
    /// # Errors
    /// 503 if the budget has too few free bytes now.
    pub(crate) fn charge_at_most(&self, bytes: u64) -> Result<(), Problem> {
        let most = self.0.lock().unwrap_or_else(PoisonError::into_inner).most_bytes();
        self.charge(bytes.min(most))
    }

    /// Charges the memory that a store needs for a body of `length` bytes, in addition to `bytes` already held.
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
        self.charge(bytes.saturating_add(held)).map_err(|_exhausted| StoreError::NoUploadMemory)
    }

    /// Charges the memory that a store needs for a body, of which it holds at most `most` bytes at once. A declared length
    /// is charged immediately, otherwise each piece as it arrives.
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
            std::future::ready(charged.map(|()| piece).map_err(|_exhausted| StoreError::NoUploadMemory))
        });
        Ok(charged.boxed())
    }
}
