//! The binary as a user runs it: what it prints, and its exit codes.

use std::io::Read;

use rustix::process::Signal;

use crate::support::process::{Running, run, text, zarrd};

#[test]
fn check_prints_the_effective_configuration_without_secrets() {
    let check = |url: Option<&str>| {
        let mut command = zarrd(&["check", "maps=s3://bucket/maps", "--listen", "0.0.0.0:9000"]);
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
        let text_of = std::fs::read_to_string(&file).unwrap().replace("/srv/zarr", "/tmp");
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("zarrd.toml");
        std::fs::write(&copy, text_of).unwrap();
        let output = run(&["check", "--config", copy.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}: {}", file.display(), text(&output.stderr));
    }
}

#[test]
fn an_address_in_use_is_exit_code_69() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["serve", "--demo", "--listen", &address]);
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
    let message = text(&output.stderr);
    assert!(message.contains(&format!("zarrd: cannot listen on {address}: ")), "{message}");
}

#[test]
fn openapi_prints_a_json_document() {
    let output = run(&["openapi"]);
    assert_eq!(output.status.code(), Some(0));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with('3'), "{document}");
}

#[test]
fn a_server_is_healthy_until_it_is_told_to_stop_and_exits_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Running::start(&["serve"]);
        assert_eq!(server.health(), Some(0));
        server.signal(signal);
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        assert_eq!(server.health(), Some(1));
    }
}

#[test]
fn what_is_served_is_printed_at_the_start() {
    let mut server = Running::start(&["serve"]);
    server.signal(Signal::TERM);
    let mut rest = String::new();
    server.stdout.read_to_string(&mut rest).unwrap();
    let mut errors = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0), "{errors}");
    assert!(rest.contains("/store/demo") && rest.contains("read-only"), "{rest}");
    // By default: 256 + 32 + 64 + 64 + 64 + 64 for what is remembered, 512 of answers and 512 of fetches, 4 bands of 32.
    let memory =
        "Memory: at most 1943 MiB: 64 its own, 1.1 × 544 cached, 1152 under way, 128 freed just now;";
    assert!(rest.contains(memory), "{rest}");
    assert!(rest.contains("No mount is configured"), "{rest}");
    assert_eq!(rest.matches("  curl ").count(), 3, "{rest}");
    assert!(errors.contains("listening"), "logs go to standard error: {errors}");
}
