//! Lookup in the table of backends: by URL, by scheme and by option.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::backend::Backend;
use super::backends::BACKENDS;
use super::url::{is_zip, references_of, scheme_of};
use crate::store::StoreKind;

/// The backend of a URL or path; of a zip file or a document of references, the one it lies in.
pub(super) fn backend_of(url: &str) -> Option<&'static Backend> {
    let scheme = scheme_of(url);
    BACKENDS.iter().find(|backend| backend.schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)))
}

/// The kind of backend that a URL names; of a zip file or a document of references, of what it lies in. `None` if there is no such kind.
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

/// Whether a store that a URL names can sign URLs for callers. A zip file and a document of references cannot: their
/// values have no URL of their own.
#[must_use]
pub fn can_sign_urls(url: &str) -> bool {
    !is_zip(url) && references_of(url).is_none() && backend_of(url).is_some_and(|backend| backend.can_sign)
}

/// Whether a store that a URL names has an option.
#[must_use]
pub fn takes_option(url: &str, option: &str) -> bool {
    !is_zip(url)
        && backend_of(url).is_some_and(|backend| backend.options.iter().any(|keys| keys.contains(&option)))
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
