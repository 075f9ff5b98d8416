//! [`MountOptions`]: `[mounts.NAME]`, and the `[NAME=]URL` arguments of the command line.
//!
//! A name is one segment of a URL and needs no escaping there. URLs have neither credentials nor queries, so they can be printed.
//! No backend is contacted here: only a local root must exist, or the directory of a zip file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::origin::Origin;
use super::server::{ServerOptions, some_listen_address};
use super::tree::{ConfigValue, LocatedValue};
use crate::auth::Scope;
use crate::error::setting_key;
use crate::http::{CacheControl, canonical_host, is_host};
use crate::metadata::Separator;
use crate::store::{
    AllowedPrefix, AllowedPrefixError, CachePolicy, Freshness, PinnedVersion, StoreKind, StoreOptions,
    Writers, backends_of, can_sign_urls, check_prefixes, icechunk_repository, is_zip, kerchunk_document,
    kind_of, schemes, signing_schemes,
};
use crate::units::duration;

/// Name of the mount of the demo hierarchy.
pub const DEMO: &str = "demo";
/// The name of the mount of which `zarrd pyramid` writes the pyramids.
pub const PYRAMID_SOURCE: &str = "source";
/// Longest name of a mount, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// A mount: a store, by the name that it has in URLs (letters, digits, `-`, `_`, `.` and `~`). There is none by default. The files
/// in `config/examples` show one for each kind of backend.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration file")]
pub struct MountOptions {
    /// A path, or the URL of a backend, such as `s3://bucket/prefix`, `gs://`, `az://` or `http(s)://`, without credentials or
    /// query. If it ends in `.zip` (`s3://bucket/a.zip`), the mount is the content of that file, read-only. With `kerchunk+` before
    /// it (`kerchunk+s3://bucket/refs.json`, `kerchunk+file:///srv/refs.json`), it is what the references in that document lead to,
    /// read-only; a URL that ends in `/`, `.parq` or `.parquet` is a directory of references in Parquet. With `icechunk+` before it
    /// (`icechunk+s3://bucket/repository`), it is an Icechunk repository, read-only.
    ///
    /// Example: `"/srv/zarr"`
    pub url: String,
    /// Whether clients may write to it.
    #[serde(default)]
    pub writable: bool,
    /// Who writes to the backend.
    ///
    /// * `"any"`: other programs too, or several servers. Conditional writes are sent to the backend with their conditions. If it ignores
    ///   them, conditional writes, writes of parts of chunks, appends and new nodes are refused.
    /// * `"one"`: this server alone, which then checks conditions itself. For web servers that accept `PUT`, and S3 stores without conditional
    ///   writes. If another program or server writes there nevertheless, its writes can be lost, and those of this server too. At a web
    ///   server, a value is stored at most once a second.
    #[serde(default)]
    pub writers: Writers,
    /// Whether clients that may write can delete whole prefixes with one request.
    #[serde(default)]
    pub allow_prefix_delete: bool,
    /// `Cache-Control` of responses. One text is for all stored values: `"no-cache"` makes clients revalidate, and
    /// `"public, max-age=31536000, immutable"` suits data that never changes. A table sets it for metadata documents
    /// (`zarr.json`, `.zarray`, `.zgroup`, `.zattrs`, `.zmetadata` and all keys that end in `.json`), for all other values
    /// (`chunks`), and for decoded elements, which change when either of the two does: `{ metadata = "no-cache", chunks =
    /// "public, max-age=60", decoded = "no-cache" }`. What is not set is `"no-cache"`, and so are listings and nodes always.
    /// Errors are never cached.
    #[serde(default)]
    pub cache_control: CacheControl,
    /// How old cached data of the mount may be.
    ///
    /// * `"always"`: no older than the request. Each request revalidates each value at the backend.
    /// * `"ttl:60s"` (or ms, m, h): values that were validated within this time are not revalidated.
    /// * `"immutable"`: what was read once is never revalidated.
    /// * `"uncached"`: nothing is cached. For directories and zip files of this machine only.
    /// * `"ttl:60s, stale:1h"` or `"always, stale:1h"`: while the backend fails or does not respond within a second, what was
    ///   cached is used for up to this time longer. Such responses have `Age` and `Cache-Status`. For read-only mounts.
    ///
    /// Writes through this server are visible at once in any case, and the backend is always queried for new keys. Whether a file
    /// has changed is decided by its timestamps, which writes through memory maps (`numpy.memmap`) may not update:
    /// `"uncached"` is for files that are written so. Each response is then read from the file, and its entity tag promises
    /// nothing, so no condition on it holds.
    #[serde(default)]
    pub freshness: Freshness,
    /// The separator in the chunk keys of v2 arrays whose metadata does not give one: `"."` or `"/"`. Without it, the first chunk
    /// of each such array is requested under both names, and if that is missing, its keys are listed.
    ///
    /// Example: `"/"`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension_separator: Option<Separator>,
    /// Whether consolidated metadata is generated for groups that have none, from the documents of all nodes below them, again for
    /// each request: clients then open a large hierarchy with one request. A client that writes back a `zarr.json` that it has
    /// read would store it.
    #[serde(default)]
    pub consolidated: bool,
    /// An address and port of its own, where the mount is the store at the root path: `http://127.0.0.1:8001/` instead of
    /// `http://127.0.0.1:8000/store/NAME/`. Every path there is a key or prefix. Clients that use `object_store` (obstore,
    /// zarr-python's `ObjectStore`) list correctly only there. Port 0 lets the system choose one.
    ///
    /// Example: `"127.0.0.1:8001"`
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_listen_address")]
    pub listen: Option<SocketAddr>,
    /// Host names for the same at the address of the server: for requests to these hosts, whatever case and port they are written
    /// with, the mount is the store at the root path. The name of the server itself must not be one of them.
    ///
    /// Example: `["data.example"]`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// What callers without a credential may do: some of `"read"`, `"list"`, `"write"`, `"delete"` and `"admin"`. Without this key:
    /// nothing if there are tokens, issuers or signing keys, else everything that the mount permits.
    ///
    /// Example: `["read", "list"]`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<Vec<Scope>>,
    /// Whether reads of stored values by `/store` are redirected to the backend (307), by a URL that the credentials of the mount
    /// sign for that one request. S3, GCS and Azure with credentials only. The backend then answers ranges and conditions, and
    /// decides what is 404.
    #[serde(default)]
    pub redirect: bool,
    /// How long such a URL is valid.
    #[serde(default = "default_redirect_lifetime", with = "duration")]
    pub redirect_lifetime: Duration,
    /// Options of the backend.
    #[serde(default)]
    pub options: StoreOptions,
    /// What an `icechunk+` mount serves under keys without a version: `"branch:NAME"`, `"tag:NAME"` or `"snapshot:ID"`. Without this
    /// key the branch `main`. Other versions are below `@branch.NAME/`, `@tag.NAME/` and `@ID/` in every path.
    ///
    /// Example: `"tag:v5"`
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where the references of a `kerchunk+` mount, or the virtual chunks of an `icechunk+` mount, may lead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub r#virtual: BTreeMap<String, VirtualOptions>,
}

