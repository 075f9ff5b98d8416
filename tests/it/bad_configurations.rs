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
    ("[server]\n\nfirst_byte_timeout = '0s'", 3, "`server.first_byte_timeout`"),
    ("[server]\nheader_timeout = 1e9", 2, "`server.header_timeout`"),
    ("[server]\nidle_timeout = '30'", 2, "`server.idle_timeout`: `30` has no unit; write `30s`"),
    (
        "[server]\nidle_timeout = 'soon'",
        2,
        "`server.idle_timeout`: expected a duration such as \"30s\" or \"250ms\", found text",
    ),
    ("[server]\nidle_timeout = 30", 2, "`server.idle_timeout`: expected a duration such as \"30s\""),
    ("[server]\nidle_timeout = '-1s'", 2, "`server.idle_timeout`"),
    ("[server]\nidle_timeout = '500ms'", 2, "`server.idle_timeout`: must be between 1s and 24h"),
    ("[server]\nwrite_stall_timeout = '0s'", 2, "`server.write_stall_timeout`"),
    ("[server]\ndrain_timeout = '90000s'", 2, "`server.drain_timeout`"),
    ("[server]\nidle_seconds = 30", 2, "unknown key `server.idle_seconds`"),
    ("[server]\nworkers = 1\nworkers = 2", 3, "duplicate key"),
    ("[server\nworkers = 1", 1, ""),
    ("[http]\nmax_url_size = 'long'", 2, "`http.max_url_size`"),
    ("[http]\nmax_list_keys = 1001", 2, "`max_list_keys`"),
    ("[http]\nresponse_timeout = '0s'", 2, "`response_timeout`"),
    ("[http]\npublic_metrics = 'no'", 2, "`http.public_metrics`"),
    ("[http]\npublic_metric = true", 2, "did you mean `public_metrics`?"),
    ("[http.cors]\nallow_credentials = true", 2, "`cors.allow_credentials`"),
    ("[http.cors]\nallowed_origins = ['*', 'https://a.example']", 2, "`cors.allowed_origins`"),
    ("[http.cors]\nallowed_origins = ['a.example']", 2, "is not an origin"),
    ("[http.cors]\nallowed_origins = 'https://a.example'", 2, "`http.cors.allowed_origins`"),
    ("[limits]\nmax_rank = 0", 2, "`limits.max_rank`"),
    ("[limits]\nmax_chunk_size = 0", 2, "`limits.max_chunk_size`"),
    ("[limits]\nmax_codec = 3", 2, "did you mean `max_codecs`?"),
    ("[limits]\nmax_shard_chunks = 99999999999999999999", 2, ""),
    ("[read]\nmax_chunks = -1", 2, "`read.max_chunks`"),
    ("[read]\nband = 1", 2, "`read.band`"),
    ("[fetch]\nmax_concurrency = '32'", 2, "`fetch.max_concurrency`"),
    ("[cache]\ndecoded_size = '1 gigabyte'", 2, "`cache.decoded_size`: expected a size such as"),
    ("[cache]\ndecoded_size = 'much'", 2, "`cache.decoded_size`"),
    ("[cache]\nvalues_size = 1", 2, "did you mean `value_size`?"),
    ("[cpu]\nthreads = 1.5", 2, "`cpu.threads`"),
    ("[log]\nlevel = 'loud'", 2, "`log.level`"),
    ("[log]\nformat = 'jsno'", 2, "did you mean `json`?"),
    ("[telemetry]\notlp_endpoint = 'collector:4318'", 2, "`telemetry.otlp_endpoint`"),
    ("[telemetry]\notlp_endpoint = 'http://u:canary-hunter2@collector'", 2, "`telemetry.otlp_endpoint`"),
    ("[telemetry]\notlp_endpoint = 'http://collector/?key=canary-hunter2'", 2, "`telemetry.otlp_endpoint`"),
    ("[telemetry]\nsample_ratio = 1.5", 2, "`telemetry.sample_ratio`"),
    ("[telemetry]\nmax_queued_spans = 0", 2, "`telemetry.max_queued_spans`"),
    ("[telemetry]\nendpoint = 'x'", 2, "`telemetry.endpoint`"),
    ("[mounts.a]\nurl = '/dev/null'", 2, "is neither a directory nor a zip file whose name ends in `.zip`"),
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
    (
        "[mounts.a]\nurl = 's3://b'\noptions.max_attempts = 'canary-hunter2'",
        3,
        "`mounts.a.options.max_attempts`",
    ),
    // Budgets.
    ("[server]\nmax_memory = 100000000", 2, "`server.max_memory`: the budgets add up to"),
    ("[server]\nmax_memory = '1GiB'\n[cache]\ndecoded_size = '2GiB'", 4, "and the process may use 1024 MiB"),
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
    ("[mounts.a]\nurl = 'memory://'\noptions.max_attempts = 1", 3, "is for S3, GCS, Azure, an HTTP server"),
    ("[mounts.a]\nurl = '/tmp/a.zip'\noptions.region = 'x'", 3, "is for S3"),
    // Found when the mounts are opened.
    ("[mounts.a]\nurl = 's3://b'\noptions.endpoint = 'http://127.0.0.1:1'", 2, "`mounts.a`"),
    ("[mounts.a]\nurl = 's3://b'\noptions.endpoint = 'https://u:canary-hunter2@e'", 2, "`mounts.a`"),
    ("[mounts.a]\nurl = 'gs://b'\noptions.endpoint = 'https://u:canary-hunter2@e'", 2, "`mounts.a`"),
    ("[mounts.a]\nurl = 's3://b'\noptions.access_key_id = 'canary-hunter2'", 2, "`mounts.a`"),
    ("[mounts.a]\nurl = 's3://b'\noptions.region = 'canary-hunter2 x'", 2, "`mounts.a`"),
    (
        "[mounts.a]\nurl = 's3://b'\n[mounts.a.options]\naccess_key_id = \"canary-hunter2\\n\"\nsecret_access_key = 'x'",
        2,
        "`mounts.a`",
    ),
    (
        "[mounts.a]\nurl = 's3://b'\n[mounts.a.options]\ncredentials = 'anonymous'\naccess_key_id = 'a'\nsecret_access_key = 'canary-hunter2'",
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
fn serve_and_check_refuse_a_bad_file_in_one_line_that_names_place_and_key() {
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

/// What is cached may be private, and the clients of such a mount would read it or write it.
#[test]
fn a_mount_of_the_directory_of_the_disk_cache_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["data", "data/inner", "other"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    std::os::unix::fs::symlink("data", folder.path().join("link")).unwrap();
    let file = folder.path().join("zarrd.toml");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let references =
        |prefix: &str| format!("url = 'kerchunk+s3://b/r.json'\n[mounts.a.virtual.'file://{}/']", at(prefix));
    for (cache, mount, is_refused) in [
        ("data/cache/new", format!("url = '{}'", at("data")), true),
        ("data/cache", format!("url = 'file://{}'\nwritable = true", at("link")), true),
        ("link/cache", format!("url = '{}'", at("data")), true),
        ("data", format!("url = '{}'", at("data")), true),
        ("data", format!("url = '{}'", at("data/inner")), true),
        ("link", format!("url = '{}'", at("data/inner")), true),
        ("data/inner", format!("url = 'file://{}'", at("data/%69nner")), true),
        ("data/cache", format!("url = 'icechunk+file://{}'", at("data")), true),
        ("data/cache", format!("url = 'kerchunk+file://{}'", at("data/cache/refs.json")), true),
        ("data/cache", format!("url = 'file://{}'", at("%6fther")), false),
        ("data/cache", references("data"), true),
        ("data/cache", references("other"), false),
        ("data/cache", format!("url = '{}'", at("other")), false),
        ("data/cache", format!("url = '{}'", at("data/inner")), false),
        // The beginning of its name alone.
        ("data-cache", format!("url = '{}'", at("data")), false),
    ] {
        let config = format!("[cache.disk]\npath = '{}'\n[mounts.a]\n{mount}\n", at(cache));
        std::fs::write(&file, &config).unwrap();
        if !is_refused {
            let checked = said_of("check", &file);
            assert!(checked.status.success(), "{config}{}", text(&checked.stderr));
            continue;
        }
        for command in ["serve", "check"] {
            let output = said_of(command, &file);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(78), "{command} {config}{said}");
            for part in ["`mounts.a.url`", "`cache.disk.path`", &at(cache)] {
                assert!(said.contains(part), "{command} {config}{said}");
            }
            assert_eq!(said.lines().count(), 1, "{said}");
        }
        assert!(!folder.path().join("data/cache").exists(), "nothing was created");
    }
}

#[test]
fn no_message_contains_terms_of_rust() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    for content in [
        "log = 1",
        "demo = 'yes'",
        "[http]\nmax_headers = 'x'",
        "[telemetry]\nsample_ratio = 'x'",
        "[server]\nidle_timeout = 'x'",
        "[cache]\nnode_size = 'x'",
        "[limits]\nmax_rank = -1",
    ] {
        std::fs::write(&file, content).unwrap();
        // The name of the folder is random.
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
        ("ZARRD__TELEMETRY__SAMPLE_RATIO", "often", "`telemetry.sample_ratio`"),
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
