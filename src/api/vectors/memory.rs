//! The memory of a response that is put together before it is sent: its permit follows what it takes.
//!
//! What a level declares of its vertices is only an estimate, for which a request waits. What turns out to be more is
//! charged as it is read. A response beyond the largest permit counts as the largest.

use bytes::Bytes;

use crate::admission::Permit;
use crate::http::problem::Problem;

/// Charges at least this many bytes from now on.
///
/// # Errors
/// 503 if the budget has too few free bytes now.
pub(super) fn charge(permit: &mut Permit, bytes: u64) -> Result<(), Problem> {
    permit.grow_to(bytes.min(permit.most_bytes()))
}

/// The finished text, which is all that is charged from now on.
///
/// # Errors
/// As [`charge`].
pub(super) fn settle(permit: &mut Permit, mut text: Vec<u8>) -> Result<Bytes, Problem> {
    // Spare capacity would stay in memory until the text is sent.
    text.shrink_to_fit();
    permit.resize((text.len() as u64).min(permit.most_bytes()))?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use axum::http::Extensions;

    use super::*;
    use crate::admission::{Admission, AdmissionRequest, Priority};
    use crate::http::options::HttpOptions;

    #[tokio::test]
    async fn a_permit_follows_what_a_response_takes() {
        let options = HttpOptions { inflight_size: 16 << 20, ..HttpOptions::default() };
        let gate = Admission::new(&options);
        let in_flight = || gate.load().in_flight_bytes;
        let entrant = AdmissionRequest::new(Priority::Elements, &Extensions::new());
        let mut permit = gate.acquire(entrant, 1 << 20).await.unwrap();
        for (bytes, charged) in [(1, 1 << 20), (3 << 20, 3 << 20), (2 << 20, 3 << 20)] {
            charge(&mut permit, bytes).unwrap();
            assert_eq!(in_flight(), charged, "{bytes}");
        }
        let mut text = Vec::with_capacity(4 << 20);
        text.resize(2 << 20, 7);
        assert_eq!((settle(&mut permit, text).unwrap().len(), in_flight()), (2 << 20, 2 << 20));
        let most = permit.most_bytes();
        charge(&mut permit, u64::MAX).unwrap();
        assert_eq!(in_flight(), most, "what is beyond the largest goes alone");
        let refused = charge(&mut gate.alongside(entrant), 8 << 20).unwrap_err();
        assert_eq!(refused.status(), 503);
    }
}
