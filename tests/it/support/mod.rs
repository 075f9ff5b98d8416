//! The harness: a complete server in memory, arrays to store in it, a model with the expected results, and helpers
//! of tests.

pub mod catalogue;
pub mod changing;
pub mod client;
pub mod copied;
pub mod counting;
pub mod data_types;
pub mod encode;
pub mod encoded;
pub mod hierarchy;
pub mod journal;
pub mod model;
pub mod not_supported;
pub mod pickle;
pub mod process;
pub mod property;
pub mod remote;
pub mod s3;
pub mod server;
pub mod stamped;
pub mod strategies;
pub mod unlistable;
