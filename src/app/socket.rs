//! [`Socket`]: a TCP stream that reports reads and writes to [`ConnectionMonitor`].
//!
//! It changes no byte. What is in a file in memory is sent without copying it ([`memory_file`]).
//!
//! It adds a lingering close (RFC 9112 §9.6): after the last response, what the client still sends is read
//! and dropped for a moment, because closing a socket with unread bytes resets it and may destroy the response in transit. For a
//! client that did not read its response, the opposite is done: the socket is reset, because the kernel would otherwise hold
//! unsent bytes and retransmit them for minutes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::connection_timeouts::ConnectionMonitor;
use crate::cache::memory_file;

/// For how long, and up to how many bytes, a closing connection is read.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// Unsent bytes of responses that the kernel buffers for a connection, where that can be limited: what keeps the connection busy. Otherwise
/// it accepts megabytes at once, from a few connections whose responses are then sent before those of others, and for clients
/// that may never read them.
const UNSENT_BYTES: u32 = 512 << 10;
/// The same for bytes that it sends without copying. As long as they are cached, they take no memory of their own.
const UNSENT_UNCOPIED_BYTES: u32 = 1 << 20;

/// A TCP stream with a monitor.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    monitor: ConnectionMonitor,
    /// The limit of unsent bytes that the kernel has for the stream.
    unsent_bytes: u32,
    closing: Option<(Pin<Box<Sleep>>, usize)>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, monitor: ConnectionMonitor) -> Self {
        let mut socket = Self { stream, monitor, unsent_bytes: 0, closing: None };
        socket.limit_unsent(UNSENT_BYTES);
        socket
    }

    /// Limits what the kernel buffers of what is written from now on.
    fn limit_unsent(&mut self, bytes: u32) {
        if self.unsent_bytes != bytes {
            self.unsent_bytes = bytes;
            // Without a limit, responses are sent all the same.
            #[cfg(any(target_os = "android", target_os = "linux"))]
            let _ = socket2::SockRef::from(&self.stream).set_tcp_notsent_lowat(bytes);
        }
    }

    /// Writes buffers of which the kernel sends one without copying it, the first such at `first`.
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
        first: usize,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            let send = || memory_file::send(buffers, first, &self.stream);
            match self.stream.try_io(Interest::WRITABLE, send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn record(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &result {
            Poll::Ready(Ok(bytes)) => self.monitor.on_write(*bytes, Instant::now()),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.monitor.on_write_blocked(Instant::now()),
        }
        result
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.monitor.is_aborted() {
            // If that fails, the kernel retransmits for a while.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.monitor.on_read(Instant::now);
        }
        result
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = if let Some(first) = memory_file::first_sendable(buffers) {
            self.limit_unsent(UNSENT_UNCOPIED_BYTES);
            self.poll_send(cx, buffers, first)
        } else {
            self.limit_unsent(UNSENT_BYTES);
            Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
        };
        self.record(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = &mut *self;
        if socket.closing.is_none() {
            ready!(Pin::new(&mut socket.stream).poll_shutdown(cx))?;
        }
        let (deadline, read) =
            socket.closing.get_or_insert_with(|| (Box::pin(tokio::time::sleep(LINGER)), 0));
        let mut scrap = [0; 4096];
        while *read < LINGER_BYTES && deadline.as_mut().poll(cx).is_pending() {
            let mut scrap = ReadBuf::new(&mut scrap);
            match ready!(Pin::new(&mut socket.stream).poll_read(cx, &mut scrap)) {
                Ok(()) if !scrap.filled().is_empty() => *read += scrap.filled().len(),
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
