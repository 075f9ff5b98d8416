//! [`MountOpener`]: from the configuration to the mounts that are served, at the start and at each reload.
//!
//! A store that is served already is reused, so that its caches stay and a writable directory does not have to be released first.
//! If anything about it has changed, it is opened again, and cached under another name; also if its path leads to another directory
//! now.

use std::sync::Arc;

use super::demo;
use super::error::AppError;
use crate::cache::{CachedMount, DiskCache, SharedReads, StaleCache, ValueCache};
use crate::config::{Config, DEMO, MountOptions};
use crate::cpu::ComputePool;
use crate::metadata::Separator;
use crate::metrics::BackendCounts;
use crate::services::Mount;
use crate::store::{self, CachePolicy, Freshness, OpenBudgets, SharedStore, Store, StoreOptions, Version};

/// A mount that is served.
#[derive(Clone, Debug)]
pub(super) struct ServedMount {
    pub(super) mount: Mount,
    /// How the store was opened; none for the demo.
    opened: Option<OpenStore>,
}

impl ServedMount {
    pub(super) fn name(&self) -> &str {
        &self.mount.name
    }

    /// Where the store is, as it is configured.
    pub(super) fn url(&self) -> &str {
        self.opened.as_ref().map_or("built in", |opened| &opened.url)
    }

    /// Whether its directory was removed, and there is another one at its path.
    pub(super) fn is_removed(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.store.is_removed())
    }
}

/// The mounts that are served already.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlreadyServed<'a> {
    pub(super) mounts: &'a [ServedMount],
    /// Which stores are opened again, although their URLs and options are the same.
    pub(super) is_outdated: fn(&dyn Store) -> bool,
}

impl AlreadyServed<'_> {
    /// None: all stores are opened.
    pub(super) const NONE: Self = Self { mounts: &[], is_outdated: |_| false };

    /// Whether a store has to be opened again.
    pub(super) fn has_outdated(&self) -> bool {
        let mut opened = self.mounts.iter().filter_map(|mount| mount.opened.as_ref());
        opened.any(|opened| (self.is_outdated)(&*opened.store))
    }
}

/// An open store, and how it was opened.
#[derive(Clone, Debug)]
struct OpenStore {
    url: String,
    options: StoreOptions,
    freshness: Freshness,
    /// The separator that cached nodes were opened with.
    separator: Option<Separator>,
    /// The store itself, without the layers above it.
    store: SharedStore,
}

impl OpenStore {
    fn matches(&self, url: &str, options: &StoreOptions) -> bool {
        self.url == url && self.options == *options
    }
}

/// Opens the stores of mounts.
#[derive(Clone, Debug)]
pub(super) struct MountOpener {
    pub(super) cpu: ComputePool,
    pub(super) values: ValueCache,
    /// The last lookups of stores that may be stale.
    stale: StaleCache,
    /// The cache of remote stores, below that of values.
    pub(super) disk: Option<DiskCache>,
    /// What all stores together may hold as long as they are open.
    budgets: OpenBudgets,
    /// How often mounts were made.
    generation: u64,
}

impl MountOpener {
    pub(super) fn new(
        cpu: ComputePool,
        (values, stale): (ValueCache, StaleCache),
        disk: Option<DiskCache>,
        budgets: OpenBudgets,
    ) -> Self {
        Self { cpu, values, stale, disk, budgets, generation: 0 }
    }

    /// The mounts of a configuration, some of which may be served already. No backend is contacted.
    ///
    /// # Errors
    /// [`AppError::Mount`], [`AppError::Demo`].
    pub(super) async fn open(
        &mut self,
        config: &Config,
        served: AlreadyServed<'_>,
    ) -> Result<Vec<ServedMount>, AppError> {
        self.generation += 1;
        let mut mounts = Vec::with_capacity(config.mounts.len() + 1);
        if demo::reason(config).is_some() {
            mounts.push(match served.mounts.iter().find(|served| served.opened.is_none()) {
                Some(served) => served.clone(),
                None => self.demo().await?,
            });
        }
        for (name, options) in &config.mounts {
            let is_missing = config.missing_directories.contains_key(name);
            mounts.push(self.mount((name, options), is_missing, served)?);
        }
        Ok(mounts)
    }

    /// Opens those of the mounts again whose directory was removed and made again: each for itself, with its options as they are
    /// configured. Blocks for file operations. Returns the name of each, and why it could not be opened.
    pub(super) fn reopen_removed(
        &mut self,
        config: &Config,
        served: &mut [ServedMount],
    ) -> Vec<(String, Result<(), AppError>)> {
        let removed: Vec<usize> =
            (0..).zip(served.iter()).filter(|(_, mount)| mount.is_removed()).map(|(at, _)| at).collect();
        self.generation += u64::from(!removed.is_empty());
        let mut reopened = Vec::with_capacity(removed.len());
        for at in removed {
            let Some(name) = served.get(at).map(|mount| mount.name().to_owned()) else { continue };
            let Some(options) = config.mounts.get(&name) else { continue };
            // Two mounts of one directory share the store that the first of them opens.
            let already = AlreadyServed { mounts: served, is_outdated: Store::is_removed };
            let opened = self.mount((&name, options), false, already);
            let replace = |opened| {
                if let Some(mount) = served.get_mut(at) {
                    *mount = opened;
                }
            };
            reopened.push((name, opened.map(replace)));
        }
        reopened
    }

