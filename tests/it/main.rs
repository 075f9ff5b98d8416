//! One binary for all integration tests.

#![allow(unreachable_pub)]

mod fixtures;
mod support;
