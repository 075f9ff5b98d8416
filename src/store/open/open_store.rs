//! [`open`]: opens the store that a URL names.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use super::backends::local;
use super::error::OpenError;
use super::registry::{backend_of, schemes};
use super::url::{icechunk_repository, is_zip, kerchunk_document, local_path, scheme_of};
use crate::cpu::ComputePool;
use crate::key::StoreKey;
use crate::store::references::AllowList;
use crate::store::{
    AllowedPrefix, ContainerBudget, IcechunkStore, LocalOptions, LocalStore, ParquetReferenceStore,
    PinnedVersion, ReferenceStore, SharedStore, StoreKind, StoreOptions, Symlinks, ZipStore,
};

/// What the stores of a server hold in memory together, as long as they are open.
#[derive(Clone, Debug, Default)]
pub struct OpenBudgets {
    /// For the directories of zip files.
    pub zip: ContainerBudget,
    /// For documents of references.
    pub references: ContainerBudget,
}

/// Opens the store that a URL names. What the store itself decodes, it decodes on `cpu`.
///
/// # Errors
/// [`OpenError`], in words for the operator.
pub fn open(url: &str, options: &StoreOptions, cpu: &ComputePool) -> Result<SharedStore, OpenError> {
    open_within(url, options, cpu, &OpenBudgets::default())
}

/// As [`open`], where the stores share budgets.
///
/// # Errors
/// As [`open`].
pub fn open_within(
    url: &str,
    options: &StoreOptions,
    cpu: &ComputePool,
    budgets: &OpenBudgets,
) -> Result<SharedStore, OpenError> {
    if let Some(document) = kerchunk_document(url) {
        return open_references(document, options, cpu, &budgets.references);
    }
    if let Some(repository) = icechunk_repository(url) {
        return open_repository(repository, options, cpu, &budgets.references);
    }
    if is_zip(url) && !is_local_directory(url) {
        return open_zip(url, options, cpu, &budgets.zip);
    }
    open_directory(url, options)
}

/// Where a store that a URL names is, as text. Two stores with the same text have the same values: the URL alone does not say that
/// where the environment names the endpoint.
///
/// # Errors
/// As [`open`], for what the environment says.
pub fn place_of(url: &str, options: &StoreOptions) -> Result<String, OpenError> {
    let mut located = options.clone();
    if let Some(locate) = backend_of(url).and_then(|backend| backend.locate) {
        locate(&mut located)?;
    }
    let StoreOptions { bucket, s3, azure, version, .. } = &located;
    let mut place =
        format!("{url}\n{:?} {:?} {} {:?}", bucket.endpoint, s3.region, s3.virtual_hosted, azure.account);
    if let Some(version) = version {
        let _ = write!(place, " @{version}");
    }
    // What references lead to is a part of what the store has.
    for prefix in &options.references {
        let _ = write!(place, "\n{:?} {}", prefix.url, place_of(prefix.store_url(), &prefix.options)?);
    }
    Ok(place)
}