/// Options of a backend, beside those of the mount's own.
type ReferentOptions = StoreOptions;

/// Where the references of a `kerchunk+` mount, or the virtual chunks of an `icechunk+` mount, may lead: tables whose names are beginnings of URLs, such as
/// `[mounts.NAME.virtual."s3://bucket/prefix/"]`, that end in a slash. The longest one that a reference begins with counts; a
/// reference that begins with none is 502 `reference-refused`. Without such a table none may lead anywhere: a document of
/// references is read with the position of this server in its network.
///
/// A plain absolute path in a reference is a `file://` URL; a relative one begins at the directory of the document.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct VirtualOptions {
    /// The URL of the backend, if it is not the beginning itself.
    ///
    /// Example: `"s3://mirror/prefix/"`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether the name of a web server (`https://name/`) may lead to loopback, private or link-local addresses, as it does in a
    /// network of one's own. An address in place of the name may without this.
    ///
    /// Example: `true`
    pub private_addresses: bool,
    /// Options of the backend there, as those of a mount. Those of the mount, with its credentials, are for the document alone.
    ///
    /// Example: `{ region = "us-east-1", credentials = "anonymous" }`
    pub options: ReferentOptions,
}

impl MountOptions {
    /// The version that the mount serves under keys without one; `None` if it says none, or none that there can be.
    #[must_use]
    pub fn pinned_version(&self) -> Option<PinnedVersion> {
        self.version.as_deref().and_then(|text| text.parse().ok())
    }

    /// Where the references of the mount may lead.
    #[must_use]
    pub fn allowed_prefixes(&self) -> Vec<AllowedPrefix> {
        let allowed = |(url, prefix): (&String, &VirtualOptions)| AllowedPrefix {
            url: url.clone(),
            at: prefix.at.clone(),
            private_addresses: prefix.private_addresses,
            options: prefix.options.clone(),
        };
        self.r#virtual.iter().map(allowed).collect()
    }
}

