//! The handlers, one file per route family. A handler reads top to bottom: extract, conditions, read, headers.
//!
//! `router` has the one list of them. The routes of nodes, decoded data and chunks get files of their own here.

pub(super) mod list;
pub(super) mod service;
pub(super) mod store;
pub(super) mod write;
