//! [`check`]: whether `serve` would start, by the same steps up to the point where it listens.

use futures::future::join_all;

use super::error::AppError;
use super::server::App;
use crate::cache::{DiskCache, DiskCacheError};
use crate::config::Config;
use crate::error::setting_key;
use crate::services::{Mount, answers_within};
use crate::store::{AllowedPrefix, OpenError, StoreError, StoreKind, open_prefix};

/// How long a backend may take to answer.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// A configuration that can be served.
#[derive(Debug)]
pub struct Checked {
    app: App,
    /// Mounts whose directories another server has open for writing, most likely the one that is to be restarted.
    pub in_use: Vec<String>,
    /// Whether another server uses the directory of the disk cache now.
    pub disk_in_use: bool,
    /// Mounts, and the prefixes that their references may lead to.
    prefixes: Vec<(String, AllowedPrefix)>,
}

/// Opens what `serve` would open, with two differences: a directory that another server has open for writing is opened for reading,
/// and the disk cache is checked and not opened.
///
/// # Errors
/// Those of [`App::build`].
pub async fn check(mut config: Config) -> Result<Checked, AppError> {
    let mut in_use = Vec::new();
    let disk_in_use = match DiskCache::check(&config.cache.disk) {
        Ok(()) => false,
        Err(DiskCacheError::InUse(_)) => true,
        Err(error) => return Err(error.into()),
    };
    // To open it would evict what no longer fits.
    config.cache.disk.path = None;
    let prefixes = config
        .mounts
        .iter()
        .flat_map(|(name, mount)| mount.allowed_prefixes().into_iter().map(|prefix| (name.clone(), prefix)));
    let prefixes = prefixes.collect();
    loop {
        match App::build(config.clone()).await {
            Ok(app) => return Ok(Checked { app, in_use, disk_in_use, prefixes }),
            Err(AppError::Mount {
                name,
                source: OpenError::Directory { source: StoreError::RootInUse(_), .. },
            }) if config.mounts.get(&name).is_some_and(|mount| mount.writable) => {
                if let Some(mount) = config.mounts.get_mut(&name) {
                    mount.writable = false;
                }
                in_use.push(name);
            }
            Err(error) => return Err(error),
        }
    }
}

/// What a backend has answered.
#[derive(Debug)]
pub struct Contact {
    /// The mount's name.
    pub mount: String,
    /// Nothing, or the failure.
    pub answer: Result<(), String>,
    /// Of a read-only mount: whether nothing is stored there; `None` if it cannot list.
    pub is_empty: Option<bool>,
    /// Of a mount that other servers may write to: whether the backend checks the conditions of writes, or why that cannot be tried.
    pub conditions: Option<Result<bool, String>>,
    /// The prefixes that the mount's references may lead to, each with what its backend has answered.
    pub prefixes: Vec<(String, PrefixAnswer)>,
}

/// What the backend of a prefix has answered, where references may lead.
#[derive(Debug)]
pub enum PrefixAnswer {
    /// It answers.
    Answers,
    /// It denies what was asked for, which is no file of the references.
    Denies(String),
    /// It does not answer, and why.
    Fails(String),
}

impl Checked {
    /// Which writers each writable mount promises, as a line for each.
    #[must_use]
    pub fn writers(&self) -> Vec<String> {
        let writable = self.app.served.iter().map(|served| &served.mount).filter(|mount| mount.writable);
        writable
            .map(|mount| format!("the mount `{}` is writable: {}", mount.name, writers_of(mount)))
            .collect()
    }

