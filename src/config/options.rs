//! [`Config`]: all settings, the sum of the options of all modules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::machine::AvailableMemory;
use super::mounts::MountOptions;
use super::origin::Origin;
use super::sections::{LimitOptions, LogOptions};
use super::server::ServerOptions;
use super::telemetry::TelemetryOptions;
use crate::array::{FetchOptions, ReadLimits};
use crate::auth::AccessOptions;
use crate::cache::CacheOptions;
use crate::cpu::ComputePoolOptions;
use crate::http::{HttpOptions, ImageOptions};
use crate::store::{backends_of, kind_of};
use crate::views::pyramid::PyramidOptions;
use crate::write::WriteOptions;

/// The compiled-in defaults, with the documentation of every key. A test generates the file from the options structs.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// All settings of zarrd, with their defaults.
///
/// These five matter most, and most servers need no others:
///
/// * `mounts.NAME.url`: what is served: a directory or a bucket (see `mounts`, and the files in `config/examples`)
/// * `server.listen`: where: `"0.0.0.0:8000"` is all addresses of this machine
/// * `access.tokens`: who may do what; without any, everyone who can connect may read
/// * `mounts.NAME.writable`: whether clients may write
/// * `server.max_memory`: how much memory the server may use; all budgets follow from it
///
/// The defaults are compiled in. Each of these layers overrides the ones before: the file named by `ZARRD_BASE_CONFIG` (the
/// container image has one), the file named by `--config` or `ZARRD_CONFIG`, environment variables named `ZARRD__SECTION__KEY`
/// (`ZARRD__SERVER__LISTEN=0.0.0.0:8000`, `ZARRD__MOUNTS__DATA__URL=s3://bucket`), and flags. A file needs to contain only what
/// differs. Unknown keys are rejected, and so are other variables that begin with `ZARRD_`. `zarrd check` prints the effective
/// configuration, with secrets masked.
///
/// Names of keys follow one rule:
///
/// * `max_*` and `min_*` are limits: what exceeds one is rejected or waits
/// * `*_size` is a size in bytes: `"64MiB"`, `"1GB"` (KiB, MiB, GiB, TiB are powers of 1024, and kB, MB, GB, TB of 1000), or a
///   number of bytes; without `max_` it is memory that is set aside
/// * `*_timeout` is the time after which something is given up; `*_interval`, `*_window`, `*_lifetime` and `max_age` are
///   durations of other kinds: `"250ms"`, `"30s"`, `"10m"`, `"1h"`
/// * `*_rate` is per second, and `*_burst` is what may come at once
/// * `allow_*` permits what is rejected otherwise
///
/// A budget of memory that is `"auto"` is chosen at the start: all budgets together take four fifths of the memory that a
/// container may use, or half of what the machine has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether the built-in demo hierarchy is served, as the mount `demo`. It is also served if there is no mount.
    pub demo: bool,
    /// The listener: addresses, timeouts, connections.
    pub server: ServerOptions,
    /// Limits of requests and responses.
    pub http: HttpOptions,
    /// Credentials and what they permit.
    pub access: AccessOptions,
    /// Limits of one read.
    pub read: ReadLimits,
    /// Limits of writes of elements.
    pub write: WriteOptions,
    /// Pictures of arrays.
    pub image: ImageOptions,
    /// Coarser levels of arrays.
    pub pyramid: PyramidOptions,
    /// How stored values are fetched.
    pub fetch: FetchOptions,
    /// Limits of stored documents and chunks.
    pub limits: LimitOptions,
    /// Memory for caches.
    pub cache: CacheOptions,
    /// Threads for computation.
    pub cpu: ComputePoolOptions,
    /// Logs.
    pub log: LogOptions,
    /// Traces.
    pub telemetry: TelemetryOptions,
    /// Mounts, by the name that they have in URLs.
    pub mounts: BTreeMap<String, MountOptions>,
    /// Where each mount was configured, by its name, for errors that are found later.
    #[serde(skip)]
    pub origins: BTreeMap<String, Origin>,
    /// Mounts whose directory cannot be found, and why. Only a reload can have any: the stores that are open stay served.
    #[serde(skip)]
    pub missing_directories: BTreeMap<String, String>,
    /// How much memory there is.
    #[serde(skip)]
    pub memory: AvailableMemory,
    /// The memory that was detected, in bytes: also where `server.max_memory` says another number.
    #[serde(skip)]
    pub detected_memory: Option<u64>,
}

impl Config {
    /// The effective configuration as TOML, with secrets masked. Options of a mount that are not for its backend are omitted, so
    /// that the result is a valid configuration.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut table = match toml::Table::try_from(self) {
            Ok(table) => table,
            Err(error) => return format!("# cannot be written as TOML: {error}\n"),
        };
        for (name, mount) in &self.mounts {
            let Some(shown) = table.get_mut("mounts").and_then(|mounts| mounts.get_mut(name)) else {
                continue;
            };
            retain_options(shown.get_mut("options"), &mount.url);
            for (prefix, options) in &mount.r#virtual {
                let shown =
                    shown.get_mut("virtual").and_then(|shown| shown.get_mut(prefix)?.get_mut("options"));
                retain_options(shown, options.at.as_deref().unwrap_or(prefix));
            }
        }
        table.to_string()
    }
}

/// Omits options that are not for the backend of a URL.
fn retain_options(shown: Option<&mut toml::Value>, url: &str) {
    if let (Some(toml::Value::Table(options)), Some(kind)) = (shown, kind_of(url)) {
        options.retain(|option, _| backends_of(option).is_some_and(|kinds| kinds.contains(&kind)));
    }
}
