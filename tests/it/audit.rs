//! The audit log: a line for each request that may change what is stored, apart from other lines.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::process::{Running, run, text, zarrd};

/// A token of this name: the text for a client, and the lines of a configuration with these scopes.
fn token(name: &str, scopes: &str) -> (String, String) {
    let printed = text(&run(&["token", name]).stdout);
    let secret =
        printed.lines().find_map(|line| line.strip_prefix("# ").filter(|line| line.starts_with("zs_")));
    let secret = secret.unwrap_or_else(|| panic!("{printed}"));
    let digest = printed.lines().find(|line| line.trim_start().starts_with("sha256")).unwrap().trim();
    let lines =
        format!("[access.tokens.{name}]\n{digest}\ngrants = [{{ mount = \"m\", scopes = [{scopes}] }}]\n");
    (secret.to_owned(), lines)
}

/// Sends a request and reads its response to the end.
fn send(server: &Running, head: &str, token: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let credential =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    let (line, headers) = head.split_once('|').unwrap_or((head, ""));
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{credential}{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Stops a server; its standard error.
fn stop(mut server: Running) -> String {
    server.signal(Signal::TERM);
    let mut errors = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0), "{errors}");
    errors
}

#[test]
fn each_change_has_a_line_that_says_who_did_what_and_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("audit.log"));
    std::fs::create_dir(&data).unwrap();
    let (writer, of_writer) = token("ann", r#""read", "list", "write", "delete""#);
    let (reader, of_reader) = token("bob", r#""read""#);
    let file = folder.path().join("zarrd.toml");
    let mount = format!("[mounts.m]\nurl = {:?}\nwritable = true\n", data.display().to_string());
    let settings = format!("[log]\naudit_file = {:?}\n", log.display().to_string());
    std::fs::write(&file, format!("{of_writer}{of_reader}{mount}{settings}")).unwrap();
    let mut command = zarrd(&["serve", "--config", &file.display().to_string()]);
    command.env("ZARRD__LOG__FORMAT", "json");
    let server = Running::of(command);
    for (head, token, body, status) in [
        ("PUT /store/m/k", &*writer, "12345", "201"),
        ("GET /store/m/k", &writer, "", "200"),
        ("PUT /store/m/k", &reader, "67", "403"),
        ("PUT /store/m/k", "", "6", "401"),
        ("MOVE /store/m/k|Destination: /store/m/l?token=canary\r\n", &writer, "", "201"),
        (
            "POST /v1/partial/m|Content-Type: application/json\r\n",
            &writer,
            r#"{"get": [{"key": "l"}]}"#,
            "200",
        ),
        (
            "POST /v1/partial/m|Content-Type: application/json\r\n",
            &writer,
            r#"{"set": [{"key": "l", "offset": 0, "base64": "eHl6"}]}"#,
            "200",
        ),
        ("DELETE /store/m/l", &writer, "", "204"),
        ("PUT /v1/nodes/m/g", &writer, r#"{"node_type":"group"}"#, "201"),
        ("PUT /v1/nodes/m/h?copy=m:g", &writer, "", "201"),
        ("PUT /v1/nodes/m/i?move=%22g%22", &writer, "", "405"),
    ] {
        let answer = send(&server, head, token, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
    }
    // A client that leaves in the middle of its body.
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(
        stream,
        "PUT /store/m/gone HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {writer}\r\nContent-Length: 9\r\n\r\nabc"
    )
    .unwrap();
    drop(stream);
    let errors = stop(server);

    let lines = std::fs::read_to_string(&log).unwrap();
    let found: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |line: &Value| {
        let said = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        (
            said("caller"),
            said("method"),
            said("path"),
            line["received_bytes"].as_u64().unwrap(),
            said("outcome"),
        )
    };
    let expected = [
        ("ann", "PUT", "/store/m/k", 5, "done"),
        ("bob", "PUT", "/store/m/k", 0, "refused"),
        ("-", "PUT", "/store/m/k", 0, "refused"),
        ("ann", "MOVE", "/store/m/k", 0, "done"),
        ("ann", "POST", "/v1/partial/m", 54, "done"),
        ("ann", "DELETE", "/store/m/l", 0, "done"),
        ("ann", "PUT", "/v1/nodes/m/g", 21, "done"),
        ("ann", "PUT", "/v1/nodes/m/h", 0, "done"),
        ("ann", "PUT", "/v1/nodes/m/i", 0, "refused"),
    ]
    .map(|(caller, method, path, bytes, outcome)| {
        (caller.to_owned(), method.to_owned(), path.to_owned(), bytes, outcome.to_owned())
    });
    assert_eq!(found[..expected.len()].iter().map(of).collect::<Vec<_>>(), expected, "{lines}");
    assert_eq!(found[3]["destination"], "/store/m/l", "without the query: {lines}");
    assert_eq!((&found[7]["copy"], &found[7]["move"]), (&Value::from("m:g"), &Value::Null), "{lines}");
    assert_eq!(found[8]["move"], "\\\"g\\\"", "nothing but visible characters: {lines}");
    let [left] = &found[expected.len()..] else { panic!("{lines}") };
    assert_eq!((&left["path"], &left["caller"]), (&Value::from("/store/m/gone"), &Value::from("ann")));
    assert!(!data.join("gone").exists() && left["outcome"] != "done", "{left}");
    for line in &found {
        assert!(line["from"].is_string() && line["request_id"].is_string() && line["timestamp"].is_string());
    }
    assert!(!lines.contains("canary") && !lines.contains(&writer), "{lines}");
    assert!(!errors.contains("zarrd::audit"), "kept apart: {errors}");
}

#[test]
fn without_a_file_the_audit_log_is_among_the_other_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = zarrd(&["serve", &format!("m={}", folder.path().display()), "--writable"]);
    command.env("ZARRD__LOG__FORMAT", "json").env("ZARRD__LOG__LEVEL", "off,zarrd::audit=info");
    let server = Running::of(command);
    send(&server, "PUT /store/m/k", "", "12345");
    send(&server, "GET /store/m/k", "", "");
    let errors = stop(server);
    let [line] = errors.lines().collect::<Vec<_>>()[..] else { panic!("{errors}") };
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["target"], &line["outcome"]), (&Value::from("zarrd::audit"), &Value::from("done")));
}

#[test]
fn an_audit_file_that_cannot_be_opened_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = zarrd(&["serve", &format!("m={}", folder.path().display()), "--listen", "127.0.0.1:0"]);
    command.env("ZARRD__LOG__AUDIT_FILE", "/nowhere/audit.log");
    let ended = command.output().unwrap();
    assert!(!ended.status.success());
    assert!(text(&ended.stderr).contains("log.audit_file"), "{}", text(&ended.stderr));
}
