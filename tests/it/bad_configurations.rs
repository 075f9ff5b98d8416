//! Invalid configurations: each is refused before a socket is bound, in one line that names place and fault, and
//! does not repeat the value.

use crate::support::process::{text, zarrd};

/// A text that no message may repeat.
const CANARY: &str = "canary-hunter2";

/// A file, the line that is wrong in it, and the key.
const FILES: &[(&str, usize, &str)] = &[
    ("demmo = true", 1, "`demmo`; did you mean `demo`?"),
    ("demo = 'yes'", 1, "`demo`"),
    ("server = 1", 1, "`server`"),
    ("[servr]\nlisten = 'x'", 1, "`servr`; did you mean `server`?"),
    ("[server]\nlistne = 'x'", 2, "`server.listne`; did you mean `listen`?"),
    ("[server]\nlisten = 8000", 2, "`server.listen`"),
    ("[server]\nlisten = 'example.org:8000'", 2, "`server.listen`"),
    ("[server]\nlisten = '127.0.0.1'", 2, "`server.listen`"),
    ("[server]\nadmin_listen = 'here'", 2, "`server.admin_listen`"),
    ("[server]\nlisten = '127.0.0.1:7'\nadmin_listen = '127.0.0.1:7'", 3, "`server.admin_listen`"),
    ("[server]\nadmin_lisen = '127.0.0.1:7'", 2, "did you mean `admin_listen`?"),
    ("[server]\nworkers = 5000", 2, "`server.workers`"),
    ("[server]\nworkers = -1", 2, "`server.workers`"),
    ("[server]\nmax_connections = 0", 2, "`server.max_connections`"),
    ("[server]\n\nfirst_byte_seconds = 0", 3, "`server.first_byte_seconds`"),
    ("[server]\nheader_seconds = 1e9", 2, "`server.header_seconds`"),
    (
        "[server]\nidle_seconds = '30'",
        2,
        "`server.idle_seconds`: expected a time such as 90 (seconds) or \"90s\"",
    ),
    ("[server]\nidle_seconds = '1500ms'", 2, "`server.idle_seconds`"),
    ("[server]\nwrite_stall_seconds = 0", 2, "`server.write_stall_seconds`"),
    ("[server]\ndrain_seconds = 90000", 2, "`server.drain_seconds`"),
    ("[server]\nworkers = 1\nworkers = 2", 3, "duplicate key"),
    ("[server\nworkers = 1", 1, ""),
    ("[http]\nurl_bytes = 'long'", 2, "`http.url_bytes`"),
    ("[http]\nlist_page_keys = 1001", 1, "`list_page_keys`"),
    ("[http]\ndeadline_ms = 0", 1, "`deadline_ms`"),
    ("[http]\npublic_metrics = 'no'", 2, "`http.public_metrics`"),
    ("[http]\npublic_metric = true", 2, "did you mean `public_metrics`?"),
    ("[http.cors]\ncredentials = true", 1, "`cors.credentials`"),
    ("[http.cors]\norigins = ['*', 'https://a.example']", 1, "`cors.origins`"),
    ("[http.cors]\norigins = ['a.example']", 1, "is not an origin"),
    ("[http.cors]\norigins = 'https://a.example'", 2, "`http.cors.origins`"),
    ("[limits]\nrank = 0", 2, "`limits.rank`"),
    ("[limits]\nchunk_bytes = 0", 2, "`limits.chunk_bytes`"),
    ("[limits]\ncodec = 3", 2, "did you mean `codecs`?"),
    ("[limits]\nshard_chunks = 99999999999999999999", 2, ""),
    ("[read]\nchunks = -1", 2, "`read.chunks`"),
    ("[read]\nband = 1", 2, "`read.band`"),
    ("[fetch]\nconcurrency = '32'", 2, "`fetch.concurrency`"),
    ("[cache]\ndecoded_bytes = '1 gigabyte'", 2, "`cache.decoded_bytes`: expected a size such as"),
    ("[cache]\ndecoded_bytes = 'much'", 2, "`cache.decoded_bytes`"),
    ("[cache]\nvalues_bytes = 1", 2, "did you mean `value_bytes`?"),
    ("[cpu]\nthreads = 1.5", 2, "`cpu.threads`"),
    ("[log]\nlevel = 'loud'", 2, "`log.level`"),
    ("[log]\nformat = 'jsno'", 2, "did you mean `json`?"),
    ("[telemetry]\notlp_endpoint = 'collector:4318'", 2, "`telemetry.otlp_endpoint`"),
    ("[telemetry]\notlp_endpoint = 'http://u:canary-hunter2@collector'", 2, "`telemetry.otlp_endpoint`"),
    ("[telemetry]\notlp_endpoint = 'http://collector/?key=canary-hunter2'", 2, "`telemetry.otlp_endpoint`"),
    ("[telemetry]\nsample = 1.5", 2, "`telemetry.sample`"),
    ("[telemetry]\nqueue_spans = 0", 2, "`telemetry.queue_spans`"),
    ("[telemetry]\nendpoint = 'x'", 2, "`telemetry.endpoint`"),
    ("[mounts.a]\nwritable = true", 1, "`url` is missing"),
    ("[mounts.a]\nurl = ''", 2, "`mounts.a.url`"),
    ("[mounts.a]\nurl = 'gopher://host/x'", 2, "`mounts.a.url`"),
    ("[mounts.a]\nurl = 's3:///x'", 2, "`mounts.a.url`"),
    ("[mounts.a]\nurl = 's3://key:canary-hunter2@bucket'", 2, "`mounts.a.url`"),
    ("[mounts.a]\nurl = 'https://host/x?token=canary-hunter2'", 2, "`mounts.a.url`"),
    ("[mounts.a]\nurl = '/nowhere/at/all'", 2, "`mounts.a.url`"),
    ("[mounts.a]\nurl = '/proc/self/exe'", 2, "`mounts.a.url`"),
    ("[mounts.a]\nurl = 'memory://'\nfreshness = 'ttl:60'", 3, "`mounts.a.freshness`"),
    ("[mounts.a]\nurl = 'memory://'\ndimension_separator = '-'", 3, "`mounts.a.dimension_separator`"),
    ("[mounts.a]\nurl = 'memory://'\nlisten = 'here'", 3, "`mounts.a.listen`"),
    (
        "[server]\nadmin_listen = '127.0.0.1:7'\n[mounts.a]\nurl = 'memory://'\nlisten = '127.0.0.1:7'",
        5,
        "`mounts.a.listen`",
    ),
    ("[mounts.a]\nurl = 'memory://'\nhosts = ['a.example:80']", 3, "`mounts.a.hosts`"),
    ("[mounts.'a/b']\nurl = 'memory://'", 1, "a mount's name"),
    ("[mounts.a]\nurl = '/tmp'\nwritable = true\n[mounts.b]\nurl = '/'", 5, "overlap"),
    (
        "[mounts.a]\nurl = 's3://b'\noptions.secret_acess_key = 'canary-hunter2'",
        3,
        "did you mean `secret_access_key`?",
    ),
    (
        "[mounts.a]\nurl = 's3://b'\noptions.secret_access_key = ['canary-hunter2']",
        3,
        "`mounts.a.options.secret_access_key`",
    ),
    ("[mounts.a]\nurl = 's3://b'\noptions.secret_access_key = 'canary-hunter2", 3, ""),
    ("[mounts.a]\nurl = 's3://b'\noptions.tries = 'canary-hunter2'", 3, "`mounts.a.options.tries`"),
    // Budgets.
    ("[server]\nmemory_limit_bytes = 100000000", 2, "`server.memory_limit_bytes`: the budgets add up to"),
    (
        "[server]\nmemory_limit_bytes = '1GiB'\n[cache]\ndecoded_bytes = '2GiB'",
        4,
        "and the process may take 1024 MiB",
    ),
    // Options of other backends.
    (
        "[mounts.a]\nurl = '/tmp'\noptions.region = 'x'",
        3,
        "`mounts.a.options.region`: is for S3, and the mount is a directory",
    ),
    (
        "[mounts.a]\nurl = 's3://b'\noptions.durability = 'fsync'",
        3,
        "is for a directory, and the mount is S3",
    ),
    ("[mounts.a]\nurl = 'gs://b'\noptions.account_key = 'canary-hunter2'", 3, "is for Azure"),
    ("[mounts.a]\nurl = 'https://h'\noptions.endpoint = 'https://e'", 3, "is for S3, GCS, Azure"),
    ("[mounts.a]\nurl = 'memory://'\noptions.tries = 1", 3, "is for S3, GCS, Azure, an HTTP server"),
    ("[mounts.a]\nurl = '/tmp/a.zip'\noptions.region = 'x'", 3, "is for S3"),
    // Found when the mounts are opened.
    ("[mounts.a]\nurl = 's3://b'\noptions.endpoint = 'http://127.0.0.1:1'", 2, "`mounts.a`"),
    ("[mounts.a]\nurl = 's3://b'\noptions.access_key_id = 'canary-hunter2'", 2, "`mounts.a`"),
    (
        "[mounts.a]\nurl = 's3://b'\n[mounts.a.options]\nanonymous = true\naccess_key_id = 'a'\nsecret_access_key = 'canary-hunter2'",
        2,
        "`mounts.a`",
    ),
    ("[mounts.a]\nurl = 'gs://b'\noptions.service_account_path = '/nowhere/key.json'", 2, "`mounts.a`"),
    ("[mounts.a]\nurl = 'gs://b'\noptions.service_account_key = 'canary-hunter2'", 2, "`mounts.a`"),
    (
        "[mounts.a]\nurl = 'az://c'\noptions.account = 'x'\noptions.account_key = 'canary-hunter2 %'",
        2,
        "`mounts.a`",
    ),
];

