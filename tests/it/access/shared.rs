//! Callers that share an address or a signing key: none of them uses up the limits of the others.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use zarrd::http::{Peer, RateOptions};
use zarrd::services::Mount;

use super::forged::{options, signed};
use super::issued::{Keys, claims, header, with};
use super::{NOW, TestWeb, access, filled, issued, server, stranger, token};
use crate::support::server::{Answer, Server};

async fn get(server: &Server, url: &str, bearer: Option<&str>, from: Peer) -> Answer {
    let mut request = Request::builder().uri(url);
    if let Some(bearer) = bearer {
        request = request.header("authorization", format!("Bearer {bearer}"));
    }
    server.send_from(request.body(Body::empty()).unwrap(), from).await
}

const URL: &str = "/store/m/arr/c/0";

/// Shows bad credentials of every kind until none is checked any longer in this second.
async fn flood(server: &Server, from: Peer) {
    let late = signed("k", "m", "arr/c/0", NOW);
    let mut refused = 0;
    for guess in 0.. {
        let bad = format!("zs_alice_{guess:032}");
        for answer in [
            get(server, URL, Some(&bad), from).await,
            get(server, &late, None, from).await,
            get(server, URL, Some("a.b.c"), from).await,
            get(server, URL, Some(""), from).await,
        ] {
            assert!([401, 429].contains(&answer.status.as_u16()), "{}", answer.status);
            refused += usize::from(answer.status == 429);
        }
        if refused >= 4 {
            return;
        }
        assert!(guess < 1000, "no response is 429");
    }
}

#[tokio::test]
async fn valid_credentials_are_accepted_beside_a_flood_of_bad_ones_from_their_address() {
    let (server, _) = server(options(), &[]).await;
    let from = stranger();
    let (good, below) = (signed("k", "m", "arr/c/0", NOW + 9), signed("k", "m", "arr/", NOW + 9));
    let below = below.replace("/arr/?", "/arr/c/1?");
    for round in 0..5 {
        flood(&server, from).await;
        for (url, bearer) in [(URL, Some(token("alice"))), (&*good, None), (&*below, None)] {
            let answer = get(&server, url, bearer.as_deref(), from).await;
            assert_eq!(answer.status, 200, "round {round}, {url}: {:?}", answer.body);
        }
        // A known caller without the right.
        assert_eq!(get(&server, URL, Some(&token("bob")), from).await.status, 403, "round {round}");
    }
}

#[tokio::test]
async fn a_verified_signed_token_is_accepted_during_a_flood_until_it_expires() {
    let keys = Keys::new();
    let (server, web) = server(issued::options(), &[]).await;
    web.set(Some(&keys.set()));
    for (algorithm, kid) in [("RS256", "rsa"), ("ES256", "p256"), ("EdDSA", "ed")] {
        let from = stranger();
        let seen = keys.sign(&header(algorithm, kid), &claims());
        let unseen = |number: u32| {
            keys.sign(&header(algorithm, kid), &with(&claims(), "sub", json!(format!("bob {number}"))))
        };
        assert_eq!(get(&server, URL, Some(&seen), from).await.status, 200, "{algorithm}");
        // Verifying a new credential takes work, which a flooding client may not request in that second.
        for number in 0.. {
            flood(&server, from).await;
            assert_eq!(get(&server, URL, Some(&seen), from).await.status, 200, "{algorithm}");
            let (token, answer) = (unseen(number), get(&server, URL, Some(&unseen(number)), from).await);
            if answer.status == 429 {
                answer.refuses(429, "too-many-attempts", algorithm);
                assert_eq!(get(&server, URL, Some(&token), stranger()).await.status, 200, "{algorithm}");
                break;
            }
            assert!(number < 20, "{algorithm}: each was verified");
        }
        // One with another signature is another.
        let (message, signature) = seen.rsplit_once('.').unwrap();
        let flipped = if signature.starts_with('A') { "B" } else { "A" };
        let forged = format!("{message}.{flipped}{}", &signature[1..]);
        assert_eq!(get(&server, URL, Some(&forged), stranger()).await.status, 401, "{algorithm}");
        // Its claims grant no more than before.
        assert_eq!(get(&server, "/store/m/zarr.json", Some(&seen), from).await.status, 403, "{algorithm}");
    }
}

#[tokio::test]
async fn a_verified_token_is_rejected_once_its_issuer_is_removed() {
    let keys = Keys::new();
    let (server, web) = server(issued::options(), &[]).await;
    web.set(Some(&keys.set()));
    let seen = keys.sign(&header("EdDSA", "ed"), &claims());
    for _ in 0..2 {
        assert_eq!(get(&server, URL, Some(&seen), stranger()).await.status, 200);
    }
    // Of the same name, with other keys of another origin.
    let others = std::sync::Arc::<TestWeb>::default();
    others.set(Some(&Keys::new().set()));
    let mut options = issued::options();
    options["issuers"]["corp"]["jwks_url"] = serde_json::json!("https://other.example/keys");
    server.set_access(access(options, &[], &others));
    assert_eq!(get(&server, URL, Some(&seen), stranger()).await.status, 401);
}

/// A server on which each caller may ask once, and never again in this test.
async fn once_each() -> Server {
    let mut builder = Server::build(Mount::read_only("m", filled().await));
    builder.http.rate_limit = RateOptions { request_rate: 1, request_burst: 1, ..RateOptions::default() };
    let server = builder.finish();
    server.set_access(access(options(), &[], &std::sync::Arc::default()));
    server
}

#[tokio::test(start_paused = true)]
async fn each_signed_url_has_its_own_rate_limit_within_a_bound_for_its_key() {
    let server = once_each().await;
    // From one address, and from several: the URL distinguishes them.
    let from = stranger();
    let url = |number: u64| signed("k", "m", "arr/c/0", NOW + 1 + number);
    assert_eq!(get(&server, &url(1), None, from).await.status, 200);
    assert_eq!(get(&server, &url(2), None, from).await.status, 200, "another URL of the same key");
    assert_eq!(
        get(&server, &url(1), None, stranger()).await.status,
        429,
        "the same URL from another address"
    );
    let mut served = 2;
    for number in 3..400 {
        served += usize::from(get(&server, &url(number), None, stranger()).await.status == 200);
    }
    // A number of URLs is not the same number of callers.
    assert!((32..=80).contains(&served), "{served} of 400 URLs");
    let other = signed("narrow", "m", "g/in/c/1", NOW + 9);
    assert_eq!(get(&server, &other, None, from).await.status, 200, "another key");
}
