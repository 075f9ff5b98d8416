//! [`is_alive`]: requests `/healthz` of the configured listener, as the health check of a container does.
//!
//! One request of HTTP/1.1, written by hand: the image has no `curl`, and a client library would be much for one line. With TLS,
//! any certificate is accepted: the question is whether the server runs, not who it is, and the request holds no secret.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

use crate::config::Config;

/// Timeout of each step.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The part of the response that is read, which contains the status.
const STATUS_BYTES: u64 = 64;

/// Whether the server of this configuration answers `/healthz` with 200.
///
/// # Errors
/// If it cannot be reached, or does not answer in time.
pub fn is_alive(config: &Config) -> io::Result<bool> {
    let address = reachable(config.server.listen);
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let base = &config.http.base_path;
    let request = format!("GET {base}/healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    match config.server.tls {
        None => answers(stream, &request),
        Some(_) => answers(StreamOwned::new(tls(address.ip())?, stream), &request),
    }
}

/// Whether the response to a request is 200.
fn answers(mut stream: impl Read + Write, request: &str) -> io::Result<bool> {
    stream.write_all(request.as_bytes())?;
    let mut status = Vec::new();
    stream.take(STATUS_BYTES).read_to_end(&mut status)?;
    Ok(status.starts_with(b"HTTP/1.1 200 "))
}

fn tls(address: IpAddr) -> io::Result<ClientConnection> {
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCert(provider)))
        .with_no_client_auth();
    ClientConnection::new(Arc::new(config), ServerName::from(address)).map_err(io::Error::other)
}

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct AcceptAnyCert(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCert {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The address for connections to a listener from the same machine: for an unspecified address, the loopback.
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
    fn a_listener_on_any_address_is_checked_on_the_loopback() {
        for (listen, reached) in
            [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("10.0.0.1:80", "10.0.0.1:80")]
        {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), reached);
        }
    }

    #[test]
    fn a_port_without_a_listener_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut config = Config::default();
        config.server.listen = address;
        assert!(is_alive(&config).is_err());
    }
}
