//! Redirects of reads to the backend, and the commands that print tokens and signed URLs.

use std::time::Duration;

use axum::http::Method;
use serde_json::json;
use zarrd::services::Mount;

use super::{access, ask, get_as, grant, known, token};
use crate::support::client;
use crate::support::process::{Running, run, text};
use crate::support::s3::TestS3;
use crate::support::server::Server;

#[tokio::test]
async fn only_callers_with_the_right_to_read_are_redirected_to_the_backend() {
    let s3 = TestS3::start().await;
    s3.insert("a/c/0", "0123456789");
    let store = s3.store_with(|options| {
        options.signs_urls = true;
        options.s3.access_key_id = Some("id".to_owned());
        options.s3.secret_access_key = Some(zarrd::store::Secret::new("canary"));
    });
    let mount = Mount { redirect: Some(Duration::from_mins(5)), ..Mount::read_only("m", store) };
    let server = Server::build(Mount { hosts: vec!["data.example".to_owned()], ..mount }).finish();
    let tokens = json!({ "tokens": { "a": known("a", json!([grant("m", "a", &["read", "list"])])) } });
    server.set_access(access(tokens, &[], &std::sync::Arc::default()));

    let client = client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let bearer = format!("Bearer {}", token("a"));
    for (url, host) in
        [("/store/m/a/c/0", "other"), ("/store/m//a/c/%30", "other"), ("/a/c/0", "data.example")]
    {
        for method in [Method::GET, Method::HEAD] {
            let headers = [("authorization", &*bearer), ("host", host)];
            let sent = ask(&server, method.as_str(), url, &headers, "").await;
            assert_eq!(
                (sent.status.as_u16(), sent.header("cache-control")),
                (307, "private, no-store"),
                "{url}"
            );
            let location = sent.header("location").to_owned();
            assert!(
                location.contains("X-Amz-Signature=") && location.contains("X-Amz-Expires=300"),
                "{location}"
            );
            assert!(!location.contains("canary"));
            let there = client.request(method, location).header("range", "bytes=2-4").send().await.unwrap();
            assert_eq!(
                (there.status().as_u16(), there.headers()["content-length"].to_str().unwrap()),
                (206, "3")
            );
        }
        assert_eq!(ask(&server, "GET", url, &[("host", host)], "").await.status, 401);
    }
    assert_eq!(get_as(&server, &token("a"), "/store/m/zarr.json").await.status, 403);
    // Views and listings are answered here.
    assert_eq!(get_as(&server, &token("a"), "/store/m/a/?format=json").await.status, 200);
    assert_eq!(get_as(&server, &token("a"), "/s3/m/a/c/0").await.status, 200);
}

#[tokio::test]
async fn printed_tokens_and_urls_are_valid_and_show_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("key"), "value").unwrap();
    let made = run(&["token", "alice"]);
    let lines = text(&made.stdout);
    let token = lines.lines().find_map(|line| line.strip_prefix("# zs_")).unwrap();
    let key = "canary-canary-canary-canary-canary";
    let config = format!(
        "{lines}[access.signing_keys.k]\nsecret = '{key}'\ngrants = [{{ mount = 'm', scopes = ['read', 'list'] }}]\n\
         [mounts.m]\nurl = '{}'\n",
        data.display()
    );
    let file = folder.path().join("zarrd.toml");
    std::fs::write(&file, &config).unwrap();
    let file = file.to_str().unwrap();
    let shown = text(&run(&["check", "--config", file]).stdout);
    assert!(shown.contains("[access.tokens.alice]") && !shown.contains("canary"), "{shown}");

    let running = Running::start(&["serve", "--config", file]);
    let get = async |path: &str, token: Option<&str>| {
        let mut request = client::client().get(format!("http://{}{path}", running.address));
        if let Some(token) = token {
            request = request.bearer_auth(format!("zs_{token}"));
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(get("/store/m/key", None).await.0, 401);
    assert_eq!(get("/store/m/key", Some(token)).await, (200, "value".to_owned()));
    for place in ["key", ""] {
        let signed = run(&["sign", "m", place, "--by", "k", "--seconds", "60", "--config", file]);
        let url = text(&signed.stdout);
        assert_eq!(get(url.trim(), None).await.0, 200, "{url} {}", text(&signed.stderr));
        assert!(!text(&signed.stderr).contains("no grant"), "{}", text(&signed.stderr));
    }
    let signed = run(&["sign", "other", "key", "--by", "k", "--config", file]);
    assert!(text(&signed.stderr).contains("`k` has no grant for this"), "{}", text(&signed.stderr));
    let none = run(&["sign", "m", "key", "--by", "none", "--config", file]);
    assert_eq!((none.status.code(), text(&none.stdout)), (Some(1), String::new()));
    assert_eq!(run(&["token", "a_b"]).status.code(), Some(1));
    let bad = folder.path().join("bad.toml");
    std::fs::write(&bad, config.replace("sha256 = \"", "sha256 = \"canary")).unwrap();
    let refused = run(&["check", "--config", bad.to_str().unwrap()]);
    let message = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(78));
    assert!(
        message.contains("bad.toml:4: `access.tokens.alice.sha256`") && !message.contains("canary"),
        "{message}"
    );
}
