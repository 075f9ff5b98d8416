//! zarrd: an HTTP array server for Zarr.
//!
//! The rooms stand from ground to roof: the ground is the format, the roof is HTTP. A room may look down, never
//! up; `tests/it/tidy.rs` keeps the order below.

// Tests may be blunt: a cast or a panic there fails the test and nothing else.
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::string_slice,
        clippy::too_many_lines
    )
)]

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
pub mod units;
pub mod vectors;
pub mod views;
