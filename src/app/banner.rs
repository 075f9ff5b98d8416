//! The banner that is printed at the start: addresses, mounts, memory, and commands to try.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use super::demo::{self, DemoReason};
use super::health;
use crate::auth::Scope;
use crate::config::{Config, MemoryBound};
use crate::services::Mount;

/// A mount, as it is printed.
#[derive(Clone, Debug)]
pub(super) struct MountLine {
    name: String,
    kind: &'static str,
    url: String,
    /// What requests to a bucket are signed with, in words.
    credentials: Option<&'static str>,
    writable: bool,
    /// What callers without a credential may do.
    anonymous: AnonymousAccess,
}

/// What everyone may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AnonymousAccess {
    None,
    Read,
    Write,
}

impl MountLine {
    pub(super) fn new(mount: &Mount, url: &str, config: &Config) -> Self {
        let granted = config.mounts.get(&mount.name).and_then(|mount| mount.anonymous.as_deref());
        let may = |scope: Scope| {
            granted.map_or(!config.access.has_credentials(), |granted| granted.contains(&scope))
        };
        let anonymous = if mount.writable && (may(Scope::Write) || may(Scope::Delete)) {
            AnonymousAccess::Write
        } else if may(Scope::Read) {
            AnonymousAccess::Read
        } else {
            AnonymousAccess::None
        };
        Self {
            name: mount.name.clone(),
            kind: mount.store.kind().as_str(),
            url: url.to_owned(),
            credentials: mount.store.credentials(),
            writable: mount.writable,
            anonymous,
        }
    }
}

/// A URL at which a mount is the store at the root path, as it is printed.
#[derive(Clone, Debug)]
pub(super) struct RootLine {
    name: String,
    url: String,
}

/// The address of the server, as it is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublicAddress<'a> {
    pub(super) scheme: &'a str,
    pub(super) address: SocketAddr,
    /// The prefix of all paths.
    pub(super) base_path: &'a str,
}

/// A mount at the root of a listener of its own.
pub(super) fn root_of_listener(scheme: &str, name: &str, address: SocketAddr) -> RootLine {
    RootLine { name: name.to_owned(), url: format!("{scheme}://{address}/") }
}

/// A mount at the root of a host, on the port of the server.
pub(super) fn root_of_host(scheme: &str, name: &str, host: &str, address: SocketAddr) -> RootLine {
    RootLine { name: name.to_owned(), url: format!("{scheme}://{host}:{}/", address.port()) }
}

