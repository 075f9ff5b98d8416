//! Writes to a remote backend.
//!
//! Small values are put in one request. Larger ones are uploaded in parts, of which a few are in memory at once; the
//! value appears with the last part, and the upload is aborted if the body breaks off. No backend takes parts under a
//! condition, so conditional writes, and writes to backends without multipart uploads, are held in memory up to a
//! limit. Conditions are in `conditional`.

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion,
    WriteMultipart,
};
use std::sync::Arc;
use tracing::Instrument;

use super::failure::{failure, write_failure};
use super::object_backend::ObjectBackend;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{SetResult, StoreError, StoreKind, ValueStream, WriteCondition, WriteDeadline};

/// Values up to this length are put in one request; longer ones in parts of this length.
const PART_BYTES: u64 = 8 << 20;
/// The most parts in flight at once.
const PARTS_IN_FLIGHT: usize = 3;

impl ObjectBackend {
    /// Whether long values are uploaded in parts.
    fn writes_in_parts(&self, condition: &WriteCondition) -> bool {
        *condition == WriteCondition::Always
            && matches!(self.kind, StoreKind::S3 | StoreKind::GCS | StoreKind::AZURE)
    }

    /// The most bytes of a body that are in memory at once: the parts in flight and the one being filled, or the
    /// complete body.
    pub(super) fn held_by_write(&self, condition: &WriteCondition) -> u64 {
        if self.writes_in_parts(condition) {
            PART_BYTES * (PARTS_IN_FLIGHT as u64 + 1)
        } else {
            self.options.held_bytes
        }
    }

    pub(super) async fn write(
        &self,
        key: &StoreKey,
        mut body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        let path = self.path(key)?;
        let in_parts = self.writes_in_parts(&condition);
        let limit = if in_parts { PART_BYTES } else { self.options.held_bytes };
        let (pieces, is_all) = hold(&mut body, limit).await?;
        if !is_all {
            if !in_parts {
                return Err(StoreError::BodyTooLarge { limit });
            }
            return self.upload(&path, pieces, body).await;
        }
        // From here on, the write runs to its end even if the caller is dropped.
        let (ours, key) = (self.clone(), key.clone());
        finish(async move { ours.put(&key, &path, pieces.into_iter().collect(), &condition).await }).await
    }

