//! [`TextMemory`]: memory for a response whose length is known only once it was made.
//!
//! Such a response is charged the most that it may have. Where slow readers of long responses hold that memory, it would be
//! rejected however short it is. It is then made with little memory first, and only if that was too little, it waits for more.

use super::{Admission, AdmissionRequest, Permit};
use crate::http::problem::Problem;

/// The bytes of a short response divided by this are for its text.
const SHORT_SHARE: u64 = 8;

/// Memory for a response, and the most bytes of text that fit.
#[derive(Debug)]
pub(crate) struct TextMemory<'a> {
    admission: &'a Admission,
    entrant: AdmissionRequest,
    permit: Permit,
    limit: u64,
    /// The most bytes of text that a response may have, and the memory of such a response.
    most: u64,
    most_memory: u64,
}

impl<'a> TextMemory<'a> {
    /// The most bytes of text of a response that is made with little memory. With what is held beside it, it still counts as short.
    pub(crate) fn short_bytes(admission: &Admission) -> u64 {
        admission.short_bytes() / SHORT_SHARE
    }

    /// Memory for a response with up to `most` bytes of text, or with few. `memory_bytes` is what a response with this many takes.
    ///
    /// # Errors
    /// As [`Admission::acquire`].
    pub(crate) async fn acquire(
        admission: &'a Admission,
        entrant: AdmissionRequest,
        most: u64,
        memory_bytes: impl Fn(u64) -> u64,
    ) -> Result<Self, Problem> {
        let short = most.min(Self::short_bytes(admission));
        let (most_memory, short_memory) = (memory_bytes(most), memory_bytes(short));
        let (permit, limit) = if let Some(permit) = admission.try_acquire(entrant, most_memory) {
            (permit, most)
        } else {
            let is_short = short_memory < most_memory;
            let (limit, bytes) = if is_short { (short, short_memory) } else { (most, most_memory) };
            (admission.acquire(entrant, bytes).await?, limit)
        };
        Ok(Self { admission, entrant, permit, limit, most, most_memory })
    }

    /// The most bytes of text that fit.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether a response that was refused for `limit` can be made with more memory.
    pub(crate) fn can_extend(&self, limit: Option<u64>) -> bool {
        self.limit < self.most && limit.is_some_and(|limit| limit <= self.limit)
    }

    /// Waits for the memory of the longest response in place of what it has.
    ///
    /// # Errors
    /// As [`Admission::acquire`].
    pub(crate) async fn extend(&mut self) -> Result<(), Problem> {
        // Two responses that keep what they have would wait for each other.
        self.permit = self.admission.alongside(self.entrant);
        self.permit = self.admission.acquire(self.entrant, self.most_memory).await?;
        self.limit = self.most;
        Ok(())
    }

    /// The permit for what it has.
    pub(crate) fn into_permit(self) -> Permit {
        self.permit
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Extensions;

    use super::*;
    use crate::admission::Priority;
    use crate::http::options::HttpOptions;

    fn memory_bytes(text: u64) -> u64 {
        2 * text + 1000
    }

    #[tokio::test]
    async fn a_response_of_unknown_length_gets_little_memory_where_the_most_is_not_free() {
        let options = HttpOptions { inflight_size: 256 << 20, ..HttpOptions::default() };
        let admission = Admission::new(&options);
        let entrant = AdmissionRequest::new(Priority::Elements, &Extensions::new());
        let most = 64 << 20;
        let free = TextMemory::acquire(&admission, entrant, most, memory_bytes).await.unwrap();
        assert_eq!((free.limit(), free.can_extend(Some(most))), (most, false));
        // This one and the next are more than all.
        let mut few = TextMemory::acquire(&admission, entrant, most, memory_bytes).await.unwrap();
        let short = TextMemory::short_bytes(&admission);
        assert_eq!(few.limit(), short);
        assert!(few.can_extend(Some(short)) && few.can_extend(Some(100)));
        assert!(!few.can_extend(Some(short + 1)) && !few.can_extend(None));
        drop(free);
        few.extend().await.unwrap();
        assert_eq!((few.limit(), few.can_extend(Some(most))), (most, false));
        drop(few.into_permit());
        assert_eq!(admission.load().in_flight_bytes, 0);
    }
}
