//! The configuration as users meet it: layers, messages, masking.

mod bad_files;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use self::bad_files::BAD_FILES;
use super::{AvailableMemory, Cli, Command, Config, DEFAULTS, ServeArgs, Sources};

fn sources(file: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Sources {
    let words = ["zarrd", "serve"].iter().chain(arguments);
    let flags = match Cli::try_parse_from(words).unwrap().into_command() {
        Command::Serve(flags) => flags,
        other => panic!("{other:?}"),
    };
    Sources {
        files: vec![(PathBuf::from("zarrd.toml"), file.to_owned())],
        variables: variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect(),
        flags,
        memory: AvailableMemory::default(),
    }
}

fn resolve(file: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Config {
    sources(file, variables, arguments).resolve().unwrap()
}

fn error_of(file: &str, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    sources(file, variables, arguments).resolve().map(|config| config.to_toml()).unwrap_err().to_string()
}

#[test]
fn the_default_file_has_every_key_with_its_default() {
    let mut documented: toml::Table = DEFAULTS.parse().unwrap();
    let mut built_in: toml::Table = Config::default().to_toml().parse().unwrap();
    built_in.remove("mounts");
    // Automatic values are numbers once the configuration is resolved.
    let budgets = Config::default().budgets().map(|(key, _)| key);
    for key in budgets.iter().map(String::as_str).chain(["server.max_memory"]) {
        let (section, key) = key.split_once('.').unwrap();
        let value = &mut documented[section][key];
        assert_eq!(value.as_str(), Some("auto"), "{section}.{key}");
        *value = built_in[section][key].clone();
    }
    assert_eq!(documented, built_in);
}

#[test]
fn each_layer_overrides_the_ones_before() {
    let file = "[server]\nlisten = '127.0.0.1:1'\nidle_timeout = '10s'\ndrain_timeout = '3s'\n";
    let variables = [("ZARRD__SERVER__LISTEN", "127.0.0.1:2"), ("ZARRD__SERVER__IDLE_TIMEOUT", "20s")];
    let config = resolve(file, &variables, &["--listen", "127.0.0.1:3"]);
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.server.idle_timeout, Duration::from_secs(20));
    assert_eq!(config.server.drain_timeout, Duration::from_secs(3));
    assert_eq!(config.server.header_timeout, Duration::from_secs(10));
}

#[test]
fn a_variable_is_parsed_as_the_type_of_its_key() {
    let variables = [
        ("ZARRD__MOUNTS__DATA__URL", "s3://bucket"),
        ("ZARRD__MOUNTS__DATA__WRITABLE", "true"),
        ("ZARRD__MOUNTS__DATA__OPTIONS__ACCESS_KEY_ID", "0123456789"),
        ("ZARRD__MOUNTS__DATA__OPTIONS__SECRET_ACCESS_KEY", "00e7"),
        ("ZARRD__MOUNTS__DATA__OPTIONS__REGION", "\"eu-1\""),
        ("ZARRD__LOG__FORMAT", "json"),
        ("ZARRD_SERVICE_HOST", "10.0.0.1"),
        ("HOME", "/root"),
    ];
    let config = resolve("", &variables, &[]);
    let mount = &config.mounts["data"];
    assert_eq!(mount.url, "s3://bucket");
    assert!(mount.writable);
    let shown = config.to_toml();
    assert!(
        shown.contains("access_key_id = \"0123456789\"") || shown.contains("access_key_id = \"***\""),
        "{shown}"
    );
    assert!(shown.contains("region = \"eu-1\""), "{shown}");
    assert_eq!(config.log.format, super::LogFormat::Json);
}

#[test]
fn a_file_and_the_environment_configure_one_mount_together() {
    let file = "[mounts.data]\nurl = 's3://bucket'\n";
    let variables = [("ZARRD__MOUNTS__DATA__OPTIONS__SECRET_ACCESS_KEY", "hush")];
    let config = resolve(file, &variables, &[]);
    assert_eq!(config.mounts["data"].url, "s3://bucket");
    assert!(config.to_toml().contains("secret_access_key = \"***"), "{}", config.to_toml());
}

#[test]
fn a_mount_given_as_an_argument_takes_its_options_from_the_environment() {
    let variables = [("ZARRD__MOUNTS__DATA__OPTIONS__REGION", "eu-west-1")];
    let config = resolve("", &variables, &["data=s3://bucket/x"]);
    assert_eq!(config.mounts["data"].url, "s3://bucket/x");
    assert_eq!(config.mounts["data"].options.s3.region.as_deref(), Some("eu-west-1"));
    let twice = error_of("[mounts.data]\nurl = 'memory://'\n", &[], &["data=s3://bucket/x"]);
    assert!(twice.contains("a mount named `data` already"), "{twice}");
}

#[test]
fn secrets_are_masked_wherever_a_configuration_is_shown() {
    let file = "[mounts.data]\nurl = 's3://b'\noptions.secret_access_key = 'canary'\n";
    let config = resolve(file, &[], &[]);
    assert!(!config.to_toml().contains("canary"));
    assert!(!format!("{config:?}").contains("canary"));
}

#[test]
fn the_output_of_check_is_a_valid_configuration() {
    let config = resolve("[mounts.a]\nurl = 'memory://'\nwritable = true\n", &[], &["--listen", "[::1]:9"]);
    let shown = config.to_toml();
    assert_eq!(resolve(&shown, &[], &[]).to_toml(), shown);
}

#[test]
fn arguments_add_mounts_to_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let argument = format!("maps={path}");
    let config =
        resolve("[mounts.a]\nurl = 'memory://'\n", &[], &[&argument, "s3://bucket/x.zarr", "--writable"]);
    let names: Vec<&str> = config.mounts.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "maps", "x.zarr"]);
    assert!(!config.mounts["a"].writable, "the flag is for the mounts beside it");
    assert!(config.mounts["maps"].writable && config.mounts["x.zarr"].writable);
    assert_eq!(config.mounts["maps"].url, path);
}