    async fn put(
        &self,
        key: &StoreKey,
        path: &Path,
        payload: PutPayload,
        condition: &WriteCondition,
    ) -> Result<SetResult, StoreError> {
        if self.is_sole_writer() {
            return self.put_alone(path, payload, condition).await;
        }
        let _alone = self.writers().await;
        let created = match self.kind {
            StoreKind::MEMORY => self.meta(key).await?.is_none(),
            _ => *condition == WriteCondition::IfAbsent,
        };
        let mode = match condition {
            WriteCondition::Always => PutMode::Overwrite,
            _ if self.memory.is_none() => return self.put_if(path, payload, condition).await,
            WriteCondition::IfAbsent => PutMode::Create,
            WriteCondition::IfVersion(version) => {
                let e_tag = Some(self.tag(version).ok_or(StoreError::ConditionFailed)?);
                PutMode::Update(UpdateVersion { e_tag, version: None })
            }
        };
        match self.client().put_opts(path, payload, PutOptions::from(mode)).await {
            Ok(result) => Ok(self.outcome(created, &result)),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotFound { .. })
                if self.memory.is_some() =>
            {
                Err(StoreError::ConditionFailed)
            }
            Err(error) => Err(write_failure(error)),
        }
    }

    async fn upload(
        &self,
        path: &Path,
        begun: Vec<Bytes>,
        mut body: ValueStream,
    ) -> Result<SetResult, StoreError> {
        let upload = self.client().put_multipart(path).await.map_err(failure)?;
        let part = usize::try_from(PART_BYTES).unwrap_or(usize::MAX);
        let mut upload = Upload(Some(WriteMultipart::new_with_chunk_size(upload, part)));
        for piece in begun {
            upload.put(piece).await?;
        }
        while let Some(piece) = body.try_next().await? {
            upload.put(piece).await?;
        }
        let (ours, path) = (self.clone(), path.clone());
        finish(async move {
            let _alone = ours.sole_lock(&path).await;
            let result = upload.finish().await?;
            Ok(ours.outcome(false, &result))
        })
        .await
    }

    pub(super) fn outcome(&self, created: bool, result: &PutResult) -> SetResult {
        SetResult { created, version: result.e_tag.as_deref().map(|tag| self.version(tag)) }
    }

    /// Erases a value, as [`finish`] does.
    pub(super) async fn remove(
        &self,
        key: &StoreKey,
        condition: &WriteCondition,
    ) -> Result<bool, StoreError> {
        let (ours, key, condition) = (self.clone(), key.clone(), condition.clone());
        finish(async move { ours.remove_one(&key, &condition).await }).await
    }

    async fn remove_one(&self, key: &StoreKey, condition: &WriteCondition) -> Result<bool, StoreError> {
        if self.is_sole_writer() {
            return self.remove_alone(key, condition).await;
        }
        if self.memory.is_none() && *condition != WriteCondition::Always {
            return self.remove_if(key, condition).await;
        }
        let _alone = self.writers().await;
        let current = self.meta(key).await?.map(|meta| self.info(&meta));
        condition.check(current.as_ref())?;
        if current.is_none() {
            return Ok(false);
        }
        self.remove_anyway(&self.path(key)?).await
    }

    /// Erases all values under a prefix, as [`finish`] does.
    pub(super) async fn remove_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        let (ours, prefix) = (self.clone(), prefix.clone());
        finish(async move { ours.remove_all(&prefix).await }).await
    }

    async fn remove_all(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        if self.is_sole_writer() {
            return self.remove_prefix_alone(prefix).await;
        }
        let _alone = self.writers().await;
        let mut entries = self.list_all_under(prefix, None).chunks(1000);
        let mut erased = 0;
        while let Some(chunk) = entries.next().await {
            let mut paths = Vec::with_capacity(chunk.len());
            for entry in chunk {
                paths.push(Ok(self.path(&entry?.key)?));
            }
            let mut results = self.client().delete_stream(futures::stream::iter(paths).boxed());
            while let Some(result) = results.next().await {
                match result {
                    Ok(_) => erased += 1,
                    Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(write_failure(error)),
                }
            }
        }
        Ok(erased)
    }
}

/// Reads a body until it ends or is longer than `limit`. Returns whether it ended.
async fn hold(body: &mut ValueStream, limit: u64) -> Result<(Vec<Bytes>, bool), StoreError> {
    let (mut pieces, mut length) = (Vec::new(), 0_u64);
    while let Some(piece) = body.try_next().await? {
        length = length.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if !piece.is_empty() {
            pieces.push(piece);
        }
        if length > limit {
            return Ok((pieces, false));
        }
    }
    Ok((pieces, true))
}

/// Runs a write or an erasure in its own task, and waits for it: it goes on if the caller is dropped, until the caller's deadline, and
/// what it holds is held until the backend has answered.
pub(super) async fn finish<T: Send + 'static>(
    write: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::spawn(WriteDeadline::inherit(write).in_current_span()).await {
        Ok(outcome) => outcome,
        Err(stopped) => Err(StoreError::Backend(Arc::new(stopped))),
    }
}

/// A multipart upload, which is aborted unless it is finished.
struct Upload(Option<WriteMultipart>);

impl Upload {
    async fn put(&mut self, piece: Bytes) -> Result<(), StoreError> {
        let Some(upload) = &mut self.0 else {
            return Ok(());
        };
        upload.put(piece);
        upload.wait_for_capacity(PARTS_IN_FLIGHT).await.map_err(failure)
    }

    async fn finish(mut self) -> Result<PutResult, StoreError> {
        match self.0.take() {
            // Aborts itself on failure.
            Some(upload) => upload.finish().await.map_err(failure),
            None => Err(StoreError::WrongLength),
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(upload) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                if let Err(error) = upload.abort().await {
                    tracing::warn!(%error, "an upload in parts could not be withdrawn");
                }
            });
        }
    }
}
