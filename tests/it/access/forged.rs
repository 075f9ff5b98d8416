//! Static tokens, tokens in URLs and signed URLs that are forged: none is accepted.

use serde_json::{Value, json};
use zarrd::auth::{AccessOptions, sign};

use super::{NOW, ask, get_as, grant, known, secret, server, token};
use crate::support::server::{Answer, Server};

const KEY: &str = "a key that no one would ever guess, is it";

pub fn options() -> Value {
    let all = grant("m", "", &["read", "list", "write", "delete", "admin"]);
    let mut late = known("late", json!([all]));
    late["expires"] = json!("2027-01-15T07:59:59Z");
    json!({
        "query_tokens": true,
        "tokens": { "alice": known("alice", json!([all])), "bob": known("bob", json!([grant("other", "", &["read"])])), "late": late },
        "signing_keys": { "k": { "secret": KEY, "grants": [grant("m", "", &["read", "list"])] },
            "narrow": { "secret": KEY.replace("guess", "know"), "grants": [grant("m", "g", &["read"])] } },
    })
}

pub fn signed(name: &str, mount: &str, text: &str, expires: u64) -> String {
    let options: AccessOptions = serde_json::from_value(options()).unwrap();
    sign(&options, name, mount, text, expires).unwrap()
}

/// Whether a response contains any stored content.
fn is_taken(answer: &Answer) -> bool {
    !matches!(answer.status.as_u16(), 400 | 401 | 403 | 429) || !answer.header("etag").is_empty()
}

async fn refused(server: &Server, method: &str, url: &str, headers: &[(&str, &str)]) {
    let answer = ask(server, method, url, headers, "").await;
    assert!(!is_taken(&answer), "{method} {url} {headers:?}: {} {:?}", answer.status, answer.body);
}

#[tokio::test]
async fn every_forged_token_is_rejected() {
    let (server, _) = server(options(), &[]).await;
    let good = token("alice");
    let url = "/store/m/arr/zarr.json";
    assert_eq!(get_as(&server, &good, url).await.status, 200);
    assert_eq!(
        ask(&server, "GET", url, &[("authorization", &format!("bEARER {good}"))], "").await.status,
        200
    );
    assert_eq!(ask(&server, "GET", &format!("{url}?token={good}"), &[], "").await.status, 200);

    let secret_of = secret("alice");
    let digest = known("alice", json!([]))["sha256"].as_str().unwrap().to_owned();
    let mut forged = vec![
        String::new(),
        " ".to_owned(),
        "zs_".to_owned(),
        "zs__".to_owned(),
        "zs_alice".to_owned(),
        "zs_alice_".to_owned(),
        format!("zs__{secret_of}"),
        format!("zs_Alice_{secret_of}"),
        format!("zs_alice _{secret_of}"),
        format!("zs_unknown_{secret_of}"),
        format!("zs_bob_{secret_of}"),
        format!("zs_alice_{digest}"),
        format!("zs_alice_{}", secret("bob")),
        format!("ZS_alice_{secret_of}"),
        format!("zs-alice-{secret_of}"),
        format!("xs_alice_{secret_of}"),
        format!("zs_alice_ {secret_of}"),
        format!("zs_alice_{secret_of} "),
        format!("{good}{good}"),
        format!("{good},{good}"),
        format!("{good}\t"),
        format!("\"{good}\""),
        format!("{good}."),
        format!("{good}="),
        secret_of.clone(),
        digest,
        good.to_uppercase(),
        good.chars().rev().collect(),
        "null".to_owned(),
        "undefined".to_owned(),
        "*".to_owned(),
        token("bob"),
        token("late"),
        token("carol"),
        format!("zs_alice_{}", "s".repeat(10_000)),
    ];
    // Truncated tokens, and tokens with one flipped bit.
    forged.extend((1..good.len()).map(|length| good[..length].to_owned()));
    for (place, bit) in (0..good.len()).flat_map(|place| (0..7).map(move |bit| (place, bit))) {
        let mut bytes = good.clone().into_bytes();
        bytes[place] ^= 1 << bit;
        if bytes[place].is_ascii_graphic() {
            forged.push(String::from_utf8(bytes).unwrap());
        }
    }
    assert!(forged.len() >= 300, "{}", forged.len());
    for text in &forged {
        // Blanks around a header's value are no part of it.
        if text.trim() != good {
            refused(&server, "GET", url, &[("authorization", &format!("Bearer {text}"))]).await;
        }
        let escaped = text.bytes().fold(String::new(), |text, byte| format!("{text}%{byte:02X}"));
        refused(&server, "GET", &format!("{url}?token={}", &escaped[..escaped.len().min(6000)]), &[]).await;
    }
    for header in [
        good.clone(),
        format!("Basic {good}"),
        format!("Digest {good}"),
        format!("Token {good}"),
        format!("Bearer{good}"),
        format!("Bearer:{good}"),
        format!("Bearer,{good}"),
        format!("Bearer \u{e9}{good}"),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer Bearer {good}"),
        format!("AWS4-HMAC-SHA256 Credential={good}"),
        format!("AWS {good}"),
    ] {
        refused(&server, "GET", url, &[("authorization", &header)]).await;
        refused(&server, "GET", "/s3/m/arr/zarr.json", &[("authorization", &header)]).await;
    }
    let bearer = format!("Bearer {good}");
    let twice = [("authorization", &*bearer), ("authorization", &*bearer)];
    ask(&server, "GET", url, &twice, "").await.refuses(400, "several-credentials", "twice");
    for (url, headers) in [
        (format!("{url}?token={good}&token={good}"), None),
        (format!("{url}?token={good}"), Some(("authorization", &*bearer))),
    ] {
        refused(&server, "GET", &url, &headers.into_iter().collect::<Vec<_>>()).await;
    }
    for method in ["PUT", "PATCH", "DELETE", "PROPFIND", "MKCOL", "COPY", "MOVE", "POST"] {
        refused(&server, method, &format!("{url}?token={good}"), &[]).await;
    }
    // In places where credentials are not expected.
    for name in ["x-api-key", "cookie", "proxy-authorization", "x-authorization", "x-amz-security-token"] {
        refused(&server, "GET", url, &[(name, &bearer)]).await;
    }
    for name in ["Token", "access_token", "tokens", "token[]", "%74oken", "api_key"] {
        refused(&server, "GET", &format!("{url}?{name}={good}"), &[]).await;
    }
}