    /// Contacts all backends concurrently. Where other servers may write, it tries whether the backend checks conditions.
    pub async fn connect(&self) -> Vec<Contact> {
        // As many at a time as the configuration has mounts.
        join_all(self.app.served.iter().map(|served| async move {
            let mount = &served.mount;
            let answer = mount.answers_within(CONNECT_TIMEOUT).await.map_err(|failure| failure.cause);
            let conditions = if answer.is_ok() && depends_on_conditions(mount) {
                Some(mount.checks_conditions_within(CONNECT_TIMEOUT).await)
            } else {
                None
            };
            let is_empty = if answer.is_ok() && !mount.writable {
                mount.is_empty_within(CONNECT_TIMEOUT).await
            } else {
                None
            };
            let prefixes = self.connect_prefixes(&mount.name).await;
            Contact { mount: mount.name.clone(), answer, is_empty, conditions, prefixes }
        }))
        .await
    }

    /// Contacts the backends that the references of a mount may lead to.
    async fn connect_prefixes(&self, mount: &str) -> Vec<(String, PrefixAnswer)> {
        let of_mount = self.prefixes.iter().filter(|(name, _)| name == mount);
        join_all(of_mount.map(|(_, prefix)| async {
            let answer = match open_prefix(prefix) {
                Err(error) => PrefixAnswer::Fails(error.to_string()),
                Ok(store) => match answers_within(&store, CONNECT_TIMEOUT).await {
                    Ok(()) => PrefixAnswer::Answers,
                    Err(failure) if failure.is_denied => PrefixAnswer::Denies(failure.cause),
                    Err(failure) => PrefixAnswer::Fails(failure.cause),
                },
            };
            (prefix.url.clone(), answer)
        }))
        .await
    }
}

impl Contact {
    /// Whether the mount can do what its configuration says. A backend that ignores conditions can store whole values.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.answer.is_ok()
            && self.conditions.as_ref().is_none_or(Result::is_ok)
            && !self.prefixes.iter().any(|(_, answer)| matches!(answer, PrefixAnswer::Fails(_)))
    }

    /// What the backend has answered, as lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let name = &self.mount;
        let mut lines = vec![match &self.answer {
            Ok(()) => format!("the mount `{name}` answers"),
            Err(trouble) => format!("the mount `{name}` does not answer: {trouble}"),
        }];
        if self.is_empty == Some(true) {
            lines.push(format!("the mount `{name}`: nothing is stored there"));
        }
        lines.extend(self.prefixes.iter().map(|(url, answer)| {
            let prefix = format!("the mount `{name}`: `{url}`, where its references may lead,");
            match answer {
                PrefixAnswer::Answers => format!("{prefix} answers"),
                PrefixAnswer::Denies(cause) => format!(
                    "warning: {prefix} does not say what is there: {cause}; files that references lead to may be readable all the same"
                ),
                PrefixAnswer::Fails(cause) => format!("{prefix} does not answer: {cause}"),
            }
        }));
        lines.extend(self.conditions.as_ref().map(|conditions| match conditions {
            Ok(true) => format!("the mount `{name}`: its backend checks the conditions of writes"),
            Ok(false) => format!(
                "warning: the mount `{name}`: its backend ignores the conditions of writes, so only whole values can be \
                 written; if this server alone writes there, set `{} = \"one\"`",
                setting_key(["mounts", name, "writers"])
            ),
            Err(trouble) => format!("the mount `{name}`: nothing can be written to its backend: {trouble}"),
        }));
        lines
    }
}

/// Whether writes to a mount are safe only if its backend checks conditions.
fn depends_on_conditions(mount: &Mount) -> bool {
    let capabilities = mount.store.capabilities();
    mount.writable && !capabilities.sole_writer && !capabilities.in_memory
}

/// Who writes to a writable mount, in words.
fn writers_of(mount: &Mount) -> &'static str {
    if mount.store.kind() == StoreKind::LOCAL {
        "no other server can write to its directory"
    } else if depends_on_conditions(mount) {
        "other servers may write there too (`writers = \"any\"`), so its backend must check conditions"
    } else if mount.store.capabilities().in_memory {
        "its values are in this server alone"
    } else {
        "this server alone writes there (`writers = \"one\"`) and checks conditions itself; another writer's values could be lost"
    }
}
