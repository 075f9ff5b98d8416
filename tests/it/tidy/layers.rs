//! What each layer may import, name and do.
//!
//! A layer imports from itself and from layers below it; a third-party crate is named in few layers; the format layers are
//! sync; environment, files and wall clock are read in few places; files stay small. The sources are read as text: each
//! rule is simple, and so is each breach. Never reorder the layers to pass: move code down, or invert the dependency with
//! a small trait.

use std::fmt::Write;

use super::sources::{Source, sources};

/// The layers, lowest first.
const LAYERS: [&str; 29] = [
    "units",
    "error",
    "key",
    "metadata",
    "chunk",
    "reduce",
    "labels",
    "conventions",
    "codec",
    "cpu",
    "store",
    "hierarchy",
    "array",
    "write",
    "cache",
    "views",
    "vectors",
    "render",
    "parse",
    "page",
    "http",
    "metrics",
    "auth",
    "admission",
    "services",
    "api",
    "web",
    "config",
    "app",
];

/// Layers that name HTTP.
const HTTP: [&str; 8] = ["http", "metrics", "auth", "admission", "services", "api", "web", "app"];

/// Layers without async: the format, rendering and templates.
const SYNC: [&str; 12] = [
    "units",
    "error",
    "key",
    "metadata",
    "chunk",
    "reduce",
    "labels",
    "conventions",
    "codec",
    "render",
    "parse",
    "page",
];

/// Third-party names, and the layers that may use them. `main` stands for the binary's own files.
const NAMES: &[(&str, &[&str])] = &[
    ("object_store", &["store"]),
    ("memmap2", &["cache"]),
    ("moka", &["cache"]),
    ("ahash", &["cache", "metrics"]),
    ("twox_hash", &["cache"]),
    ("axum", &HTTP),
    ("multer", &["api"]),
    ("StatusCode", &HTTP),
    ("arc_swap", &["auth", "metrics", "services", "web"]),
    // `main`: telemetry sends traces by the same client.
    ("reqwest", &["store", "main"]),
    ("maud", &["page"]),
    ("ring", &["auth", "http"]),
    ("subtle", &["auth"]),
    ("tower", &["web"]),
    ("ipnet", &["http"]),
    ("md5", &["http", "store"]),
    ("crc_fast", &["http"]),
    ("tower_http", &["web"]),
    ("prometheus_client", &["api"]),
    ("quick_xml", &["store", "api"]),
    ("utoipa", &["http", "services", "api", "web"]),
    ("utoipa_axum", &["services", "api", "web"]),
    ("utoipa_swagger_ui", &["web"]),
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
    ("adler2", &["codec"]),
    ("crc32c", &["codec"]),
    ("lz4_flex", &["codec"]),
    ("bzip2", &["codec"]),
    ("liblzma", &["codec"]),
    ("arrow_array", &["render"]),
    ("arrow_buffer", &["render"]),
    ("arrow_ipc", &["render", "parse"]),
    ("arrow_schema", &["render"]),
    ("png", &["render"]),
    ("pco", &["codec"]),
    ("zfp_rs", &["codec"]),
    ("anyhow", &["main"]),
    ("mimalloc", &["main"]),
    ("itoa", &["web", "main"]),
    ("memchr", &["app"]),
    ("socket2", &["app"]),
    ("tracing_subscriber", &["main"]),
];

/// Most lines of a file, tests not counted.
const MAX_LINES: usize = 600;

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|known| *known == layer)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether the line has `name` at the beginning of a path: `name::`, or `name;` in a `use`.
fn names(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + name.len()..];
        let stands_alone = !before.is_some_and(|c| is_word(c) || c == ':');
        stands_alone
            && (after.starts_with("::") || (after.starts_with(';') && line.trim_start().starts_with("use ")))
    })
}

