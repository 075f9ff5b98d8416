//! [`StoreOptions`]: the options of one store, as the configuration has them.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::backends::{
    AzureOptions, BearerTokenOptions, BucketOptions, GcsOptions, RemoteOptions, S3Options,
};
use super::section::Section;
use crate::store::LocalOptions;

/// Options of the backend; each is for the backends that it names. Secrets are best set by environment variables, such as
/// `ZARRD__MOUNTS__NAME__OPTIONS__SECRET_ACCESS_KEY`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreOptions {
    /// Whether values may be written and erased. A right of the mount: not read from the table.
    #[serde(skip)]
    pub writable: bool,
    /// Whether URLs are signed for callers. A right of the mount: not read from the table.
    #[serde(skip)]
    pub signs_urls: bool,
    /// Whether a file with unchanged times counts as unchanged. A promise of the mount: not read from the table.
    #[serde(skip)]
    pub trusts_file_times: bool,
    /// Directories, and zip files in them. Its `writable` and `trusts_file_times` are those of the mount.
    #[serde(flatten)]
    pub local: LocalOptions,
    /// All remote backends.
    #[serde(flatten)]
    pub remote: RemoteOptions,
    /// S3, GCS and Azure.
    #[serde(flatten)]
    pub bucket: BucketOptions,
    /// S3.
    #[serde(flatten)]
    pub s3: S3Options,
    /// GCS.
    #[serde(flatten)]
    pub gcs: GcsOptions,
    /// GCS and Azure.
    #[serde(flatten)]
    pub bearer: BearerTokenOptions,
    /// Azure.
    #[serde(flatten)]
    pub azure: AzureOptions,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let local = LocalOptions::default();
        Self {
            writable: local.writable,
            signs_urls: false,
            trusts_file_times: local.trusts_file_times,
            local,
            remote: RemoteOptions::default(),
            bucket: BucketOptions::default(),
            s3: S3Options::default(),
            gcs: GcsOptions::default(),
            bearer: BearerTokenOptions::default(),
            azure: AzureOptions::default(),
        }
    }
}

impl StoreOptions {
    /// The options of a local store, with the rights of the mount.
    pub(in crate::store) fn to_local(&self) -> LocalOptions {
        let (writable, trusts_file_times) = (self.writable, self.trusts_file_times);
        LocalOptions { writable, trusts_file_times, ..self.local.clone() }
    }
}

/// The keys of all sections.
static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    [
        LocalOptions::KEYS,
        RemoteOptions::KEYS,
        BucketOptions::KEYS,
        S3Options::KEYS,
        GcsOptions::KEYS,
        BearerTokenOptions::KEYS,
        AzureOptions::KEYS,
    ]
    .concat()
});

impl<'de> Deserialize<'de> for StoreOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("StoreOptions", &KEYS, TableVisitor)
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = StoreOptions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct StoreOptions")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut table: M) -> Result<StoreOptions, M::Error> {
        let mut options = StoreOptions::default();
        let mut seen = Vec::new();
        while let Some(Key(key)) = table.next_key()? {
            if seen.contains(&key) {
                return Err(M::Error::duplicate_field(key));
            }
            seen.push(key);
            // Every key is of one section.
            let _ = options.local.read(key, &mut table)?
                || options.remote.read(key, &mut table)?
                || options.bucket.read(key, &mut table)?
                || options.s3.read(key, &mut table)?
                || options.gcs.read(key, &mut table)?
                || options.bearer.read(key, &mut table)?
                || options.azure.read(key, &mut table)?;
        }
        Ok(options)
    }
}

/// A key of one of the sections. An unknown one is refused here, while the deserializer still knows its place.
struct Key(&'static str);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an option")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Key, E> {
                let known = KEYS.iter().find(|key| **key == text);
                known.map(|key| Key(key)).ok_or_else(|| E::unknown_field(text, &KEYS))
            }
        }

        deserializer.deserialize_identifier(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Secret, StoreKind, backends_of};

    #[test]
    fn every_option_is_read_and_written_and_belongs_to_a_backend() {
        let text = |text: &str| Some(text.to_owned());
        let secret = || serde_json::from_str::<Secret>("\"x\"").ok();
        let all = StoreOptions {
            bucket: BucketOptions { endpoint: text("x"), anonymous: Some(true), ..BucketOptions::default() },
            s3: S3Options {
                region: text("x"),
                access_key_id: text("x"),
                secret_access_key: secret(),
                session_token: secret(),
                ..S3Options::default()
            },
            gcs: GcsOptions { service_account_path: text("x"), service_account_key: secret() },
            bearer: BearerTokenOptions { bearer_token: secret() },
            azure: AzureOptions { account: text("x"), account_key: secret(), sas_token: secret() },
            ..StoreOptions::default()
        };
        let written = serde_json::to_value(&all).unwrap();
        let mut keys: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(keys.iter().all(|key| backends_of(key).is_some_and(|kinds| !kinds.is_empty())));
        let mut listed = KEYS.clone();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(keys, listed);
        let read: StoreOptions = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        assert_eq!(backends_of("region"), Some(&[StoreKind::S3][..]));
        assert_eq!(backends_of("bearer_token"), Some(&[StoreKind::Gcs, StoreKind::Azure][..]));
        assert_eq!(backends_of("regoin"), None);
    }

    #[test]
    fn rejects_a_key_that_is_given_twice() {
        let twice = serde_json::from_str::<StoreOptions>(r#"{"max_attempts": 1, "max_attempts": 2}"#);
        assert!(twice.unwrap_err().to_string().contains("duplicate field `max_attempts`"));
    }
}
