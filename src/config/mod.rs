//! The configuration: the sum of the rooms' options, from five layers.
//!
//! `config/default.toml` (compiled in; it is also the documentation of every key) < the file that an image brings along
//! (`ZARRD_BASE_CONFIG`) < a file < the environment (`ZARRD__SECTION__KEY`) < flags. Unknown keys and wrong types are refused with the place they were written at.
//! Nothing here opens a store or a socket, and no other room below `app` can name [`Config`].

mod access;
mod cli;
mod differences;
mod environment;
mod error;
mod layers;
mod machine;
mod memory;
mod mounts;
mod nearest;
pub mod process;
mod read;
mod sections;
mod server;
mod telemetry;
mod tips;
mod tls;
mod tree;
mod units;

pub use access::{key_sets, unix_seconds};
pub use cli::{CheckArgs, Cli, Command, HealthArgs, ServeArgs, SignArgs, TokenArgs};
pub use error::ConfigError;
pub use layers::Sources;
pub use machine::resident_bytes;
pub use memory::{Memory, MemoryBound};
pub use mounts::MountOptions;
pub use sections::{LimitOptions, LogFormat, LogOptions};
pub use server::ServerOptions;
pub use telemetry::TelemetryOptions;
pub use tls::{TlsError, TlsOptions};
pub use tree::Origin;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::array::{FetchOptions, ReadLimits};
use crate::auth::AccessOptions;
use crate::cache::CacheOptions;
use crate::cpu::ComputePoolOptions;
use crate::http::HttpOptions;
use crate::store::{backends_of, kind_of};

/// The compiled-in defaults, with a description of every key.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether the built-in demo hierarchy is served, as the mount `demo`.
    pub demo: bool,
    /// The listener: address, timeouts, connections.
    pub server: ServerOptions,
    /// What HTTP requests may ask for.
    pub http: HttpOptions,
    /// Who may do what.
    pub access: AccessOptions,
    /// What stored documents and chunks may claim.
    pub limits: LimitOptions,
    /// What one request may read.
    pub read: ReadLimits,
    /// How stored bytes are fetched.
    pub fetch: FetchOptions,
    /// What is remembered.
    pub cache: CacheOptions,
    /// Work on the processor.
    pub cpu: ComputePoolOptions,
    /// Logs.
    pub log: LogOptions,
    /// Traces.
    pub telemetry: TelemetryOptions,
    /// Stores, by the name that stands in URLs.
    pub mounts: BTreeMap<String, MountOptions>,
    /// Where each mount was written, by its name, for whoever finds out later that something is wrong with it.
    #[serde(skip)]
    pub origins: BTreeMap<String, Origin>,
    /// How much memory there is.
    #[serde(skip)]
    pub memory: Memory,
}

impl Config {
    /// The effective configuration as TOML, with secrets masked. Of a mount's options those are left out that are not for
    /// its backend, so that it can be read again.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut table = match toml::Table::try_from(self) {
            Ok(table) => table,
            Err(error) => return format!("# cannot be written as TOML: {error}\n"),
        };
        for (name, mount) in &self.mounts {
            let shown = table.get_mut("mounts").and_then(|mounts| mounts.get_mut(name)?.get_mut("options"));
            if let (Some(toml::Value::Table(options)), Some(kind)) = (shown, kind_of(&mount.url)) {
                options.retain(|option, _| backends_of(option).is_some_and(|kinds| kinds.contains(&kind)));
            }
        }
        table.to_string()
    }
}

#[cfg(test)]
mod tests;