/// Why a mount cannot promise who writes to it; `None` if it can.
pub(super) fn writers_error(mount: &MountOptions) -> Option<&'static str> {
    if mount.writers == Writers::Any {
        return None;
    }
    match kind_of(&mount.url) {
        _ if !mount.writable => Some("`one` is for mounts with `writable = true`"),
        Some(StoreKind::LOCAL | StoreKind::MEMORY) => Some(
            "`one` is for remote backends: only one server writes to a directory in any case, so remove it",
        ),
        _ => None,
    }
}

/// Whether the URL of a mount names a document of references or a repository.
fn has_references(url: &str) -> bool {
    kerchunk_document(url).is_some() || icechunk_repository(url).is_some()
}

/// Why the version that a mount names is rejected; `None` if it is not.
pub(super) fn version_error(mount: &MountOptions) -> Option<String> {
    let version = mount.version.as_deref()?;
    if icechunk_repository(&mount.url).is_none() {
        return Some("is for mounts whose URL begins with `icechunk+`".to_owned());
    }
    version.parse::<PinnedVersion>().err().map(str::to_owned)
}

/// Why the table of prefixes of a mount is rejected, with the path of the key below the mount; `None` if it is not.
pub(super) fn virtual_error(mount: &MountOptions) -> Option<(Vec<&str>, String)> {
    let has_references = has_references(&mount.url);
    if !has_references && !mount.r#virtual.is_empty() {
        let reason = "is for mounts whose URL begins with `kerchunk+` or `icechunk+`";
        return Some((vec!["virtual"], reason.to_owned()));
    }
    if has_references && mount.writable {
        let reason = "this mount cannot be writable, because what `icechunk+` and `kerchunk+` lead to is only read: remove `writable`";
        return Some((vec!["writable"], reason.to_owned()));
    }
    mount.r#virtual.iter().find_map(|(prefix, options)| {
        let reason = match (check_prefixes([&**prefix]), &options.at) {
            (Err(AllowedPrefixError::Invalid { reason, .. }), _) => {
                format!("is not the beginning of URLs, up to a slash: {reason}")
            }
            (Err(error @ (AllowedPrefixError::Root(_) | AllowedPrefixError::Path(_))), _) => {
                error.to_string()
            }
            (Ok(_), Some(at)) => match url_error(at) {
                Some(reason) => return Some((vec!["virtual", prefix, "at"], reason)),
                None if self::has_references(at) || is_zip(at) => {
                    return Some((
                        vec!["virtual", prefix, "at"],
                        "expected a directory or a bucket".to_owned(),
                    ));
                }
                None => return None,
            },
            (Ok(_), None) if kind_of(prefix).is_none() || self::has_references(prefix) => {
                "is not a kind of store: say by `at` where that is".to_owned()
            }
            (Ok(_), None) => return None,
        };
        Some((vec!["virtual", prefix], reason))
    })
}

/// Long enough for a request that follows at once, and for its retries.
fn default_redirect_lifetime() -> Duration {
    Duration::from_mins(5)
}

/// Why reads of a mount cannot be redirected to its backend, with the key; `None` if they can, or are not.
pub(super) fn redirect_error(mount: &MountOptions) -> Option<(&'static str, String)> {
    if mount.redirect && !can_sign_urls(&mount.url) {
        let signing: Vec<String> = signing_schemes().map(|scheme| format!("{scheme}://")).collect();
        return Some(("redirect", format!("only {} backends sign URLs", signing.join(", "))));
    }
    if !(Duration::from_secs(1)..=MAX_REDIRECT_LIFETIME).contains(&mount.redirect_lifetime) {
        return Some(("redirect_lifetime", "must be between 1s and 7days".to_owned()));
    }
    None
}

/// Why a mount cannot have its `freshness`; `None` if it can.
pub(super) fn freshness_error(mount: &MountOptions) -> Option<String> {
    let Freshness { policy, stale } = mount.freshness;
    if policy == CachePolicy::Uncached && mount.local_root().is_none() {
        return Some(
            "`uncached` is for directories and zip files of this machine: other backends name versions themselves"
                .to_owned(),
        );
    }
    stale?;
    match policy {
        CachePolicy::Immutable | CachePolicy::Uncached => {
            Some("`stale` is for `always` and `ttl`: remove it".to_owned())
        }
        _ if mount.writable => {
            Some("`stale` is for read-only mounts: a reader could miss what was just written".to_owned())
        }
        CachePolicy::Always | CachePolicy::Ttl(_) => None,
    }
}

