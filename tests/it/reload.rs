//! Reloads by SIGHUP: mounts are added, removed and changed while the server runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::support::process::{Running, zarrd};

const BOUND: Duration = Duration::from_mins(1);
/// More than fits into the buffers of a connection that is not read.
const LONG_BYTES: usize = 24 << 20;

/// A server whose configuration is a file.
struct Process {
    running: Running,
    folder: tempfile::TempDir,
    log: Receiver<String>,
}

impl Process {
    fn start(config: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, value) in [("one", "first"), ("two", "second"), ("three", "third")] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("k"), value).unwrap();
        }
        let file = folder.path().join("zarrd.toml");
        std::fs::write(&file, config(folder.path())).unwrap();
        let mut running = Running::of(zarrd(&["serve", "--config", file.to_str().unwrap()]));
        let (sender, log) = channel();
        let errors = BufReader::new(running.child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { running, folder, log }
    }

    /// Makes the server read this configuration, and returns its log lines.
    fn reload(&self, config: impl FnOnce(&Path) -> String) -> String {
        std::fs::write(self.folder.path().join("zarrd.toml"), config(self.folder.path())).unwrap();
        self.running.signal(Signal::HUP);
        let mut said = String::new();
        loop {
            let line = self.log.recv_timeout(BOUND).expect("a line of the log");
            said.push_str(&line);
            said.push('\n');
            if line.contains("the configuration ") {
                return said;
            }
        }
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.running.address).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        stream
    }

    /// The status and the body of a response.
    fn get(&self, path: &str) -> (u16, String) {
        let mut answer = String::new();
        self.send(&format!("GET {path}")).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

fn mount(folder: &Path, name: &str, directory: &str) -> String {
    format!("[mounts.{name}]\nurl = '{}'\n", folder.join(directory).display())
}

#[test]
fn mounts_are_added_removed_and_changed_without_a_restart() {
    let server = Process::start(|at| mount(at, "a", "one") + &mount(at, "gone", "three"));
    let found = |text: &str| (200, text.to_owned());
    // Cached, so that a stale entry would be seen.
    for _ in 0..2 {
        assert_eq!(server.get("/store/a/k"), found("first"));
    }
    assert_eq!(server.get("/store/new/k").0, 404);

    let said = server.reload(|at| mount(at, "a", "two") + &mount(at, "new", "three"));
    for part in ["mount was added", "mount was changed", "mount was removed", "was read again"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(server.get("/store/a/k"), found("second"));
    assert_eq!(server.get("/store/new/k"), found("third"));
    assert_eq!(server.get("/store/gone/k").0, 404);
    let mounts = server.running.get("/v1/mounts");
    let names = mounts["mounts"].as_array().unwrap().iter().map(|mount| mount["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "new"]);

    // The first directory again: nothing of its first time is cached.
    std::fs::write(server.folder.path().join("one/k"), "fifth").unwrap();
    server.reload(|at| mount(at, "a", "one"));
    assert_eq!(server.get("/store/a/k"), found("fifth"));

    // Rights belong to a mount, too.
    let closed = |at: &Path| mount(at, "a", "one") + "anonymous = ['list']\n";
    server.reload(closed);
    let denied = server.get("/store/a/k").0;
    assert!([401, 403].contains(&denied), "{denied}");

    // All or nothing.
    let said = server.reload(|at| mount(at, "a", "one") + &mount(at, "b", "nowhere"));
    assert!(said.contains("what was in effect stays"), "{said}");
    assert_eq!((server.get("/store/a/k").0, server.get("/store/b/k").0), (denied, 404));

    // Only an address of its own needs a restart.
    let said =
        server.reload(|at| mount(at, "a", "one") + &mount(at, "b", "two") + "listen = '127.0.0.1:0'\n");
    assert!(said.contains("mount was added"), "{said}");
    let restart = server.log.recv_timeout(BOUND).unwrap();
    assert!(restart.contains("need a restart") && restart.contains("mounts.b.listen"), "{restart}");
    assert_eq!(server.get("/store/b/k"), found("second"));
}

#[test]
fn a_mount_of_the_directory_of_the_disk_cache_is_refused_as_long_as_that_is_in_use() {
    let cache = |at: &Path| format!("[cache.disk]\npath = '{}'\n", at.join("two/cache").display());
    let server = Process::start(|at| cache(at) + &mount(at, "a", "one"));
    let both = |at: &Path| mount(at, "a", "one") + &mount(at, "b", "two");
    // Another directory of the cache, or none, needs a restart.
    for said in [server.reload(|at| cache(at) + &both(at)), server.reload(both)] {
        assert!(said.contains("what was in effect stays") && said.contains("cache.disk.path"), "{said}");
        assert!(said.contains("mounts.b.url"), "{said}");
        assert_eq!((server.get("/store/a/k").0, server.get("/store/b/k").0), (200, 404));
    }
    let said = server.reload(|at| cache(at) + &mount(at, "a", "one") + &mount(at, "b", "three"));
    assert!(said.contains("was read again"), "{said}");
    assert_eq!(server.get("/store/b/k"), (200, "third".to_owned()));
}

#[test]
fn a_path_that_now_names_another_directory_is_reopened() {
    let current =
        |at: &Path| mount(at, "link", "current") + &mount(at, "name", "three") + &mount(at, "same", "two");
    let server = Process::start(|at| {
        symlink("one", at.join("current")).unwrap();
        current(at)
    });
    let found = |text: &str| (200, text.to_owned());
    for _ in 0..2 {
        assert_eq!(server.get("/store/link/k"), found("first"));
        assert_eq!(server.get("/store/name/k"), found("third"));
    }
    let at = server.folder.path();
    std::fs::remove_file(at.join("current")).unwrap();
    symlink("two", at.join("current")).unwrap();
    std::fs::rename(at.join("three"), at.join("old")).unwrap();
    std::fs::create_dir(at.join("three")).unwrap();
    std::fs::write(at.join("three/k"), "newer").unwrap();
    server.reload(current);
    assert_eq!(server.get("/store/link/k"), found("second"));
    assert_eq!(server.get("/store/name/k"), found("newer"));
    assert_eq!(server.get("/store/same/k"), found("second"));

    // If the path leads to nothing, the open directory stays served.
    std::fs::remove_file(at.join("current")).unwrap();
    let said = server.reload(current);
    assert!(said.contains("was read again") && said.contains("its open store stays served"), "{said}");
    assert_eq!(server.get("/store/link/k"), found("second"));
}

#[test]
fn a_directory_that_is_removed_and_made_again_is_served_without_a_reload() {
    let server = Process::start(|at| mount(at, "a", "one") + &mount(at, "b", "two"));
    let at = server.folder.path();
    assert_eq!(server.get("/store/a/k"), (200, "first".to_owned()));
    std::fs::remove_dir_all(at.join("one")).unwrap();
    assert_eq!(server.get("/store/a/k").0, 502, "a directory that is gone says nothing about its keys");
    // One that was only moved stays served.
    std::fs::rename(at.join("two"), at.join("old")).unwrap();
    for directory in ["one", "two"] {
        std::fs::create_dir(at.join(directory)).unwrap();
        std::fs::write(at.join(directory).join("k"), "newer").unwrap();
    }
    while !server.log.recv_timeout(BOUND).unwrap().contains("was removed and made again, and is open again") {
    }
    assert_eq!(server.get("/store/a/k"), (200, "newer".to_owned()));
    assert_eq!(server.get("/store/b/k"), (200, "second".to_owned()));
}

#[test]
fn a_removed_directory_is_opened_again_although_that_of_another_mount_cannot_be() {
    let server = Process::start(|at| mount(at, "a", "one") + "writable = true\n" + &mount(at, "b", "two"));
    let at = server.folder.path();
    for (name, directory) in [("a", "one"), ("b", "two")] {
        assert_eq!(server.get(&format!("/store/{name}/k")).0, 200);
        std::fs::remove_dir_all(at.join(directory)).unwrap();
    }
    // Nothing can be staged in the first of the new directories.
    for directory in ["one", "two"] {
        let made = at.join("made");
        std::fs::create_dir(&made).unwrap();
        std::fs::write(made.join("k"), "newer").unwrap();
        if directory == "one" {
            std::fs::write(made.join(".zarr-server"), "no directory").unwrap();
        }
        std::fs::rename(made, at.join(directory)).unwrap();
    }
    let wait_for = |mount: &str, text: &str| {
        loop {
            let line = server.log.recv_timeout(BOUND).unwrap();
            if line.contains(text) && line.contains(&format!("mount={mount}")) {
                break;
            }
        }
    };
    wait_for("b", "is open again");
    assert_eq!(server.get("/store/b/k"), (200, "newer".to_owned()));
    assert_eq!(server.get("/store/a/k").0, 502);
    std::fs::remove_file(at.join("one/.zarr-server")).unwrap();
    wait_for("a", "is open again");
    assert_eq!(server.get("/store/a/k"), (200, "newer".to_owned()));
}

#[test]
fn a_removed_directory_is_opened_again_without_what_other_settings_name() {
    // RFC 8037, appendix A.2.
    let keys = json!({ "keys": [{
        "kty": "OKP", "crv": "Ed25519", "kid": "one", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    }] });
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("keys.json");
    std::fs::write(&path, keys.to_string()).unwrap();
    let issuer = format!(
        "[access.issuers.corp]\nissuer = 'https://login.example'\naudience = 'zarrd'\nalgorithms = ['EdDSA']\n\
         jwks_path = '{}'\ngrants = [{{ mount = 'a', scopes = ['read'] }}]\n",
        path.display()
    );
    let server = Process::start(|at| mount(at, "a", "one") + "anonymous = ['read', 'list']\n" + &issuer);
    assert_eq!(server.get("/store/a/k").0, 200);
    std::fs::remove_file(&path).unwrap();
    let at = server.folder.path();
    std::fs::remove_dir_all(at.join("one")).unwrap();
    std::fs::create_dir(at.join("one")).unwrap();
    std::fs::write(at.join("one/k"), "newer").unwrap();
    while !server.log.recv_timeout(BOUND).unwrap().contains("and is open again") {}
    assert_eq!(server.get("/store/a/k"), (200, "newer".to_owned()));
}

#[test]
fn vectors_of_another_directory_are_read_after_a_reload() {
    let server = Process::start(|at| mount(at, "v", "one"));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors/real");
    let link = |folder: &str, example: &str| {
        let link = server.folder.path().join(folder).join("data");
        let _ = std::fs::remove_file(&link);
        symlink(examples.join(example), link).unwrap();
    };
    let config = |at: &Path, folder: &str| mount(at, "v", folder) + "options.symlinks = 'follow'\n";
    link("one", "points_tiny.zarrvectors");
    link("two", "points_cloud.zarrvectors");
    let vertices = |folder: &str| {
        server.reload(|at| config(at, folder));
        // The second answer is from a cache.
        let [first, second] = [(); 2].map(|()| server.get("/v1/vectors/v/data/levels/0/chunks"));
        assert_eq!(first, second);
        assert_eq!(first.0, 200);
        first.1
    };
    let (tiny, cloud) = (vertices("one"), vertices("two"));
    assert_ne!(tiny, cloud);
    assert_eq!(vertices("one"), tiny);
}

#[test]
fn a_missing_directory_does_not_hold_up_the_rest_of_a_reload() {
    let secret = "1".repeat(43);
    let digest = ring::digest::digest(&ring::digest::SHA256, secret.as_bytes());
    let digest = digest.as_ref().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let token = format!(
        "[access.tokens.alice]\nsha256 = '{digest}'\ngrants = [{{ mount = 'private', scopes = ['read'] }}]\n\
         [access.tokens.other]\nsha256 = '{}'\ngrants = [{{ mount = 'private', scopes = ['read'] }}]\n",
        "0".repeat(64)
    );
    let revoked =
        token.split("[access.tokens.other]").nth(1).map(|rest| format!("[access.tokens.other]{rest}"));
    let public = |at: &Path, name: &str, directory: &str, more: &str| {
        mount(at, name, directory) + "anonymous = ['read', 'list']\n" + more
    };
    let private = |at: &Path| mount(at, "private", "two");
    let server = Process::start(|at| {
        token.clone() + &private(at) + &public(at, "gone", "one", "") + &public(at, "other", "two", "")
    });
    let authorized = |path: &str| {
        let mut stream = TcpStream::connect(server.running.address).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let credential = format!("Authorization: Bearer zs_alice_{secret}");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{credential}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    let found = |text: &str| (200, text.to_owned());
    assert_eq!(authorized("/store/private/k"), 200);
    assert_eq!(server.get("/store/gone/k"), found("first"));

    // The token is revoked, and another mount gets another directory, while that of a third is missing.
    let at = server.folder.path();
    std::fs::rename(at.join("one"), at.join("moved")).unwrap();
    let changed = |at: &Path, more: &str| {
        revoked.clone().unwrap()
            + &private(at)
            + &public(at, "gone", "one", more)
            + &public(at, "other", "three", "")
    };
    let said = server.reload(|at| changed(at, ""));
    assert!(said.contains("was read again"), "{said}");
    let warnings: Vec<&str> = said.lines().filter(|line| line.contains("WARN")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("its open store stays served"), "{said}");
    assert!(warnings[0].contains("gone"), "{said}");
    assert_eq!(authorized("/store/private/k"), 401);
    assert_eq!(server.get("/store/other/k"), found("third"));
    assert_eq!(server.get("/store/gone/k"), found("first"));

    // Its other settings are applied once the directory is back.
    let said = server.reload(|at| changed(at, "options.symlinks = 'follow'\n"));
    assert!(said.contains("its open store stays served"), "{said}");
    assert_eq!(server.get("/store/gone/k"), found("first"));
    symlink("../three/k", at.join("moved/link")).unwrap();
    std::fs::rename(at.join("moved"), at.join("one")).unwrap();
    let said = server.reload(|at| changed(at, "options.symlinks = 'follow'\n"));
    assert!(!said.contains("WARN"), "{said}");
    assert_eq!(server.get("/store/gone/link"), found("third"));

    // A mount that is new must have its directory.
    let said = server.reload(|at| changed(at, "") + &public(at, "new", "nowhere", ""));
    assert!(said.contains("what was in effect stays") && said.contains("mounts.new.url"), "{said}");
}

#[test]
fn reads_from_a_removed_mount_are_completed() {
    let server = Process::start(|at| mount(at, "gone", "one") + &mount(at, "stays", "two"));
    let long = vec![7; LONG_BYTES];
    std::fs::write(server.folder.path().join("one/long"), &long).unwrap();
    let mut slow = server.send("GET /store/gone/long");
    let mut first = [0; 64];
    slow.read_exact(&mut first).unwrap();
    server.reload(|at| mount(at, "stays", "two"));
    assert_eq!(server.get("/store/gone/long").0, 404);
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    let answer = [&first[..], &rest].concat();
    assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(&long[..LONG_BYTES]));
}

#[test]
fn a_writable_directory_keeps_its_writer_under_another_name_and_with_other_settings() {
    let writable = |at: &Path, name: &str| mount(at, name, "one") + "writable = true\n";
    let server = Process::start(|at| writable(at, "a"));
    let said = server.reload(|at| writable(at, "b") + "cache_control = 'no-store'\n");
    assert!(said.contains("was read again"), "{said}");
    assert_eq!(server.get("/store/b/k"), (200, "first".to_owned()));
    assert_eq!(server.get("/store/a/k").0, 404);
}

#[test]
fn a_writable_directory_can_be_reopened_while_writes_to_it_are_in_flight() {
    let writable = |at: &Path, more: &str| mount(at, "w", "one") + "writable = true\n" + more;
    let server = Process::start(|at| writable(at, ""));
    // An upload that began with the first configuration, and ends with the last.
    let mut slow = TcpStream::connect(server.running.address).unwrap();
    slow.set_read_timeout(Some(BOUND)).unwrap();
    write!(slow, "PUT /store/w/slow HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n").unwrap();
    write!(slow, "Connection: close\r\nContent-Length: 8\r\n\r\n").unwrap();
    let mut goes_on = [0; 25];
    slow.read_exact(&mut goes_on).unwrap();
    assert!(goes_on.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&goes_on));
    write!(slow, "late").unwrap();

    for more in ["options.durability = 'rename'\n", "freshness = 'uncached'\n", ""] {
        let said = server.reload(|at| writable(at, more));
        assert!(said.contains("mount was changed"), "{said}");
    }
    let said = server.reload(|at| mount(at, "other", "two"));
    assert!(said.contains("mount was removed"), "{said}");
    let said = server.reload(|at| writable(at, ""));
    assert!(said.contains("mount was added"), "{said}");
    assert_eq!(server.get("/store/w/slow").0, 404);

    write!(slow, "-one").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert_eq!(server.get("/store/w/slow"), (200, "late-one".to_owned()));
}