#[tokio::test]
async fn a_signed_url_grants_no_more_than_was_signed() {
    let (server, _) = server(options(), &[]).await;
    let good = signed("k", "m", "arr/c/0", NOW + 1);
    let below = signed("k", "m", "g/", NOW + 1);
    let query = |url: &str| url.split_once('?').unwrap().1.to_owned();
    let (exact, all) = (query(&good), query(&below));
    for url in [
        good.clone(),
        format!("/store/m//arr///c/0?{exact}"),
        format!("/store/m/%61rr/c/0?{exact}&x=y"),
        format!("/s3/m/arr/c/0?{exact}"),
        below.clone(),
        format!("/store/m/g/in/c/1?{all}"),
        format!("/store/m/g/zarr.json?consolidated&{all}"),
        format!("/store/m/g/?format=json&{all}"),
        format!("/v1/data/m/g/in?slice=0&{all}"),
        format!("/v1/nodes/m/g/in?{all}"),
        format!("/plain/m/g/in/zarr.json?{all}"),
        signed("narrow", "m", "g/in/c/1", NOW + 9_999),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = ask(&server, method, &url, &[], "").await;
            assert_eq!(answer.status, 200, "{method} {url}: {:?}", answer.body);
        }
    }
    let part = |url: &str, name: &str| {
        let at = url.find(&format!("{name}=")).unwrap();
        url[at..].split('&').next().unwrap().to_owned()
    };
    let signature = part(&good, "signature");
    let flipped = signature.replace(&signature[10..12], if &signature[10..12] == "00" { "01" } else { "00" });
    let mut forged: Vec<String> = [
        // For another key, prefix, mount or route.
        "/store/m/arr/c/1",
        "/store/m/arr/c/",
        "/store/m/arr/c/0/",
        "/store/m/arr/c",
        "/store/m/arr/c/00",
        "/store/m/Arr/c/0",
        "/store/m/",
        "/store/other/arr/c/0",
        "/store/m/arr/c%2F0",
        "/store/m/arr/c/%30/x",
        "/plain/m/arr/c/0",
        "/unshard/m/arr/c/0",
        "/rechunk/m/auto/raw/arr/c/0",
        "/v1/data/m/arr",
        "/v1/stats/m/arr",
        "/v1/chunk/m/arr/c/0",
        "/v1/nodes/m/arr",
        "/v1/vectors/m/arr",
        "/s3/m",
        "/s3/other/arr/c/0",
    ]
    .map(|path| format!("{path}?{exact}"))
    .into();
    forged.extend(
        [
            "/store/m/zarr.json",
            "/store/m/arr/c/0",
            "/store/m/",
            "/store/m/g2",
            "/store/m/g2/x",
            "/store/other/g/zarr.json",
            "/v1/data/m/arr",
            "/v1/nodes/m",
            "/plain/m/zarr.json",
            "/s3/m?prefix=arr",
            "/s3/m?prefix=g",
            "/s3/m?prefix=",
        ]
        .map(|path| format!("{path}{}{all}", if path.contains('?') { '&' } else { '?' })),
    );
    forged.extend([
        // Another time, key or signature; too little, too much, or written otherwise.
        signed("k", "m", "arr/c/0", NOW),
        signed("k", "m", "arr/c/0", NOW - 1),
        signed("k", "m", "arr/c/0", 1),
        good.replace(&format!("expires={}", NOW + 1), &format!("expires={}", NOW + 2)),
        good.replace(&format!("expires={}", NOW + 1), &format!("expires=0{}", NOW + 1)),
        good.replace(&format!("expires={}", NOW + 1), &format!("expires=%2B{}", NOW + 1)),
        good.replace(&format!("expires={}", NOW + 1), &format!("expires={}.0", NOW + 1)),
        good.replace(&format!("expires={}", NOW + 1), "expires=9999999999999999999999"),
        good.replace(&format!("expires={}&", NOW + 1), ""),
        good.replace(&format!("expires={}", NOW + 1), "expires="),
        good.replace("key=k", "key=narrow"),
        good.replace("key=k", "key=K"),
        good.replace("key=k", "key="),
        good.replace("&key=k", ""),
        good.replace("key=k", "key=k&key=k"),
        good.replace(&signature, &flipped),
        good.replace(&signature, &signature.to_uppercase().replace("SIGNATURE", "Signature")),
        good.replace(&signature, "signature="),
        good.replace(&signature, &signature[..signature.len() - 1]),
        good.replace(&signature, &signature[..signature.len() - 2]),
        good.replace(&signature, &format!("{signature}0")),
        good.replace(&signature, &format!("{signature}&{signature}")),
        good.replace(&signature, &format!("signature={}", "0".repeat(64))),
        good.replace(&format!("&{signature}"), ""),
        format!("{good}&below=arr%2F"),
        format!("{good}&below="),
        format!("{good}&token={}", token("bob")),
        below.replace("below=g%2F", "below="),
        below.replace("below=g%2F", "below=g"),
        below.replace("below=g%2F", "below=%2F"),
        below.replace("&below=g%2F", ""),
        below.replace("below=g%2F", "below=g%2F&below="),
        // By a key that can give less.
        signed("narrow", "m", "arr/c/0", NOW + 1),
        signed("narrow", "m", "", NOW + 1),
        signed("narrow", "m", "g/", NOW + 1),
        signed("k", "other", "arr/c/0", NOW + 1),
        signed("k", "other", "", NOW + 1),
    ]);
    assert!(forged.len() >= 60, "{}", forged.len());
    for url in &forged {
        refused(&server, "GET", url, &[]).await;
        refused(&server, "HEAD", url, &[]).await;
    }
    for method in ["PUT", "PATCH", "DELETE", "PROPFIND", "MKCOL", "COPY", "MOVE", "POST"] {
        for url in [&good, &below] {
            refused(&server, method, url, &[("destination", "/store/m/x")]).await;
        }
    }
}

