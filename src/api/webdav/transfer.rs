//! COPY and MOVE (RFC 4918, sections 9.8 and 9.9) of a key, or of a prefix with every key below it.
//!
//! Each key is copied atomically, and a condition on the destination is checked as part of the write. A prefix is copied
//! key by key while it is listed: a failure in the middle keeps the keys copied so far. MOVE copies a value and then erases
//! the source at the copied version, so that the value always exists in one of the two places and no newer value is lost.
//! A prefix is moved or replaced only where the mount allows erasing prefixes. A prefix without keys does not exist, so a
//! copy with Depth 0 copies nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures::TryStreamExt;
use futures::stream::try_unfold;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::mkcol::{destination_place, holds_keys};
use crate::admission::{AdmissionRequest, Permit, Priority};
use crate::api::store::list;
use crate::api::store::write::{erasing_disabled, failed, refusal};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Rights, Scope, lacks};
use crate::error::ErrorClass;
use crate::http::base_path::BasePath;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::webdav_headers;
use crate::http::webdav_headers::Depth;
use crate::key::{StoreKey, StorePrefix};
use crate::services::extract::StoreTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::{Extent, StoreError, ValueInfo, Version, WriteCondition};

/// Keys of a prefix that are copied concurrently.
const COPIES: usize = 8;

/// The requested method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferMethod {
    Copy,
    Move,
}

/// The existing resource that a path names.
enum Source {
    Key(StoreKey, ValueInfo),
    Prefix(StorePrefix),
}

/// A COPY or MOVE request.
struct Transfer<'a> {
    state: &'a AppState,
    target: &'a StoreTarget,
    mount: &'a Mount,
    rights: &'a Rights,
    verb: TransferMethod,
    overwrite: bool,
    depth: Depth,
    conditions: Conditions,
    entrant: AdmissionRequest,
    copies: Copies,
}

/// The copies of a request that are in flight.
#[derive(Default)]
struct Copies {
    count: AtomicUsize,
    one_ended: Notify,
}

/// A copy in flight, with its permit.
struct InFlight<'a> {
    copies: &'a Copies,
    permit: Option<Permit>,
}

impl Copies {
    /// Charges the memory that the store needs to copy a value. If the budget is exhausted, waits until another copy of this
    /// request ends: a copy in flight never waits for memory, so there is no deadlock.
    async fn begin(&self, mut permit: Permit, bytes: u64) -> Result<InFlight<'_>, StoreError> {
        loop {
            let one_ended = self.one_ended.notified();
            if permit.grow(bytes).is_ok() {
                self.count.fetch_add(1, Ordering::SeqCst);
                return Ok(InFlight { copies: self, permit: Some(permit) });
            }
            if self.count.load(Ordering::SeqCst) == 0 {
                return Err(StoreError::NoUploadMemory);
            }
            one_ended.await;
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.permit = None;
        self.copies.count.fetch_sub(1, Ordering::SeqCst);
        self.copies.one_ended.notify_waiters();
    }
}

/// Responds to COPY and MOVE.
pub(crate) async fn transfer(
    state: &AppState,
    target: &StoreTarget,
    verb: TransferMethod,
    request: &Parts,
) -> Result<Response, Problem> {
    let mount = &*target.mount;
    if !mount.writable {
        return Err(refusal(target));
    }
    let headers = &request.headers;
    let base = BasePath::of(&request.extensions);
    let (destination, overwrite) = destination_place(target, &request.uri, headers, &base)?;
    let transfer = Transfer {
        state,
        target,
        mount,
        rights: Caller::of(&request.extensions).rights(),
        verb,
        overwrite,
        depth: webdav_headers::depth(headers)?,
        conditions: Conditions::from_headers(headers),
        entrant: AdmissionRequest::new(Priority::Background, &request.extensions),
        copies: Copies::default(),
    };
    let replaced = match transfer.source(&target.place).await? {
        Source::Key(from, info) => transfer.key(&from, &info, &destination).await?,
        Source::Prefix(from) => transfer.prefix(&from, &destination).await?,
    };
    Ok(if replaced { StatusCode::NO_CONTENT } else { StatusCode::CREATED }.into_response())
}

