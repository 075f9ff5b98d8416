//! [`Traffic`]: how many requests the server takes at once, and how many of each caller.

use crate::admission::{Admission, Load, RateLimiter};
use crate::http::options::HttpOptions;

/// The limits on requests in flight and on their rates.
#[derive(Debug)]
pub struct Traffic {
    /// The admission of responses.
    pub(crate) admission: Admission,
    /// The rate limits of callers, if there are any.
    pub(crate) rates: Option<RateLimiter>,
}

impl Traffic {
    /// The responses in flight, and the requests that wait or were rejected.
    #[must_use]
    pub fn load(&self) -> Load {
        self.admission.load()
    }

    pub(super) fn new(options: &HttpOptions) -> Self {
        Self { admission: Admission::new(options), rates: RateLimiter::new(options.rate_limit) }
    }
}
