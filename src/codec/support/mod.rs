//! What several codecs need: buffers, sizes, configurations, numbers. Nothing here knows a codec's format by name.

pub(super) mod bounded_writer;
pub(super) mod buffer;
pub(super) mod config;
pub(super) mod inflate;
pub(super) mod number;
pub(super) mod representation;
pub(super) mod rounding;
pub(super) mod strings;
