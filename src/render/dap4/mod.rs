//! DAP4: the dataset metadata response (DMR), constraint expressions, and the chunks of a response with values.
//!
//! After "The Data Access Protocol: DAP4, Volume 1". Groups are groups, dimensions are shared by name, and integers have up to
//! 64 bits. A response with values is a list of chunks: the first has the DMR of what follows, the others the values, in the
//! order of the dataset, whatever the order in the constraint. A chunk with an error ends a response that cannot be finished.

mod chunk;
mod constraint;
mod dataset;
mod dmr;
mod error;
mod selection;

pub use chunk::{ChunkWriter, MAX_CHUNK_BYTES};
pub use constraint::{Dap4Constraint, Dap4Slab};
pub use dataset::{Dap4Dataset, Dap4Group, Dap4GroupSource, Dap4Variable};
pub use dmr::{dap4_error, dmr};
pub use error::Dap4Error;
pub use selection::{Dap4Array, Dap4Selection};