/// The longest lifetime of URLs that backends sign.
const MAX_REDIRECT_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// The error for a mount without a URL, with the variable that sets it if nothing but environment variables does: exported for
/// one mount, they reach every command. Other errors are unchanged.
pub(super) fn explain_missing_url(error: ConfigError, tree: &LocatedValue) -> ConfigError {
    let variable = |key: &str| {
        let Some(ConfigValue::Table(mounts)) = tree.get(&["mounts"]).map(|entry| &entry.node) else {
            return None;
        };
        let (name, mount) = mounts.iter().find(|(name, _)| setting_key(["mounts", name]) == key)?;
        let variable = mount.get(&["url"]).is_none().then(|| only_variable(mount)).flatten()?;
        Some((name.clone(), variable.to_owned()))
    };
    match error {
        ConfigError::InvalidValue { origin, key, reason } => match variable(&key) {
            None => ConfigError::InvalidValue { origin, key, reason },
            Some((name, variable)) => ConfigError::InvalidValue {
                reason: format!(
                    "{reason}, and the mount is set only by the variable {variable}: unset it, or give a mount `{name}`"
                ),
                origin: Origin::Variable(variable),
                key,
            },
        },
        error => error,
    }
}

/// The first environment variable that sets a value, if nothing but variables does.
fn only_variable(value: &LocatedValue) -> Option<&str> {
    match (&value.node, &value.origin) {
        (ConfigValue::Table(entries), _) => {
            let variables: Option<Vec<&str>> = entries.values().map(only_variable).collect();
            variables?.first().copied()
        }
        (_, Origin::Variable(name)) => Some(name),
        _ => None,
    }
}

/// Rejects options that are not for the backend of their mount.
///
/// # Errors
/// [`ConfigError::InvalidValue`], which names the backends that take the option.
pub(super) fn check_options(tree: &LocatedValue) -> Result<(), ConfigError> {
    let Some(ConfigValue::Table(mounts)) = tree.get(&["mounts"]).map(|entry| &entry.node) else {
        return Ok(());
    };
    for (name, mount) in mounts {
        let key = setting_key(["mounts", name, "options"]);
        check_backend_options(mount, mount.get(&["url"]).and_then(LocatedValue::text), ("the mount", &key))?;
        let Some(ConfigValue::Table(prefixes)) = mount.get(&["virtual"]).map(|entry| &entry.node) else {
            continue;
        };
        for (prefix, entry) in prefixes {
            let url = entry.get(&["at"]).and_then(LocatedValue::text).unwrap_or(prefix);
            let key = setting_key(["mounts", name, "virtual", prefix, "options"]);
            check_backend_options(entry, Some(url), ("the prefix", &key))?;
        }
    }
    Ok(())
}

/// Rejects options, in the table `options` of `entry`, that are not for the backend of a URL.
fn check_backend_options(
    entry: &LocatedValue,
    url: Option<&str>,
    (what, key): (&str, &str),
) -> Result<(), ConfigError> {
    let (Some(kind), Some(ConfigValue::Table(options))) =
        (url.and_then(kind_of), entry.get(&["options"]).map(|entry| &entry.node))
    else {
        return Ok(());
    };
    for (option, entry) in options {
        // Unknown options are rejected with all unknown keys.
        if let Some(takers) = backends_of(option).filter(|takers| !takers.contains(&kind)) {
            let takers: Vec<&str> = takers.iter().map(|kind| kind.display_name()).collect();
            return Err(ConfigError::InvalidValue {
                origin: entry.origin.clone(),
                key: format!("{key}.{option}"),
                reason: format!("is for {}, and {what} is {}", takers.join(", "), kind.display_name()),
            });
        }
    }
    Ok(())
}

/// Why a name cannot be that of a mount; `None` if it can.
pub(super) fn name_error(name: &str) -> Option<String> {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    if name.is_empty()
        || name.len() > MAX_NAME_BYTES
        || name == "."
        || name == ".."
        || !name.bytes().all(safe)
    {
        return Some(format!(
            "a mount's name has 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_`, `.` or `~`, and is not `.` or `..`"
        ));
    }
    None
}

