//! The harness: a whole server in memory, arrays to put into it, a model that answers as it should, and what tests
//! ask of it.

pub mod blind;
pub mod catalogue;
pub mod changing;
pub mod client;
pub mod copied;
pub mod counting;
pub mod data_types;
pub mod encode;
pub mod encoded;
pub mod hierarchy;
pub mod model;
pub mod not_supported;
pub mod pickle;
pub mod process;
pub mod s3;
pub mod server;
pub mod strategies;
pub mod told;
