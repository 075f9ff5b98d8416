//! Writing to a remote backend.
//!
//! Small values are put in one request. Larger ones are uploaded in parts, of which a few are in memory at once,
//! and appear when the last is there; what was uploaded is withdrawn if the body breaks off. No backend takes
//! parts under a condition, so conditional writes, and writes to backends without uploads in parts, are held in
//! memory up to [`MAX_HELD_BYTES`]. Conditional erasure is a comparison and then an erasure: between the two,
//! another writer may put a new value, which is then erased. Only in memory it is one step.

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion,
    WriteMultipart,
};
use std::sync::Arc;

use super::ObjectBackend;
use super::failure::{failure, write_failure};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{SetOutcome, StoreError, StoreKind, ValueStream, WriteCondition};

/// Values up to this length are put in one request; longer ones in parts of this length.
const PART_BYTES: u64 = 8 << 20;
/// Parts under way at once.
const PARTS_UNDER_WAY: usize = 3;
/// The longest value that is held in memory because the backend takes it only whole.
pub(super) const MAX_HELD_BYTES: u64 = 64 << 20;

impl ObjectBackend {
    pub(super) async fn write(
        &self,
        key: &StoreKey,
        mut body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetOutcome, StoreError> {
        let path = self.path(key)?;
        let in_parts = condition == WriteCondition::Always
            && matches!(self.kind, StoreKind::S3 | StoreKind::Gcs | StoreKind::Azure);
        let limit = match self.kind {
            StoreKind::Memory => u64::MAX,
            _ if in_parts => PART_BYTES,
            _ => MAX_HELD_BYTES,
        };
        let (pieces, is_all) = hold(&mut body, limit).await?;
        if !is_all {
            if !in_parts {
                return Err(StoreError::BodyTooLarge { limit });
            }
            return self.upload(&path, pieces, body).await;
        }
        // From here on, the write runs to its end even if nobody waits for it.
        let (ours, key) = (self.clone(), key.clone());
        finish(async move { ours.put(&key, &path, pieces.into_iter().collect(), &condition).await }).await
    }

    async fn put(
        &self,
        key: &StoreKey,
        path: &Path,
        payload: PutPayload,
        condition: &WriteCondition,
    ) -> Result<SetOutcome, StoreError> {
        let _alone = self.writers().await;
        let created = match self.kind {
            StoreKind::Memory => self.meta(key).await?.is_none(),
            _ => *condition == WriteCondition::IfAbsent,
        };
        let (store, mode) = match condition {
            WriteCondition::Always => (&self.inner, PutMode::Overwrite),
            WriteCondition::IfAbsent => (&self.once, PutMode::Create),
            WriteCondition::IfVersion(_) => (&self.once, PutMode::Update(self.update(key, condition).await?)),
        };
        match store.put_opts(path, payload, PutOptions::from(mode)).await {
            Ok(result) => Ok(self.outcome(created, &result)),
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                Err(StoreError::NotSupported("conditional writes"))
            }
            Err(Error::NotFound { .. }) if matches!(condition, WriteCondition::IfVersion(_)) => {
                Err(StoreError::ConditionFailed)
            }
            Err(error) => Err(write_failure(error, self.kind)),
        }
    }

    /// A version as the backend wants it in a conditional write. GCS compares generations, so it is asked first
    /// which one that version is.
    async fn update(&self, key: &StoreKey, condition: &WriteCondition) -> Result<UpdateVersion, StoreError> {
        let WriteCondition::IfVersion(version) = condition else {
            return Err(StoreError::ConditionFailed);
        };
        let Some(tag) = self.tag(version) else {
            return Err(StoreError::ConditionFailed);
        };
        if self.kind != StoreKind::Gcs {
            return Ok(UpdateVersion { e_tag: Some(tag), version: None });
        }
        let meta = self.meta(key).await?;
        condition.check(meta.as_ref().map(|meta| self.info(meta)).as_ref())?;
        let generation = meta.and_then(|meta| meta.version);
        if generation.is_none() {
            return Err(StoreError::NotSupported("conditional writes"));
        }
        Ok(UpdateVersion { e_tag: Some(tag), version: generation })
    }

    async fn upload(
        &self,
        path: &Path,
        begun: Vec<Bytes>,
        mut body: ValueStream,
    ) -> Result<SetOutcome, StoreError> {
        let upload = self.inner.put_multipart(path).await.map_err(failure)?;
        let part = usize::try_from(PART_BYTES).unwrap_or(usize::MAX);
        let mut upload = Upload(Some(WriteMultipart::new_with_chunk_size(upload, part)));
        for piece in begun {
            upload.put(piece).await?;
        }
        while let Some(piece) = body.try_next().await? {
            upload.put(piece).await?;
        }
        let ours = self.clone();
        finish(async move {
            let result = upload.finish().await?;
            Ok(ours.outcome(false, &result))
        })
        .await
    }

    fn outcome(&self, created: bool, result: &PutResult) -> SetOutcome {
        SetOutcome { created, version: result.e_tag.as_deref().map(|tag| self.version(tag)) }
    }

    pub(super) async fn remove(
        &self,
        key: &StoreKey,
        condition: &WriteCondition,
    ) -> Result<bool, StoreError> {
        let _alone = self.writers().await;
        let current = self.meta(key).await?.map(|meta| self.info(&meta));
        condition.check(current.as_ref())?;
        if current.is_none() {
            return Ok(false);
        }
        match self.inner.delete(&self.path(key)?).await {
            Ok(()) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(write_failure(error, self.kind)),
        }
    }

    pub(super) async fn remove_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        let _alone = self.writers().await;
        let mut entries = self.list_all_under(prefix, None).chunks(1000);
        let mut erased = 0;
        while let Some(chunk) = entries.next().await {
            let mut paths = Vec::with_capacity(chunk.len());
            for entry in chunk {
                paths.push(Ok(self.path(&entry?.key)?));
            }
            let mut results = self.inner.delete_stream(futures::stream::iter(paths).boxed());
            while let Some(result) = results.next().await {
                match result {
                    Ok(_) => erased += 1,
                    Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(write_failure(error, self.kind)),
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

/// Runs a write in a task of its own, and waits for it.
async fn finish(
    write: impl Future<Output = Result<SetOutcome, StoreError>> + Send + 'static,
) -> Result<SetOutcome, StoreError> {
    match tokio::spawn(write).await {
        Ok(outcome) => outcome,
        Err(stopped) => Err(StoreError::Backend(Arc::new(stopped))),
    }
}

/// An upload in parts that is withdrawn unless it is finished.
struct Upload(Option<WriteMultipart>);

impl Upload {
    async fn put(&mut self, piece: Bytes) -> Result<(), StoreError> {
        let Some(upload) = &mut self.0 else {
            return Ok(());
        };
        upload.put(piece);
        upload.wait_for_capacity(PARTS_UNDER_WAY).await.map_err(failure)
    }

    async fn finish(mut self) -> Result<PutResult, StoreError> {
        match self.0.take() {
            // Withdraws by itself what fails here.
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
