//! [`Uploads`]: the unfinished uploads in parts, and their bounds in number, bytes and time.
//!
//! An upload is a folder of the store's staging area (`Store::staging`): a document that names the key, and a value for each
//! part. So every replica of a server finds it. The counts are those that this process knows, so that each replica has
//! the limits to itself. An upload expires a while after this process has first seen it, which takes no clock, and
//! after a restart takes that long again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use super::mount::Mount;
use crate::error::{Classify, ErrorClass};
use crate::http::options::UploadOptions;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ByteRange, OwnArea, SharedStore, StoreError, StoreKind, WriteCondition};

/// The name of the document of an upload: the key, as text.
const DOCUMENT: &str = "key";
/// The most bytes of that document that are read.
const DOCUMENT_BYTES: u64 = 8 << 10;
/// Digits of an upload's identifier.
const ID_DIGITS: usize = 32;
/// The staging area is listed again after this time: other replicas use it too.
const REFRESH: Duration = Duration::from_mins(10);

/// Why an upload cannot begin or go on.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// There is no such upload to this key.
    #[error("there is no upload of this id to this key: it was completed or aborted, or has expired")]
    NoSuchUpload,
    /// Too many uploads.
    #[error(
        "{0} uploads to this mount are unfinished, and no more are taken (`http.uploads.max_uploads`): complete or abort some"
    )]
    TooMany(usize),
    /// Too many bytes.
    #[error(
        "the parts of unfinished uploads to this mount would have more than {0} bytes (`http.uploads.max_staged_size`): \
         complete or abort some"
    )]
    TooLarge(u64),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Classify for UploadError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoSuchUpload => ErrorClass::NotFound,
            Self::TooMany(_) | Self::TooLarge(_) => ErrorClass::Overloaded,
            Self::Store(error) => error.class(),
        }
    }
}

/// The unfinished uploads, by mount.
#[derive(Debug, Default)]
pub(crate) struct Uploads(Mutex<HashMap<Arc<str>, Arc<MountUploads>>>);

/// Those to one mount.
#[derive(Debug, Default)]
struct MountUploads {
    known: Mutex<HashMap<String, Known>>,
    /// When the staging area was last listed. Held while it is.
    refreshed: tokio::sync::Mutex<Option<Instant>>,
}

/// What is known of an upload.
#[derive(Debug)]
struct Known {
    /// `None` until the document was read.
    key: Option<StoreKey>,
    /// Bytes of parts; a part that was sent again counts twice.
    bytes: u64,
    seen: Instant,
}

/// An upload, and where its parts are.
#[derive(Clone, Debug)]
pub(crate) struct UploadPlace {
    /// The staging area.
    pub(crate) staging: SharedStore,
    /// The folder of the upload.
    pub(crate) prefix: StorePrefix,
}

impl UploadPlace {
    async fn of(mount: &Mount, id: &str) -> Result<Self, UploadError> {
        let is_id = id.len() == ID_DIGITS && id.bytes().all(|digit| digit.is_ascii_hexdigit());
        let prefix = StorePrefix::parse(&format!("{id}/")).ok().filter(|_| is_id);
        let prefix = prefix.ok_or(UploadError::NoSuchUpload)?;
        Ok(Self { staging: mount.store.own_area(OwnArea::Uploads).await?, prefix })
    }

    /// The key of a part in the staging area.
    ///
    /// # Errors
    /// Never: such keys are valid.
    pub(crate) fn part(&self, number: u32) -> Result<StoreKey, UploadError> {
        self.named(&format!("{number:05}"))
    }

    fn named(&self, name: &str) -> Result<StoreKey, UploadError> {
        let key = self.prefix.key(name);
        key.map_err(|_invalid| StoreError::InvalidKey("the staging area does not take such keys").into())
    }

    /// The number of the part that a key of the staging area has.
    pub(crate) fn number(&self, key: &StoreKey) -> Option<u32> {
        key.as_str().strip_prefix(self.prefix.as_str())?.parse().ok()
    }
}

/// Bytes of a part that is being stored.
#[derive(Debug)]
pub(crate) struct StagedBytes {
    uploads: Arc<MountUploads>,
    id: String,
    bytes: u64,
}

