//! [`PermitRoom`]: the room of a request, which a permit is for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Extensions;

use super::admission::{Class, Entrant, Permit, Share};
use super::state::AppState;
use crate::store::{NoRoom, Room};

/// Room that a permit gives, beside what the request was let in with.
#[derive(Debug)]
pub(super) struct PermitRoom {
    permit: Mutex<Permit>,
    share: Share,
}

impl PermitRoom {
    /// The room of whoever has sent a request for what is made or listed of very much.
    pub(super) fn of(state: &AppState, extensions: &Extensions) -> Arc<dyn Room> {
        let share = Share::of(extensions);
        let permit = state.admission().extra(Entrant::of(Class::Bulk, share));
        Arc::new(Self { permit: Mutex::new(permit), share })
    }

    fn permit(&self) -> MutexGuard<'_, Permit> {
        // No code panics while it holds the lock.
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room for PermitRoom {
    fn take(&self, bytes: u64) -> Result<(), NoRoom> {
        self.permit().take(bytes)
    }

    fn give_back(&self, bytes: u64) {
        self.permit().give_back(bytes);
    }

    fn caller(&self) -> u64 {
        self.share.number()
    }
}
