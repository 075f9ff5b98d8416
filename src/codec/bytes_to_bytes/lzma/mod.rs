//! `lzma`: LZMA in the xz container, in the older `.lzma` container, or bare (numcodecs, "lzma").

mod codec;
mod filters;

pub(crate) use codec::CODEC;
