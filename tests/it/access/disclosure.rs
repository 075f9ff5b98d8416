//! What responses disclose, and to which callers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zarrd::auth::Scope;

use super::{ask, get_as, grant, known, server, token};
use crate::support::server::Answer;

/// All of an answer that does not differ from one to the next anyway.
fn shape(answer: &Answer) -> (u16, BTreeMap<String, String>, usize) {
    let headers = answer
        .headers
        .iter()
        .filter(|(name, _)| !["x-request-id", "x-amz-request-id"].contains(&name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    (answer.status.as_u16(), headers.collect(), answer.body.len())
}

#[tokio::test]
async fn a_mount_without_any_right_is_indistinguishable_from_a_missing_one() {
    let options = json!({ "tokens": { "a": known("a", json!([grant("m", "", &["read"])])) } });
    let (server, _) = server(options, &[("m", &[Scope::Read])]).await;
    let mut asked = 0;
    for path in [
        "/store/MOUNT",
        "/store/MOUNT/",
        "/store/MOUNT/zarr.json",
        "/store/MOUNT/arr/",
        "/store/MOUNT/none",
        "/store/MOUNT/a%2fb",
        "/plain/MOUNT/",
        "/plain/MOUNT/zarr.json",
        "/unshard/MOUNT/arr/c/0",
        "/rechunk/MOUNT/auto/raw/arr/c/0",
        "/rechunk/MOUNT/auto/raw/",
        "/rechunk/MOUNT/bad/bad/arr",
        "/pyramid/MOUNT/auto/auto/raw/arr/0/c/0",
        "/pyramid/MOUNT/auto/auto/raw/",
        "/pyramid/MOUNT/bad/bad/bad/arr",
        "/v1/nodes/MOUNT",
        "/v1/nodes/MOUNT/arr",
        "/view/MOUNT/",
        "/view/MOUNT/arr",
        "/view/MOUNT/none",
        "/v1/data/MOUNT/arr",
        "/v1/data/MOUNT/arr?slice=bad",
        "/v1/data/MOUNT/arr?downsample=2",
        "/v1/stats/MOUNT/arr",
        "/v1/chunk/MOUNT/arr/c/0",
        "/v1/vectors/MOUNT/arr",
        "/v1/batch/MOUNT",
        "/v1/partial/MOUNT",
        "/v1/erase/MOUNT",
        "/v1/cache/MOUNT/arr",
        "/s3/MOUNT",
        "/s3/MOUNT/zarr.json",
        "/s3/MOUNT?acl",
    ] {
        for method in [
            "GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "MKCOL", "COPY", "MOVE",
            "ODD",
        ] {
            for (holder, headers) in [
                ("", vec![("destination", "/store/other/x")]),
                (
                    "",
                    vec![
                        ("range", "bytes=0-1"),
                        ("if-match", "*"),
                        ("origin", "https://a.example"),
                        ("accept", "text/html"),
                    ],
                ),
                ("a", vec![]),
            ] {
                let bearer = format!("Bearer {}", token(holder));
                let mut headers = headers.clone();
                if !holder.is_empty() {
                    headers.push(("authorization", &bearer));
                }
                let [there, not_there] = ["other", "wrong"].map(|mount| path.replace("MOUNT", mount));
                let there = ask(&server, method, &there, &headers, "{}").await;
                let not_there = ask(&server, method, &not_there, &headers, "{}").await;
                assert_eq!(shape(&there), shape(&not_there), "{method} {path} {headers:?}");
                assert!(
                    !there.status.is_success() || there.status == 204,
                    "{method} {path}: {:?}",
                    there.status
                );
                asked += 1;
            }
        }
    }
    assert!(asked > 800, "{asked}");
}

#[tokio::test]
async fn lists_of_mounts_name_only_those_the_caller_has_a_right_to() {
    let options = json!({ "tokens": {
        "a": known("a", json!([grant("other", "g", &["read"])])), "none": known("none", json!([grant("nowhere", "", &["read"])])),
    } });
    let (server, _) = server(options, &[("m", &[Scope::List])]).await;
    for (holder, names) in [("", &["m"][..]), ("a", &["m", "other"]), ("none", &["m"])] {
        let bearer = format!("Bearer {}", token(holder));
        let headers = [("authorization", &*bearer)];
        let headers = if holder.is_empty() { &[][..] } else { &headers };
        let get = async |url: &str| ask(&server, "GET", url, headers, "").await;
        let listed = get("/v1/mounts").await.json();
        let listed = listed["mounts"].as_array().unwrap().iter().map(|mount| mount["name"].as_str().unwrap());
        assert_eq!(listed.collect::<Vec<_>>(), names);
        let ready = get("/readyz").await.json();
        assert_eq!(ready["mounts"].as_object().unwrap().keys().collect::<Vec<_>>(), names);
        for (url, mark) in [("/", "/store/other"), ("/s3/", "<Name>other</Name>")] {
            let answer = get(url).await;
            assert_eq!(answer.status, 200);
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(text.contains(mark), names.contains(&"other"), "{holder} {url}: {text}");
        }
    }
    for url in ["/healthz", "/openapi.json", "/docs/"] {
        assert_eq!(get_as(&server, "nonsense", url).await.status, 200, "{url}");
    }
}

#[tokio::test]
async fn a_url_with_a_token_reads_ranges_and_is_not_leaked() {
    let options = json!({ "query_tokens": true, "tokens": { "a": known("a", json!([grant("m", "", &["read", "list"])])) } });
    let (server, _) = server(options, &[("other", &[Scope::Read])]).await;
    let token = token("a");
    let get = async |url: &str, headers: &[(&str, &str)]| ask(&server, "GET", url, headers, "").await;
    let part = get(&format!("/store/m/arr/c/0?token={token}"), &[("range", "bytes=1-1")]).await;
    assert_eq!(
        (part.status.as_u16(), &*part.body, part.header("content-range")),
        (206, &[2][..], "bytes 1-1/2")
    );
    assert_eq!(part.header("referrer-policy"), "no-referrer");
    assert_eq!((part.header("cache-control"), part.header("vary")), ("private, no-cache", "Authorization"));
    // Where unknown parameters are refused, and where responses are cached by their URLs.
    for _ in 0..2 {
        let slice = get(&format!("/v1/data/m/arr?slice=0:2&token={token}&format=json"), &[]).await;
        assert_eq!((slice.status.as_u16(), slice.json()), (200, json!([1, 2])));
        assert_eq!(get("/v1/data/m/arr?slice=0:2&format=json", &[]).await.status, 401);
    }
    // Links to the same place keep the token.
    let moved = get(&format!("/store/m/arr?token={token}&format=json"), &[]).await;
    assert_eq!(
        (moved.status.as_u16(), moved.header("location")),
        (301, &*format!("./arr/?format=json&token={token}"))
    );
    // No answer repeats it.
    for url in [
        format!("/store/m/none?token={token}"),
        format!("/v1/data/m/arr?slice=x&token={token}"),
        format!("/store/m/?token={token}"),
    ] {
        let answer = get(&url, &[]).await;
        assert!(!String::from_utf8_lossy(&answer.body).contains("zs_"), "{url}: {:?}", answer.body);
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{url}");
    }
    // Public responses stay public.
    let public = get_as(&server, &token, "/store/other/arr/c/0").await;
    assert_eq!(
        (public.status.as_u16(), public.header("cache-control"), public.header("vary")),
        (200, "no-cache", "")
    );
}

#[tokio::test]
async fn names_of_children_need_the_right_to_list() {
    let tokens = json!({ "r": known("r", json!([grant("m", "", &["read"])])), "l": known("l", json!([grant("m", "", &["read", "list"])])) });
    let (server, _) = server(json!({ "tokens": tokens }), &[]).await;
    assert_eq!(get_as(&server, &token("r"), "/v1/nodes/m").await.json()["children"], Value::Null);
    assert_eq!(
        get_as(&server, &token("l"), "/v1/nodes/m").await.json()["children"].as_array().unwrap().len(),
        2
    );
}
