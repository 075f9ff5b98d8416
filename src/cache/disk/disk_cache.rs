//! [`DiskCache`]: the disk cache of the server, which stores of mounts are wrapped in.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::collector::Queue;
use super::counts::DiskCounts;
use super::derived::DiskChunk;
use super::engine::{Engine, Purge, ValueName};
use super::lookups::{self, LookupSource, SavedLookup, from_wall_clock};
use super::options::DiskCacheOptions;
use super::recovery::{self, DiskCacheError};
use super::scope_names::derived_scope;
use super::scopes::{MountScope, MountScopes};
use super::store::DiskStore;
use super::threads::Threads;
use super::tier::Tier;
use super::writer::{DiskWriter, Message};
use crate::cache::caches::{CacheKind, Evictable, PurgeOutcome, base_name};
use crate::cache::disk_report::{DiskReads, DiskReport};
use crate::cache::weighted_cache::CacheUsage;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{CachePolicy, SharedStore, ValueInfo};

/// How long a purge waits to be durable. It holds for this process at once.
const PURGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Stored bytes of remote mounts, and chunks that were derived of them, on a local disk. Clones share it.
#[derive(Clone, Debug)]
pub struct DiskCache(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tier: Arc<Tier>,
    scopes: Arc<MountScopes>,
    /// The lookups of an earlier run, until their mounts take them.
    saved: Mutex<Vec<SavedLookup>>,
    /// Reads of stored values, and of derived chunks, by the names of mounts.
    mounts: Mutex<BTreeMap<Box<str>, Arc<DiskCounts>>>,
    derived: Mutex<BTreeMap<Box<str>, Arc<DiskCounts>>>,
}

/// The store of a mount, and what the disk cache needs to know of it.
#[derive(Debug)]
pub struct CachedMount<'a> {
    /// The name of the mount.
    pub name: &'a str,
    /// The name that its values are cached under.
    pub cache_name: &'a str,
    /// What distinguishes its store from every other, over restarts.
    pub place: &'a str,
    /// How old a validation of a value may be.
    pub policy: CachePolicy,
    /// Whether it can be written by clients.
    pub writable: bool,
}

impl DiskCache {
    /// Opens the cache in the directory of the options, with what it has from earlier runs. `None` without a directory. Blocks.
    ///
    /// # Errors
    /// [`DiskCacheError`] if the directory cannot be used, or another server uses it.
    pub fn open(options: &DiskCacheOptions) -> Result<Option<Self>, DiskCacheError> {
        let Some(path) = &options.path else { return Ok(None) };
        let (engine, next) = recovery::open(path, options)?;
        let engine = Arc::new(engine);
        let (sender, receiver) = mpsc::channel();
        let writer = DiskWriter::new(Arc::clone(&engine), next);
        std::thread::Builder::new()
            .name("zarrd-disk-cache".to_owned())
            .spawn(move || writer.run(&receiver))
            .map_err(DiskCacheError::Thread)?;
        Ok(Some(Self(Arc::new(Shared {
            tier: Arc::new(Tier { engine, queue: Queue::new(sender), threads: Threads::new() }),
            scopes: Arc::default(),
            saved: Mutex::new(lookups::load(path)),
            mounts: Mutex::default(),
            derived: Mutex::default(),
        }))))
    }

    /// Checks that [`DiskCache::open`] would succeed now. What is in the directory stays.
    ///
    /// # Errors
    /// As for [`DiskCache::open`].
    pub fn check(options: &DiskCacheOptions) -> Result<(), DiskCacheError> {
        options.path.as_deref().map_or(Ok(()), recovery::check)
    }

    /// Ends the cache: what is queued and the last lookups are written, and the directory is released. Nothing is written after
    /// this. Without it the same happens once nothing uses the cache, which caches in memory may delay beyond the end of the
    /// process. Blocks, for two seconds at most.
    pub fn close(&self) {
        self.0.tier.close();
    }