/// The links of an index page, as a browser reads them.
fn links(html: &str) -> Vec<String> {
    let lines = html.lines().filter_map(|line| line.strip_prefix("<a href=\"")?.split('"').next());
    lines.map(|link| link.replace("&amp;", "&")).collect()
}

#[tokio::test]
async fn every_link_of_a_listing_opened_by_a_signed_url_works() {
    let (server, _) = server(options(), &[]).await;
    for prefix in ["", "arr/"] {
        let mut open = vec![signed("k", "m", prefix, NOW + 10)];
        let (mut seen, mut values) = (Vec::new(), 0);
        while let Some(url) = open.pop() {
            let answer = ask(&server, "GET", &url, &[], "").await;
            assert_eq!(answer.status, 200, "{url}");
            let path = url.split('?').next().unwrap().to_owned();
            seen.push(path.clone());
            if !path.ends_with('/') {
                values += 1;
                continue;
            }
            for link in links(std::str::from_utf8(&answer.body).unwrap()) {
                let url = match link.strip_prefix("../") {
                    Some(query) => {
                        format!("{}/{query}", path.trim_end_matches('/').rsplit_once('/').unwrap().0)
                    }
                    None => format!("{path}{link}"),
                };
                if !seen.iter().any(|path| url.split('?').next() == Some(path)) {
                    open.push(url);
                }
            }
        }
        assert_eq!(values, if prefix.is_empty() { 8 } else { 3 }, "{seen:?}");
    }
}

#[tokio::test]
async fn links_of_a_listing_do_not_contain_the_token_of_its_url() {
    let (server, _) = server(options(), &[]).await;
    let answer = ask(&server, "GET", &format!("/store/m/?token={}", token("alice")), &[], "").await;
    assert_eq!(answer.status, 200);
    let html = std::str::from_utf8(&answer.body).unwrap();
    assert!(html.contains("<a href=\"arr/\">") && !html.contains(&secret("alice")), "{html}");
}
