//! [`Web`]: fetches one small document over HTTP, with the client of the remote backends.
//!
//! It follows no redirects, reads no more bytes than the caller allows, and has a timeout for everything. It keeps no
//! connections and sends no credentials.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::StoreError;
use super::object::{Connector, TimeoutOptions};

/// Timeout for the connection, for the response, and for each part of it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches documents. Builds a client for each, since few are fetched.
#[derive(Clone, Copy, Debug)]
pub struct Web;

/// Why a response cannot be used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    /// Another status than 200.
    #[error("the answer has the status {0}")]
    Status(u16),
    /// Longer than the limit.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl Web {
    /// The document at a URL.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if it cannot be fetched, or is longer than `most_bytes`.
    pub async fn fetch(&self, url: &str, most_bytes: usize) -> Result<Bytes, StoreError> {
        let timeouts =
            TimeoutOptions { connect: TIMEOUT, read: TIMEOUT, tries: 1, retry: TIMEOUT, retry_percent: 0 };
        let connector =
            Connector::new(url.starts_with("https://"), &timeouts).map_err(StoreError::Backend)?;
        let failed = |error: reqwest::Error| StoreError::Backend(Arc::new(error));
        let unusable = |error: Unusable| StoreError::Backend(Arc::new(error));
        let request = connector.client().get(url).timeout(TIMEOUT);
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
