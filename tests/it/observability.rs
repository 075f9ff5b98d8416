//! Logs and traces: lines that parse, that block no request and reveal no secret; spans of the trace that the caller
//! is in.

use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use rustix::process::Signal;
use serde_json::Value;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::support::client;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::Array;
use crate::support::process::{Running, serving, text, zarrd};
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::put;

/// A collector of traces on a port of this machine, with the traces it received.
struct Collector {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, sent) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Value>>>::default());
        let ours = Arc::clone(&sent);
        let take = move |axum::Json(document): axum::Json<Value>| {
            ours.lock().unwrap().push(document);
            std::future::ready("{}")
        };
        let routes: axum::Router = axum::Router::new().route("/v1/traces", axum::routing::post(take));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, sent }
    }

    /// All spans that were sent.
    fn spans(&self) -> Vec<Value> {
        let sent = self.sent.lock().unwrap();
        let scopes =
            sent.iter().flat_map(|document| document["resourceSpans"][0]["scopeSpans"].as_array().unwrap());
        scopes.flat_map(|scope| scope["spans"].as_array().unwrap()).cloned().collect()
    }
}

/// A directory with an array in shards, and a value.
async fn directory() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store: SharedStore = Arc::new(LocalStore::open(folder.path(), &options).unwrap());
    let shards = Shards::of(&[8, 8], &[Codec::Bytes { big: false }]).codec();
    Array::of(&[32, 32]).chunks(&[32, 32]).codecs([shards]).random(1, &[]).store(&store, "a").await;
    put(&store, "k", "value").await;
    folder
}

fn mount_of(folder: &tempfile::TempDir) -> String {
    format!("m={}", folder.path().display())
}

/// Stops a server, and returns its standard error.
fn stop(mut server: Running) -> String {
    server.signal(Signal::TERM);
    let mut errors = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0), "{errors}");
    errors
}

