//! Keys of S3: what they may do, and what becomes of requests that they did not sign.

use ring::hmac;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{NOW, ask, get_as, grant, known, server, token};
use crate::support::server::{Answer, Server};

/// [`NOW`] as signatures have it.
const TIME: &str = "20270115T080000Z";
const SECRET: &str = "a secret of at least thirty-two letters";

/// Headers of a request, by name.
type Headers = Vec<(String, String)>;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A signer of its own, written from the description of AWS Signature Version 4.
struct Signer {
    id: &'static str,
    key: hmac::Key,
    scope: String,
    time: String,
}

impl Signer {
    fn new(id: &'static str, secret: &str, time: &str) -> Self {
        let day = &time[..8];
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{secret}").as_bytes());
        for part in [day, "eu-west-9", "s3", "aws4_request"] {
            key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        Self { id, key, scope: format!("{day}/eu-west-9/s3/aws4_request"), time: time.to_owned() }
    }

    fn sign(&self, text: &str) -> String {
        hex(hmac::sign(&self.key, text.as_bytes()).as_ref())
    }

    /// The headers of a signed request, and its signature. The URL is in canonical form already.
    fn headers(
        &self,
        method: &str,
        url: &str,
        payload: &str,
        more: &[(&str, &str)],
    ) -> (Vec<(String, String)>, String) {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let query: Vec<String> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
            .collect();
        let mut headers: Vec<(String, String)> =
            [("host", "here"), ("x-amz-content-sha256", payload), ("x-amz-date", &self.time)]
                .iter()
                .chain(more)
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
        headers.sort();
        let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let lines = lines.concat();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let canonical = format!("{method}\n{path}\n{}\n{lines}\n{names}\n{payload}", query.join("&"));
        let text = format!("AWS4-HMAC-SHA256\n{}\n{}\n{}", self.time, self.scope, hash(canonical.as_bytes()));
        let signature = self.sign(&text);
        let credential = format!("{}/{}", self.id, self.scope);
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}");
        headers.push(("authorization".to_owned(), authorization));
        (headers, signature)
    }

    async fn send(
        &self,
        server: &Server,
        method: &str,
        url: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let (headers, _) = self.headers(method, url, &hash(body.as_bytes()), more);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        ask(server, method, url, &headers, body).await
    }
}

fn code(answer: &Answer) -> String {
    let text = std::str::from_utf8(&answer.body).unwrap();
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    code.map_or(String::new(), |(code, _)| code.to_owned())
}

fn keys() -> serde_json::Value {
    let key = |id: &str, grants: serde_json::Value| json!({ "access_key_id": id, "secret_access_key": SECRET, "grants": grants });
    let all = ["read", "list", "write", "delete"];
    let mut old = key("OLD", json!([grant("m", "", &all)]));
    old["expires"] = json!("2020-01-01");
    json!({
        "tokens": { "alice": known("alice", [grant("m", "", &all)]) },
        "s3_keys": {
            "all": key("ALL", json!([grant("m", "", &all)])),
            "below": key("BELOW", json!([grant("m", "g", &["write", "read"])])),
            "reads": key("READS", json!([grant("*", "", &["read", "list"])])),
            "old": old,
        },
    })
}

#[tokio::test]
async fn a_request_without_a_signature_is_answered_with_what_to_sign_with() {
    let (server, _) = server(keys(), &[]).await;
    let answer = ask(&server, "GET", "/s3/m/arr/c/0", &[], "").await;
    let said = std::str::from_utf8(&answer.body).unwrap();
    assert!(code(&answer) == "AccessDenied" && said.contains("with a key of `access.s3_keys`"), "{said}");
}

