//! [`within`]: how long a response waits for a task that moves bytes.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::http::options::HttpOptions;
use crate::http::problem::Problem;

/// Waits for a task that moves bytes: as long as for the response to a request, and the time that an upload of this length may
/// take. A slower one goes on.
pub(crate) async fn within<T>(options: &HttpOptions, size: u64, work: JoinHandle<T>) -> Result<T, Problem> {
    let seconds = size / options.min_body_rate.max(1);
    let most = options.response_timeout.saturating_add(Duration::from_secs(seconds));
    match timeout(most, work).await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => Err(Problem::internal(Arc::new(panic))),
        Err(_) => Err(Problem::unfinished_change()),
    }
}
