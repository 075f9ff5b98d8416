//! The house rules, kept by reading `src/` as text.
//!
//! Rooms look down, never up; one third-party name lives in one room; the ground is sync; nobody peeps at the
//! machine but those who must; files stay small. The text is not parsed: a rule here is as simple as its breach is
//! plain to see. Never edit the ranks to win: move the thing down, or invert with a small trait.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The rooms from ground to roof.
const ROOMS: [&str; 17] = [
    "units",
    "error",
    "key",
    "metadata",
    "chunk",
    "codec",
    "cpu",
    "store",
    "hierarchy",
    "array",
    "cache",
    "views",
    "vectors",
    "render",
    "http",
    "config",
    "app",
];

/// Rooms without async: the format and what is pure.
const SYNC: [&str; 7] = ["units", "error", "key", "metadata", "chunk", "codec", "render"];

/// Third-party names, and the rooms that may say them. `main` stands for the binary's own files.
const NAMES: &[(&str, &[&str])] = &[
    ("object_store", &["store"]),
    ("moka", &["cache"]),
    ("axum", &["http", "app"]),
    ("StatusCode", &["http", "app"]),
    ("arc_swap", &["http"]),
    // `main`: traces are sent by the client that is there.
    ("reqwest", &["store", "main"]),
    ("ring", &["http"]),
    ("subtle", &["http"]),
    ("tower", &["http"]),
    ("md5", &["http"]),
    ("tower_http", &["http"]),
    ("prometheus_client", &["http"]),
    ("quick_xml", &["http"]),
    ("utoipa", &["http"]),
    ("utoipa_axum", &["http"]),
    ("utoipa_swagger_ui", &["http"]),
    ("clap", &["config"]),
    ("humantime", &["units"]),
    ("strsim", &["error"]),
    ("toml", &["config"]),
    ("hyper_util", &["app"]),
    ("rustls", &["store", "config", "app", "main"]),
    ("rustls_platform_verifier", &["store"]),
    ("tokio_rustls", &["app"]),
    ("flate2", &["codec"]),
    ("blosc_src", &["codec"]),
    ("zstd", &["codec"]),
    ("crc32c", &["codec"]),
    ("lz4_flex", &["codec"]),
    ("bzip2", &["codec"]),
    ("liblzma", &["codec"]),
    ("arrow_array", &["render"]),
    ("arrow_buffer", &["render"]),
    ("arrow_ipc", &["render"]),
    ("arrow_schema", &["render"]),
    ("pco", &["codec"]),
    ("zfp_rs", &["codec"]),
    ("anyhow", &["main"]),
    ("mimalloc", &["main"]),
    ("socket2", &["app"]),
    ("tracing_subscriber", &["main"]),
];

/// Most lines of a file, tests not counted.
const MAX_LINES: usize = 600;

/// One file of `src/`, as the rules see it.
struct Source {
    /// Path below `src/`.
    path: String,
    text: String,
}

impl Source {
    /// The first folder of the path; `main` for files beside `lib.rs`, and for what else is the binary's own.
    fn room(&self) -> &str {
        match self.path.split_once('/') {
            None | Some(("telemetry", _)) => "main",
            Some((room, _)) => room,
        }
    }

    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// Lines that are code, numbered from one, up to the test module at the end of the file.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.test_module();
        self.lines().take_while(move |(number, _)| *number < end)
    }

    /// Lines that are code, tests included.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The text with its comment lines blank, so that every place keeps its line.
    fn text_without_comments(&self) -> String {
        let code = |line: &'_ str| !line.trim_start().starts_with("//");
        self.text.lines().map(|line| if code(line) { format!("{line}\n") } else { "\n".to_owned() }).collect()
    }

    /// The line at which the test module begins.
    fn test_module(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        let module = lines.windows(2).position(|pair| {
            pair[0].trim() == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        });
        module.map_or(lines.len() + 1, |index| index + 1)
    }
}

fn rank(room: &str) -> Option<usize> {
    ROOMS.iter().position(|known| *known == room)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether the line says `name` as a path's beginning: `name::`, or `name;` in a `use`.
fn says(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + name.len()..];
        let stands_alone = !before.is_some_and(|c| is_word(c) || c == ':');
        stands_alone
            && (after.starts_with("::") || (after.starts_with(';') && line.trim_start().starts_with("use ")))
    })
}

/// The words after `crate::`, in groups too, each with its place in the text.
fn rooms_named(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, prefix) in text.match_indices("crate::") {
        if text[..at].chars().next_back().is_some_and(|c| is_word(c) || c == '$') {
            continue;
        }
        let start = at + prefix.len();
        match text[start..].strip_prefix('{') {
            None => found.push(start),
            Some(group) => {
                let mut depth = 0;
                found.push(start + 1);
                for (index, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => found.push(start + index + 2),
                        _ => {}
                    }
                }
            }
        }
    }
    let word = |start: usize| text[start..].trim_start().split(|c| !is_word(c)).next().unwrap_or_default();
    found.into_iter().map(|start| (start, word(start))).collect()
}

fn looks_up(source: &Source) -> Vec<String> {
    let Some(own) = rank(source.room()) else {
        return Vec::new();
    };
    let mut breaches = Vec::new();
    let code = source.text_without_comments();
    for (at, named) in rooms_named(&code) {
        if rank(named).is_some_and(|rank| rank > own) {
            let number = 1 + code[..at].matches('\n').count();
            breaches.push(format!(
                "src/{}:{number}: room `{}` looks up to room `{named}`",
                source.path,
                source.room()
            ));
        }
    }
    breaches
}