    async fn demo(&self) -> Result<ServedMount, AppError> {
        let options = StoreOptions { writable: true, ..StoreOptions::default() };
        let store = self.store(DEMO, "memory://", &options)?;
        demo::fill(&store).await?;
        let cache_name = self.cache_name(DEMO);
        Ok(ServedMount { mount: Mount { cache_name, ..Mount::read_only(DEMO, store) }, opened: None })
    }

    /// Opens a mount's store.
    fn store(&self, name: &str, url: &str, options: &StoreOptions) -> Result<SharedStore, AppError> {
        store::open_within(url, options, &self.cpu, &self.budgets)
            .map_err(|source| AppError::Mount { name: name.to_owned(), source })
    }

    /// The name under which the values of a new store are cached.
    fn cache_name(&self, name: &str) -> Arc<str> {
        match self.generation {
            1 => name.into(),
            // No name of a mount contains this character.
            generation => format!("{name}#{generation}").into(),
        }
    }

    /// The store of a mount with the disk cache in front of it, if there is one.
    fn on_disk(
        &self,
        (name, options): (&str, &MountOptions),
        cache_name: &str,
        store_options: &StoreOptions,
        store: SharedStore,
    ) -> Result<SharedStore, AppError> {
        let Some(disk) = &self.disk else { return Ok(store) };
        let (policy, writable) = (options.freshness.policy, options.writable);
        let place = store::place_of(&options.url, store_options)
            .map_err(|source| AppError::Mount { name: name.to_owned(), source })?;
        // Of fixed length, and readable by no one.
        let place = Version::from_own_text(place.as_bytes());
        Ok(disk.wrap(&CachedMount { name, cache_name, place: place.tag(), policy, writable }, store))
    }

    /// Opens a mount, or reuses its store. If its directory is missing, the open store stays, with the options that it has.
    fn mount(
        &self,
        (name, options): (&str, &MountOptions),
        is_missing: bool,
        served: AlreadyServed<'_>,
    ) -> Result<ServedMount, AppError> {
        let mut store_options = StoreOptions {
            writable: options.writable,
            writers: options.writers,
            signs_urls: options.redirect,
            trusts_file_times: options.freshness.policy != CachePolicy::Uncached,
            references: options.allowed_prefixes(),
            version: options.pinned_version(),
            ..options.options.clone()
        };
        let before = served.mounts.iter().find(|served| served.mount.name == name && served.opened.is_some());
        let backend =
            before.map_or_else(Arc::<BackendCounts>::default, |before| Arc::clone(&before.mount.backend));
        let mut opened = served.mounts.iter().filter_map(|served| served.opened.as_ref());
        let open = before.and_then(|before| before.opened.as_ref()).filter(|open| open.url == options.url);
        if let (true, Some(open)) = (is_missing, open) {
            store_options.clone_from(&open.options);
        }
        // It may have had another name.
        let is_kept = |opened: &&OpenStore| {
            opened.matches(&options.url, &store_options) && !(served.is_outdated)(&*opened.store)
        };
        let raw = match opened.find(is_kept) {
            Some(opened) => Arc::clone(&opened.store),
            None => self.store(name, &options.url, &store_options)?,
        };
        let is_same = |opened: &OpenStore| {
            Arc::ptr_eq(&opened.store, &raw)
                && opened.freshness == options.freshness
                && opened.separator == options.dimension_separator
        };
        let same = before.filter(|before| before.opened.as_ref().is_some_and(is_same));
        let (store, cache_name, staleness, shared_reads) = if let Some(ServedMount { mount, .. }) = same {
            let (name, shared) = (Arc::clone(&mount.cache_name), Arc::clone(&mount.shared_reads));
            (Arc::clone(&mount.store), name, mount.staleness.clone(), shared)
        } else {
            let cache_name = self.cache_name(name);
            let observer = Arc::clone(&backend) as Arc<dyn store::Observer>;
            let observed = store::observed(name, Arc::clone(&raw), observer);
            let (read_once, shared) = SharedReads::wrap(observed, options.freshness.policy);
            let stored = self.on_disk((name, options), &cache_name, &store_options, read_once)?;
            let stale = self.stale.of_mount(&cache_name, options.freshness);
            if let (Some(stale), Some(disk)) = (&stale, &self.disk) {
                stale.restore(disk);
            }
            let staleness = stale.as_ref().map(|stale| Arc::clone(stale.staleness()));
            let policy = options.freshness.policy;
            // The values of a snapshot never change: what may be stale is which snapshot a branch is.
            let lookups = stale.filter(|_| stored.served_version().is_none());
            let store = self.values.wrap_stale(&cache_name, stored, policy, lookups);
            (store, cache_name, staleness, shared)
        };
        let mount = Mount {
            name: name.to_owned(),
            cache_name,
            store,
            writable: options.writable && store_options.writable,
            allow_prefix_delete: options.allow_prefix_delete,
            cache_control: options.cache_control.clone(),
            dimension_separator: options.dimension_separator,
            consolidated: options.consolidated,
            hosts: options.hosts.clone(),
            backend,
            staleness,
            shared_reads,
            redirect: options.redirect.then_some(options.redirect_lifetime),
        };
        let (url, freshness, separator) =
            (options.url.clone(), options.freshness, options.dimension_separator);
        Ok(ServedMount {
            mount,
            opened: Some(OpenStore { url, options: store_options, freshness, separator, store: raw }),
        })
    }
}