#[tokio::test]
async fn a_key_may_do_what_it_is_granted_and_no_more() {
    let (server, _) = server(keys(), &[]).await;
    let [all, below, reads] = ["ALL", "BELOW", "READS"].map(|id| Signer::new(id, SECRET, TIME));
    let copied = [("x-amz-copy-source", "other/arr/c/0")];
    let own = [("x-amz-copy-source", "m/arr/c/0")];
    let erases = "<Delete><Object><Key>g/a</Key></Object><Object><Key>g/b</Key></Object></Delete>";
    for (signer, method, url, more, body, status, expected) in [
        (&all, "PUT", "/s3/m/new", &[][..], "x", 200, ""),
        (&all, "PUT", "/s3/m/a%20b%2Bc", &[], "x", 200, ""),
        (&all, "GET", "/s3/m/a%20b%2Bc", &[], "", 200, ""),
        (&all, "GET", "/s3/m?list-type=2&prefix=a%20b", &[], "", 200, ""),
        (&all, "PUT", "/s3/other/new", &[], "x", 403, "AccessDenied"),
        (&all, "PUT", "/s3/none/new", &[], "x", 403, "AccessDenied"),
        (&all, "PUT", "/s3/m/copy", &copied, "", 403, "AccessDenied"),
        (&all, "PUT", "/s3/m/copy", &own, "", 200, ""),
        (&below, "PUT", "/s3/m/g/a", &[], "x", 200, ""),
        (&below, "PUT", "/s3/m/ga", &[], "x", 403, "AccessDenied"),
        (&below, "PUT", "/s3/m/g/copy", &own, "", 403, "AccessDenied"),
        (&below, "POST", "/s3/m/g/a?uploads", &[], "", 200, ""),
        (&below, "POST", "/s3/m/h?uploads", &[], "", 403, "AccessDenied"),
        (
            &below,
            "DELETE",
            "/s3/m/g/a?uploadId=00000000000000000000000000000000",
            &[],
            "",
            404,
            "NoSuchUpload",
        ),
        (&below, "GET", "/s3/m/h?uploadId=00000000000000000000000000000000", &[], "", 403, "AccessDenied"),
        (&below, "DELETE", "/s3/m/g/a", &[], "", 403, "AccessDenied"),
        (&below, "GET", "/s3/m", &[], "", 403, "AccessDenied"),
        (&below, "POST", "/s3/m?delete", &[], erases, 200, "AccessDenied"),
        (&reads, "GET", "/s3/m/arr/c/0", &[], "", 200, ""),
        (&reads, "GET", "/s3/other/arr/c/0", &[], "", 200, ""),
        (&reads, "PUT", "/s3/m/new", &[], "y", 403, "AccessDenied"),
        (&reads, "POST", "/s3/m/new?uploads", &[], "", 403, "AccessDenied"),
        (&reads, "GET", "/s3/m/new?uploadId=00000000000000000000000000000000", &[], "", 403, "AccessDenied"),
        (&all, "POST", "/s3/m?delete", &[], erases, 200, ""),
    ] {
        let answer = signer.send(&server, method, url, more, body).await;
        let found = (answer.status.as_u16(), code(&answer));
        assert_eq!(found, (status, expected.to_owned()), "{} {method} {url}: {:?}", signer.id, answer.body);
    }
    assert_eq!(&get_as(&server, &token("alice"), "/s3/m/new").await.body[..], b"x", "tokens go on working");
    assert_eq!(ask(&server, "GET", "/s3/m/new", &[], "").await.status, 401);
    assert_eq!(NOW, 1_800_000_000, "{TIME} is that");
}