/// The store over the zip file that a URL names, within the store it lies in. The file need not exist yet.
fn open_zip(
    url: &str,
    options: &StoreOptions,
    cpu: &ComputePool,
    directories: &ContainerBudget,
) -> Result<SharedStore, OpenError> {
    if options.writable {
        return Err(OpenError::Options("a zip file is only read, so `writable` must be false"));
    }
    let (directory, name) = if let Some(path) = local_path(url)? {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or(OpenError::InvalidUrl("the file's name is not UTF-8"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // The operator names this one file, so a link to it means it, as one to a directory does.
        let options = LocalOptions { symlinks: Symlinks::Follow, ..options.to_local() };
        (local::open_path(parent.unwrap_or(Path::new(".")), &options)?, name)
    } else {
        let (directory, name) = url.rsplit_once('/').unwrap_or((url, ""));
        (open_directory(directory, options)?, decoded_file_name(url, name)?)
    };
    Ok(Arc::new(ZipStore::new(directory, StoreKey::parse(&name)?, cpu.clone(), directories.clone())))
}

/// Whether the URL of references names a directory in Parquet.
fn is_parquet(url: &str) -> bool {
    ["/", ".parq", ".parquet"].iter().any(|end| url.ends_with(end))
}

/// The store over the document of references that a URL names. The document need not exist yet.
fn open_references(
    url: &str,
    options: &StoreOptions,
    cpu: &ComputePool,
    budget: &ContainerBudget,
) -> Result<SharedStore, OpenError> {
    if options.writable {
        return Err(OpenError::Options("references are only read, so `writable` must be false"));
    }
    let is_parquet = is_parquet(url);
    let url = url.strip_suffix('/').unwrap_or(url);
    let (directory, name) = url.rsplit_once('/').unwrap_or((url, ""));
    let name = StoreKey::parse(&decoded_file_name(url, name)?)?;
    let base = format!("{directory}/");
    // A document at the top of a file system or a bucket.
    let is_top = directory.ends_with("//") || !directory.contains("://");
    let directory = if is_top { &*base } else { directory };
    let allowed = open_allowed(base.clone(), options)?;
    if is_parquet {
        let inner = open_directory(url, options)?;
        return Ok(Arc::new(ParquetReferenceStore::new(inner, allowed, cpu.clone(), budget.clone())?));
    }
    let inner = open_directory(directory, options)?;
    Ok(Arc::new(ReferenceStore::new(inner, name, allowed, cpu.clone(), budget.clone())))
}

/// The store over the Icechunk repository that a URL names. It need not exist yet.
fn open_repository(
    url: &str,
    options: &StoreOptions,
    cpu: &ComputePool,
    budget: &ContainerBudget,
) -> Result<SharedStore, OpenError> {
    if options.writable {
        return Err(OpenError::Options("a repository is only read, so `writable` must be false"));
    }
    let url = url.strip_suffix('/').filter(|url| !url.ends_with('/')).unwrap_or(url);
    let allowed = open_allowed(format!("{url}/"), options)?;
    let version = options.version.clone().unwrap_or_else(PinnedVersion::main);
    let inner = open_directory(url, options)?;
    Ok(Arc::new(IcechunkStore::new(inner, allowed, version, cpu.clone(), budget.clone())?))
}

/// The stores that references may lead to; relative ones begin at `base`.
fn open_allowed(base: String, options: &StoreOptions) -> Result<AllowList, OpenError> {
    AllowList::open(base, &options.references, open_prefix)
}

/// Opens the store that a prefix of references leads to.
///
/// # Errors
/// [`OpenError::AtPrefix`].
pub fn open_prefix(prefix: &AllowedPrefix) -> Result<SharedStore, OpenError> {
    let url = prefix.store_url();
    open_directory(url, &prefix.store_options())
        .map_err(|source| OpenError::AtPrefix { prefix: url.to_owned(), source: Box::new(source) })
}

/// The last segment of a URL as a key: only the URLs of web servers are percent-encoded.
pub(super) fn decoded_file_name(url: &str, name: &str) -> Result<String, OpenError> {
    if backend_of(url).is_none_or(|backend| backend.kind != StoreKind::HTTP) {
        return Ok(name.to_owned());
    }
    if name.contains(['?', '#']) {
        return Err(OpenError::InvalidUrl("it must not have a query or a fragment"));
    }
    match object_store::path::Path::from_url_path(name) {
        Ok(path) if path.parts().count() == 1 => Ok(path.as_ref().to_owned()),
        _ => Err(OpenError::InvalidUrl("its path has invalid names")),
    }
}

fn is_local_directory(url: &str) -> bool {
    matches!(local_path(url), Ok(Some(path)) if LocalStore::is_directory(&path) == Some(true))
}

/// Opens the store that a URL names, which is no zip file.
fn open_directory(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let Some(backend) = backend_of(url) else {
        let mut known: Vec<&str> = schemes().collect();
        let last = known.pop().unwrap_or_default();
        let known = format!("{} and {last}", known.join(", "));
        return Err(OpenError::UnknownScheme { scheme: scheme_of(url).to_owned(), known });
    };
    (backend.open)(url, options)
}
