//! What refusals say: which setting to change and how it is written, and what to send instead.

use std::io::Read;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use zarrd::services::Mount;

use crate::appends::server;
use crate::element_writes::writable;
use crate::support::hierarchy::{Array, memory};
use crate::support::process::{Running, run, text};
use crate::support::server::{Server, put};

#[tokio::test]
async fn settings_of_a_mount_are_named_as_toml_takes_them() {
    let store = memory();
    put(&store, "k", "v").await;
    put(&store, "p/x", "v").await;
    let server = Server::build(Mount::read_only("rw.zarr", store.clone()))
        .beside(Mount { writable: true, ..Mount::read_only("w.1", store.clone()) })
        .finish();
    for (method, url, status, said) in [
        ("PUT", "/store/rw.zarr/k", 405, "set `mounts.\"rw.zarr\".writable = true`"),
        ("DELETE", "/store/w.1/p/", 405, "set `mounts.\"w.1\".allow_prefix_delete = true`"),
        ("DELETE", "/v1/nodes/w.1/p", 405, "set `mounts.\"w.1\".allow_prefix_delete = true`"),
        (
            "COPY",
            "/store/w.1/k",
            403,
            "the mount `w.1` does not let prefixes be erased: set `mounts.\"w.1\".allow_prefix_delete = true`",
        ),
    ] {
        let answer = server.request(method, url, &[("destination", "/store/w.1/p/")], "").await;
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(answer.status == status && detail.contains(said), "{method} {url}: {detail}");
    }
}

#[test]
fn a_directory_that_is_gone_is_named_as_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("gone");
    std::fs::create_dir(&root).unwrap();
    let mut server = Running::start(&["serve", root.to_str().unwrap()]);
    std::fs::remove_dir(&root).unwrap();
    // The last result of a check is used for a second.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while server.get("/v1/mounts")["mounts"][0]["state"] != "unavailable" {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(100));
    }
    let problem = server.get("/store/gone/zarr.json");
    assert_eq!(problem["status"], 502, "{problem}");
    assert_eq!(problem["detail"], "a backend of this mount: its directory is missing");
    assert_eq!(server.get("/store/gone/?format=json")["status"], 502);
    server.signal(Signal::TERM);
    let mut log = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let warned = log.lines().find(|line| line.contains("mount is not ready")).unwrap_or_default();
    assert!(warned.contains("cause=\"its directory is missing\""), "{log}");
}

#[tokio::test]
async fn an_append_over_a_limit_is_refused_with_the_setting() {
    let store = memory();
    Array::of(&[0, 4]).chunks(&[1, 4]).store(&store, "a").await;
    let mut builder = Server::build(writable(&store));
    (builder.write.max_values, builder.write.max_whole_size) = (3, 64);
    (builder.write.band_size, builder.http.max_value_size) = (400, 1 << 20);
    let server = builder.finish();
    let answer = server.append("a?append=0", vec![0; 8 * 40]).await;
    let detail = answer.refuses(413, "too-large", "more chunks than one request may write");
    assert!(detail.ends_with("(`write.max_values`): append in several requests"), "{detail}");
    let problem = answer.json();
    for (member, value) in [
        ("setting", json!("write.max_values")),
        ("limit", json!(3)),
        ("asked", json!(40)),
        ("written", json!(false)),
    ] {
        assert_eq!(problem[member], value, "{problem}");
    }
    // The larger of the two sizes is the limit of a body.
    for (media_type, length, setting, limit) in [
        ("application/octet-stream", 408, "write.band_size", 400),
        ("application/json", 72, "write.max_whole_size", 64),
    ] {
        let headers = [("content-type", media_type)];
        let answer = server.request("POST", "/v1/data/m/a?append=0", &headers, vec![b' '; length]).await;
        let detail = answer.refuses(413, "too-large", media_type);
        assert!(detail.contains(&format!("at most {limit} bytes (`{setting}`)")), "{detail}");
        let problem = answer.json();
        assert_eq!((&problem["setting"], &problem["limit"]), (&json!(setting), &json!(limit)));
    }
    assert_eq!(server.append("a?append=0", vec![0; 24]).await.status, 200);
}