#[test]
fn zarrd_alone_serves_the_demo() {
    let command = Cli::try_parse_from(["zarrd"]).unwrap().into_command();
    assert!(matches!(command, Command::Serve(ServeArgs { demo: true, .. })));
    assert!(resolve("", &[], &["--demo"]).demo);
}

#[test]
fn the_command_serve_may_be_omitted_before_what_is_served() {
    let arguments = ["/srv/zarr", "b=memory://", "--writable", "-p", "9000"];
    let words = |first: &[&'static str]| [first, &arguments[..]].concat();
    let [short, long] =
        [words(&["zarrd"]), words(&["zarrd", "serve"])].map(|words| {
            match Cli::try_parse_from(words).unwrap().into_command() {
                Command::Serve(flags) => flags,
                other => panic!("{other:?}"),
            }
        });
    assert_eq!(short, long);
    assert!(!short.demo && short.mounts.len() == 2);
}

#[test]
fn an_address_to_listen_on_may_be_a_port_alone_or_localhost() {
    let listen = |file: &str, arguments: &[&str]| resolve(file, &[], arguments).server.listen.to_string();
    assert_eq!(listen("", &["--port", "9000"]), "127.0.0.1:9000");
    assert_eq!(listen("[server]\nlisten = '0.0.0.0:1'", &["-p", "9000"]), "0.0.0.0:9000");
    assert_eq!(listen("", &["--listen", "localhost:8000"]), "127.0.0.1:8000");
    assert_eq!(listen("[server]\nlisten = 'LocalHost:1'", &[]), "127.0.0.1:1");
    assert!(Cli::try_parse_from(["zarrd", "--port", "1", "--listen", "[::1]:2"]).is_err());
}

#[test]
fn a_log_can_be_made_quieter_and_louder() {
    let level = |arguments: &[&str]| resolve("", &[], arguments).log.level;
    assert_eq!(level(&[]), "info");
    assert_eq!(level(&["-q"]), "warn");
    assert_eq!(level(&["-qq"]), "error");
    assert_eq!(level(&["--verbose"]), "info,zarrd=debug");
}

#[test]
fn sizes_and_durations_have_units_in_every_layer() {
    let file = "[cache]\ndecoded_size = '1GiB'\n[server]\nidle_timeout = '2m'\n[http]\nadmission_timeout = '250ms'\nmax_url_size = 1_000\n\
        [mounts.a]\nurl = 's3://b'\noptions.max_buffered_upload_size = '1 MiB'\n";
    let config = resolve(file, &[("ZARRD__CACHE__INDEX_SIZE", "5MB")], &[]);
    assert_eq!((config.cache.decoded_size, config.cache.index_size), (1 << 30, 5_000_000));
    assert_eq!(config.server.idle_timeout, Duration::from_mins(2));
    assert_eq!((config.http.admission_timeout, config.http.max_url_size), (Duration::from_millis(250), 1000));
    assert_eq!(resolve("", &[("ZARRD__CACHE__NODE_SIZE", "123456")], &[]).cache.node_size, 123_456);
    assert_eq!(config.mounts["a"].options.remote.max_buffered_upload_size, 1 << 20);
}

#[test]
fn the_users_file_overrides_that_of_the_image() {
    let mut sources = sources("[server]\nidle_timeout = '7s'\n", &[], &[]);
    let base = "[server]\nlisten = '0.0.0.0:8000'\nidle_timeout = '5s'\n";
    sources.files.insert(0, (PathBuf::from("container.toml"), base.to_owned()));
    let config = sources.resolve().unwrap();
    assert_eq!((config.server.listen.port(), config.server.idle_timeout), (8000, Duration::from_secs(7)));
    assert!(config.server.listen.ip().is_unspecified());
}

#[test]
fn automatic_budgets_are_derived_from_the_available_memory() {
    let with = |file: &str, memory: AvailableMemory| {
        let mut sources = sources(file, &[], &[]);
        sources.memory = memory;
        sources.resolve()
    };
    let limit = |limit: u64| AvailableMemory { limit: Some(limit), machine: None };
    let small = with("", limit(512 << 20)).unwrap();
    let large = with("", limit(64 << 30)).unwrap();
    assert!(small.cache.decoded_size < large.cache.decoded_size);
    // A configured limit overrides that of the machine.
    let configured = with("[server]\nmax_memory = '512MiB'\n", limit(64 << 30)).unwrap();
    assert_eq!(configured.budgets(), small.budgets());
    // The server warns of more memory than there is.
    let machine = AvailableMemory { limit: None, machine: Some(16 << 30) };
    let warning = |file: &str| with(file, machine).unwrap().memory_warning();
    for fits in ["", "[server]\nmax_memory = '16GiB'\n", "[cache]\ndecoded_size = '10GiB'\n"] {
        assert_eq!(warning(fits), None, "{fits}");
    }
    for (exceeds, says) in [
        (
            "[server]\nmax_memory = '17GiB'\n",
            "`server.max_memory` is 17408 MiB, more than there is (16384 MiB): lower it",
        ),
        ("[server]\nmax_memory = '64GiB'\n", "the budgets of memory add up to "),
        ("[cache]\ndecoded_size = '100GiB'\n", "the budgets of memory add up to "),
    ] {
        assert!(warning(exceeds).unwrap().starts_with(says), "{exceeds}: {:?}", warning(exceeds));
    }
    let unknown = with("", AvailableMemory::default()).unwrap();
    assert_eq!(unknown.budgets(), Config::default().budgets());
    let rejected = with("[cache]\ndecoded_size = '1GiB'\n", limit(512 << 20)).unwrap_err().to_string();
    assert!(rejected.starts_with("zarrd.toml:2: `cache.decoded_size`: the budgets add up to "), "{rejected}");
}

#[test]
fn a_missing_file_is_named() {
    let flags = ServeArgs { config: Some(PathBuf::from("/nowhere/zarrd.toml")), ..ServeArgs::default() };
    let message = Sources::gather(flags).unwrap_err().to_string();
    assert!(message.starts_with("/nowhere/zarrd.toml: "), "{message}");
}

#[test]
fn invalid_files_are_rejected_with_line_and_key() {
    for (file, parts) in BAD_FILES {
        let message = error_of(file, &[], &[]);
        for part in *parts {
            assert!(message.contains(part), "{file:?}\n  said {message:?}\n  without {part:?}");
        }
        assert!(message.starts_with("zarrd.toml:"), "{message}");
        assert!(!message.contains("canary"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn invalid_variables_are_rejected_by_name() {
    for (name, value, parts) in [
        ("ZARRD__SERVR__LISTEN", "x", ["`servr`", "did you mean `server`?"]),
        ("ZARRD__SERVER__LISTNE", "x", ["`server.listne`", "did you mean `listen`?"]),
        ("ZARRD__SERVER__LISTEN", "8000", ["`server.listen`", "expected ADDRESS:PORT"]),
        ("ZARRD__SERVER__IDLE_TIMEOUT", "soon", ["`server.idle_timeout`", "found text"]),
        ("ZARRD__SERVER__IDLE_TIMEOUT", "0s", ["`server.idle_timeout`", "between"]),
        ("ZARRD__SERVER__DRAIN_TIMEOUT", "1", ["`server.drain_timeout`", "`1` has no unit; write `1s`"]),
        (
            "ZARRD__MOUNTS__A__OPTIONS__REGION",
            "canary",
            [
                "`mounts.a`: the key `url` is missing",
                "set only by the variable ZARRD__MOUNTS__A__OPTIONS__REGION: unset it, or give a mount `a`",
            ],
        ),
        (
            "ZARRD__HTTP__HOSTS",
            "a.example",
            ["`http.hosts`: expected a list, found text", "write `[\"…\"]`, also for one entry"],
        ),
        (
            "ZARRD__SERVER__MAX_MEMORY",
            "512m",
            ["`server.max_memory`", "`512m` has no known unit; write `512MiB`"],
        ),
        ("ZARRD__SERVER", "x", ["`server`", "found text"]),
        ("ZARRD__", "x", ["ZARRD__SECTION__KEY", "named"]),
        ("ZARRD__MOUNTS__A__OPTIONS__SECRET_ACCESS_KEYS", "canary", ["secret_access_keys", "`mounts.a"]),
        ("ZARRD__DEMO", "perhaps", ["`demo`", "found text"]),
    ] {
        let message = error_of("", &[(name, value)], &[]);
        assert!(message.starts_with(&format!("environment variable {name}")), "{message}");
        for part in parts {
            assert!(message.contains(part), "{name}={value}\n  said {message:?}\n  without {part:?}");
        }
        assert!(!message.contains("canary"), "{message}");
    }
}

#[test]
fn invalid_arguments_are_rejected_with_their_flag() {
    for (arguments, parts) in [
        (&["--listen", "nonsense"][..], ["--listen", "expected ADDRESS:PORT"]),
        (&["--listen", "host.example:7"][..], ["--listen", "no other name is resolved"]),
        (&["--listen", "::1:7"][..], ["--listen", "an IPv6 address stands in brackets"]),
        (&["healh"][..], ["[NAME=]URL", "; did you mean `zarrd health`?"]),
        (
            &["a b=data"][..],
            ["[NAME=]URL", "; `a b` cannot be the name of a mount: a mount's name has 1 to 64"],
        ),
        (&["a b=s3://bucket"][..], ["[NAME=]URL", "; `a b` cannot be the name of a mount"]),
        (&["/nowhere/at/all"][..], ["[NAME=]URL", "/nowhere/at/all"]),
        (&["memory://", "memory://"][..], ["[NAME=]URL", "a mount named `memory` already"]),
        (&["a=memory://", "a=s3://x"][..], ["[NAME=]URL", "a mount named `a` already"]),
        (&["--writable"][..], ["--writable", "on the command line"]),
        (&["--demo", "demo=memory://"][..], ["[NAME=]URL", "a mount named `demo` already"]),
        (&["gopher://x"][..], ["[NAME=]URL", "scheme"]),
        (&["s3:/bucket/x"][..], ["[NAME=]URL", "two slashes after its scheme: `s3://bucket/x`"]),
        (&["a=GS:bucket"][..], ["[NAME=]URL", "two slashes after its scheme: `GS://bucket`"]),
        (&["https:/user:canary@host/x"][..], ["[NAME=]URL", "two slashes after its scheme: `https://…`"]),
        (
            &["file:/nowhere/at/all"][..],
            ["[NAME=]URL", "two slashes after its scheme: `file:///nowhere/at/all`"],
        ),
    ] {
        let message = error_of("", &[], arguments);
        for part in parts {
            assert!(message.contains(part), "{arguments:?} said {message:?} without {part:?}");
        }
    }
}

#[test]
fn a_mount_can_set_the_separator_of_chunk_keys() {
    let with = |value: &str| format!("[mounts.a]\nurl = 'memory://'\ndimension_separator = '{value}'\n");
    let of = |file: &str| resolve(file, &[], &[]).mounts["a"].dimension_separator;
    assert_eq!(of(&with("/")), Some(crate::metadata::Separator::Slash));
    assert_eq!(of(&with(".")), Some(crate::metadata::Separator::Dot));
    assert_eq!(of("[mounts.a]\nurl = 'memory://'\n"), None);
    assert!(error_of(&with("-"), &[], &[]).contains("mounts.a.dimension_separator"));
    let shown = resolve(&with("/"), &[], &[]).to_toml();
    assert_eq!(of(&shown), Some(crate::metadata::Separator::Slash));
}

#[test]
fn a_mount_can_set_its_freshness() {
    use crate::store::{CachePolicy, Freshness};
    let with = |value: &str| format!("[mounts.a]\nurl = 'memory://'\nfreshness = '{value}'\n");
    let of = |file: &str| resolve(file, &[], &[]).mounts["a"].freshness;
    assert_eq!(of("[mounts.a]\nurl = 'memory://'\n"), Freshness::default());
    for text in ["always", "immutable", "ttl:60s", "ttl:60s, stale:1h", "always,stale:5m"] {
        let freshness: Freshness = text.parse().unwrap();
        assert_eq!(of(&with(text)), freshness);
        assert_eq!(of(&resolve(&with(text), &[], &[]).to_toml()), freshness);
    }
    let uncached = Freshness { policy: CachePolicy::Uncached, stale: None };
    assert_eq!(of("[mounts.a]\nurl = '/'\nfreshness = 'uncached'\n"), uncached);
    for (value, reason) in [
        ("ttl:60", "`60s`"),
        ("uncached", "this machine"),
        ("ttl:60s, stale", "`stale:`"),
        ("immutable, stale:1h", "for `always` and `ttl`"),
        ("ttl:60s, stale:1h'\nwritable = true #", "read-only"),
    ] {
        let message = error_of(&with(value), &[], &[]);
        assert!(message.contains("mounts.a.freshness") && message.contains(reason), "{message}");
    }
}

#[test]
fn a_mount_can_be_the_root_of_addresses_and_hosts_of_its_own() {
    let file = "[mounts.a]\nurl = 'memory://'\nlisten = '127.0.0.1:0'\nhosts = ['a.example', '[::1]']\n\
        [mounts.b]\nurl = 'memory://'\nlisten = '127.0.0.1:0'\n[mounts.c]\nurl = 'memory://'\n";
    let roots = |config: &Config| -> Vec<_> {
        config.mounts.values().map(|mount| (mount.listen.map(|at| at.port()), mount.hosts.clone())).collect()
    };
    let config = resolve(file, &[], &[]);
    let hosts = vec!["a.example".to_owned(), "[::1]".to_owned()];
    assert_eq!(roots(&config), [(Some(0), hosts), (Some(0), vec![]), (None, vec![])]);
    assert_eq!(roots(&resolve(&config.to_toml(), &[], &[])), roots(&config));
    let variables = [("ZARRD__MOUNTS__C__LISTEN", "[::1]:1"), ("ZARRD__MOUNTS__C__HOSTS", "['c.example']")];
    let config = resolve(file, &variables, &[]);
    assert_eq!(roots(&config)[2], (Some(1), vec!["c.example".to_owned()]));
}

#[test]
fn limits_of_documents_and_chunks_come_from_the_file() {
    let file = "[limits]\nmax_document_size = 1001\nmax_document_depth = 12\nmax_rank = 3\nmax_codecs = 4\nmax_consolidated_size = 1005\n\
        max_consolidated_nodes = 6\nmax_chunk_size = 1007\nmax_shard_chunks = 8\nmax_sharding_depth = 9\n";
    let limits = resolve(file, &[], &[]).limits;
    let metadata = limits.metadata();
    assert_eq!((metadata.document_bytes, metadata.depth, metadata.rank, metadata.codecs), (1001, 12, 3, 4));
    assert_eq!((metadata.consolidated_bytes, metadata.consolidated_nodes), (1005, 6));
    let codec = limits.codec();
    assert_eq!((codec.chunk_bytes, codec.shard_chunks, codec.sharding_depth, codec.codecs), (1007, 8, 9, 4));
}

#[test]
fn grants_are_shown_and_secrets_are_not() {
    let grants = "grants = [{ mount = 'a', prefix = 'x/y', scopes = ['read', 'list'] }]";
    let digest = "0f".repeat(32);
    let file = format!(
        "[access]\nquery_tokens = true\n[access.tokens.t]\nsha256 = '{digest}'\nexpires = 2030-01-31T00:00:00Z\n{grants}\n\
         [access.signing_keys.k]\nsecret = '{digest}'\n{grants}\n\
         [access.s3_keys.s]\naccess_key_id = 'KEY'\nsecret_access_key = '{digest}'\n{grants}\n\
         [mounts.a]\nurl = 'memory://'\nanonymous = ['read']\n"
    );
    let config = resolve(&file, &[], &[]);
    assert_eq!(config.access.tokens["t"].expires.as_ref().unwrap().seconds(), 1_896_048_000);
    assert_eq!(config.anonymous()["a"], [crate::auth::Scope::Read]);
    let shown = config.to_toml();
    assert!(shown.contains("expires = \"2030-01-31T00:00:00Z\"") && shown.contains("x/y"), "{shown}");
    assert!(!shown.contains(&digest) && !format!("{config:?}").contains(&digest), "{shown}");
}

#[test]
fn cache_control_is_one_text_or_a_table() {
    let of = |value: &str| {
        let file = format!("[mounts.a]\nurl = 'memory://'\nconsolidated = true\ncache_control = {value}\n");
        let config = resolve(&file, &[], &[]);
        let shown: toml::Table = config.to_toml().parse().unwrap();
        let again = resolve(&config.to_toml(), &[], &[]);
        let read = config.mounts["a"].cache_control.clone();
        assert_eq!(again.mounts["a"].cache_control, read, "what is shown can be read");
        (read, shown["mounts"]["a"]["cache_control"].clone())
    };
    let (one, shown) = of("'max-age=60'");
    assert_eq!((&*one.metadata, &*one.chunks, &*one.decoded), ("max-age=60", "max-age=60", "no-cache"));
    assert_eq!(shown.as_str(), Some("max-age=60"));
    let (table, shown) = of("{ chunks = 'public, max-age=60', decoded = 'private' }");
    assert_eq!(
        (&*table.metadata, &*table.chunks, &*table.decoded),
        ("no-cache", "public, max-age=60", "private")
    );
    assert_eq!(shown["chunks"].as_str(), Some("public, max-age=60"));
    let variables = [
        ("ZARRD__MOUNTS__A__URL", "memory://"),
        ("ZARRD__MOUNTS__A__CACHE_CONTROL", "public, max-age=60"),
        ("ZARRD__MOUNTS__B__URL", "memory://"),
        ("ZARRD__MOUNTS__B__CACHE_CONTROL__METADATA", "no-store"),
    ];
    let config = resolve("", &variables, &[]);
    assert_eq!(config.mounts["a"].cache_control.chunks, "public, max-age=60");
    assert_eq!(config.mounts["b"].cache_control.metadata, "no-store");
    let wrong = error_of("[mounts.a]\nurl = 'memory://'\ncache_control = { chunk = 'x' }\n", &[], &[]);
    assert!(wrong.contains("`mounts.a.cache_control.chunk`") && wrong.contains("chunks"), "{wrong}");
    let wrong = error_of("[mounts.a]\nurl = 'memory://'\ncache_control = 5\n", &[], &[]);
    assert!(wrong.contains("`mounts.a.cache_control`") && wrong.contains("or a table"), "{wrong}");
}

#[test]
fn proxies_are_addresses_or_networks() {
    let file = "[server]\nbehind_proxy = true\ntrusted_proxies = ['127.0.0.1', '10.0.0.0/8', 'fd00::/8']\n";
    let config = resolve(file, &[], &[]);
    assert_eq!(config.server.trusted_proxies.len(), 3);
    assert!(config.to_toml().contains("trusted_proxies = [\"127.0.0.1/32\", \"10.0.0.0/8\", \"fd00::/8\"]"));
    let variables = [("ZARRD__SERVER__TRUSTED_PROXIES", "[\"10.0.0.0/8\"]")];
    assert_eq!(resolve("", &variables, &[]).server.trusted_proxies.len(), 1);
    for bad in ["proxy.example", "10.0.0.1/8", "10.0.0.0/99", ""] {
        let file = format!("[server]\ntrusted_proxies = [\n  '127.0.0.1',\n  '{bad}',\n]\n");
        let said = error_of(&file, &[], &[]);
        assert!(said.starts_with("zarrd.toml:4: `server.trusted_proxies`: "), "{bad}: {said}");
    }
}

#[test]
fn addresses_that_others_can_read_are_detected() {
    let is_readable = |file: &str, listen: &str| {
        resolve(file, &[], &[]).server.is_readable_by_others(listen.parse().unwrap())
    };
    assert!(is_readable("", "0.0.0.0:80") && is_readable("", "192.0.2.1:80") && is_readable("", "[::]:80"));
    for listen in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
        assert!(!is_readable("", listen), "{listen}");
    }
    assert!(!is_readable("[server]\nbehind_proxy = true\n", "0.0.0.0:80"));
}

#[test]
fn settings_that_differ_are_named() {
    let mount = "[mounts.a]\nurl = 's3://b'\noptions.secret_access_key = 'one'\n";
    let one = resolve(mount, &[], &[]);
    assert_eq!(one.differences(&one.clone()), Vec::<String>::new());
    for (file, named) in [
        (format!("[server]\nidle_timeout = '3s'\n{mount}"), vec!["server.idle_timeout"]),
        (
            format!("demo = true\n[http.cors]\nallow_writes = true\n{mount}"),
            vec!["demo", "http.cors.allow_writes"],
        ),
        (mount.replace("one", "two"), vec!["mounts.a.options"]),
        (mount.replace("s3://b", "s3://c"), vec!["mounts.a.url"]),
        (mount.replace("mounts.a", "mounts.b"), vec!["mounts.a", "mounts.b"]),
    ] {
        let two = resolve(&file, &[], &[]);
        assert_eq!(one.differences(&two), named, "{file}");
        let mut back = two.differences(&one);
        back.sort();
        assert_eq!(back, named, "{file}");
    }
}
