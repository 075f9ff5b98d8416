//! The binary as a user runs it: what it prints, and its exit codes.

use std::fmt::Write as _;
use std::io::Read;
use std::process::Command;

use rustix::process::Signal;

use crate::support::process::{Running, run, serving, text, zarrd};
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};

#[test]
fn check_prints_the_effective_configuration_without_secrets() {
    let check = |url: Option<&str>| {
        let mut command = zarrd(&["check", "maps=s3://bucket/maps", "--listen", "0.0.0.0:9000"]);
        command.env("ZARRD__MOUNTS__MAPS__OPTIONS__ACCESS_KEY_ID", "id");
        command.env("ZARRD__MOUNTS__MAPS__OPTIONS__SECRET_ACCESS_KEY", "canary");
        url.map(|url| command.env("ZARRD__MOUNTS__MAPS__URL", url));
        command.output().unwrap()
    };
    let twice = check(Some("memory://")).status.code();
    assert_eq!(twice, Some(78), "an argument must not redefine a mount of the environment");
    let output = check(None);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(shown.contains("listen = \"0.0.0.0:9000\""), "{shown}");
    assert!(shown.contains("url = \"s3://bucket/maps\""), "{shown}");
    assert!(!shown.contains("canary") && shown.contains("***"), "{shown}");
}

#[test]
fn a_proxy_whose_clients_are_indistinguishable_is_warned_of_in_one_line() {
    for (proxies, lines) in [(None, 1), (Some("10.0.0.0/8"), 0)] {
        let behind_proxy = |mut command: Command| {
            command.env("ZARRD__SERVER__BEHIND_PROXY", "true");
            proxies.map(|proxies| command.env("ZARRD__SERVER__TRUSTED_PROXIES", format!("['{proxies}']")));
            command
        };
        let output = behind_proxy(zarrd(&["check"])).output().unwrap();
        let mut running = Running::of(behind_proxy(serving()));
        running.signal(Signal::TERM);
        running.child.wait().unwrap();
        let mut log = String::new();
        running.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert_eq!(output.status.code(), Some(0));
        for log in [text(&output.stderr), log] {
            let warnings: Vec<&str> =
                log.lines().filter(|line| line.contains("`server.trusted_proxies`")).collect();
            assert_eq!(warnings.len(), lines, "{proxies:?}: {warnings:?}");
        }
    }
}

#[test]
fn a_bad_configuration_is_one_line_and_exit_code_78() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    std::fs::write(&file, "[server]\n\nlistne = 'x'\n").unwrap();
    let file = file.to_str().unwrap();
    for command in ["check", "serve"] {
        let output = run(&[command, "--config", file]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(
            message.contains(&format!("{file}:3: unknown key `server.listne`; did you mean `listen`?")),
            "{message}"
        );
        assert!(output.stdout.is_empty());
    }
    let output = zarrd(&["check"]).env("ZARRD_CONFIG", file).output().unwrap();
    assert_eq!(output.status.code(), Some(78), "the file is found through the environment too");
}

