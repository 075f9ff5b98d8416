//! What the server says when it starts: where it listens, what it serves, how much memory it takes, what to try.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use super::mounts::demo_of;
use super::{demo, health};
use crate::config::{Config, MemoryBound};
use crate::http::{Mount, Scope};

/// One mount, as it is shown.
#[derive(Clone, Debug)]
pub(super) struct MountLine {
    name: String,
    kind: &'static str,
    url: String,
    writable: bool,
    /// What callers may do who show nothing.
    open_to: OpenTo,
}

/// What everybody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OpenTo {
    Nobody,
    Readers,
    Writers,
}

impl MountLine {
    pub(super) fn of(mount: &Mount, url: &str, config: &Config) -> Self {
        let granted = config.mounts.get(&mount.name).and_then(|mount| mount.anonymous.as_deref());
        let may = |scope: Scope| {
            granted.map_or(!config.access.has_credentials(), |granted| granted.contains(&scope))
        };
        let open_to = if mount.writable && (may(Scope::Write) || may(Scope::Delete)) {
            OpenTo::Writers
        } else if may(Scope::Read) {
            OpenTo::Readers
        } else {
            OpenTo::Nobody
        };
        Self {
            name: mount.name.clone(),
            kind: mount.store.kind().as_str(),
            url: url.to_owned(),
            writable: mount.writable,
            open_to,
        }
    }
}

/// Where a mount is the store at the root path, as it is shown.
#[derive(Clone, Debug)]
pub(super) struct RootLine {
    name: String,
    url: String,
}

/// Where the server is.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublicAddress<'a> {
    pub(super) scheme: &'a str,
    pub(super) address: SocketAddr,
    /// What stands before every path.
    pub(super) base_path: &'a str,
}

/// A mount at the root of a listener of its own.
pub(super) fn root_of_listener(scheme: &str, name: &str, address: SocketAddr) -> RootLine {
    RootLine { name: name.to_owned(), url: format!("{scheme}://{address}/") }
}

/// A mount at the root of a host, on the port that all mounts are on.
pub(super) fn root_of_host(scheme: &str, name: &str, host: &str, address: SocketAddr) -> RootLine {
    RootLine { name: name.to_owned(), url: format!("{scheme}://{host}:{}/", address.port()) }
}

/// Why the demo is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demo {
    Asked,
    NoMountsConfigured,
}

/// The text printed at the start. The demo brings commands to try.
pub(super) fn text(
    PublicAddress { scheme, address, base_path }: PublicAddress<'_>,
    mounts: &[MountLine],
    roots: &[RootLine],
    admin: Option<SocketAddr>,
    config: &Config,
) -> String {
    let mut text = format!("zarrd listens on {scheme}://{address}\n");
    let host = host_of(address);
    let width = mounts.iter().map(|mount| mount.name.len()).max().unwrap_or_default();
    for MountLine { name, kind, url, writable, .. } in mounts {
        let rights = if *writable { "read-write" } else { "read-only" };
        let pad = width - name.len();
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "  {scheme}://{host}{base_path}/store/{name}/{:pad$}  {rights}, {kind}: {url}",
            ""
        );
    }
    for RootLine { name, url } in roots {
        let _ = writeln!(text, "  {url} is {base_path}/store/{name}/");
    }
    if let Some(admin) = admin {
        let admin = host_of(admin);
        let _ = writeln!(
            text,
            "  http://{admin}/metrics, /healthz, /readyz and /v1/cache are for whoever runs it"
        );
    }
    let _ = writeln!(text, "Memory: {}", memory(config));
    let is_elsewhere = !address.ip().to_canonical().is_loopback();
    let open: Vec<&MountLine> = mounts.iter().filter(|mount| mount.open_to > OpenTo::Nobody).collect();
    if is_elsewhere && let Some(most) = open.iter().map(|mount| mount.open_to).max() {
        let what = if most == OpenTo::Writers { "read and write" } else { "read" };
        let names: Vec<&str> = open.iter().map(|mount| mount.name.as_str()).collect();
        let _ = writeln!(
            text,
            "Warning: everybody who reaches port {} may {what} without a token: {}",
            address.port(),
            names.join(", ")
        );
    }
    let demo = demo_of(config);
    if demo == Some(Demo::NoMountsConfigured) {
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

/// An address as it can stand in a URL that is to be opened on this machine.
fn host_of(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => format!("localhost:{}", address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => format!("localhost:{}", address.port()),
        IpAddr::V4(_) | IpAddr::V6(_) => address.to_string(),
    }
}

/// How much memory is taken at most, in a few words.
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
    use crate::config::Memory;

    fn line(name: &str, writable: bool, open_to: OpenTo) -> MountLine {
        MountLine { name: name.to_owned(), kind: "local", url: "/srv".to_owned(), writable, open_to }
    }

    fn said(listen: &str, mounts: &[MountLine]) -> String {
        let front = PublicAddress { scheme: "http", address: listen.parse().unwrap(), base_path: "/base" };
        let mut config = Config { demo: true, ..Config::default() };
        config.memory = Memory { limit: None, machine: Some(24 << 30) };
        text(front, mounts, &[], None, &config)
    }

    #[test]
    fn each_mount_has_a_url_to_copy_and_its_rights() {
        let mounts = [line("a", false, OpenTo::Readers), line("long", true, OpenTo::Writers)];
        let text = said("127.0.0.1:8000", &mounts);
        assert!(
            text.contains("  http://127.0.0.1:8000/base/store/a/     read-only, local: /srv\n"),
            "{text}"
        );
        assert!(
            text.contains("  http://127.0.0.1:8000/base/store/long/  read-write, local: /srv\n"),
            "{text}"
        );
        assert!(text.contains("Memory: at most 1.8 GiB (of 24.0 GiB)\n"), "{text}");
        assert!(!text.contains("Warning"), "{text}");
        assert_eq!(size(500 << 20), "500 MiB");
    }

    #[test]
    fn on_addresses_that_others_reach_it_is_said_what_they_may() {
        let mounts = [line("a", false, OpenTo::Readers), line("p", true, OpenTo::Nobody)];
        let text = said("0.0.0.0:8000", &mounts);
        assert!(text.starts_with("zarrd listens on http://0.0.0.0:8000\n"), "{text}");
        assert!(text.contains("  http://localhost:8000/base/store/a/"), "{text}");
        assert!(text.contains("everybody who reaches port 8000 may read without a token: a\n"), "{text}");
        let text = said("[::]:8000", &[line("w", true, OpenTo::Writers)]);
        assert!(text.contains("may read and write without a token: w\n"), "{text}");
        assert!(!said("0.0.0.0:8000", &mounts[1..]).contains("Warning"));
        assert!(!said("127.0.0.1:8000", &mounts).contains("Warning"));
    }
}
