//! Services that handlers share: the mounts with their views, the array engine, admission, rights and metrics.

pub(crate) mod engine;
pub(crate) mod extract;
pub(crate) mod memory_info;
pub(crate) mod mount;
pub(crate) mod permit_budget;
pub(crate) mod response_cache;
pub(crate) mod route;
pub(crate) mod shared_text;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod statistics_cache;
#[cfg(test)]
pub(crate) mod test_store;
pub(crate) mod views;

pub use engine::ArrayEngine;
pub use memory_info::MemoryInfo;
pub use mount::Mount;
pub use state::AppState;
