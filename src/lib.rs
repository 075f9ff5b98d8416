//! zarrd: an HTTP array server for Zarr.
//!
//! The modules form layers: the format at the bottom, HTTP at the top. A module imports only from layers below its own;
//! `tests/it/tidy` enforces the order.

// A failing cast or a panic in a test fails only that test.
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

pub mod admission;
pub mod api;
pub mod app;
pub mod array;
pub mod auth;
pub mod cache;
pub mod chunk;
pub mod codec;
pub mod config;
pub mod conventions;
pub mod cpu;
pub mod error;
pub mod hierarchy;
pub mod http;
pub mod key;
pub mod labels;
pub mod metadata;
pub mod metrics;
pub mod page;
pub mod parse;
pub mod reduce;
pub mod render;
pub mod services;
pub mod store;
pub mod units;
#[cfg(feature = "vectors")]
pub mod vectors;
pub mod views;
pub mod web;
pub mod write;