impl StagedBytes {
    /// Counts the bytes until the upload ends.
    pub(crate) fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for StagedBytes {
    fn drop(&mut self) {
        if let Some(upload) = lock(&self.uploads.known).get_mut(&self.id) {
            upload.bytes = upload.bytes.saturating_sub(self.bytes);
        }
    }
}

impl Uploads {
    fn of(&self, mount: &Mount) -> Arc<MountUploads> {
        let mut mounts = lock(&self.0);
        Arc::clone(mounts.entry(Arc::clone(&mount.cache_name)).or_default())
    }

    /// Begins an upload to a key. Returns its identifier.
    ///
    /// # Errors
    /// [`UploadError::TooMany`]; any failure of the store.
    pub(crate) async fn begin(
        &self,
        options: &UploadOptions,
        mount: &Mount,
        key: &StoreKey,
    ) -> Result<String, UploadError> {
        let uploads = self.of(mount);
        let staging = mount.store.own_area(OwnArea::Uploads).await?;
        uploads.refresh(options, &staging, REFRESH).await?;
        // The hashers of two states are keyed at random; the identifier is no secret.
        let random = || RandomState::new().hash_one(key.as_str());
        let id = format!("{:016x}{:016x}", random(), random());
        {
            let mut known = lock(&uploads.known);
            if known.len() >= options.max_uploads {
                return Err(UploadError::TooMany(options.max_uploads));
            }
            known.insert(id.clone(), Known { key: Some(key.clone()), bytes: 0, seen: Instant::now() });
        }
        let place = UploadPlace::of(mount, &id).await?;
        let document = Bytes::copy_from_slice(key.as_str().as_bytes());
        let body = futures::stream::once(async move { Ok(document) }).boxed();
        let written = staging.set(&place.named(DOCUMENT)?, body, WriteCondition::Always).await;
        if let Err(error) = written {
            lock(&uploads.known).remove(&id);
            return Err(error.into());
        }
        Ok(id)
    }

    /// The place of an upload to a key. `confirmed` also asks the store about one that this process knows: another replica may
    /// have ended it.
    ///
    /// # Errors
    /// [`UploadError::NoSuchUpload`]; any failure of the store.
    pub(crate) async fn find(
        &self,
        mount: &Mount,
        id: &str,
        key: &StoreKey,
        confirmed: bool,
    ) -> Result<UploadPlace, UploadError> {
        let uploads = self.of(mount);
        let place = UploadPlace::of(mount, id).await?;
        let known = lock(&uploads.known).get(id).and_then(|known| known.key.clone());
        let found = match known {
            Some(known) if !confirmed => Some(known),
            _ => {
                let found = document(&place).await?;
                uploads.note(id, found.as_ref());
                found
            }
        };
        if found.as_ref() == Some(key) { Ok(place) } else { Err(UploadError::NoSuchUpload) }
    }

    /// Counts bytes of a part before they are stored. They count no more once the reservation is dropped, unless it is kept.
    ///
    /// # Errors
    /// [`UploadError::TooLarge`].
    pub(crate) fn reserve(
        &self,
        options: &UploadOptions,
        mount: &Mount,
        id: &str,
        bytes: u64,
    ) -> Result<StagedBytes, UploadError> {
        let uploads = self.of(mount);
        let mut known = lock(&uploads.known);
        let all = known.values().fold(bytes, |sum, upload| sum.saturating_add(upload.bytes));
        if all > options.max_staged_size {
            return Err(UploadError::TooLarge(options.max_staged_size));
        }
        if let Some(upload) = known.get_mut(id) {
            upload.bytes = upload.bytes.saturating_add(bytes);
        }
        drop(known);
        Ok(StagedBytes { uploads, id: id.to_owned(), bytes })
    }

    /// Ends an upload: erases its parts, and its document last, so that a failure leaves an upload that can be aborted again.
    ///
    /// # Errors
    /// Any failure of the store.
    pub(crate) async fn end(&self, mount: &Mount, id: &str, place: &UploadPlace) -> Result<(), UploadError> {
        place.staging.erase_prefix(&place.prefix).await?;
        lock(&self.of(mount).known).remove(id);
        Ok(())
    }

