//! What the server says when it starts: where it listens, what it serves, how much memory it takes, what to try.

use std::fmt::Write;
use std::net::SocketAddr;

use super::memory::MemoryBound;
use super::{demo, health};
use crate::http::Mount;

/// One mount, as it is shown.
#[derive(Clone, Debug)]
pub(super) struct MountLine {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) url: String,
    pub(super) writable: bool,
}

impl MountLine {
    pub(super) fn of(mount: &Mount, url: &str) -> Self {
        Self {
            name: mount.name.clone(),
            kind: mount.store.kind().name(),
            url: url.to_owned(),
            writable: mount.writable,
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
pub(super) struct Front<'a> {
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
    ForWantOfMounts,
}

/// The text printed at the start. The demo brings commands to try.
pub(super) fn text(
    Front { scheme, address, base_path }: Front<'_>,
    mounts: &[MountLine],
    roots: &[RootLine],
    admin: Option<SocketAddr>,
    memory: MemoryBound,
    demo: Option<Demo>,
) -> String {
    let mut text = format!("zarrd listens on {scheme}://{address}\n");
    let width = mounts.iter().map(|mount| mount.name.len()).max().unwrap_or_default();
    for MountLine { name, kind, url, writable } in mounts {
        let rights = if *writable { "read-write" } else { "read-only" };
        // Writing into a String cannot fail.
        let _ = writeln!(text, "  {base_path}/store/{name:width$}  {kind}, {rights}: {url}");
    }
    for RootLine { name, url } in roots {
        let _ = writeln!(text, "  {url} is {base_path}/store/{name}");
    }
    if let Some(admin) = admin {
        let _ = writeln!(
            text,
            "  http://{admin}/metrics, /healthz, /readyz and /v1/cache are for whoever runs it"
        );
    }
    let _ = writeln!(text, "Memory: at most {memory}");
    if demo == Some(Demo::ForWantOfMounts) {
        text.push_str("No mount is configured: this is the built-in demo.\n");
    }
    if demo.is_some() {
        text.push_str("Try:\n");
        for line in demo::curl_lines(&format!("{scheme}://{}{base_path}", health::reachable(address))) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}