#[tokio::test]
async fn what_a_key_did_not_sign_is_refused_and_changes_nothing() {
    let (server, _) = server(keys(), &[]).await;
    let put = async |signer: &Signer, change: &dyn Fn(&mut Headers), body: &str| {
        let (mut headers, _) = signer.headers("PUT", "/s3/m/new", &hash(b"right"), &[]);
        change(&mut headers);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let answer = ask(&server, "PUT", "/s3/m/new", &headers, body).await;
        (answer.status.as_u16(), code(&answer))
    };
    let nothing: &dyn Fn(&mut Headers) = &|_| {};
    let add = |name: &'static str, value: &'static str| {
        move |headers: &mut Vec<(String, String)>| headers.push((name.to_owned(), value.to_owned()))
    };
    let replace = |name: &'static str, value: &'static str| {
        move |headers: &mut Vec<(String, String)>| {
            headers.retain(|(given, _)| given != name);
            headers.push((name.to_owned(), value.to_owned()));
        }
    };
    let all = Signer::new("ALL", SECRET, TIME);
    let unsigned = "UNSIGNED-PAYLOAD";
    for (signer, change, body, status, expected) in [
        (&Signer::new("NONE", SECRET, TIME), nothing, "right", 403, "InvalidAccessKeyId"),
        (&Signer::new("OLD", SECRET, TIME), nothing, "right", 403, "InvalidAccessKeyId"),
        (&Signer::new("ALL", "another secret", TIME), nothing, "right", 403, "SignatureDoesNotMatch"),
        (&Signer::new("ALL", SECRET, "20270115T074459Z"), nothing, "right", 403, "RequestTimeTooSkewed"),
        (&Signer::new("ALL", SECRET, "20270115T081501Z"), nothing, "right", 403, "RequestTimeTooSkewed"),
        (&all, nothing, "wrong", 400, "XAmzContentSHA256Mismatch"),
        (&all, &replace("x-amz-content-sha256", unsigned), "wrong", 403, "SignatureDoesNotMatch"),
        (&all, &replace("host", "another"), "right", 403, "SignatureDoesNotMatch"),
        (&all, &add("x-amz-meta-a", "1"), "right", 403, "AccessDenied"),
        (&all, &add("authorization", "Bearer x"), "right", 400, "AuthorizationHeaderMalformed"),
        (&all, &replace("authorization", "AWS ALL:x"), "right", 400, "InvalidArgument"),
        (&all, &replace("authorization", "AWS4-HMAC-SHA256 x"), "right", 400, "AuthorizationHeaderMalformed"),
    ] {
        assert_eq!(put(signer, change, body).await, (status, expected.to_owned()), "{} {body}", signer.id);
        assert_eq!(get_as(&server, &token("alice"), "/store/m/new").await.status, 404);
    }
    assert_eq!(put(&all, nothing, "right").await.0, 200);
}

#[tokio::test]
async fn a_wrong_signature_of_a_chunk_leaves_nothing() {
    let (server, _) = server(keys(), &[]).await;
    let signer = Signer::new("ALL", SECRET, TIME);
    let chunks = ["0123456789".repeat(10_000), "the end".to_owned(), String::new()];
    let length = chunks.iter().map(String::len).sum::<usize>().to_string();
    let payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
    let more = [
        ("content-encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", &length),
        ("x-amz-trailer", "x-amz-checksum-crc32c"),
    ];
    let sum = base64::Engine::encode(
        &base64::prelude::BASE64_STANDARD,
        zarrd::codec::crc32c_append(0, chunks.concat().as_bytes()).to_be_bytes(),
    );
    // Which signature is wrong: of the chunks in their order, then of the trailer; and whether a byte is.
    let send = async |url: &str, wrong: usize, is_other: bool| {
        let (headers, mut last) = signer.headers("PUT", url, payload, &more);
        let mut body = String::new();
        let sign = |last: &str, kind: &str, rest: &str| {
            signer
                .sign(&format!("AWS4-HMAC-SHA256-{kind}\n{}\n{}\n{last}\n{rest}", signer.time, signer.scope))
        };
        for (index, chunk) in chunks.iter().enumerate() {
            last = sign(&last, "PAYLOAD", &format!("{}\n{}", hash(b""), hash(chunk.as_bytes())));
            let signature = if index == wrong { "0".repeat(64) } else { last.clone() };
            let chunk = if is_other && index == 1 { "the eND" } else { chunk };
            body = format!("{body}{:x};chunk-signature={signature}\r\n{chunk}", chunk.len());
            body += if chunk.is_empty() { "" } else { "\r\n" };
        }
        let field = format!("x-amz-checksum-crc32c:{sum}");
        let signature = sign(&last, "TRAILER", &hash(format!("{field}\n").as_bytes()));
        let signature = if wrong == 3 { "0".repeat(64) } else { signature };
        body = format!("{body}{field}\r\nx-amz-trailer-signature:{signature}\r\n\r\n");
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        ask(&server, "PUT", url, &headers, &body).await
    };
    for (wrong, is_other) in [(0, false), (1, false), (2, false), (3, false), (9, true)] {
        let answer = send("/s3/m/chunked", wrong, is_other).await;
        assert_eq!(
            (answer.status.as_u16(), code(&answer).as_str()),
            (403, "SignatureDoesNotMatch"),
            "{wrong}"
        );
        assert_eq!(get_as(&server, &token("alice"), "/store/m/chunked").await.status, 404, "{wrong}");
    }
    let answer = send("/s3/m/chunked", 9, false).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-amz-checksum-crc32c")), (200, &*sum), "{answer:?}");
    let stored = get_as(&server, &token("alice"), "/store/m/chunked").await;
    assert_eq!(stored.body, chunks.concat());
}
