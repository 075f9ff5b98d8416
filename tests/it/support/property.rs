//! Properties of responses over random arrays: configurations of the server, and runs.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use super::server::{Server, no_caches};

/// The size of segments, and whether there are caches; responses are the same under each.
pub type Setup = (u64, bool);

/// A configuration of the server.
pub fn setup() -> impl Strategy<Value = Setup> {
    (select(&[1, 100, 5000, 32 << 20][..]), any::<bool>())
}

/// A server of a store as the mount `m`.
pub fn server_with(store: SharedStore, (segment_size, is_cached): Setup) -> Server {
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.segment_size = segment_size;
    if !is_cached {
        server.cache = no_caches();
    }
    server.finish()
}

/// Runs a property on a runtime of its own. Failures are printed in full; no file is left behind.
pub fn holds<S: Strategy>(cases: u32, strategy: S, property: impl AsyncFn(S::Value)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run = TestRunner::new(config).run(&strategy, |value| {
        runtime.block_on(property(value));
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}