/// The text of the banner; with the demo, it has commands to try.
pub(super) fn text(
    PublicAddress { scheme, address, base_path }: PublicAddress<'_>,
    mounts: &[MountLine],
    roots: &[RootLine],
    admin: Option<SocketAddr>,
    config: &Config,
) -> String {
    let mut text = format!("zarrd listens on {scheme}://{address}\n");
    let front = PublicAddress { scheme, address, base_path };
    let host = host_of(address);
    let width = mounts.iter().map(|mount| mount.name.len()).max().unwrap_or_default();
    for MountLine { name, kind, url, credentials, writable, .. } in mounts {
        let rights = if *writable { "read-write" } else { "read-only" };
        let pad = width - name.len();
        let signed = credentials.map(|signed| format!(", {signed}")).unwrap_or_default();
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "  {scheme}://{host}{base_path}/store/{name}/{:pad$}  {rights}, {kind}: {url}{signed}",
            ""
        );
    }
    for RootLine { name, url } in roots {
        let _ = writeln!(text, "  {url} is {base_path}/store/{name}/");
    }
    if let Some(page) = page(front, config) {
        let _ = writeln!(text, "In a browser: {page}");
    }
    if let Some(admin) = admin {
        let admin = host_of(admin);
        let _ = writeln!(text, "  http://{admin}/metrics, /healthz, /readyz and /v1/cache are for operators");
    }
    let _ = writeln!(text, "Memory: {}", memory(config));
    if let Some(warning) = config.memory_warning() {
        let _ = writeln!(text, "Warning: {warning}");
    }
    if let Some(path) = &config.cache.disk.path {
        let disk = &config.cache.disk;
        let (most, index) = (size(disk.size), size(disk.index_size));
        let _ = writeln!(
            text,
            "Disk cache: {}, at most {most}, with {index} of memory for its index",
            path.display()
        );
    }
    let is_reachable = !address.ip().to_canonical().is_loopback();
    let open: Vec<&MountLine> =
        mounts.iter().filter(|mount| mount.anonymous > AnonymousAccess::None).collect();
    if is_reachable && let Some(most) = open.iter().map(|mount| mount.anonymous).max() {
        let what = if most == AnonymousAccess::Write { "read and write" } else { "read" };
        let names: Vec<&str> = open.iter().map(|mount| mount.name.as_str()).collect();
        let _ = writeln!(
            text,
            "Warning: everyone who can connect to port {} may {what} without a token: {}",
            address.port(),
            names.join(", ")
        );
    }
    let demo = demo::reason(config);
    if demo == Some(DemoReason::NoMountsConfigured) {
        text.push_str("No mount is configured: this is the built-in demo. To serve a directory: zarrd DIR\n");
    }
    if demo.is_some() {
        text.push_str("Try:\n");
        for line in demo::curl_lines(&format!("{scheme}://{}{base_path}", health::reachable(address))) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// The URL of the page of all mounts on this machine, if pages are served.
pub(super) fn page(front: PublicAddress<'_>, config: &Config) -> Option<String> {
    let PublicAddress { scheme, address, base_path } = front;
    config.server.ui.then(|| format!("{scheme}://{}{base_path}/", host_of(address)))
}

/// An address as the host of a URL for this machine.
fn host_of(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => format!("localhost:{}", address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => format!("localhost:{}", address.port()),
        IpAddr::V4(_) | IpAddr::V6(_) => address.to_string(),
    }
}

/// The bound of memory, as it is printed.
fn memory(config: &Config) -> String {
    let most = size(MemoryBound::from_config(config).bytes());
    match config.memory.total_and_share() {
        Some((total, _)) => format!("at most {most} (of {})", size(total)),
        None => format!("at most {most}"),
    }
}

/// A size for people.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    let tenths = (bytes / MIB).saturating_mul(10) / 1024;
    if tenths >= 10 {
        format!("{}.{} GiB", tenths / 10, tenths % 10)
    } else {
        format!("{} MiB", bytes.div_ceil(MIB))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AvailableMemory;

    fn line(name: &str, writable: bool, anonymous: AnonymousAccess) -> MountLine {
        let (name, url) = (name.to_owned(), "/srv".to_owned());
        MountLine { name, kind: "local", url, credentials: None, writable, anonymous }
    }

    fn banner(listen: &str, mounts: &[MountLine]) -> String {
        let front = PublicAddress { scheme: "http", address: listen.parse().unwrap(), base_path: "/base" };
        let mut config = Config { demo: true, ..Config::default() };
        config.memory = AvailableMemory { limit: None, machine: Some(24 << 30) };
        text(front, mounts, &[], None, &config)
    }

    #[test]
    fn the_banner_prints_the_url_and_the_rights_of_each_mount() {
        let mounts = [line("a", false, AnonymousAccess::Read), line("long", true, AnonymousAccess::Write)];
        let text = banner("127.0.0.1:8000", &mounts);
        assert!(
            text.contains("  http://127.0.0.1:8000/base/store/a/     read-only, local: /srv\n"),
            "{text}"
        );
        assert!(
            text.contains("  http://127.0.0.1:8000/base/store/long/  read-write, local: /srv\n"),
            "{text}"
        );
        assert!(text.contains("In a browser: http://127.0.0.1:8000/base/\n"), "{text}");
        assert!(text.contains("Memory: at most 1.9 GiB (of 24.0 GiB)\n"), "{text}");
        assert!(!text.contains("Warning"), "{text}");
        assert_eq!(size(500 << 20), "500 MiB");
    }

    #[test]
    fn the_banner_warns_of_anonymous_access_on_reachable_addresses() {
        let mounts = [line("a", false, AnonymousAccess::Read), line("p", true, AnonymousAccess::None)];
        let text = banner("0.0.0.0:8000", &mounts);
        assert!(text.starts_with("zarrd listens on http://0.0.0.0:8000\n"), "{text}");
        assert!(text.contains("  http://localhost:8000/base/store/a/"), "{text}");
        assert!(
            text.contains("everyone who can connect to port 8000 may read without a token: a\n"),
            "{text}"
        );
        let text = banner("[::]:8000", &[line("w", true, AnonymousAccess::Write)]);
        assert!(text.contains("may read and write without a token: w\n"), "{text}");
        assert!(!banner("0.0.0.0:8000", &mounts[1..]).contains("Warning"));
        assert!(!banner("127.0.0.1:8000", &mounts).contains("Warning"));
    }
}
