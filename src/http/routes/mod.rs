//! The handlers, one file per route family. A handler reads top to bottom: extract, conditions, read, headers.
//!
//! `router` has the one list of them.

pub(super) mod cache;
pub(super) mod consolidated;
pub(super) mod data;
mod dav;
pub(super) mod icon;
pub(super) mod list;
pub(super) mod nodes;
pub(super) mod partial;
pub(super) mod patch;
pub(super) mod rechunk;
pub(super) mod s3;
pub(super) mod service;
pub(super) mod store;
#[cfg(feature = "vectors")]
pub(super) mod vectors;
pub(super) mod views;
pub(super) mod write;

pub(super) use dav::destination;
