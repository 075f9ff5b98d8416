//! Mounts as configured: `[mounts.NAME]` and the `[NAME=]URL` arguments of the command line.
//!
//! A name is one segment of a URL and needs no escaping there. URLs carry neither credentials nor queries, so that
//! they can be printed. Whether the backend answers is not asked here: only a local root must exist, or the directory
//! that a zip file is to lie in.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::server::{ServerOptions, some_listen_address};
use super::tree::{Entry, Node};
use crate::http::{CacheControl, Scope, canonical_host, is_host};
use crate::metadata::Separator;
use crate::store::{CachePolicy, StoreOptions, backends_of, is_zip, kind_of};

/// The mount that the demo hierarchy is served as.
pub(super) const DEMO: &str = "demo";
/// Longest name of a mount, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// The kinds of URL there are; a text without `://` is a path.
const SCHEMES: [&str; 7] = ["file", "s3", "gs", "az", "http", "https", "memory"];

/// One backend root and the rights to it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration file")]
pub struct MountOptions {
    /// Where the store is: a path, or a `file://`, `s3://`, `gs://`, `az://`, `http(s)://` or `memory://` URL. One that
    /// ends in `.zip` is the file's entries.
    pub url: String,
    /// Whether it may be written to.
    #[serde(default)]
    pub writable: bool,
    /// Whether, if it may be written to, whole prefixes may be erased with one request.
    #[serde(default)]
    pub allow_prefix_delete: bool,
    /// `Cache-Control` of its answers.
    #[serde(default)]
    pub cache_control: CacheControl,
    /// How old what is known of what is stored may be: `always` (no older than the request), `ttl:60s`, `immutable`, or
    /// `uncached` (all is read for each request).
    #[serde(default)]
    pub freshness: CachePolicy,
    /// What stands in the chunks' keys of v2 arrays whose documents do not say; absent to look for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension_separator: Option<Separator>,
    /// Whether groups that have no consolidated metadata are answered with some.
    #[serde(default)]
    pub consolidated: bool,
    /// An address of its own, where it is the store at the root path. Port 0 lets the system choose.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_listen_address")]
    pub listen: Option<SocketAddr>,
    /// Names of hosts at which it is the store at the root path of the server's own address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// What callers may do who show no token; absent for what holds for all mounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<Vec<Scope>>,
    /// Whether whoever reads a stored value is sent to the backend, by a signed URL.
    #[serde(default)]
    pub redirect: bool,
    /// For how many seconds such a URL is good.
    #[serde(default = "redirect_seconds")]
    pub redirect_lifetime: u32,
    /// What the backend needs to know.
    #[serde(default)]
    pub options: StoreOptions,
}

impl MountOptions {
    /// The directory of this machine that the mount serves, if it serves one.
    #[must_use]
    pub fn local_root(&self) -> Option<PathBuf> {
        match self.url.split_once("://") {
            None => Some(PathBuf::from(&self.url)),
            Some((scheme, path)) if scheme.eq_ignore_ascii_case("file") => {
                Some(PathBuf::from(path.strip_prefix("localhost").unwrap_or(path)))
            }
            Some(_) => None,
        }
    }
}

/// Long enough for a request that is made at once, and again if it fails.
fn redirect_seconds() -> u32 {
    300
}

/// Why callers of a mount cannot be sent to its backend, with the key; `None` if they can, or are not.
pub(super) fn redirect_complaint(mount: &MountOptions) -> Option<(&'static str, String)> {
    let scheme = mount.url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let can_sign = matches!(scheme.as_deref(), Some("s3" | "gs" | "az")) && !is_zip(&mount.url);
    if mount.redirect && !can_sign {
        return Some(("redirect", "only s3://, gs:// and az:// backends sign URLs".to_owned()));
    }
    if !(1..=LONGEST_REDIRECT).contains(&mount.redirect_lifetime) {
        return Some(("redirect_seconds", format!("must be between 1 and {LONGEST_REDIRECT}")));
    }
    None
}

/// Why a mount cannot be as fresh as it is to be; `None` if it can.
pub(super) fn freshness_complaint(mount: &MountOptions) -> Option<String> {
    let is_meant = mount.freshness != CachePolicy::Uncached || mount.local_root().is_some();
    (!is_meant).then(|| {
        "`uncached` is for directories and zip files of this machine: other backends name versions themselves".to_owned()
    })
}