fn client() -> reqwest::Client {
    client::client()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_spans_of_the_callers_trace() {
    let (collector, folder) = (Collector::start().await, directory().await);
    let mut command = zarrd(&["serve", &mount_of(&folder)]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}/", collector.address));
    command.env("ZARRD__TELEMETRY__SERVICE_NAME", "arrays");
    let server = Running::of(command);
    let url = format!("http://{}/v1/data/m/a?slice=:8,:8", server.address);
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let answer =
        client().get(&url).header("traceparent", format!("00-{trace}-{parent}-01")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.bytes().await.unwrap();
    // The caller marks this trace as not sampled.
    let unwanted = "11111111111111111111111111111111";
    client().get(&url).header("traceparent", format!("00-{unwanted}-{parent}-00")).send().await.unwrap();
    tokio::task::block_in_place(|| stop(server));

    let spans = collector.spans();
    assert!(!spans.iter().any(|span| span["traceId"] == unwanted), "{spans:#?}");
    let named = |name: &str| -> Vec<&Value> {
        spans.iter().filter(|span| span["name"] == name && span["traceId"] == trace).collect()
    };
    let [request] = named("request")[..] else { panic!("{spans:#?}") };
    assert_eq!(request["parentSpanId"], parent);
    assert_eq!(request["kind"], 2);
    let says = |key: &str| {
        let attributes = request["attributes"].as_array().unwrap();
        attributes.iter().find(|said| said["key"] == key).map(|said| said["value"]["stringValue"].clone())
    };
    assert_eq!(says("route"), Some("/v1/data/{mount}/{*path}".into()));
    assert_eq!((says("method"), says("status")), (Some("GET".into()), Some("200".into())));
    for name in ["plan", "fetch", "decode", "backend"] {
        let below = named(name);
        assert!(!below.is_empty(), "{name}: {spans:#?}");
        for span in below {
            let above = spans.iter().find(|above| above["spanId"] == span["parentSpanId"]);
            assert!(above.is_some(), "{name} stands in its trace: {spans:#?}");
            let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
            assert!(time(span, "startTimeUnixNano") <= time(span, "endTimeUnixNano"));
        }
    }
    let resource = &collector.sent.lock().unwrap()[0]["resourceSpans"][0]["resource"]["attributes"];
    assert_eq!(resource[0]["value"]["stringValue"], "arrays");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_backends_carry_the_trace_context() {
    let (collector, s3) = (Collector::start().await, TestS3::start().await);
    s3.insert("k", "value");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    let endpoint = s3.options().bucket.endpoint.unwrap();
    let text = format!(
        "[mounts.m]\nurl = '{}'\n[mounts.m.options]\nendpoint = '{endpoint}'\nallow_http = true\n",
        TestS3::s3_url(),
    );
    std::fs::write(&file, text).unwrap();
    let mut command = zarrd(&["serve", "--config", file.to_str().unwrap()]);
    command.env("ZARRD__TELEMETRY__OTLP_ENDPOINT", format!("http://{}/", collector.address));
    let server = Running::of(command);
    let url = format!("http://{}/store/m/k", server.address);
    let (kept, unwanted) = ("4bf92f3577b34da6a3ce929d0e0e4736", "11111111111111111111111111111111");
    for (trace, flags) in [(kept, "01"), (unwanted, "00")] {
        let traceparent = format!("00-{trace}-00f067aa0ba902b7-{flags}");
        let answer = client().get(&url).header("traceparent", traceparent).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "value");
    }
    tokio::task::block_in_place(|| stop(server));
    let traces = s3.traceparents();
    let spans = collector.spans();
    let asked: Vec<String> = spans
        .iter()
        .filter(|span| span["name"] == "backend" && span["traceId"] == kept)
        .map(|span| format!("00-{kept}-{}-01", span["spanId"].as_str().unwrap()))
        .collect();
    assert!(!asked.is_empty(), "{spans:#?}");
    let of =
        |trace: &str| -> Vec<&String> { traces.iter().filter(|traces| traces.contains(trace)).collect() };
    assert_eq!(of(kept), asked.iter().collect::<Vec<_>>(), "each request names the span that stands for it");
    assert!(of(unwanted).iter().all(|traces| traces.ends_with("-00")), "{traces:?}");
    assert!(!of(unwanted).is_empty(), "{traces:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_costs_no_request() {
    let folder = directory().await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = zarrd(&["serve", &mount_of(&folder)]);
    command.env("ZARRD__TELEMETRY__OTLP_ENDPOINT", format!("http://{gone}"));
    command.env("ZARRD__TELEMETRY__MAX_QUEUED_SPANS", "8");
    let (server, client) = (Running::of(command), client());
    for _ in 0..200 {
        let url = format!("http://{}/store/m/k", server.address);
        assert_eq!(client.get(&url).send().await.unwrap().text().await.unwrap(), "value");
    }
    tokio::task::block_in_place(|| stop(server));
}

/// Sends requests one after the other, without waiting for answers, while another thread takes these.
fn pipeline(address: SocketAddr, requests: impl Iterator<Item = Vec<u8>>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut answers = stream.try_clone().unwrap();
    let taking = std::thread::spawn(move || std::io::copy(&mut answers, &mut std::io::sink()));
    let mut together = Vec::new();
    for request in requests {
        together.extend(request);
        if together.len() > 64 << 10 {
            stream.write_all(&together).unwrap();
            together.clear();
        }
    }
    together.extend(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(&together).unwrap();
    taking.join().unwrap().unwrap();
}

#[test]
fn every_log_line_is_json() {
    const REQUESTS: u64 = 2_000;
    let mut command = serving();
    command.env("ZARRD__LOG__FORMAT", "json");
    let mut server = Running::of(command);
    let stderr = server.child.stderr.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut lines = 0_u64;
        for line in std::io::BufReader::new(stderr).split(b'\n') {
            let line = line.unwrap();
            let read: Result<Value, _> = serde_json::from_slice(&line);
            let read = read.unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&line)));
            assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)), "{read}");
            lines += 1;
        }
        lines
    });
    // Characters that a head may contain: with others, there is no request.
    let pieces: [&[u8]; 20] = [
        b"/",
        b"store",
        b"demo",
        b"%0a",
        b"%0d%0a",
        b"%1b[31m",
        b"%e2%80%ae",
        b"\"",
        b"\\",
        b"\\u0000",
        b"{",
        b"}",
        b"%22%7d",
        b"'",
        b"%00",
        b"..",
        b"%ff",
        b"v1/data",
        b"zarr.json",
        b"%5C%22",
    ];
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let requests = (0..REQUESTS).map(move |_| {
        let mut request = format!("{} /", ["GET", "HEAD", "DELETE", "BREW"][random(4)]).into_bytes();
        for _ in 0..random(8) {
            request.extend(pieces[random(pieces.len())]);
        }
        request.extend(b" HTTP/1.1\r\nHost: a\r\n");
        for name in ["x-request-id", "traceparent", "user-agent", "authorization"] {
            request.extend(name.as_bytes());
            request.extend(b": ");
            for _ in 0..random(4) {
                request.extend(pieces[random(pieces.len())]);
            }
            request.extend(b"\r\n");
        }
        request.extend(b"\r\n");
        request
    });
    pipeline(server.address, requests);
    server.signal(Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let lines = reading.join().unwrap();
    assert!(
        lines > REQUESTS / 2,
        "{lines} lines: those that were not read in time are dropped, but not most"
    );
}

