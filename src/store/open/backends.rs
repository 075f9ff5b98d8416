//! The one table of backends: their URL schemes, the options they take, and how they are opened.
//!
//! A new backend is a file with an `open` function beside this one, and an entry here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::error::OpenError;
use super::url::{is_zip, scheme_of};
use super::{azure, gcs, http, local, memory, s3};
use crate::store::options::Section as _;
use crate::store::{
    AzureOptions, BearerTokenOptions, BucketOptions, GcsOptions, LocalOptions, RemoteOptions, S3Options,
    SharedStore, StoreKind, StoreOptions,
};

/// A kind of backend.
pub(super) struct Backend {
    pub(super) kind: StoreKind,
    /// In lower case.
    schemes: &'static [&'static str],
    /// The keys of each section of [`StoreOptions`] that means something to it.
    options: &'static [&'static [&'static str]],
    /// Whether it signs URLs.
    can_sign: bool,
    /// Opens the store that a URL of one of the schemes names.
    pub(super) open: fn(&str, &StoreOptions) -> Result<SharedStore, OpenError>,
}

static BACKENDS: &[Backend] = &[
    Backend {
        kind: StoreKind::Local,
        schemes: &["file"],
        options: &[LocalOptions::KEYS],
        can_sign: false,
        open: local::open,
    },
    Backend {
        kind: StoreKind::S3,
        schemes: &["s3"],
        options: &[RemoteOptions::KEYS, BucketOptions::KEYS, S3Options::KEYS],
        can_sign: true,
        open: s3::open,
    },
    Backend {
        kind: StoreKind::Gcs,
        schemes: &["gs"],
        options: &[RemoteOptions::KEYS, BucketOptions::KEYS, GcsOptions::KEYS, BearerTokenOptions::KEYS],
        can_sign: true,
        open: gcs::open,
    },
    Backend {
        kind: StoreKind::Azure,
        schemes: &["az"],
        options: &[RemoteOptions::KEYS, BucketOptions::KEYS, AzureOptions::KEYS, BearerTokenOptions::KEYS],
        can_sign: true,
        open: azure::open,
    },
    Backend {
        kind: StoreKind::Http,
        schemes: &["http", "https"],
        options: &[RemoteOptions::KEYS],
        can_sign: false,
        open: http::open,
    },
    Backend {
        kind: StoreKind::Memory,
        schemes: &["memory"],
        options: &[],
        can_sign: false,
        open: memory::open,
    },
];

/// The backend of a URL or path; of a zip file, the one it lies in.
pub(super) fn backend_of(url: &str) -> Option<&'static Backend> {
    let scheme = scheme_of(url);
    BACKENDS.iter().find(|backend| backend.schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)))
}

/// The kind of backend that a URL names; of a zip file, of what it lies in. `None` if there is no such kind.
#[must_use]
pub fn kind_of(url: &str) -> Option<StoreKind> {
    backend_of(url).map(|backend| backend.kind)
}

/// The schemes of all backends. A text without `://` is a path.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    BACKENDS.iter().flat_map(|backend| backend.schemes.iter().copied())
}

/// The schemes of the backends that sign URLs.
pub fn signing_schemes() -> impl Iterator<Item = &'static str> {
    BACKENDS.iter().filter(|backend| backend.can_sign).flat_map(|backend| backend.schemes.iter().copied())
}

/// Whether a store that a URL names can sign URLs for callers. A zip file cannot: its entries have no URL of their own.
#[must_use]
pub fn can_sign_urls(url: &str) -> bool {
    !is_zip(url) && backend_of(url).is_some_and(|backend| backend.can_sign)
}

/// The kinds of backend that an option means something to, by its key; `None` if there is no such option.
#[must_use]
pub fn backends_of(option: &str) -> Option<&'static [StoreKind]> {
    static KINDS: LazyLock<BTreeMap<&str, Vec<StoreKind>>> = LazyLock::new(|| {
        let mut kinds = BTreeMap::<_, Vec<_>>::new();
        for backend in BACKENDS {
            for key in backend.options.iter().copied().flatten() {
                kinds.entry(*key).or_default().push(backend.kind);
            }
        }
        kinds
    });
    KINDS.get(option).map(Vec::as_slice)
}
