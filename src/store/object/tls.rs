//! TLS of the clients under the remote backends: one configuration for all of them.

use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, Error, crypto};
use rustls_platform_verifier::BuilderVerifierExt;

/// The application protocols that are offered (RFC 7301), the preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The configuration of a client that trusts the system's certificates. They are read once: parsing them takes longer
/// than building the rest of a client.
///
/// # Errors
/// The system has no certificates.
pub(super) fn configuration() -> Result<ClientConfig, Error> {
    static CONFIGURATION: LazyLock<Result<ClientConfig, Error>> = LazyLock::new(|| {
        let provider = Arc::new(crypto::ring::default_provider());
        let mut configuration = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        configuration.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(configuration)
    });
    CONFIGURATION.clone()
}
