//! Overload: failing backends and memory pressure. Load shedding by class and by caller is
//! tested in `admission`.

mod backends;
mod fairness;
mod memory;
