//! Pyramids: a hierarchy in which every array is an image with coarser levels.
//!
//! [`PyramidStore`] is a read-only store over another. An array appears as the group of an OME-Zarr image (0.5 in Zarr v3,
//! 0.4 in v2), with the array itself as level 0, chunk by chunk as it is stored, and with levels that are half as large
//! along rows and columns. A level is defined by the one before it, so that it has one meaning, however it is computed. The
//! chunks of levels are encoded on request from the stored chunks ([`rechunk`](super::rechunk)), or in the background where
//! these are too many (`builder`). Their versions are digests of all that they are made of, so they change if and only if
//! something below changes.

mod build_cost;
mod builder;
mod built_chunk;
mod documents;
mod geo;
mod image;
mod levels;
mod list;
mod nodes;
mod ome;
mod omero;
mod options;
mod pyramids;
mod spec;
mod store;
mod view;
mod write;

pub use builder::PyramidBuilder;
pub use levels::LevelsError;
pub use options::PyramidOptions;
pub use pyramids::Pyramids;
pub use spec::{PyramidSpec, PyramidSpecError};
pub use view::PyramidStore;
pub use write::{PyramidTarget, WrittenNode};
