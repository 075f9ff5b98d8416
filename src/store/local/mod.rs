//! A store over a directory of this machine.
//!
//! Zarr core 3.1, "Abstract store interface", with a file for each value. It keeps the promises of the interface even
//! when other programs write into the directory, when power fails and when an attacker chooses the names in a key:
//! `root` never leads out, `read` never mixes two contents, `write` acknowledges only durable values, `list` never
//! shows what cannot be fetched. Reads are first tried without a blocking thread (`nonblocking`). It is for Unix.

mod blocking;
mod directories;
mod disk;
mod erase;
mod failure;
mod kernel;
mod list;
mod local_store;
mod locks;
mod names;
mod new_directories;
pub(crate) mod nonblocking;
mod open_value;
mod options;
mod overlap;
mod paths;
mod piece_buffers;
mod read;
mod root;
mod root_state;
mod settled;
mod staging;
mod version;
mod watch;
mod write;

#[cfg(test)]
mod tests;

pub use blocking::MAX_CONCURRENCY;
pub use local_store::LocalStore;
pub use options::{Durability, LocalOptions, Symlinks};