/// The longest that backends sign URLs for: seven days.
const LONGEST_REDIRECT: u32 = 7 * 24 * 60 * 60;

/// Refuses options that mean nothing to the backend of their mount.
///
/// # Errors
/// [`ConfigError::InvalidValue`], which names the backends that take the option.
pub(super) fn check_options(tree: &Entry) -> Result<(), ConfigError> {
    let Some(Node::Table(mounts)) = tree.get(&["mounts"]).map(|entry| &entry.node) else { return Ok(()) };
    for (name, mount) in mounts {
        let kind = mount.get(&["url"]).and_then(Entry::text).and_then(kind_of);
        let (Some(kind), Some(Node::Table(options))) =
            (kind, mount.get(&["options"]).map(|entry| &entry.node))
        else {
            continue;
        };
        for (option, entry) in options {
            // What is no option at all is refused with the other unknown keys.
            if let Some(takers) = backends_of(option).filter(|takers| !takers.contains(&kind)) {
                let takers: Vec<&str> = takers.iter().map(|kind| kind.display_name()).collect();
                return Err(ConfigError::InvalidValue {
                    origin: entry.origin.clone(),
                    key: format!("mounts.{name}.options.{option}"),
                    reason: format!("is for {}, and the mount is {}", takers.join(", "), kind.display_name()),
                });
            }
        }
    }
    Ok(())
}

/// Why a name cannot be a mount's; `None` if it can.
pub(super) fn name_complaint(name: &str) -> Option<String> {
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

/// Why a URL cannot be a mount's; `None` if it can. The URL is not repeated.
pub(super) fn url_complaint(mount: &MountOptions) -> Option<String> {
    let url = &mount.url;
    if url.is_empty() {
        return Some("is empty".to_owned());
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        let scheme = scheme.to_ascii_lowercase();
        if !SCHEMES.contains(&scheme.as_str()) {
            return Some(format!("the scheme is none of {}", SCHEMES.join(", ")));
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
    let root = mount.local_root();
    let is_zip = is_zip(url) && !root.as_ref().is_some_and(|root| root.is_dir());
    if is_zip && mount.writable {
        return Some("a zip file is only read, so `writable` must be false".to_owned());
    }
    let mut root = root?;
    if is_zip && !root.exists() {
        // It may come later; the directory must be there.
        root = root
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
            .to_owned();
    }
    match std::fs::metadata(&root) {
        Ok(found) if found.is_dir() || (is_zip && found.is_file()) => None,
        Ok(_) if is_zip => Some(format!("{} is neither a file nor a directory", root.display())),
        Ok(_) => Some(format!("{} is not a directory", root.display())),
        Err(error) => Some(format!("{}: {error}", root.display())),
    }
}

/// The first mount whose `listen` or `hosts` cannot be served or are taken, with the key and why.
pub(super) fn root_complaint<'a>(
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

/// The first pair of local mounts of which one lies in the other, if one of the two can be written to: a write to
/// one would change the other behind its cache.
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

/// What `[NAME=]URL` says: the name, given or taken from the URL, and the URL.
///
/// What stands before the first `=` is a name if it can be one; a path that begins like that is written `./a=b`.
pub(super) fn parse_argument(argument: &str) -> (String, String) {
    match argument.split_once('=') {
        Some((name, url)) if name_complaint(name).is_none() => (name.to_owned(), url.to_owned()),
        _ => (default_name(argument), argument.to_owned()),
    }
}

/// The last segment of a URL's path, or its bucket or host, made fit for a URL.
fn default_name(url: &str) -> String {
    let (scheme, path) = url.split_once("://").unwrap_or(("", url));
    let last = path.split(['?', '#']).next().and_then(|path| path.rsplit('/').find(|part| !part.is_empty()));
    let last = match last {
        // `.` and `..` have no name of their own: the directory they mean has.
        None | Some("." | "..") if scheme.is_empty() => std::fs::canonicalize(Path::new(path))
            .ok()
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned())),
        None if !scheme.is_empty() => Some(scheme.to_owned()),
        last => last.map(str::to_owned),
    };
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.~".contains(c) { c } else { '-' };
    let name: String = last.unwrap_or_default().chars().map(safe).take(MAX_NAME_BYTES).collect();
    if name_complaint(&name).is_none() { name } else { "data".to_owned() }
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