/// The output of a command for a file.
fn said_of(command: &str, file: &std::path::Path) -> std::process::Output {
    // If it is served after all, it must end.
    std::process::Command::new("timeout")
        .args(["20", env!("CARGO_BIN_EXE_zarrd"), command, "--config"])
        .arg(file)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap()
}

#[test]
fn serve_and_check_refuse_each_with_one_line_that_names_place_and_key() {
    assert!(FILES.len() >= 60);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    let mut wrong = Vec::new();
    for (content, line, key) in FILES {
        std::fs::write(&file, content).unwrap();
        let [output, checked] = ["serve", "check"].map(|command| said_of(command, &file));
        let (said, shown) = (text(&output.stderr), text(&output.stdout));
        let is_fine = output.status.code() == Some(78)
            && said.lines().count() == 1
            && said.starts_with(&format!("zarrd: {}:{line}: ", file.display()))
            && said.contains(key)
            && !said.contains("panicked")
            && !said.contains(CANARY)
            && shown.is_empty();
        let is_same = (checked.status.code(), &checked.stderr, &checked.stdout)
            == (output.status.code(), &output.stderr, &output.stdout);
        if !(is_fine && is_same) {
            let checked = text(&checked.stderr);
            wrong.push(format!(
                "{content:?} at {line}, {key}\n  {:?} {said}{shown}  check: {checked}",
                output.status
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_message_contains_terms_of_rust() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    for content in [
        "log = 1",
        "demo = 'yes'",
        "[http]\nheaders = 'x'",
        "[telemetry]\nsample = 'x'",
        "[limits]\nrank = -1",
    ] {
        std::fs::write(&file, content).unwrap();
        // The folder's name is made of any letters.
        let said = text(&said_of("check", &file).stderr).replace(file.to_str().unwrap(), "");
        for word in ["u8", "u16", "u32", "u64", "usize", "f64", "struct", "boolean", "Options"] {
            assert!(!said.contains(word), "{content:?}: {said}");
        }
        assert!(said.contains("expected"), "{said}");
    }
}

#[test]
fn a_bad_environment_variable_is_refused_by_name() {
    for (name, value, part) in [
        ("ZARRD__SERVER__ADMIN_LISTEN", "here", "`server.admin_listen`"),
        ("ZARRD__TELEMETRY__SAMPLE", "often", "`telemetry.sample`"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:canary-hunter2@collector", "`telemetry.otlp_endpoint`"),
        ("ZARRD__MOUNTS__A__OPTIONS__SAS_TOKE", CANARY, "sas_toke"),
        ("ZARRD__MOUNTS__A__OPTIONS__SAS_TOKEN", CANARY, "is for Azure"),
        ("ZARRD_SERVER_LISTEN", "127.0.0.1:1", "did you mean `ZARRD__SERVER__LISTEN`?"),
        ("ZARRD_PORT", CANARY, "there is no setting of this name"),
    ] {
        let output = zarrd(&["check", "a=memory://"]).env(name, value).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{name}: {said}");
        assert!(
            said.starts_with(&format!("zarrd: environment variable {name}: ")) && said.contains(part),
            "{said}"
        );
        assert!(!said.contains(CANARY) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn an_admin_address_in_use_is_exit_code_69() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = zarrd(&["serve", "--demo", "--listen", "127.0.0.1:0"])
        .env("ZARRD__SERVER__ADMIN_LISTEN", &address)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(&format!("cannot listen on {address}")));
}