/// Why the URL of a mount is rejected.
#[derive(Debug)]
pub(super) enum UrlError {
    /// It cannot be the URL of a mount.
    Invalid(String),
    /// Its directory cannot be found, which may have been there before.
    MissingDirectory(String),
}

/// Checks the URL of a mount, and that its directory exists.
///
/// # Errors
/// [`UrlError`]. Messages do not repeat a URL, but name a directory.
pub(super) fn check_url(mount: &MountOptions) -> Result<(), UrlError> {
    if let Some(reason) = url_error(&mount.url) {
        return Err(UrlError::Invalid(reason));
    }
    check_root(mount)
}

/// Why a URL cannot be that of a mount; `None` if it can.
fn url_error(url: &str) -> Option<String> {
    if url.is_empty() {
        return Some("is empty".to_owned());
    }
    if let Some(document) = kerchunk_document(url).or_else(|| icechunk_repository(url)) {
        return url_error(document);
    }
    let is_path_after = |begin: &&str| url.starts_with(*begin) && !url.contains("://");
    if let Some(begin) = ["icechunk+", "kerchunk+"].into_iter().find(is_path_after) {
        return Some(format!(
            "expected a URL behind `{begin}`: write a path as in `{begin}file:///srv/data`"
        ));
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        let scheme = scheme.to_ascii_lowercase();
        if kind_of(url).is_none() {
            let known: Vec<&str> = schemes().collect();
            let known = known.join(", ");
            return Some(format!(
                "the scheme is none of {known}, with or without `icechunk+` or `kerchunk+` before it"
            ));
        }
        if scheme != "file" {
            let authority = rest.split('/').next().unwrap_or_default();
            if authority.contains('@') {
                return Some("credentials do not belong in the URL: set them in `options`".to_owned());
            }
            if rest.contains(['?', '#']) {
                return Some("a mount's URL has neither query nor fragment".to_owned());
            }
            if authority.is_empty() && scheme != "memory" {
                return Some("names no bucket or host".to_owned());
            }
        }
    }
    None
}

/// Checks that the directory or the zip file of a mount can be served.
fn check_root(mount: &MountOptions) -> Result<(), UrlError> {
    let root = mount.local_root();
    let is_zip = is_zip(&mount.url) && !root.as_ref().is_some_and(|root| root.is_dir());
    if is_zip && mount.writable {
        return Err(UrlError::Invalid("a zip file is only read, so `writable` must be false".to_owned()));
    }
    let Some(mut root) = root else { return Ok(()) };
    if is_zip && !root.exists() {
        // The file may appear later; its directory must exist.
        root = root
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
            .to_owned();
    }
    match std::fs::metadata(&root) {
        Ok(found) if found.is_dir() || (is_zip && found.is_file()) => Ok(()),
        Ok(_) if is_zip => {
            Err(UrlError::Invalid(format!("{} is neither a file nor a directory", root.display())))
        }
        Ok(_) => Err(UrlError::Invalid(format!(
            "{} is neither a directory nor a zip file whose name ends in `.zip`",
            root.display()
        ))),
        Err(error) => {
            // What is nearly a URL may have a secret.
            let (shown, hint) = match scheme_hint(&mount.url) {
                Some(hint) => ("it is no directory".to_owned(), hint),
                None => (format!("{}: {error}", root.display()), String::new()),
            };
            Err(UrlError::MissingDirectory(shown + &hint))
        }
    }
}

/// What helps if a path begins as a URL does, but for its two slashes: `s3:/bucket`.
fn scheme_hint(path: &str) -> Option<String> {
    let (scheme, rest) = path.split_once(':').filter(|(_, rest)| !rest.starts_with("//"))?;
    let kind = kind_of(&format!("{scheme}://"))?;
    let begin = if kind == StoreKind::LOCAL { "/" } else { "" };
    let rest = rest.trim_start_matches('/');
    let rest = if rest.is_empty() || rest.contains(['@', '?', '#']) { "…" } else { rest };
    Some(format!("; a URL has two slashes after its scheme: `{scheme}://{begin}{rest}`"))
}