    /// The store of a mount with its bytes cached on the disk, if that can be faster than the store itself. Chunks that are
    /// derived of it are cached in any case, unless its versions are those of this process alone.
    #[must_use]
    pub fn wrap(&self, mount: &CachedMount<'_>, store: SharedStore) -> SharedStore {
        let capabilities = store.capabilities();
        if capabilities.in_memory || mount.policy == CachePolicy::Uncached {
            return store;
        }
        // The names of mounts are in it, so that no mount gets what another one's credentials read.
        let scope: Arc<str> = format!("{}@{}", mount.name, mount.place).into();
        self.add_scope(mount, &scope);
        if capabilities.near {
            return store;
        }
        let counts = Arc::clone(lock(&self.0.mounts).entry(mount.name.into()).or_default());
        let is_immutable = mount.policy == CachePolicy::Immutable && !mount.writable;
        Arc::new(DiskStore::new(Arc::clone(&self.0.tier), scope, store, counts, is_immutable))
    }

    fn add_scope(&self, mount: &CachedMount<'_>, stored: &Arc<str>) {
        let derived_counts = Arc::clone(lock(&self.0.derived).entry(mount.name.into()).or_default());
        let mut scopes = self.0.scopes.all();
        scopes.retain(|known| *known.cache_name != *mount.cache_name);
        scopes.push(MountScope {
            cache_name: mount.cache_name.into(),
            stored: Arc::clone(stored),
            derived: derived_scope(stored),
            derived_counts,
        });
    }

    /// Writes these lookups to the disk from time to time and at the end, for [`DiskCache::take_lookups`] after a restart.
    pub(in crate::cache) fn keep_lookups(&self, source: Arc<dyn LookupSource>) {
        let message = Message::KeepLookups(source, Arc::clone(&self.0.scopes));
        let _ = self.0.tier.queue.sender.send(message);
    }

    /// The lookups of a mount that an earlier run wrote: the key, what was found, and when. They are returned once.
    pub(in crate::cache) fn take_lookups(
        &self,
        cache_name: &str,
    ) -> Vec<(StoreKey, Option<ValueInfo>, Instant)> {
        let Some(scope) = self.scope(cache_name) else { return Vec::new() };
        let mut saved = lock(&self.0.saved);
        let taken = saved.extract_if(.., |lookup| *lookup.scope == *scope);
        taken.filter_map(|lookup| Some((lookup.key, lookup.info, from_wall_clock(lookup.asked)?))).collect()
    }

    /// A chunk that is derived of a mount, which is given by the name that it, or a snapshot of it, is cached under; `None` if
    /// nothing of that mount is cached here.
    pub(in crate::cache) fn derived(&self, mount: &str, key: StoreKey) -> Option<DiskChunk> {
        let scopes = self.0.scopes.all();
        let scope = scopes.iter().find(|scope| *scope.cache_name == *base_name(mount))?;
        let name = ValueName { scope: Arc::clone(&scope.derived), key };
        Some(DiskChunk { tier: Arc::clone(&self.0.tier), name, counts: Arc::clone(&scope.derived_counts) })
    }

    #[cfg(test)]
    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.0.tier.engine
    }

    fn scope(&self, cache_name: &str) -> Option<Arc<str>> {
        self.0.scopes.stored(cache_name)
    }

    /// Waits until everything that was queued is written. Blocks.
    #[cfg(test)]
    pub(super) fn flush(&self) {
        let (done, wait) = mpsc::sync_channel(1);
        self.0.tier.queue.sender.send(Message::Flush(done)).unwrap();
        wait.recv().unwrap();
    }
}

