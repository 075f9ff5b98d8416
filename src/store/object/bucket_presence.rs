//! [`BucketPresence`]: whether the bucket of a store is known to exist, because a key without a bucket is not absent.
//!
//! A bucket that is misspelt or was deleted answers 404 as a missing key does. Its error document distinguishes them:
//! `NoSuchBucket` of S3 and GCS, `ContainerNotFound` of Azure. Responses to HEAD have no document, so a 404 to HEAD counts
//! only where the bucket was seen shortly before.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a bucket that was seen is assumed to exist.
const SEEN_FOR: Duration = Duration::from_secs(10);

/// The error codes that say that there is no bucket, as the documents have them.
const CODES: [&str; 2] = ["<Code>NoSuchBucket</Code>", "<Code>ContainerNotFound</Code>"];

/// The error of a response that says so.
#[derive(Debug, thiserror::Error)]
#[error("there is no such bucket or container")]
pub(super) struct NoBucket;

/// When the bucket was seen last.
#[derive(Debug, Default)]
pub(super) struct BucketPresence(Mutex<Option<Instant>>);

impl BucketPresence {
    /// Records a response that only a bucket that exists can give.
    pub(super) fn record_seen(&self) {
        let Self(seen) = self;
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether the bucket was seen in the last ten seconds.
    pub(super) fn was_seen(&self) -> bool {
        let Self(seen) = self;
        seen.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|seen| seen.elapsed() < SEEN_FOR)
    }
}

/// Whether the document of a 404 says that there is no bucket.
pub(super) fn denies_bucket(document: &[u8]) -> bool {
    let document = String::from_utf8_lossy(document);
    CODES.iter().any(|code| document.contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_is_assumed_to_exist_for_ten_seconds_after_it_was_seen() {
        let presence = BucketPresence::default();
        assert!(!presence.was_seen());
        presence.record_seen();
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(presence.was_seen());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!presence.was_seen());
    }

    #[test]
    fn only_the_codes_for_buckets_deny_the_bucket() {
        assert!(denies_bucket(b"<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code></Error>"));
        assert!(denies_bucket("\u{feff}<Error><Code>ContainerNotFound</Code></Error>".as_bytes()));
        for document in ["<Error><Code>NoSuchKey</Code><Key>NoSuchBucket</Key></Error>", "", "<html/>"] {
            assert!(!denies_bucket(document.as_bytes()), "{document}");
        }
    }
}
