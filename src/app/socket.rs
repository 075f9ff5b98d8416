//! [`Socket`]: a TCP stream that reports reads and writes to [`ConnectionMonitor`].
//!
//! It changes no byte, but adds a lingering close (RFC 9112 §9.6): after the last response, what the client still sends is read
//! and dropped for a moment, because closing a socket with unread bytes resets it and may destroy the response in transit. For a
//! client that did not read its response, the opposite is done: the socket is reset, because the kernel would otherwise hold
//! unsent bytes and retransmit them for minutes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::connection_timeouts::ConnectionMonitor;

/// For how long, and up to how many bytes, a closing connection is read.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// A TCP stream with a monitor.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    monitor: ConnectionMonitor,
    closing: Option<(Pin<Box<Sleep>>, usize)>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, monitor: ConnectionMonitor) -> Self {
        Self { stream, monitor, closing: None }
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
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.record(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
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
