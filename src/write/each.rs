//! [`each`]: work on several items at a time, all of which has ended when it returns.

use futures::stream::{FuturesOrdered, StreamExt};

/// Items in work at a time.
const TOGETHER: usize = 8;
/// Items whose work is handed over at a time, where there may be many.
pub(super) const BATCH: usize = 64;

/// Does some work, and returns what comes of it in its order. After the first failure no further work is begun; what was, is waited
/// for, so that nothing of it arrives later.
///
/// # Errors
/// The first failure.
pub(super) async fn each<T, E>(work: Vec<impl Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
    each_of(TOGETHER, work).await
}

/// As [`each`], with this number of items in work at a time.
///
/// # Errors
/// As [`each`].
pub(super) async fn each_of<T, E>(
    together: usize,
    work: Vec<impl Future<Output = Result<T, E>>>,
) -> Result<Vec<T>, E> {
    let (mut left, mut begun) = (work.into_iter(), FuturesOrdered::new());
    let (mut done, mut failure) = (Vec::new(), None);
    loop {
        while failure.is_none() && begun.len() < together.max(1) {
            let Some(next) = left.next() else { break };
            begun.push_back(next);
        }
        match begun.next().await {
            Some(Ok(outcome)) => done.push(outcome),
            Some(Err(error)) => {
                failure.get_or_insert(error);
            }
            None => return failure.map_or(Ok(done), Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn after_a_failure_what_was_begun_is_finished_and_nothing_else_begun() {
        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |number: usize| {
            let (begun, ended) = (&begun, &ended);
            async move {
                begun.fetch_add(1, Ordering::Relaxed);
                for _ in 0..number {
                    tokio::task::yield_now().await;
                }
                ended.fetch_add(1, Ordering::Relaxed);
                if number == 3 { Err("failed") } else { Ok(number) }
            }
        };
        assert_eq!(each((0..100).map(work).collect()).await, Err("failed"));
        let (begun, ended) = (begun.into_inner(), ended.into_inner());
        assert!(begun == ended && begun <= 3 + TOGETHER, "{begun} {ended}");
        let all = each((0..20).map(async |number: usize| Ok::<_, ()>(number)).collect()).await;
        assert_eq!(all, Ok((0..20).collect::<Vec<_>>()));
    }
}
