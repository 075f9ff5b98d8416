//! [`AppError`]: why the server cannot start.

use std::net::SocketAddr;

use crate::auth::AccessError;
use crate::cache::DiskCacheError;
use crate::config::TlsError;
use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::http::HttpOptionsError;
use crate::store::OpenError;

use super::demo::DemoError;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A mount's store cannot be opened.
    #[error("the mount `{name}` cannot be opened")]
    Mount {
        /// The mount.
        name: String,
        /// Why.
        source: OpenError,
    },
    /// The demo cannot be created: a bug.
    #[error("the demo cannot be created")]
    Demo(#[from] DemoError),
    /// The threads for decoding cannot be started.
    #[error("the threads for decoding cannot be started")]
    Cpu(#[from] ComputePoolError),
    /// The disk cache cannot be opened.
    #[error("the disk cache (`cache.disk`) cannot be used")]
    DiskCache(#[from] DiskCacheError),
    /// Options or mounts that are rejected.
    #[error("the mounts cannot be served")]
    Http(#[from] HttpOptionsError),
    /// The certificate cannot be used.
    #[error("TLS cannot be set up")]
    Tls(#[from] TlsError),
    /// Keys of issuers that cannot be used.
    #[error("the access rules cannot be used")]
    Access(#[from] AccessError),
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The handlers of signals cannot be installed.
    #[error("cannot handle signals")]
    Signals(#[source] std::io::Error),
}

impl Classify for AppError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Mount { source, .. } => source.class(),
            Self::Demo(source) => source.class(),
            Self::Cpu(source) => source.class(),
            Self::DiskCache(source) => source.class(),
            Self::Http(_) | Self::Tls(_) | Self::Access(_) => ErrorClass::InvalidRequest,
            Self::Bind { .. } | Self::Signals(_) => ErrorClass::Internal,
        }
    }
}

/// An error and its sources.
pub(super) fn in_one_line(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