    /// The uploads to keys that begin with a text, by key: their identifiers.
    ///
    /// # Errors
    /// Any failure of the store.
    pub(crate) async fn list(
        &self,
        options: &UploadOptions,
        mount: &Mount,
        prefix: &str,
    ) -> Result<Vec<(StoreKey, String)>, UploadError> {
        let uploads = self.of(mount);
        uploads.refresh(options, &mount.store.own_area(OwnArea::Uploads).await?, Duration::ZERO).await?;
        let ids: Vec<(String, Option<StoreKey>)> =
            lock(&uploads.known).iter().map(|(id, known)| (id.clone(), known.key.clone())).collect();
        let mut listed = Vec::new();
        for (id, known) in ids {
            let key = match known {
                Some(key) => Some(key),
                None => document(&UploadPlace::of(mount, &id).await?).await?,
            };
            uploads.note(&id, key.as_ref());
            listed.extend(key.filter(|key| key.as_str().starts_with(prefix)).map(|key| (key, id)));
        }
        listed.sort();
        Ok(listed)
    }

    /// Aborts the uploads to a mount that have expired. A directory is listed only after uploads to it: it has none when
    /// the server starts.
    ///
    /// # Errors
    /// Any failure of the store.
    pub(crate) async fn expire(&self, options: &UploadOptions, mount: &Mount) -> Result<(), UploadError> {
        let kind = mount.store.kind();
        let is_used = lock(&self.0).contains_key(&mount.cache_name);
        if !mount.writable || (!is_used && matches!(kind, StoreKind::LOCAL | StoreKind::MEMORY)) {
            return Ok(());
        }
        let staging = match mount.store.own_area(OwnArea::Uploads).await {
            Err(StoreError::ReadOnly | StoreError::NotSupported(_)) => return Ok(()),
            staging => staging?,
        };
        self.of(mount).refresh(options, &staging, REFRESH).await
    }
}

impl MountUploads {
    /// Lists the staging area, if the last listing is older than `age`: notes the uploads of others and of earlier processes,
    /// drops those that another process ended, and erases those that have expired.
    async fn refresh(
        &self,
        options: &UploadOptions,
        staging: &SharedStore,
        age: Duration,
    ) -> Result<(), UploadError> {
        let mut refreshed = self.refreshed.lock().await;
        if refreshed.is_some_and(|last| last.elapsed() < age) {
            return Ok(());
        }
        let began = Instant::now();
        let mut found: HashMap<String, u64> = HashMap::new();
        let mut entries = staging.list_prefix(&StorePrefix::root(), None);
        while let Some(entry) = entries.try_next().await? {
            if let Some((id, _)) = entry.key.as_str().split_once('/') {
                let bytes = found.entry(id.to_owned()).or_default();
                *bytes = bytes.saturating_add(entry.info.size);
            }
        }
        let expired: Vec<String> = {
            let mut known = lock(&self.known);
            known.retain(|id, known| known.seen > began || found.contains_key(id));
            for (id, bytes) in found {
                known.entry(id).or_insert(Known { key: None, bytes, seen: began });
            }
            let old = known.iter().filter(|(_, known)| known.seen.elapsed() >= options.timeout);
            old.map(|(id, _)| id.clone()).collect()
        };
        for id in expired {
            if let Ok(prefix) = StorePrefix::parse(&format!("{id}/")) {
                staging.erase_prefix(&prefix).await?;
            }
            lock(&self.known).remove(&id);
        }
        *refreshed = Some(began);
        Ok(())
    }

    /// Notes what the document of an upload says: its key, or that there is no such upload.
    fn note(&self, id: &str, key: Option<&StoreKey>) {
        let mut known = lock(&self.known);
        match key {
            Some(key) => {
                let new = Known { key: None, bytes: 0, seen: Instant::now() };
                known.entry(id.to_owned()).or_insert(new).key = Some(key.clone());
            }
            None => drop(known.remove(id)),
        }
    }
}

/// The key that the document of an upload names; `None` if there is none.
async fn document(place: &UploadPlace) -> Result<Option<StoreKey>, UploadError> {
    let Some(value) = place.staging.get(&place.named(DOCUMENT)?, ByteRange::Whole, None).await? else {
        return Ok(None);
    };
    let bytes = value.bytes(DOCUMENT_BYTES).await?;
    Ok(str::from_utf8(&bytes).ok().and_then(|text| StoreKey::parse(text).ok()))
}

/// No code panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
