//! Other systems have no such file: nothing is in it.

use std::io::{self, IoSlice};

use bytes::Bytes;

/// There are no parts.
#[derive(Debug)]
pub(crate) enum NoPart {}

impl NoPart {
    pub(crate) fn into_bytes(self, _owner: impl Send + 'static) -> Bytes {
        match self {}
    }
}

/// There are no writers.
#[derive(Debug)]
pub(crate) enum NoWriter {}

impl NoWriter {
    pub(crate) fn new(_length: u64) -> Option<Self> {
        None
    }

    #[expect(clippy::unused_async, reason = "as where there are writers")]
    pub(crate) async fn write(&mut self, _bytes: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn finish(self) -> io::Result<NoPart> {
        match self {}
    }
}

/// None is.
#[must_use]
pub(crate) fn first_sendable(_buffers: &[IoSlice<'_>]) -> Option<usize> {
    None
}

/// Never called.
///
/// # Errors
/// Always.
pub(crate) fn send<S>(_buffers: &[IoSlice<'_>], _first: usize, _socket: S) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
