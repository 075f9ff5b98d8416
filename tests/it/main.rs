//! One binary for all integration tests.

mod fixtures;
mod support;
