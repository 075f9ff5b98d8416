//! [`AppError`]: why the server cannot start.

use std::net::SocketAddr;

use super::demo::DemoError;
use crate::cpu::CpuError;
use crate::error::{Classify, ErrorClass};
use crate::http::HttpOptionsError;
use crate::store::OpenError;

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
    /// The demo hierarchy cannot be made: a defect.
    #[error("the demo cannot be made")]
    Demo(#[source] DemoError),
    /// The threads that decode cannot be started.
    #[error("cannot start the threads that decode")]
    Cpu(#[source] CpuError),
    /// The HTTP options or the mounts' names do not fit.
    #[error("the configuration of HTTP")]
    Http(#[source] HttpOptionsError),
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
            Self::Http(_) => ErrorClass::InvalidRequest,
            Self::Demo(_) | Self::Cpu(_) | Self::Bind { .. } | Self::Signals(_) => ErrorClass::Internal,
        }
    }
}
