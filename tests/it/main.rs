//! The one integration binary: the server as those outside meet it, and the house rules.

#![allow(unreachable_pub)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    reason = "a test that cannot go on has failed; clippy's own exception misses the functions tests share"
)]

mod binary;
mod fixtures;
mod frame;
mod support;
mod tidy;