impl Evictable for DiskCache {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        let mut reads = reads_by_mount(&self.0.mounts);
        reads.extend(reads_by_mount(&self.0.derived));
        let sum = |of: fn(&DiskReads) -> u64| reads.iter().map(|(_, reads)| of(reads)).sum();
        let engine = &self.0.tier.engine;
        let (entries, bytes) = {
            let state = engine.state();
            (state.index.parts() as u64, state.bytes())
        };
        let usage = CacheUsage {
            hits: sum(|reads| reads.hits),
            misses: sum(|reads| reads.misses),
            evictions: engine.counts.evictions.load(Ordering::Relaxed),
            entries,
            bytes,
        };
        vec![(CacheKind::Disk, usage)]
    }

    /// Blocks until the purge is durable. What is purged is not counted: its bytes are evicted with their segments.
    fn purge(&self, mount: &str, prefix: &StorePrefix) -> PurgeOutcome {
        let Some(scope) = self.scope(mount) else { return PurgeOutcome::of_memory(0) };
        let engine = &self.0.tier.engine;
        // What is queued now is not written.
        engine.generation.advance();
        lock(&self.0.saved).retain(|lookup| *lookup.scope != *scope);
        {
            let mut state = engine.state();
            // A first part may be about to be written: the thread that writes comes to the purge after it.
            if let Some(at) = state.end() {
                state.purges.push(Purge { scope: (&*scope).into(), prefix: prefix.clone(), at });
            }
        }
        let (done, wait) = mpsc::sync_channel(1);
        let is_sent = self.0.tier.queue.sender.send(Message::Purge(scope, prefix.clone(), done)).is_ok();
        let is_durable = is_sent && wait.recv_timeout(PURGE_TIMEOUT).unwrap_or(false);
        PurgeOutcome { entries: 0, is_durable }
    }

    /// Purges what is cached of the mount, unless its store is served under another name, as after a change of other options.
    fn drop_mount(&self, mount: &str) {
        let Some(scope) = self.scope(mount) else { return };
        let is_other = |known: &MountScope| *known.cache_name != *mount && known.stored == scope;
        let is_served = self.0.scopes.all().iter().any(is_other);
        if !is_served {
            self.purge(mount, &StorePrefix::root());
        }
        self.0.scopes.all().retain(|known| *known.cache_name != *mount);
    }

    /// Nothing: its memory is bounded, and what it has is not in memory.
    fn evict_half(&self) {}

    fn admit_all(&self, mount: &str, prefix: &StorePrefix) -> Option<Box<dyn Send>> {
        let number = self.0.tier.engine.begin_admission(&self.scope(base_name(mount))?, prefix);
        Some(Box::new(AdmitAll { engine: Arc::clone(&self.0.tier.engine), number }))
    }

    fn disk_report(&self) -> Option<DiskReport> {
        let (engine, counts) = (&self.0.tier.engine, &self.0.tier.engine.counts);
        Some(DiskReport {
            size: engine.size,
            bytes: engine.bytes(),
            is_paused: engine.is_paused.load(Ordering::Relaxed),
            dropped: counts.dropped.load(Ordering::Relaxed),
            written_bytes: counts.written_bytes.load(Ordering::Relaxed),
            damaged: counts.damaged.load(Ordering::Relaxed),
            failures: counts.failures.load(Ordering::Relaxed),
            mounts: reads_by_mount(&self.0.mounts),
            derived: reads_by_mount(&self.0.derived),
        })
    }
}

/// The reads of each mount, by its name.
fn reads_by_mount(of: &Mutex<BTreeMap<Box<str>, Arc<DiskCounts>>>) -> Vec<(Box<str>, DiskReads)> {
    let reads = |counts: &DiskCounts| DiskReads {
        hits: counts.hits.load(Ordering::Relaxed),
        misses: counts.misses.load(Ordering::Relaxed),
        hit_bytes: counts.hit_bytes.load(Ordering::Relaxed),
    };
    lock(of).iter().map(|(name, counts)| (name.clone(), reads(counts))).collect()
}

/// Admits everything below a prefix until it is dropped.
struct AdmitAll {
    engine: Arc<Engine>,
    number: u64,
}

impl Drop for AdmitAll {
    fn drop(&mut self) {
        self.engine.end_admission(self.number);
    }
}

/// No code panics while it holds such a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
