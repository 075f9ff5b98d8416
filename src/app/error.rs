//! [`AppError`]: why the server cannot start.

use std::net::SocketAddr;

use crate::auth::AccessError;
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
    /// The demo cannot be made: a defect.
    #[error("the demo cannot be made")]
    Demo(#[from] DemoError),
    /// The threads for decoding cannot be started.
    #[error("the threads for decoding cannot be started")]
    Cpu(#[from] ComputePoolError),
    /// Options or mounts that cannot be served.
    #[error("the mounts cannot be served")]
    Http(#[from] HttpOptionsError),
    /// The certificate cannot be shown.
    #[error("TLS cannot be spoken")]
    Tls(#[from] TlsError),
    /// Keys of issuers that cannot be used.
    #[error("who may do what cannot be told")]
    Access(#[from] AccessError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The signals that end the server cannot be listened to.
    #[error("cannot listen to signals")]
    Signals(#[source] std::io::Error),
}

impl Classify for AppError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Mount { source, .. } => source.class(),
            Self::Demo(source) => source.class(),
            Self::Cpu(source) => source.class(),
            Self::Http(_) | Self::Tls(_) | Self::Access(_) => ErrorClass::InvalidRequest,
            Self::Bind { .. } | Self::Signals(_) => ErrorClass::Internal,
        }
    }
}
