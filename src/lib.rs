//! zarrd: an HTTP array server for Zarr.
//!
//! The rooms stand from ground to roof: the ground is the format, the roof is HTTP. A room may look down, never
//! up; `tests/it/tidy.rs` keeps the order below.

pub mod app;
pub mod array;
pub mod cache;
pub mod chunk;
pub mod codec;
pub mod config;
pub mod cpu;
pub mod error;
pub mod hierarchy;
pub mod http;
pub mod key;
pub mod metadata;
pub mod render;
pub mod store;
