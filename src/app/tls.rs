//! [`Tls`]: encryption of connections: TLS 1.2 or later (RFC 8446), with HTTP/2 or HTTP/1.1 as the client prefers (RFC 7301).
//!
//! The certificate can be replaced at run time: open connections continue unchanged, and each new handshake shows the new one.
//! Client certificates are not requested.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

/// Encryption of connections. Clones share the certificate.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    shown: Arc<ActiveCertificate>,
}

/// The certificate that handshakes show, and its key.
#[derive(Debug)]
struct ActiveCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for ActiveCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // It is only replaced as a whole: a panic in another thread cannot have left it half changed.
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Tls {
    /// Encryption with a certificate.
    ///
    /// # Errors
    /// If the provider supports no version of TLS, which would be a bug.
    pub fn new(certificate: Arc<CertifiedKey>) -> Result<Self, rustls::Error> {
        let shown = Arc::new(ActiveCertificate(RwLock::new(certificate)));
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<ActiveCertificate>::clone(&shown);
        let mut config =
            builder.with_safe_default_protocol_versions()?.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), shown })
    }

    /// Replaces the certificate.
    pub fn show(&self, certificate: Arc<CertifiedKey>) {
        *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }

    /// The handshake with a client.
    pub(super) fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> tokio_rustls::Accept<S> {
        self.acceptor.accept(stream)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