/// The first mount whose `listen` or `hosts` are invalid or already in use, with the key and the reason.
pub(super) fn root_error<'a>(
    server: &ServerOptions,
    mounts: &'a BTreeMap<String, MountOptions>,
) -> Option<(&'a str, &'static str, String)> {
    let (mut addresses, mut hosts) = (BTreeMap::from([(server.listen, None)]), BTreeMap::new());
    addresses.extend(server.admin_listen.map(|listen| (listen, None)));
    for (name, mount) in mounts {
        // Port 0 is another port each time.
        if let Some(listen) = mount.listen.filter(|listen| listen.port() != 0)
            && let Some(taken) = addresses.insert(listen, Some(name))
        {
            let taken =
                taken.map_or_else(|| "the server itself".to_owned(), |name| format!("the mount `{name}`"));
            return Some((name, "listen", format!("{taken} listens on {listen} already")));
        }
        for host in &mount.hosts {
            if !is_host(host) {
                let reason = "expected names of hosts such as \"data.example\", without scheme, port or path";
                return Some((name, "hosts", reason.to_owned()));
            }
            if let Some(taken) = hosts.insert(canonical_host(host), name) {
                let reason = format!("the host `{host}` is the mount `{taken}`'s already");
                return Some((name, "hosts", reason));
            }
        }
    }
    None
}

/// The first pair of local mounts of which one contains the other, if one of the two is writable: a write to one would change the
/// other behind its cache.
pub(super) fn overlap<'a>(
    mounts: impl Iterator<Item = (&'a String, &'a MountOptions)>,
) -> Option<(&'a str, &'a str)> {
    let roots: Vec<(&str, bool, PathBuf)> = mounts
        .filter_map(|(name, mount)| {
            let root = std::fs::canonicalize(mount.local_root()?).ok()?;
            Some((name.as_str(), mount.writable, root))
        })
        .collect();
    let clash = |(_, writable, root): &(&str, bool, PathBuf), (_, other, inner): &(&str, bool, PathBuf)| {
        (*writable || *other) && (root.starts_with(inner) || inner.starts_with(root))
    };
    roots.iter().enumerate().find_map(|(index, one)| {
        let two = roots.iter().skip(index + 1).find(|two| clash(one, two))?;
        Some((one.0, two.0))
    })
}

/// The name and the URL of a `[NAME=]URL` argument. Without a name, it is derived from the URL.
///
/// The text before the first `=` is a name if it can be one; a path that begins so is written `./a=b`.
pub(super) fn parse_argument(argument: &str) -> (String, String) {
    match argument.split_once('=') {
        Some((name, url)) if name_error(name).is_none() => (name.to_owned(), url.to_owned()),
        _ => (default_name(argument), argument.to_owned()),
    }
}

/// The last segment of a URL's path, or its bucket or host, with characters replaced that need escaping in a URL.
fn default_name(url: &str) -> String {
    let (scheme, path) = url.split_once("://").unwrap_or(("", url));
    let last = path.split(['?', '#']).next().and_then(|path| path.rsplit('/').find(|part| !part.is_empty()));
    // What is before an `@` in a URL is a secret.
    let is_url = !scheme.is_empty() || scheme_hint(url).is_some();
    let last = last.map(|part| part.rsplit_once('@').filter(|_| is_url).map_or(part, |(_, host)| host));
    let last = match last {
        // `.` and `..` are no names, but their directory has one.
        None | Some("." | "..") if scheme.is_empty() => std::fs::canonicalize(Path::new(path))
            .ok()
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned())),
        None if !scheme.is_empty() => Some(scheme.to_owned()),
        last => last.map(str::to_owned),
    };
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.~".contains(c) { c } else { '-' };
    let name: String = last.unwrap_or_default().chars().map(safe).take(MAX_NAME_BYTES).collect();
    if name_error(&name).is_none() { name } else { "data".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_named_after_the_last_segment_of_its_url() {
        for (argument, name, url) in [
            ("s3://bucket/a/b.zarr/", "b.zarr", "s3://bucket/a/b.zarr/"),
            ("s3://bucket", "bucket", "s3://bucket"),
            ("memory://", "memory", "memory://"),
            ("/data/My Set", "My-Set", "/data/My Set"),
            ("/", "data", "/"),
            ("maps=s3://bucket/a", "maps", "s3://bucket/a"),
            ("./a=b", "a-b", "./a=b"),
            ("https://host:8080", "host-8080", "https://host:8080"),
            ("https://user:canary@host/?token=canary", "host", "https://user:canary@host/?token=canary"),
            ("https:/user:canary@host", "host", "https:/user:canary@host"),
            ("/data/a@b", "a-b", "/data/a@b"),
        ] {
            assert_eq!(parse_argument(argument), (name.to_owned(), url.to_owned()), "{argument}");
        }
    }

    #[test]
    fn the_current_directory_is_named_after_itself() {
        let here = std::env::current_dir().unwrap();
        let name = here.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(parse_argument(".").0, name);
    }
}
