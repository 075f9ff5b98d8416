//! [`key_sets`] and [`unix_seconds`]: what the access section needs from the machine: files with keys of issuers, and the time.
//!
//! The section itself is interpreted in `http`. A file that cannot be read is reported like any invalid setting.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::mounts::MountOptions;
use super::options::Config;
use crate::auth::{AccessError, AccessFault, AccessOptions, Scope};

/// Most bytes of a file with keys that are read.
const FILE_BYTES: u64 = 1 << 20;

/// Seconds since 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The contents of the files with keys of issuers, by the names of the issuers.
///
/// # Errors
/// [`AccessFault::KeyFile`].
pub fn key_sets(options: &AccessOptions) -> Result<BTreeMap<String, Vec<u8>>, AccessError> {
    let files =
        options.issuers.iter().filter_map(|(name, issuer)| Some((name, issuer.jwks_path.as_deref()?)));
    let read = files.map(|(name, path)| match contents(path) {
        Ok(bytes) => Ok((name.clone(), bytes)),
        Err(error) => {
            let path = ["issuers", name, "jwks_path"].map(str::to_owned).to_vec();
            Err(AccessError { path, fault: AccessFault::KeyFile(error.to_string()) })
        }
    });
    read.collect()
}

fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Config {
    /// The scopes of callers without a credential, for the mounts that set them.
    #[must_use]
    pub fn anonymous(&self) -> BTreeMap<String, Vec<Scope>> {
        let granted =
            |(name, mount): (&String, &MountOptions)| Some((name.clone(), mount.anonymous.clone()?));
        self.mounts.iter().filter_map(granted).collect()
    }
}
