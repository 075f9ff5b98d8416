//! Durations and sizes as people write them in a configuration: `"30s"`, `"250ms"`, `"64MiB"`, `"1GB"`.
//!
//! `calendar` has the days of dates, [`time`] points in time as text. [`duration`] and [`size`] are used as `#[serde(with = "…")]`. What they write they can read again, without loss. An error
//! says what is expected and never repeats the value.

/// Returns the time, in seconds since 1970.
pub type Clock = fn() -> u64;

pub(crate) mod calendar;
mod counted;
pub mod duration;
pub(crate) mod hexadecimal;
pub mod size;
pub mod time;

pub(crate) use counted::counted;
