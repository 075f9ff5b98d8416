//! [`Web`]: fetches one small document from the web, by the client that backends are spoken to with.
//!
//! No redirects are followed, no more bytes are read than are asked for, and no connection is waited for without bound.
//! It keeps nothing, and asks nobody who it is.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::StoreError;
use super::object::{Connector, TimeoutOptions};

/// How long a connection, an answer, or a part of one may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client, made anew for each document: so few are fetched.
#[derive(Clone, Copy, Debug)]
pub struct Web;

/// The answer is none that was asked for.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    /// Another status than 200.
    #[error("the answer has the status {0}")]
    Status(u16),
    /// Longer than what was asked for.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl Web {
    /// What stands at a URL.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if it cannot be had, or is longer than `most_bytes`.
    pub async fn fetch(&self, url: &str, most_bytes: usize) -> Result<Bytes, StoreError> {
        let patience =
            TimeoutOptions { connect: PATIENCE, read: PATIENCE, tries: 1, retry: PATIENCE, retry_percent: 0 };
        let connector =
            Connector::new(url.starts_with("https://"), &patience).map_err(StoreError::Backend)?;
        let failed = |error: reqwest::Error| StoreError::Backend(Arc::new(error));
        let unusable = |error: Unusable| StoreError::Backend(Arc::new(error));
        let request = connector.client().get(url).timeout(PATIENCE);
        let mut answer = request.send().await.map_err(failed)?;
        if answer.status() != 200 {
            return Err(unusable(Unusable::Status(answer.status().as_u16())));
        }
        let mut document = BytesMut::new();
        while let Some(part) = answer.chunk().await.map_err(failed)? {
            if document.len() + part.len() > most_bytes {
                return Err(unusable(Unusable::TooLong(most_bytes)));
            }
            document.extend_from_slice(&part);
        }
        Ok(document.freeze())
    }
}
