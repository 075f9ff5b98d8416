//! [`TlsOptions`]: the certificate of the server and its private key (PEM, RFC 7468).
//!
//! Both are read and compared here, so that a pair that does not match is rejected with the place where it was configured. Whether
//! the certificate is valid today, and for which names, is not checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};

/// TLS 1.2 or later, with HTTP/2 or HTTP/1.1, at all addresses except `admin_listen`. SIGHUP reloads both files, together with the whole
/// configuration. If any part of it is invalid, the previous configuration stays in effect.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// PEM file with the certificate, followed by the intermediate certificates up to an authority that clients know.
    ///
    /// Example: `"/run/secrets/tls.crt"`
    pub certificate: PathBuf,
    /// PEM file with the private key of the certificate.
    ///
    /// Example: `"/run/secrets/tls.key"`
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file does not contain what it should.
    #[error("{}: it has no PEM block with a {wanted}", path.display())]
    Malformed {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should contain.
        wanted: &'static str,
    },
    /// The two do not match, or are of an unsupported kind.
    #[error("certificate and key cannot be used: {0}")]
    Refused(#[from] rustls::Error),
}

impl TlsError {
    /// The key of the setting at fault.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Unreadable { setting, .. } | Self::Malformed { setting, .. } => setting,
            Self::Refused(_) => "key",
        }
    }
}

const CERTIFICATE: &str = "certificate";
const KEY: &str = "key";

impl TlsOptions {
    /// Reads both files.
    ///
    /// # Errors
    /// [`TlsError`]. None repeats contents of the files.
    pub fn load(&self) -> Result<Arc<CertifiedKey>, TlsError> {
        let malformed =
            |setting, path: &Path, wanted| TlsError::Malformed { setting, path: path.to_owned(), wanted };
        let text = read(CERTIFICATE, &self.certificate)?;
        let chain: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| malformed(CERTIFICATE, &self.certificate, "certificate"))?;
        let text = read(KEY, &self.key)?;
        let key = PrivateKeyDer::from_pem_slice(&text).ok();
        let key = key.ok_or_else(|| malformed(KEY, &self.key, "private key"))?;
        Ok(Arc::new(CertifiedKey::from_der(chain, key, &default_provider())?))
    }
}

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Unreadable { setting, path: path.to_owned(), source })
}