fn names_of_others(source: &Source) -> Vec<String> {
    let mut breaches = Vec::new();
    for (number, line) in source.code() {
        for (name, rooms) in NAMES {
            if says(line, name) && !rooms.contains(&source.room()) {
                let allowed = rooms.join("`, `");
                breaches.push(format!("src/{}:{number}: `{name}` is named only in `{allowed}`", source.path));
            }
        }
    }
    breaches
}

fn async_ground(source: &Source) -> Vec<String> {
    if !SYNC.contains(&source.room()) {
        return Vec::new();
    }
    let is_async = |line: &str| {
        says(line, "tokio")
            || line.contains("async fn")
            || line.contains("async move")
            || line.contains(".await")
    };
    let breach = |(number, _)| format!("src/{}:{number}: room `{}` is sync", source.path, source.room());
    source.lines().filter(|(_, line)| is_async(line)).map(breach).collect()
}

fn peeping(source: &Source) -> Vec<String> {
    let may = source.room() == "config" || source.path == "main.rs" || source.path.starts_with("store/local");
    if may || source.is_test() {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for (number, line) in source.code() {
        for what in ["std::env", "std::fs", "tokio::fs", "SystemTime::now"] {
            if line.contains(what) {
                breaches.push(format!(
                    "src/{}:{number}: `{what}` is for `config`, `store/local` and `main`",
                    source.path
                ));
            }
        }
    }
    breaches
}

fn too_long(source: &Source) -> Vec<String> {
    let lines = source.test_module() - 1;
    if source.is_test() || lines <= MAX_LINES {
        return Vec::new();
    }
    vec![format!("src/{}: {lines} lines without tests, at most {MAX_LINES}", source.path)]
}

fn unknown_room(source: &Source) -> Vec<String> {
    if source.room() == "main" || rank(source.room()).is_some() {
        return Vec::new();
    }
    vec![format!("src/{}: `{}` is not a room", source.path, source.room())]
}

fn breaches(source: &Source) -> Vec<String> {
    [looks_up, names_of_others, async_ground, peeping, too_long, unknown_room]
        .into_iter()
        .flat_map(|rule| rule(source))
        .collect()
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                sources.push(Source { path, text });
            }
        }
    }
    sources.sort_by(|one, two| one.path.cmp(&two.path));
    sources
}

#[test]
fn the_house_rules_are_kept() {
    let sources = sources();
    assert!(sources.len() > ROOMS.len(), "only {} files were found", sources.len());
    let mut report = String::new();
    for breach in sources.iter().flat_map(breaches) {
        writeln!(report, "{breach}").unwrap();
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn every_breach_is_seen_at_its_line() {
    for (path, text, breach) in [
        (
            "key/a.rs",
            "//! Doc.\nuse crate::store::Store;",
            "src/key/a.rs:2: room `key` looks up to room `store`",
        ),
        (
            "store/a.rs",
            "use crate::{error::Classify, http::{self}, key::StoreKey};",
            "looks up to room `http`",
        ),
        (
            "key/a.rs",
            "use crate::{\n    error::Classify,\n    store::Store,\n};",
            "src/key/a.rs:2: room `key` looks up",
        ),
        ("array/a.rs", "fn f() -> crate::cache::Cache {}", "looks up to room `cache`"),
        ("http/a.rs", "use object_store::path::Path;", "`object_store` is named only in `store`"),
        ("codec/a.rs", "use axum;", "`axum` is named only in"),
        ("array/a.rs", "    Err(StatusCode::OK)", "`StatusCode` is named only in"),
        ("chunk/a.rs", "pub async fn read() {}", "src/chunk/a.rs:1: room `chunk` is sync"),
        ("render/a.rs", "    tokio::spawn(work)", "room `render` is sync"),
        ("http/a.rs", "let home = std::env::var_os(\"HOME\");", "`std::env` is for"),
        ("cache/a.rs", "let now = SystemTime::now();", "`SystemTime::now` is for"),
        ("shed/mod.rs", "//! Doc.", "`shed` is not a room"),
    ] {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let found = breaches(&source);
        assert!(found.len() == 1 && found[0].contains(breach), "{path}: {text}\n  gave {found:?}");
    }
    let long = Source { path: "key/a.rs".to_owned(), text: "x\n".repeat(MAX_LINES + 1) };
    assert_eq!(breaches(&long).len(), 1);
}

#[test]
fn what_is_allowed_is_not_a_breach() {
    for (path, text) in [
        ("store/a.rs", "use crate::key::StoreKey;\nuse crate::store::Store;\nuse object_store::path::Path;"),
        ("store/a.rs", "use crate::{error::Classify, key::{StoreKey, http}};"),
        ("key/a.rs", "//! See [`crate::http`] and axum::Router.\n    // tokio::spawn"),
        ("codec/a.rs", "use super::zstd::decode;\nuse zstd::bulk;"),
        ("store/local/a.rs", "use std::fs::File;"),
        ("http/a.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}"),
        ("http/tests.rs", "use std::fs;"),
        ("metadata/a.rs", "let tokio_like = my_tokio::x();"),
    ] {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        assert!(breaches(&source).is_empty(), "{path}: {text}\n  gave {:?}", breaches(&source));
    }
}
