//! The configuration: all settings, merged from five layers.
//!
//! `config/default.toml` (compiled in, and generated from the options structs with the documentation of every key) < the file of a
//! container image (`ZARRD_BASE_CONFIG`) < a file < the environment (`ZARRD__SECTION__KEY`) < flags. Unknown keys and wrong types
//! are rejected with the place where they were written. This module opens neither stores nor sockets, and of the other modules
//! only `app` can name [`Config`].

mod access;
mod argument_hint;
mod budgets;
mod cli;
mod differences;
mod environment;
mod error;
mod layers;
mod local_paths;
mod machine;
mod mounts;
mod nearest;
mod options;
mod origin;
pub mod process;
mod read;
mod sections;
mod server;
mod telemetry;
mod tips;
mod tls;
mod tree;

pub use access::{key_sets, unix_seconds};
pub use budgets::MemoryBound;
pub use cli::{CheckArgs, Cli, Command, HealthArgs, PyramidArgs, ServeArgs, SignArgs, TokenArgs};
pub use error::ConfigError;
pub use layers::Sources;
pub use machine::{AvailableMemory, resident_bytes};
pub use mounts::{DEMO, MountOptions, PYRAMID_SOURCE, VirtualOptions};
pub use options::{Config, DEFAULTS};
pub use origin::Origin;
pub use sections::{LimitOptions, LogFormat, LogOptions};
pub use server::ServerOptions;
pub use telemetry::TelemetryOptions;
pub use tls::{TlsError, TlsOptions};

#[cfg(test)]
mod tests;