impl Transfer<'_> {
    /// The resource that the path of the request names: without a trailing slash a key if that exists, else a prefix.
    async fn source(&self, place: &KeyOrPrefix) -> Result<Source, Problem> {
        let prefix = match place {
            KeyOrPrefix::Prefix(prefix) => prefix.clone(),
            KeyOrPrefix::Key(key) => match self.soon(self.mount.store.head(key)).await? {
                Some(info) => return Ok(Source::Key(key.clone(), info)),
                None => key.as_prefix(),
            },
        };
        if prefix.is_root() || self.soon(list::exists(self.mount, &prefix)).await? {
            return Ok(Source::Prefix(prefix));
        }
        Err(Problem::from_class(ErrorClass::NotFound)
            .detail("the store has no value of this key, and no key is below it as a prefix"))
    }

    /// Transfers one key. Returns whether anything was replaced.
    async fn key(&self, from: &StoreKey, info: &ValueInfo, to: &KeyOrPrefix) -> Result<bool, Problem> {
        let to = match to {
            KeyOrPrefix::Key(key) => key.clone(),
            KeyOrPrefix::Prefix(prefix) => prefix.as_key().ok_or_else(overlap)?,
        };
        let below = to.as_prefix();
        for replaced in [Extent::Key(to.clone()), Extent::Below(below.clone())] {
            self.check_apart(&Extent::Key(from.clone()), &replaced).await?;
        }
        let at = match self.conditions.for_read(&info.version, info.modified) {
            Verdict::Proceed if self.conditions.is_empty() => None,
            Verdict::Proceed => info.version.pin(),
            Verdict::NotModified | Verdict::Failed => return Err(failed()),
        };
        let is_prefix = self.soon(holds_keys(self.mount, &below)).await?;
        if is_prefix {
            self.clear(&below).await?;
        }
        match self.carry(from, info.size, at, &to).await {
            Ok(Some(created)) => Ok(is_prefix || !created),
            Ok(None) => {
                Err(Problem::from_class(ErrorClass::NotFound).detail("the value was erased meanwhile"))
            }
            // The conditions on the source no longer hold.
            Err(StoreError::VersionChanged) if at.is_some() => Err(failed()),
            Err(error) => Err(error.into()),
        }
    }

    /// Transfers a prefix. Returns whether anything was replaced.
    async fn prefix(&self, from: &StorePrefix, to: &KeyOrPrefix) -> Result<bool, Problem> {
        let to = match to {
            KeyOrPrefix::Key(key) => key.as_prefix(),
            KeyOrPrefix::Prefix(prefix) => prefix.clone(),
        };
        self.check_apart(&Extent::Below(from.clone()), &Extent::Below(to.clone())).await?;
        if self.verb == TransferMethod::Move && !self.mount.may_erase_prefixes() {
            return Err(refusal(self.target).allow(self.mount.prefix_methods()));
        }
        match (self.verb, self.depth) {
            (_, Depth::Infinity) | (TransferMethod::Copy, Depth::Zero) => {}
            (TransferMethod::Copy, Depth::One) => {
                return Err(bad_depth("a prefix is copied at Depth 0 or infinity"));
            }
            (TransferMethod::Move, Depth::Zero | Depth::One) => {
                return Err(bad_depth("a prefix is moved at Depth infinity"));
            }
        }
        if !self.conditions.is_empty() {
            // Conditions apply to a value, and a prefix has none.
            return Err(failed());
        }
        let key = match to.as_key() {
            Some(key) => self.soon(self.mount.store.head(&key)).await?.map(|_| key),
            None => None,
        };
        let is_prefix = self.soon(holds_keys(self.mount, &to)).await?;
        let replaced = key.is_some() || is_prefix;
        if replaced && !self.overwrite {
            return Err(failed());
        }
        if self.depth == Depth::Zero {
            return Ok(replaced);
        }
        if let Some(key) = &key {
            self.check_erasing(KeyScope::Key(key.clone()))?;
        }
        if is_prefix {
            self.clear(&to).await?;
        }
        if let Some(key) = key {
            self.soon(self.mount.store.erase(&key, WriteCondition::Always)).await?;
        }
        self.each_key(from, &to).await.map(|()| replaced)
    }

    async fn each_key(&self, from: &StorePrefix, to: &StorePrefix) -> Result<(), Problem> {
        let listing = self.mount.store.list_prefix(from, None);
        let entries = try_unfold(listing, async |mut listing| {
            Ok(self.soon(listing.try_next()).await?.map(|entry| (entry, listing)))
        });
        let copied = entries.try_for_each_concurrent(COPIES, async |entry| {
            let rest = entry.key.as_str().strip_prefix(from.as_str()).unwrap_or_default();
            let to = to.key(rest)?;
            // A key that was erased meanwhile is skipped.
            self.carry(&entry.key, entry.info.size, None, &to).await?;
            Ok(())
        });
        copied.await
    }

    /// Rejects a transfer whose destination overlaps the source, also through links in the file system.
    async fn check_apart(&self, from: &Extent, to: &Extent) -> Result<(), Problem> {
        if self.soon(self.mount.store.overlap(from, to)).await? { Err(overlap()) } else { Ok(()) }
    }

    /// Erases a destination prefix before it is replaced.
    async fn clear(&self, prefix: &StorePrefix) -> Result<(), Problem> {
        if !self.overwrite {
            return Err(failed());
        }
        if !self.mount.may_erase_prefixes() {
            return Err(Problem::new(StatusCode::FORBIDDEN, "prefix-in-the-way").detail(format!(
                "the destination is a prefix, and {}",
                erasing_disabled(self.mount, "prefixes")
            )));
        }
        self.check_erasing(KeyScope::Prefix(prefix.clone()))?;
        self.soon(self.mount.store.erase_prefix(prefix)).await.map(drop)
    }

    /// Checks the right to erase what the destination replaces. Only here is it known whether anything has to be erased.
    fn check_erasing(&self, reach: KeyScope) -> Result<(), Problem> {
        let need = Permission::stored(Scope::Delete, reach);
        if self.rights.allows(&self.mount.name, &need) { Ok(()) } else { Err(lacks(Scope::Delete)) }
    }

    /// Copies one value and, for MOVE, erases the source. Returns whether the value is new at the destination; `None` if the
    /// source has no value.
    async fn carry(
        &self,
        from: &StoreKey,
        size: u64,
        at: Option<&Version>,
        to: &StoreKey,
    ) -> Result<Option<bool>, StoreError> {
        let condition = if self.overwrite { WriteCondition::Always } else { WriteCondition::IfAbsent };
        let store = &self.mount.store;
        let held = store.held_by_set(&condition).min(size);
        let work = async {
            let permit = self.state.traffic.admission.alongside(self.entrant);
            let _in_flight = self.copies.begin(permit, held).await?;
            let Some(copied) = store.copy(from, at, to, condition).await? else { return Ok(None) };
            if self.verb == TransferMethod::Move {
                // A weak version cannot be a condition.
                let same = copied.version.pin().cloned();
                let same = same.map_or(WriteCondition::Always, WriteCondition::IfVersion);
                match store.erase(from, same).await {
                    Err(StoreError::ConditionFailed) => return Err(StoreError::VersionChanged),
                    erased => erased?,
                };
            }
            Ok(Some(copied.outcome.created))
        };
        // The timeout is the request deadline plus the time that an upload of this length may take.
        let options = &self.state.options;
        let seconds = size / options.min_body_rate.max(1);
        let max_duration = self.state.options.response_timeout.saturating_add(Duration::from_secs(seconds));
        timeout(max_duration, work)
            .await
            .unwrap_or_else(|elapsed| Err(StoreError::TimedOut(Arc::new(elapsed))))
    }

    /// Runs a step with the request deadline as its timeout.
    async fn soon<T>(&self, step: impl Future<Output = Result<T, StoreError>>) -> Result<T, Problem> {
        match timeout(self.state.options.response_timeout, step).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(Problem::from_class(ErrorClass::TimedOut)),
        }
    }
}

fn overlap() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "overlapping")
        .detail("source and destination are the same, or one is in the other")
}

fn bad_depth(detail: &'static str) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(detail)
}
