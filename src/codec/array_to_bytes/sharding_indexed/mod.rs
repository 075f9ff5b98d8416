//! `sharding_indexed`: many inner chunks and an index in one value (Zarr codecs, "sharding-indexed").
//!
//! [`bind`] binds the codec; [`sharding`] is the bound codec: its geometry and its chains; [`index`] reads and writes the
//! index, [`whole`] a whole shard. Inner chunks may be in any order, with gaps or overlapping; an index that points
//! outside the shard or into itself is corrupt.

mod bind;
mod index;
mod sharding;
mod whole;

pub(crate) use bind::CODEC;