#[tokio::test]
async fn dimensions_and_elements_are_named_in_the_singular_and_the_plural() {
    let store = memory();
    Array::of(&[4]).store(&store, "a").await;
    Array::of(&[]).store(&store, "scalar").await;
    Array::of(&[2, 2]).members(json!({ "dimension_names": ["y", null] })).store(&store, "named").await;
    Array::of(&[2, 2, 2]).store(&store, "deep").await;
    let server = server(&store);
    let unnamed =
        "no dimension of the array is called `t`; they have no names, and are given by their numbers, 0";
    let named = "no dimension of the array is called `t`; they are y, (unnamed), or their numbers, 0 to 1";
    for (url, said) in [("a?append=t", unnamed), ("named?append=t", named)] {
        let detail = server.append(url, [0; 2]).await.refuses(400, "invalid-request", url);
        assert!(detail.contains(said), "{url}: {detail}");
    }
    for (url, said) in [
        ("a?reduce.t=mean", unnamed),
        ("a?slice=0,0", "the selection has 2 dimensions, the array has 1"),
        ("a?downsample=2,2", "`downsample` has 2 factors; the result of the selection has 1 dimension"),
        (
            "a?downsample.t=2",
            "no dimension of the array is called `t`; they have no names: give a factor for each",
        ),
        ("named?downsample.t=2", "no dimension of the array is called `t`; the names are y, (unnamed)"),
        ("a?format=tiff", "the selection has 1 dimension: a plane has two"),
        ("scalar?format=tiff", "the selection has 0 dimensions: a plane has two"),
        (
            "deep?format=csv",
            "at most 2 dimensions of such elements, and these have 3; select fewer with `slice`, request",
        ),
        ("a?format=png", "`format=png` is not known here; pictures are those of `/v1/image`; there is: "),
        ("a?format=jsno", "`format=jsno` is not known here; did you mean `json`? there is: "),
    ] {
        let answer = server.get(&format!("/v1/data/m/{url}")).await;
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(said), "{url}: {} {detail}", answer.status);
    }
    for (path, body, said) in [
        ("scalar", "\"x\"", "the element must be"),
        ("a", "[1]", "the list has 1 item, and"),
        ("a", "[1, NaN, 2, 3]", "JSON has no `NaN`: of floats it is the text `\"NaN\"`"),
    ] {
        let answer = server
            .request("PUT", &format!("/v1/data/m/{path}"), &[("content-type", "application/json")], body)
            .await;
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(answer.status == 400 && detail.contains(said), "{path} {body}: {detail}");
    }
}

#[tokio::test]
async fn values_of_parameters_are_explained_in_words() {
    let store = memory();
    put(&store, "k", "v").await;
    let (server, admin) = Server::build(Mount::read_only("m", store)).finish_with_admin();
    for (server, method, url, said) in [
        (&server, "GET", "/store/m/?format=json&limit=ten", "`limit` takes a whole number, without a unit"),
        (&admin, "POST", "/v1/cache/m?bytes=1MiB", "`bytes` takes a whole number, without a unit"),
    ] {
        let answer = server.request(method, url, &[], "").await;
        assert_eq!((answer.status.as_u16(), &answer.json()["detail"]), (400, &json!(said)), "{url}");
    }
}

#[test]
fn arguments_of_the_command_line_are_explained() {
    for (arguments, said) in [
        (&["healh"][..], "did you mean `zarrd health`?"),
        (&["serv", env!("CARGO_MANIFEST_DIR")], "did you mean `zarrd serve`?"),
        (&["demo"], "did you mean `zarrd --demo`?"),
        (&["check", "a b=data"], "`a b` cannot be the name of a mount: a mount's name has 1 to 64 letters"),
        (&["pyramid", "nodir", "x"], "zarrd: SRC: nodir: "),
        (
            &["sign", "m", "key", "--by", "viewer"],
            "there is no signing key `viewer`; the configuration has none (`access.signing_keys`)",
        ),
    ] {
        let output = run(arguments);
        let message = text(&output.stderr);
        assert!(!output.status.success() && message.contains(said), "{arguments:?}: {message}");
    }
}
