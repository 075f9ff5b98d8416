//! [`is_alive`]: asks a listener's `/healthz`, as the container's health check does.
//!
//! One request of HTTP/1.1 by hand: the image has no `curl`, and a client library would be a lot for one line.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long the listener may take for each step.
const TIMEOUT: Duration = Duration::from_secs(3);
/// As much of the answer as its status needs.
const STATUS_BYTES: u64 = 64;

/// Whether the server that listens at `listen` answers `/healthz` with 200.
///
/// # Errors
/// If it cannot be reached, or answers nothing in time.
pub fn is_alive(listen: SocketAddr) -> io::Result<bool> {
    let address = reachable(listen);
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut status = Vec::new();
    stream.take(STATUS_BYTES).read_to_end(&mut status)?;
    Ok(status.starts_with(b"HTTP/1.1 200 "))
}

/// The address at which a listener of this machine is reached from it: for "any", the loopback.
pub(super) fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_any_address_is_asked_on_the_loopback() {
        for (listen, reached) in
            [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("10.0.0.1:80", "10.0.0.1:80")]
        {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), reached);
        }
    }

    #[test]
    fn a_port_where_nobody_listens_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(is_alive(address).is_err());
    }
}