/// The words after `crate::`, in groups too, each with its offset in the text.
fn layers_named(text: &str) -> Vec<(usize, &str)> {
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

fn imports_from_above(source: &Source) -> Vec<String> {
    let Some(own) = rank(source.layer()) else {
        return Vec::new();
    };
    let mut breaches = Vec::new();
    let code = source.text_without_comments();
    for (at, named) in layers_named(&code) {
        if rank(named).is_some_and(|rank| rank > own) {
            let number = 1 + code[..at].matches('\n').count();
            breaches.push(format!(
                "src/{}:{number}: layer `{}` imports from `{named}`, a layer above it",
                source.path,
                source.layer()
            ));
        }
    }
    breaches
}

fn third_party_names(source: &Source) -> Vec<String> {
    let mut breaches = Vec::new();
    for (number, line) in source.code() {
        for (name, layers) in NAMES {
            if names(line, name) && !layers.contains(&source.layer()) {
                let allowed = layers.join("`, `");
                breaches.push(format!("src/{}:{number}: `{name}` is used only in `{allowed}`", source.path));
            }
        }
    }
    breaches
}

fn async_in_sync_layers(source: &Source) -> Vec<String> {
    if !SYNC.contains(&source.layer()) {
        return Vec::new();
    }
    let is_async = |line: &str| {
        names(line, "tokio")
            || line.contains("async fn")
            || line.contains("async move")
            || line.contains(".await")
    };
    let breach = |(number, _)| format!("src/{}:{number}: layer `{}` is sync", source.path, source.layer());
    source.lines().filter(|(_, line)| is_async(line)).map(breach).collect()
}

fn process_access(source: &Source) -> Vec<String> {
    // The disk cache has files of its own, and providers have theirs for credentials.
    let has_files = ["store/local", "store/open/backends/", "cache/disk/"]
        .iter()
        .any(|folder| source.path.starts_with(folder));
    let may = source.layer() == "config" || source.path == "main.rs" || has_files;
    if may || source.is_test() {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for (number, line) in source.code() {
        for what in ["std::env", "std::fs", "tokio::fs", "SystemTime::now"] {
            if line.contains(what) {
                breaches.push(format!(
                    "src/{}:{number}: `{what}` is for `config`, `store/local`, `store/open/backends`, `cache/disk` and `main`",
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

fn unknown_layer(source: &Source) -> Vec<String> {
    if source.layer() == "main" || rank(source.layer()).is_some() {
        return Vec::new();
    }
    vec![format!("src/{}: `{}` is not a layer", source.path, source.layer())]
}

fn breaches(source: &Source) -> Vec<String> {
    [imports_from_above, third_party_names, async_in_sync_layers, process_access, too_long, unknown_layer]
        .into_iter()
        .flat_map(|rule| rule(source))
        .collect()
}

#[test]
fn every_layer_keeps_its_rules() {
    let sources = sources();
    assert!(sources.len() > LAYERS.len(), "only {} files were found", sources.len());
    let mut report = String::new();
    for breach in sources.iter().flat_map(breaches) {
        writeln!(report, "{breach}").unwrap();
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn every_breach_is_reported_at_its_line() {
    for (path, text, breach) in [
        (
            "key/a.rs",
            "//! Doc.\nuse crate::store::Store;",
            "src/key/a.rs:2: layer `key` imports from `store`, a layer above it",
        ),
        (
            "store/a.rs",
            "use crate::{error::Classify, http::{self}, key::StoreKey};",
            "imports from `http`, a layer above",
        ),
        (
            "key/a.rs",
            "use crate::{\n    error::Classify,\n    store::Store,\n};",
            "src/key/a.rs:2: layer `key` imports from",
        ),
        ("array/a.rs", "fn f() -> crate::cache::Cache {}", "imports from `cache`, a layer above"),
        ("http/a.rs", "use object_store::path::Path;", "`object_store` is used only in `store`"),
        ("codec/a.rs", "use axum;", "`axum` is used only in"),
        ("array/a.rs", "    Err(StatusCode::OK)", "`StatusCode` is used only in"),
        ("chunk/a.rs", "pub async fn read() {}", "src/chunk/a.rs:1: layer `chunk` is sync"),
        ("render/a.rs", "    tokio::spawn(work)", "layer `render` is sync"),
        ("http/a.rs", "let home = std::env::var_os(\"HOME\");", "`std::env` is for"),
        ("cache/a.rs", "let now = SystemTime::now();", "`SystemTime::now` is for"),
        ("shed/mod.rs", "//! Doc.", "`shed` is not a layer"),
    ] {
        let source = Source::new(path, text);
        let found = breaches(&source);
        assert!(found.len() == 1 && found[0].contains(breach), "{path}: {text}\n  gave {found:?}");
    }
    let long = Source::new("key/a.rs", &"x\n".repeat(MAX_LINES + 1));
    assert_eq!(breaches(&long).len(), 1);
}

#[test]
fn allowed_code_is_no_breach() {
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
        let source = Source::new(path, text);
        assert!(breaches(&source).is_empty(), "{path}: {text}\n  gave {:?}", breaches(&source));
    }
}
