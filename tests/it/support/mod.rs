//! The harness: a whole server in memory, and what tests ask of it.

pub mod server;
