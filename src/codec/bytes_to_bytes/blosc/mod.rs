//! `blosc`: the c-blosc 1 container (Zarr codecs, "blosc"; numcodecs, "blosc").
//!
//! A frame says itself which compressor and shuffle it was written with, so the configuration matters for encoding
//! only. The C library trusts what it reads: [`frame`] checks every number of a frame before [`ffi`] passes it on.

mod codec;
mod ffi;
mod frame;
mod part;

pub(crate) use codec::CODEC;
