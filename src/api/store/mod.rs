//! `/store/{mount}/{key}`: the abstract store interface of Zarr core 3.1, byte for byte.
//!
//! `key` reads, `write` and `patch` write, `list` lists, and `partial` has the operations on parts of many values. `routes`
//! has the list of routes. The methods of WebDAV are in `crate::api::webdav`.

pub(crate) mod consolidated;
mod get;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod listing_page;
pub(crate) mod listing_text;
mod partial;
mod patch;
mod pinned_keys;
mod routes;
mod specs;
pub(crate) mod write;

pub(crate) use key::{ReadRequest, get_value, head_value, read_or_list, redirect, with_slash};
pub(crate) use list::ListQuery;
pub(crate) use listing_page::ListingPage;
pub(crate) use routes::{routes, routes_at_root, with_other_methods};
pub(crate) use specs::KEY_AT_ROOT;
