//! The server, assembled: configuration → stores → endpoints, and the loop that serves them.
//!
//! Timeouts, limits of connections and graceful shutdown are decided here. What a request means is decided in `http`.

mod access;
mod banner;
mod browser;
mod check;
mod connection;
mod connection_timeouts;
pub mod demo;
mod descriptors;
mod error;
mod freed_memory;
mod heads;
mod health;
mod memory_pressure;
mod mounts;
mod pyramid;
mod reload;
mod reopen;
mod serve;
mod server;
mod service;
mod shutdown;
mod socket;
mod tls;
mod unsent_permits;

pub use access::access;
pub use check::{Checked, Contact, PrefixAnswer, check};
pub use connection_timeouts::ConnectionLimits;
pub use error::AppError;
pub use health::is_alive;
pub use pyramid::{PyramidError, STORE_FOLDER, write_pyramid};
pub use serve::{BoundListener, serve, serve_all};
pub use server::App;
pub use service::RequestHandler;
pub use shutdown::{Phase, Shutdown, Signals};
pub use tls::Tls;
