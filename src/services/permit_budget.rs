//! [`PermitBudget`]: the memory budget of a request, backed by a permit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Extensions;

use crate::admission::{Admission, AdmissionRequest, ClientBucket, Permit, Priority};
use crate::store::{BudgetExceeded, MemoryBudget};

/// A memory budget that grows a permit beyond what the request was admitted with.
#[derive(Debug)]
pub(crate) struct PermitBudget {
    permit: Mutex<Permit>,
    share: ClientBucket,
}

impl PermitBudget {
    /// The budget of a request whose response is derived from, or lists, a large number of values.
    pub(crate) fn of(admission: &Admission, extensions: &Extensions) -> Arc<dyn MemoryBudget> {
        let share = ClientBucket::of(extensions);
        let permit = admission.uncharged(AdmissionRequest::of(Priority::Background, share));
        Arc::new(Self { permit: Mutex::new(permit), share })
    }

    /// The budget of what a request holds beside all that it was admitted with.
    pub(crate) fn alongside(
        admission: &Admission,
        extensions: &Extensions,
        entrant: AdmissionRequest,
    ) -> Arc<dyn MemoryBudget> {
        let permit = Mutex::new(admission.alongside(entrant));
        Arc::new(Self { permit, share: ClientBucket::of(extensions) })
    }

    fn permit(&self) -> MutexGuard<'_, Permit> {
        // No code panics while it holds the lock.
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryBudget for PermitBudget {
    fn reserve(&self, bytes: u64) -> Result<(), BudgetExceeded> {
        self.permit().take(bytes)
    }

    fn release(&self, bytes: u64) {
        self.permit().release(bytes);
    }

    fn client(&self) -> u64 {
        self.share.number()
    }
}
