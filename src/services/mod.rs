//! Services that handlers share: the mounts with their views, the array engine, admission, rights and metrics.

pub(crate) mod access_control;
pub(crate) mod coordinate_ends;
pub(crate) mod coordinates;
pub(crate) mod element_groups;
pub(crate) mod engine;
pub(crate) mod extract;
pub(crate) mod known_coordinates;
pub(crate) mod lifecycle;
pub(crate) mod memory_info;
pub(crate) mod mount;
pub(crate) mod mounts;
pub(crate) mod permit_budget;
pub(crate) mod pinned;
pub(crate) mod readiness;
pub(crate) mod response_cache;
pub(crate) mod response_caches;
pub(crate) mod route;
pub(crate) mod scan_detector;
pub(crate) mod scans;
pub(crate) mod shared_text;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod statistics_cache;
pub(crate) mod struct_field;
#[cfg(test)]
pub(crate) mod test_store;
pub(crate) mod traffic;
pub(crate) mod uploads;
pub(crate) mod views;

pub use access_control::AccessControl;
pub use engine::ArrayEngine;
pub use lifecycle::Lifecycle;
pub use memory_info::MemoryInfo;
pub use mount::{Mount, answers_within};
pub use mounts::Mounts;
pub use readiness::Readiness;
pub use state::{AppState, Services};
pub use traffic::Traffic;
pub(crate) use views::pyramid_target;
