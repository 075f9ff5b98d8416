//! From the configuration to the mounts that are served, at the start and whenever it is read anew.
//!
//! A store that is served already is taken over, so that what is remembered of it stays, and a writable directory need not
//! be given up first. One that differs in anything is opened anew, and remembered under another name: also where its path
//! leads to another directory by now.

use std::sync::Arc;
use std::time::Duration;

use super::banner::Demo;
use super::{AppError, DEMO, demo};
use crate::cache::ValueCache;
use crate::config::{Config, MountOptions};
use crate::cpu::ComputePool;
use crate::http::{BackendCounts, Mount};
use crate::metadata::Separator;
use crate::store::{self, CachePolicy, SharedStore, StoreOptions, ZipBudget};

/// A mount that is served.
#[derive(Clone, Debug)]
pub(super) struct ServedMount {
    pub(super) mount: Mount,
    /// What the store was opened by; the demo's was not.
    opened: Option<OpenedMounts>,
}

impl ServedMount {
    /// What is shown of where it is.
    pub(super) fn url(&self) -> &str {
        self.opened.as_ref().map_or("built in", |opened| &opened.url)
    }

    /// Whether its URL leads to another store by now.
    pub(super) fn is_replaced(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.store.is_replaced())
    }
}

/// What a store was opened by.
#[derive(Clone, Debug)]
struct OpenedMounts {
    url: String,
    options: StoreOptions,
    freshness: CachePolicy,
    /// What nodes that are remembered were opened with.
    separator: Option<Separator>,
    /// As it was opened, without what lies over it.
    store: SharedStore,
}

impl OpenedMounts {
    fn is_of(&self, url: &str, options: &StoreOptions) -> bool {
        self.url == url && self.options == *options
    }
}

/// Makes mounts.
#[derive(Clone, Debug)]
pub(super) struct MountOpener {
    pub(super) cpu: ComputePool,
    pub(super) values: ValueCache,
    /// What the directories of all zip files together may take.
    directories: ZipBudget,
    /// How often mounts were made.
    generation: u64,
}

impl MountOpener {
    pub(super) fn new(cpu: ComputePool, values: ValueCache, directories: ZipBudget) -> Self {
        Self { cpu, values, directories, generation: 0 }
    }

    /// The mounts of a configuration, some of which may be served already. Nothing is asked of any backend.
    ///
    /// # Errors
    /// [`AppError::Mount`], [`AppError::Demo`].
    pub(super) async fn open(
        &mut self,
        config: &Config,
        served: &[ServedMount],
    ) -> Result<Vec<ServedMount>, AppError> {
        self.generation += 1;
        let mut mounts = Vec::with_capacity(config.mounts.len() + 1);
        if demo_of(config).is_some() {
            mounts.push(match served.iter().find(|served| served.opened.is_none()) {
                Some(served) => served.clone(),
                None => self.demo().await?,
            });
        }
        for (name, options) in &config.mounts {
            mounts.push(self.mount(name, options, served)?);
        }
        Ok(mounts)
    }

    async fn demo(&self) -> Result<ServedMount, AppError> {
        let options = StoreOptions { writable: true, ..StoreOptions::default() };
        let store = self.store(DEMO, "memory://", &options)?;
        demo::fill(&store).await?;
        let remembered_as = self.remembered_as(DEMO);
        Ok(ServedMount { mount: Mount { remembered_as, ..Mount::read_only(DEMO, store) }, opened: None })
    }

    /// Opens a mount's store.
    fn store(&self, name: &str, url: &str, options: &StoreOptions) -> Result<SharedStore, AppError> {
        store::open_within(url, options, &self.cpu, &self.directories)
            .map_err(|source| AppError::Mount { name: name.to_owned(), source })
    }

    /// What the values of a new store are remembered under.
    fn remembered_as(&self, name: &str) -> Arc<str> {
        match self.generation {
            1 => name.into(),
            // No name of a mount has this sign in it.
            generation => format!("{name}#{generation}").into(),
        }
    }

    fn mount(
        &self,
        name: &str,
        options: &MountOptions,
        served: &[ServedMount],
    ) -> Result<ServedMount, AppError> {
        let of_store = StoreOptions {
            writable: options.writable,
            signs_urls: options.redirect,
            believes_times: options.freshness != CachePolicy::Uncached,
            ..options.options.clone()
        };
        let before = served.iter().find(|served| served.mount.name == name && served.opened.is_some());
        let backend =
            before.map_or_else(Arc::<BackendCounts>::default, |before| Arc::clone(&before.mount.backend));
        let mut opened = served.iter().filter_map(|served| served.opened.as_ref());
        // It may have had another name.
        let is_kept =
            |opened: &&OpenedMounts| opened.is_of(&options.url, &of_store) && !opened.store.is_replaced();
        let raw = match opened.find(is_kept) {
            Some(opened) => Arc::clone(&opened.store),
            None => self.store(name, &options.url, &of_store)?,
        };
        let is_same = |opened: &OpenedMounts| {
            Arc::ptr_eq(&opened.store, &raw)
                && opened.freshness == options.freshness
                && opened.separator == options.dimension_separator
        };
        let same = before.filter(|before| before.opened.as_ref().is_some_and(is_same));
        let (store, remembered_as) = if let Some(ServedMount { mount, .. }) = same {
            (Arc::clone(&mount.store), Arc::clone(&mount.remembered_as))
        } else {
            let remembered_as = self.remembered_as(name);
            let observer = Arc::clone(&backend) as Arc<dyn store::Observer>;
            let observed = store::observed(name, Arc::clone(&raw), observer);
            (self.values.over(&remembered_as, observed, options.freshness), remembered_as)
        };
        let mount = Mount {
            name: name.to_owned(),
            remembered_as,
            store,
            writable: options.writable,
            allow_prefix_delete: options.allow_prefix_delete,
            cache_control: options.cache_control.clone(),
            dimension_separator: options.dimension_separator,
            consolidated: options.consolidated,
            hosts: options.hosts.clone(),
            backend,
            redirect: options.redirect.then(|| Duration::from_secs(options.redirect_lifetime.into())),
        };
        let (url, freshness, separator) =
            (options.url.clone(), options.freshness, options.dimension_separator);
        Ok(ServedMount {
            mount,
            opened: Some(OpenedMounts { url, options: of_store, freshness, separator, store: raw }),
        })
    }
}

/// Whether a configuration serves the demo, and why.
pub(super) fn demo_of(config: &Config) -> Option<Demo> {
    match (config.demo, config.mounts.is_empty()) {
        (true, _) => Some(Demo::Asked),
        (false, true) => Some(Demo::NoMountsConfigured),
        (false, false) => None,
    }
}
