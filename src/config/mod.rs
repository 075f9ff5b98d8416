//! The configuration: the sum of the rooms' options, from four layers.
//!
//! `config/default.toml` (compiled in; it is also the documentation of every key) < a file < the environment
//! (`ZARRD__SECTION__KEY`) < flags. Unknown keys and wrong types are refused with the place they were written at.
//! Nothing here opens a store or a socket, and no other room below `app` can name [`Config`].

mod access;
mod cli;
mod differences;
mod error;
mod layers;
mod machine;
mod mounts;
mod nearest;
pub mod process;
mod read;
mod sections;
mod server;
mod telemetry;
mod tls;
mod tree;

pub use access::{key_sets, unix_seconds};
pub use cli::{Cli, Command, HealthArgs, ServeArgs, SignArgs, TokenArgs};
pub use error::ConfigError;
pub use layers::Sources;
pub use machine::{memory_limit, resident_bytes};
pub use mounts::MountOptions;
pub use sections::{LimitOptions, LogFormat, LogOptions};
pub use server::ServerOptions;
pub use telemetry::TelemetryOptions;
pub use tls::{TlsError, TlsOptions};
pub use tree::Origin;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::array::{FetchOptions, ReadLimits};
use crate::cache::CacheOptions;
use crate::cpu::CpuOptions;
use crate::http::{AccessOptions, HttpOptions};

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
    pub cpu: CpuOptions,
    /// Logs.
    pub log: LogOptions,
    /// Traces.
    pub telemetry: TelemetryOptions,
    /// Stores, by the name that stands in URLs.
    pub mounts: BTreeMap<String, MountOptions>,
    /// Where each mount was written, by its name, for whoever finds out later that something is wrong with it.
    #[serde(skip)]
    pub origins: BTreeMap<String, Origin>,
}

impl Config {
    /// The effective configuration as TOML, with secrets masked.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| format!("# cannot be written as TOML: {error}\n"))
    }
}

#[cfg(test)]
mod tests;