#[tokio::test]
async fn the_access_log_has_a_level_of_its_own() {
    for format in ["text", "json"] {
        for (level, has_requests, has_changes) in [
            ("info", true, true),
            ("warn", false, false),
            ("info,zarrd::access=off", false, true),
            ("off,zarrd::access=info", true, false),
        ] {
            let mut command = serving();
            command.env("ZARRD__LOG__FORMAT", format).env("ZARRD__LOG__LEVEL", level);
            let server = Running::of(command);
            let url = format!("http://{}/store/none/new", server.address);
            let refused = client().put(&url).body("value").send().await.unwrap().status();
            assert_eq!(refused, StatusCode::NOT_FOUND);
            let log = stop(server);
            let [request, change] = match format {
                "text" => [" INFO request request_id=", " INFO change "],
                _ => [r#""message":"request""#, r#""message":"change""#],
            };
            assert_eq!(log.contains(request), has_requests, "{format} {level}: {log}");
            assert_eq!(log.contains(change), has_changes, "{format} {level}: {log}");
        }
    }
}

/// The address of the admin listener, from the server's startup banner.
fn admin_of(server: &mut Running) -> String {
    let mut said = String::new();
    while !said.contains("/metrics") {
        said.clear();
        assert!(server.stdout.read_line(&mut said).unwrap() > 0, "no admin listener");
    }
    said.trim().split("/metrics").next().unwrap().to_owned()
}

#[test]
fn a_blocked_log_delays_no_request() {
    let mut command = serving();
    command.env("ZARRD__SERVER__ADMIN_LISTEN", "127.0.0.1:0");
    let mut server = Running::of(command);
    let admin = admin_of(&mut server);
    // A pipe takes 64 KiB, and the queue is bounded: most of 10 MB is dropped.
    let path = "x".repeat(4000);
    let request = format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    pipeline(server.address, (0..2500).map(|_| request.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let metrics = runtime.block_on(async {
        let answer = client().get(format!("{admin}/metrics")).send().await.unwrap();
        answer.text().await.unwrap()
    });
    let dropped = metrics.lines().find_map(|line| line.strip_prefix("zarrd_log_lines_dropped_total "));
    assert!(dropped.unwrap().parse::<f64>().unwrap() > 100.0, "{dropped:?}");
    stop(server);
}

/// Secrets, each where it may be revealed by mistake.
const CANARIES: [&str; 9] = [
    "canary-s3-secret",
    "canary-session-token",
    "canary-sas",
    "canary-bearer",
    "canary-basic",
    "canary-cookie",
    "canary-query",
    "canary-account-key",
    "canary-custom-header",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_appears_in_responses_logs_or_traces() {
    let (s3, collector) = (TestS3::start().await, Collector::start().await);
    put(&s3.store(), "k", "value").await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = zarrd(&["serve", &format!("m={}", TestS3::s3_url()), "az=az://container/x"]);
    let endpoint = s3.options().bucket.endpoint.unwrap();
    let gone = format!("http://{gone}");
    for (name, value) in [
        ("MOUNTS__M__OPTIONS__ENDPOINT", endpoint.as_str()),
        ("MOUNTS__M__OPTIONS__ALLOW_HTTP", "true"),
        ("MOUNTS__M__OPTIONS__ACCESS_KEY_ID", "an-identifier"),
        ("MOUNTS__M__OPTIONS__SECRET_ACCESS_KEY", "canary-s3-secret"),
        ("MOUNTS__M__OPTIONS__SESSION_TOKEN", "canary-session-token"),
        ("MOUNTS__M__OPTIONS__RETRY_TIMEOUT", "100ms"),
        ("MOUNTS__AZ__OPTIONS__ENDPOINT", gone.as_str()),
        ("MOUNTS__AZ__OPTIONS__ALLOW_HTTP", "true"),
        ("MOUNTS__AZ__OPTIONS__ACCOUNT", "account"),
        ("MOUNTS__AZ__OPTIONS__SAS_TOKEN", "sv=2024-01-01&sig=canary-sas"),
        ("MOUNTS__AZ__OPTIONS__RETRY_TIMEOUT", "100ms"),
        ("SERVER__ADMIN_LISTEN", "127.0.0.1:0"),
        ("LOG__FORMAT", "json"),
        ("LOG__LEVEL", "info,zarrd=debug"),
        ("TELEMETRY__OTLP_ENDPOINT", &format!("http://{}", collector.address)),
    ] {
        command.env(format!("ZARRD__{name}"), value);
    }
    let mut server = Running::of(command);
    let admin = admin_of(&mut server);
    let mut outputs = Vec::new();
    let everything = [Kind::Head, Kind::Get, Kind::List];
    for fault in [
        None,
        Some(Fault::Status(403)),
        Some(Fault::Status(500)),
        Some(Fault::ResetBeforeHead),
        Some(Fault::ErrorBody),
    ] {
        let rule = |fault| Rule { kinds: everything.to_vec(), key: "", when: When::Always, fault };
        s3.inject(fault.map(rule).into_iter().collect(), 1);
        for path in [
            "store/m/k",
            "store/m/",
            "store/az/k",
            "store/az/",
            "v1/data/m/k",
            "v1/nodes/az/k",
            "v1/mounts",
            "readyz",
        ] {
            let url = format!("http://{}/{path}?token=canary-query&format=json", server.address);
            let request = client()
                .get(&url)
                .header("authorization", "Bearer canary-bearer")
                .header("cookie", "session=canary-cookie")
                .header("proxy-authorization", "Basic canary-basic")
                .header("x-api-key", "canary-custom-header");
            let answer = request.send().await.unwrap();
            outputs.push(format!("{path}: {:?} {}", answer.headers().clone(), answer.text().await.unwrap()));
        }
    }
    outputs.push(client().get(format!("{admin}/metrics")).send().await.unwrap().text().await.unwrap());
    assert!(
        outputs
            .last()
            .unwrap()
            .contains("zarrd_backend_requests_total{mount=\"az\",verb=\"get\",outcome=\"failed\"}")
    );
    outputs.push(std::fs::read_to_string(format!("/proc/{}/cmdline", server.child.id())).unwrap());
    let errors = tokio::task::block_in_place(|| stop(server));
    assert!(errors.contains("request failed") && errors.contains("az"), "failures are logged: {errors}");
    outputs.push(errors);
    assert!(!collector.spans().is_empty());
    outputs.push(collector.sent.lock().unwrap().iter().map(Value::to_string).collect());

    for arguments in [&["check"][..], &["serve", "--demo"][..]] {
        let mut command = zarrd(arguments);
        command.env("ZARRD__MOUNTS__AZ__URL", "az://container?sig=canary-sas");
        command.env("ZARRD__MOUNTS__AZ__OPTIONS__ACCOUNT_KEY", "canary-account-key");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(78));
        outputs.push(text(&output.stdout) + &text(&output.stderr));
    }
    for (option, value, code) in [
        // No key: it is refused, and not repeated.
        ("ACCOUNT_KEY", "canary-account-key", 78),
        ("SAS_TOKEN", "sv=2024-01-01&sig=canary-sas", 0),
    ] {
        let output = zarrd(&["check", "az=az://container"])
            .env("ZARRD__MOUNTS__AZ__OPTIONS__ACCOUNT", "account")
            .env(format!("ZARRD__MOUNTS__AZ__OPTIONS__{option}"), value)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        outputs.push(text(&output.stdout) + &text(&output.stderr));
    }
    for canary in CANARIES {
        let leak = outputs.iter().find(|outputs| outputs.contains(canary));
        assert!(leak.is_none(), "{canary} was revealed: {leak:?}");
    }
}

#[test]
fn a_hanging_backend_times_out_with_an_error_that_states_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let s3 = TestS3::start().await;
        let rule = Rule {
            kinds: vec![Kind::Head, Kind::Get, Kind::List],
            key: "",
            when: When::Always,
            fault: Fault::Hang,
        };
        s3.inject(vec![rule], 1);
        let mut builder =
            crate::support::server::Server::build(zarrd::services::Mount::read_only("m", s3.store()));
        builder.http.readiness_timeout = Duration::from_millis(50);
        let server = builder.finish();
        let ready = tokio::time::timeout(Duration::from_secs(10), server.get("/readyz")).await.unwrap();
        assert_eq!(ready.code(), "unavailable");
        assert_eq!(ready.json()["mounts"]["m"], "unavailable");
        assert_eq!(ready.json()["why"]["m"], "timed-out");
        let mounts = server.get("/v1/mounts").await.json();
        assert_eq!(mounts["mounts"][0]["state"], "unavailable");
        assert_eq!(mounts["mounts"][0]["why"], "timed-out");
        assert_eq!(mounts["mounts"][0]["links"]["rechunk"], "/rechunk/m/auto/raw/");
    });
}
