//! Whether the machine has a metadata service, as those of cloud providers do.

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::OnceLock;
use std::time::Duration;

use url::Url;

/// The address that all providers use.
const ADDRESS: &str = "http://169.254.169.254";
/// How long a connection may take. The service is on the same host.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Whether something listens at the address of a metadata service, or at the usual one. Blocks for a second at most; the usual
/// address is tried once.
pub(super) fn responds_at(address: Option<&str>) -> bool {
    static USUAL: OnceLock<bool> = OnceLock::new();
    match address {
        Some(address) => connects_to(address),
        None => *USUAL.get_or_init(|| connects_to(ADDRESS)),
    }
}

fn connects_to(address: &str) -> bool {
    let connects = || {
        let url = Url::parse(address).ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']);
        let addresses = (host, url.port_or_known_default()?).to_socket_addrs().ok()?;
        Some(addresses.take(1).any(|address| TcpStream::connect_timeout(&address, TIMEOUT).is_ok()))
    };
    connects().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metadata_service_is_found_where_something_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        assert!(responds_at(Some(&address)));
        drop(listener);
        assert!(!responds_at(Some(&address)));
        assert!(!responds_at(Some("nonsense")));
    }
}