#[test]
fn the_examples_and_the_defaults_are_valid_configurations() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let examples = std::fs::read_dir(root.join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = examples.collect();
    assert!(files.len() >= 6, "{files:?}");
    files.extend([root.join("default.toml"), root.join("container.toml")]);
    for file in files {
        // The example's directory is not on this machine.
        let pem = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls/one");
        let text_of = std::fs::read_to_string(&file).unwrap().replace("/srv/zarr", "/tmp");
        let text_of = text_of.replace("/run/secrets/tls.crt", &format!("{}.pem", pem.display()));
        let text_of = text_of.replace("/run/secrets/tls.key", &format!("{}.key", pem.display()));
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("zarrd.toml");
        std::fs::write(&copy, text_of).unwrap();
        let output = run(&["check", "--config", copy.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}: {}", file.display(), text(&output.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_does_not_take_a_bucket_that_cannot_be_listed_for_one_whose_files_cannot_be_read() {
    let s3 = TestS3::start().await;
    let (kinds, when, fault) = (vec![Kind::Head, Kind::Get], When::Always, Fault::Status(403));
    s3.inject(vec![Rule { kinds, key: "zarr.json", when, fault }], 1);
    let folder = tempfile::tempdir().unwrap();
    let (document, file) = (folder.path().join("references.json"), folder.path().join("zarrd.toml"));
    std::fs::write(&document, r#"{"zarr.json": "{}"}"#).unwrap();
    let text_of = format!(
        "[mounts.c]\nurl = 'kerchunk+file://{}'\n[mounts.c.virtual.'{}']\n[mounts.c.virtual.'{}'.options]\nendpoint = '{}'\nallow_http = true\n",
        document.display(),
        TestS3::s3_url(),
        TestS3::s3_url(),
        s3.endpoint()
    );
    std::fs::write(&file, text_of).unwrap();
    let output = run(&["check", "--config", file.to_str().unwrap(), "--connect"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("files that references lead to may be readable all the same"), "{said}");
}

#[test]
fn check_contacts_the_backends_on_request_and_names_unreachable_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    let bucket = "[mounts.b]\nurl = 's3://bucket'\n[mounts.b.options]\nendpoint = 'http://127.0.0.1:1'\nallow_http = true\n\
        retry_timeout = '0s'\n";
    std::fs::write(&file, format!("[mounts.a]\nurl = '{}'\n{bucket}", folder.path().display())).unwrap();
    let file = file.to_str().unwrap();
    let output = run(&["check", "--config", file]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let output = run(&["check", "--config", file, "--connect"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let refused = "zarrd: the mount `b` does not answer: it cannot be reached: connection refused";
    assert_eq!(said.lines().collect::<Vec<_>>(), ["zarrd: the mount `a` answers", refused]);
    // Where references may lead as well.
    let document = folder.path().join("references.json");
    std::fs::write(&document, "{}").unwrap();
    let prefix = bucket
        .replace("[mounts.b]\nurl = 's3://bucket'\n", "")
        .replace("mounts.b", "mounts.c.virtual.'s3://bucket/'");
    std::fs::write(file, format!("[mounts.c]\nurl = 'kerchunk+file://{}'\n{prefix}", document.display()))
        .unwrap();
    let output = run(&["check", "--config", file, "--connect"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lines = [
        "zarrd: the mount `c` answers",
        "zarrd: the mount `c`: nothing is stored there",
        "zarrd: the mount `c`: `s3://bucket/`, where its references may lead, does not answer: it cannot be reached: \
         connection refused",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), lines);
    assert_eq!(run(&["check", "memory://", "--connect"]).status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_which_writers_each_mount_promises_and_whether_its_backend_checks_conditions() {
    let (heeding, ignoring) = (TestS3::start().await, TestS3::start().await);
    ignoring.ignore_conditions();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    let mut config = format!(
        "[mounts.files]\nurl = '{}'\nwritable = true\n[mounts.kept]\nurl = 'memory://'\nwritable = true\n",
        folder.path().display()
    );
    let read_only = TestS3::start().await;
    for (name, s3, more) in [
        ("heeds", &heeding, "writable = true"),
        ("ignores", &ignoring, "writable = true"),
        ("alone", &ignoring, "writable = true\nwriters = 'one'"),
        ("reads", &read_only, ""),
    ] {
        let url = TestS3::s3_url();
        let endpoint = s3.endpoint();
        write!(
            config,
            "[mounts.{name}]\nurl = '{url}'\n{more}\n[mounts.{name}.options]\nendpoint = '{endpoint}'\nallow_http = true\n"
        )
        .unwrap();
    }
    std::fs::write(&file, config).unwrap();
    let checked = |arguments: &[&str]| {
        let mut command = zarrd(&["check", "--config", file.to_str().unwrap()]);
        command.args(arguments);
        let output = command.output().unwrap();
        let said: Vec<String> = text(&output.stderr).lines().map(str::to_owned).collect();
        (output.status.code(), said)
    };
    let line = |name: &str, rest: &str| format!("zarrd: the mount `{name}` is writable: {rest}");
    let promised = [
        line(
            "alone",
            "this server alone writes there (`writers = \"one\"`) and checks conditions itself; another writer's values could be lost",
        ),
        line("files", "no other server can write to its directory"),
        line(
            "heeds",
            "other servers may write there too (`writers = \"any\"`), so its backend must check conditions",
        ),
        line(
            "ignores",
            "other servers may write there too (`writers = \"any\"`), so its backend must check conditions",
        ),
        line("kept", "its values are in this server alone"),
    ];
    assert_eq!(checked(&[]), (Some(0), promised.to_vec()));
    let (code, said) = checked(&["--connect"]);
    let tried: Vec<&str> =
        said[promised.len()..].iter().map(|line| line.strip_prefix("zarrd: ").unwrap()).collect();
    assert_eq!(
        tried,
        [
            "the mount `alone` answers",
            "the mount `files` answers",
            "the mount `heeds` answers",
            "the mount `heeds`: its backend checks the conditions of writes",
            "the mount `ignores` answers",
            "warning: the mount `ignores`: its backend ignores the conditions of writes, so only whole values can be written; \
             if this server alone writes there, set `mounts.ignores.writers = \"one\"`",
            "the mount `kept` answers",
            "the mount `reads` answers",
            "the mount `reads`: nothing is stored there",
        ]
    );
    assert_eq!(code, Some(0));
    // What was stored to try it is erased, and nothing else was stored.
    for s3 in [&heeding, &ignoring, &read_only] {
        assert_eq!(s3.keys(), Vec::<String>::new());
    }
}

#[test]
fn check_passes_for_a_directory_in_use_by_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("w={}", folder.path().display());
    let _server = Running::start(&["serve", &mount, "--writable"]);
    let output = run(&["check", &mount, "--writable"]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(0) && said.contains("mount `w`: another server"), "{said}");
    assert!(text(&output.stdout).contains("writable = true"));
}

#[test]
fn check_warns_of_budgets_beyond_the_memory_of_the_machine() {
    let mut command = zarrd(&["check", "--demo"]);
    let output = command.env("ZARRD__SERVER__MAX_MEMORY", "100000GiB").output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("zarrd: warning: the budgets of memory add up to "), "{said}");
    assert!(said.contains("more than there is ("), "{said}");
}

#[test]
fn a_backend_that_is_down_is_reported_in_one_short_line() {
    let mut command = zarrd(&["serve", "b=s3://bucket"]);
    command
        .env("ZARRD__MOUNTS__B__OPTIONS__ENDPOINT", "http://127.0.0.1:1")
        .env("ZARRD__MOUNTS__B__OPTIONS__ALLOW_HTTP", "true")
        .env("ZARRD__MOUNTS__B__OPTIONS__RETRY_TIMEOUT", "0s");
    let mut server = Running::of(command);
    // Each checks again, and none finds anything new.
    for _ in 0..3 {
        assert_eq!(server.get("/v1/mounts")["mounts"][0]["state"], "unavailable");
    }
    let problem = server.get("/store/b/zarr.json");
    assert_eq!(problem["status"], 502, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert_eq!(detail, "a backend of this mount cannot be reached: connection refused");
    server.signal(Signal::TERM);
    let mut log = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let warned: Vec<&str> = log.lines().filter(|line| line.contains("mount is not ready")).collect();
    assert!(
        warned.len() == 1 && warned[0].contains("WARN") && warned[0].contains("connection refused"),
        "{log}"
    );
    assert!(warned[0].len() < 200 && !warned[0].contains("zarrd::"), "{log}");
    let failed: Vec<&str> = log.lines().filter(|line| line.contains("request failed")).collect();
    assert!(failed.len() == 1 && failed[0].matches("127.0.0.1:1").count() <= 2, "{log}");
}

#[test]
fn an_address_in_use_is_exit_code_69() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["serve", "--demo", "--listen", &address]);
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
    let message = text(&output.stderr);
    assert!(message.contains(&format!("zarrd: cannot listen on {address}: ")), "{message}");
    assert!(message.contains("choose another with `--port`"), "{message}");
}

#[test]
fn openapi_prints_a_json_document() {
    let output = run(&["openapi"]);
    assert_eq!(output.status.code(), Some(0));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with('3'), "{document}");
}

#[test]
fn a_server_is_healthy_until_it_is_stopped_and_exits_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Running::of(serving());
        assert_eq!(server.health(), Some(0));
        server.signal(signal);
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        assert_eq!(server.health(), Some(1));
    }
}

#[test]
fn the_startup_banner_lists_what_is_served() {
    let mut server = Running::start(&["serve"]);
    server.signal(Signal::TERM);
    let mut rest = String::new();
    server.stdout.read_to_string(&mut rest).unwrap();
    let mut errors = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0), "{errors}");
    assert!(rest.contains("/store/demo") && rest.contains("read-only"), "{rest}");
    assert!(rest.contains("  http://127.0.0.1:"), "{rest}");
    let memory = rest.lines().find(|line| line.starts_with("Memory: at most ")).unwrap();
    assert!(memory.ends_with(')') && memory.len() < 50, "{memory}");
    assert!(rest.contains("No mount is configured"), "{rest}");
    assert_eq!(rest.matches("  curl ").count(), 3, "{rest}");
    assert!(errors.contains("listening"), "logs go to standard error: {errors}");
}
