//! Names of nodes: a caller that may read and not list gets none, neither from consolidated metadata nor from `/v1/nodes`.

use serde_json::json;
use zarrd::auth::Scope;
use zarrd::services::Mount;

use super::forged::{options, signed};
use super::{NOW, access, ask, filled, get_as, grant, known, token};
use crate::support::server::{Answer, Server};

/// A server with two mounts; `made` consolidates documents without a request for it.
async fn served(options: serde_json::Value, anonymous: &[(&str, &[Scope])]) -> Server {
    let made = Mount { consolidated: true, ..Mount::read_only("made", filled().await) };
    let server = Server::build(Mount::read_only("m", filled().await)).beside(made).finish();
    server.set_access(access(options, anonymous, &std::sync::Arc::default()));
    server
}

/// Whether an answer names the nodes below the group it is about.
fn names(answer: &Answer) -> bool {
    String::from_utf8_lossy(&answer.body).contains("consolidated_metadata")
}

fn tokens() -> serde_json::Value {
    json!({ "tokens": {
        "reads": known("reads", json!([grant("*", "", &["read"])])),
        "lists": known("lists", json!([grant("*", "", &["read", "list"])])),
        "lists-one": known("lists-one", json!([grant("*", "", &["read"]), grant("*", "g", &["list"])])),
        "reads-one": known("reads-one", json!([grant("*", "g", &["read", "list"])])),
    } })
}

#[tokio::test]
async fn consolidated_metadata_needs_the_right_to_list() {
    let server = served(tokens(), &[]).await;
    for (holder, url, status, is_named) in [
        ("lists", "/store/m/g/zarr.json?consolidated", 200, true),
        ("lists", "/store/made/g/zarr.json", 200, true),
        ("lists", "/plain/m/zarr.json?consolidated", 200, true),
        ("lists", "/s3/made/zarr.json", 200, true),
        ("lists", "/rechunk/made/auto/raw/zarr.json", 200, true),
        ("lists-one", "/store/m/g/zarr.json?consolidated", 200, true),
        ("lists-one", "/store/made/g/zarr.json", 200, true),
        ("reads-one", "/store/m/g/zarr.json?consolidated", 200, true),
        // An explicit request without the right is refused.
        ("reads", "/store/m/g/zarr.json?consolidated", 403, false),
        ("reads", "/store/m/g/zarr.json?consolidated=1", 403, false),
        ("reads", "/store/m/g/zarr.json?x=1&consolidated=true", 403, false),
        ("reads", "/store/m/g/zarr.json?%63onsolidated", 403, false),
        ("reads", "/store/made/g/zarr.json?consolidated", 403, false),
        ("reads", "/store/m/g/.zmetadata?consolidated", 403, false),
        ("reads", "/plain/m/g/zarr.json?consolidated", 403, false),
        ("reads", "/unshard/m/zarr.json?consolidated", 403, false),
        ("reads", "/rechunk/m/auto/raw/zarr.json?consolidated", 403, false),
        ("reads", "/s3/m/zarr.json?consolidated", 403, false),
        ("lists-one", "/store/m/zarr.json?consolidated", 403, false),
        // Without the parameter, the stored document is returned.
        ("reads", "/store/m/g/zarr.json", 200, false),
        ("reads", "/store/m/g/zarr.json?consolidated=false", 200, false),
        ("reads", "/store/m/g/zarr.json?x=1", 200, false),
        ("reads", "/store/made/g/zarr.json", 200, false),
        ("reads", "/store/made/g/zarr.json?consolidated=0", 200, false),
        ("reads", "/plain/made/g/zarr.json", 200, false),
        ("reads", "/s3/made/zarr.json", 200, false),
        ("reads", "/rechunk/made/auto/raw/zarr.json", 200, false),
        ("reads", "/store/made/g/.zmetadata", 404, false),
        ("lists-one", "/store/made/zarr.json", 200, false),
        ("reads", "/store/m/g/zarr.json?consolidated&consolidated=1", 400, false),
    ] {
        let answer = get_as(&server, &token(holder), url).await;
        assert_eq!(answer.status, status, "{holder} {url}: {:?}", answer.body);
        assert_eq!(names(&answer), is_named, "{holder} {url}: {:?}", answer.body);
    }
    // As `/v1/nodes` has it.
    for (holder, is_named) in [("lists", true), ("reads", false)] {
        let node = get_as(&server, &token(holder), "/v1/nodes/m/g").await.json();
        assert_eq!(node["children"].is_array(), is_named, "{holder}: {node}");
    }
}

#[tokio::test]
async fn a_url_signed_for_a_document_returns_the_stored_document_where_mounts_consolidate() {
    let mut options = options();
    options["signing_keys"]["k"]["grants"] = json!([grant("*", "", &["read", "list"])]);
    let server = served(options, &[]).await;
    for method in ["GET", "HEAD"] {
        let answer = ask(&server, method, &signed("k", "made", "g/zarr.json", NOW + 9), &[], "").await;
        assert_eq!(answer.status, 200, "{method}: {:?}", answer.body);
        assert!(!names(&answer), "{method}");
    }
    let url = format!("{}&consolidated", signed("k", "made", "g/zarr.json", NOW + 9));
    assert_eq!(ask(&server, "GET", &url, &[], "").await.status, 403, "for one key");
    let below = signed("k", "made", "g/", NOW + 9).replace("/g/?", "/g/zarr.json?");
    assert!(names(&ask(&server, "GET", &below, &[], "").await), "for all below");
}

#[tokio::test]
async fn responses_that_need_the_right_to_list_are_private() {
    let server = served(tokens(), &[("m", &[Scope::Read]), ("made", &[Scope::Read])]).await;
    for url in ["/store/made/zarr.json", "/store/m/zarr.json?consolidated", "/v1/nodes/m", "/v1/nodes/made/g"]
    {
        let answer = get_as(&server, &token("lists"), url).await;
        assert_eq!(answer.status, 200, "{url}");
        assert!(answer.header("cache-control").starts_with("private"), "{url}: {:?}", answer.headers);
        let vary = answer.headers.get_all("vary").iter().any(|vary| vary == "Authorization");
        assert!(vary, "{url}: {:?}", answer.headers);
    }
    // Responses equal for all callers may be cached by all.
    let answer = get_as(&server, &token("lists"), "/store/m/zarr.json").await;
    assert!(!answer.header("cache-control").contains("private"), "{:?}", answer.headers);
}
