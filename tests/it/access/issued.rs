//! JSON Web Tokens: tokens that an issuer signed, forged ones, and keys that come and go.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

use super::{NOW, TestWeb, ask, get_as, grant, server};
use crate::support::server::Server;

const RSA: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/access/rsa.pk8"));

fn text(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The keys of an issuer.
pub struct Keys {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    random: SystemRandom,
}

impl Keys {
    pub fn new() -> Self {
        let random = SystemRandom::new();
        let ecdsa = |by| {
            let document = EcdsaKeyPair::generate_pkcs8(by, &random).unwrap();
            EcdsaKeyPair::from_pkcs8(by, document.as_ref(), &random).unwrap()
        };
        let ed = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Self {
            rsa: RsaKeyPair::from_pkcs8(RSA).unwrap(),
            p256: ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            ed: Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap(),
            random,
        }
    }

    fn rsa_components(&self) -> PublicKeyComponents<Vec<u8>> {
        PublicKeyComponents::from(self.rsa.public())
    }

    fn rsa_jwk(&self, kid: &str) -> Value {
        let PublicKeyComponents { n, e } = self.rsa_components();
        json!({ "kty": "RSA", "kid": kid, "n": text(n), "e": text(e) })
    }

    /// The set as an issuer serves it.
    pub fn set(&self) -> Value {
        let point = |key: &EcdsaKeyPair| {
            let point = key.public_key().as_ref()[1..].to_vec();
            let (x, y) = point.split_at(point.len() / 2);
            (text(x), text(y))
        };
        let ((x256, y256), (x384, y384)) = (point(&self.p256), point(&self.p384));
        let mut only_512 = self.rsa_jwk("rsa-512-only");
        only_512["alg"] = json!("RS512");
        let mut for_encryption = self.rsa_jwk("rsa-enc");
        for_encryption["use"] = json!("enc");
        json!({ "keys": [
            self.rsa_jwk("rsa"), only_512, for_encryption,
            { "kty": "EC", "crv": "P-256", "kid": "p256", "x": x256, "y": y256, "use": "sig", "alg": "ES256" },
            { "kty": "EC", "crv": "P-384", "kid": "p384", "x": x384, "y": y384 },
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": text(self.ed.public_key()) },
            { "kty": "oct", "kid": "secret", "k": text("secret") },
            { "kty": "EC", "crv": "P-521", "kid": "odd" }, {}, 5,
        ] })
    }

    /// A token with this header and these claims, signed by the algorithm of the header's `alg`.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", text(header.to_string()), text(claims.to_string()));
        let signature = self.signature(header["alg"].as_str().unwrap_or("RS256"), message.as_bytes());
        format!("{message}.{}", text(signature))
    }

    fn signature(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let rsa = |by: &'static dyn ring::signature::RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(by, &self.random, message, &mut signature).unwrap();
            signature
        };
        match algorithm {
            "RS512" => rsa(&RSA_PKCS1_SHA512),
            "PS256" => rsa(&RSA_PSS_SHA256),
            "ES256" => self.p256.sign(&self.random, message).unwrap().as_ref().to_vec(),
            "ES384" => self.p384.sign(&self.random, message).unwrap().as_ref().to_vec(),
            "EdDSA" => self.ed.sign(message).as_ref().to_vec(),
            _ => rsa(&RSA_PKCS1_SHA256),
        }
    }
}

const ISSUER: &str = "https://login.example";

pub fn options() -> Value {
    let mut staff = grant("m", "g", &["read"]);
    staff["claim"] = json!("groups");
    staff["value"] = json!("staff");
    json!({ "issuers": { "corp": {
        "issuer": ISSUER, "audience": "zarrd", "algorithms": ["RS256", "PS256", "ES256", "EdDSA"],
        "jwks_url": "https://login.example/keys", "grants": [grant("m", "arr", &["read"]), staff],
    } } })
}

pub fn header(algorithm: &str, kid: &str) -> Value {
    json!({ "alg": algorithm, "kid": kid, "typ": "JWT" })
}

pub fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": "zarrd", "exp": NOW + 600, "nbf": NOW - 5, "iat": NOW, "sub": "alice", "groups": ["staff"] })
}

/// The same object with another member, or without one.
pub fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    if value == json!("(none)") {
        object.as_object_mut().unwrap().remove(name);
    } else {
        object[name] = value;
    }
    object
}

async fn status(server: &Server, token: &str) -> u16 {
    get_as(server, token, "/store/m/arr/c/0").await.status.as_u16()
}

async fn started(keys: &Keys) -> (Server, Arc<TestWeb>) {
    let (server, web) = server(options(), &[]).await;
    web.set(Some(&keys.set()));
    (server, web)
}

#[tokio::test]
async fn tokens_of_an_issuer_grant_what_their_claims_say() {
    let keys = Keys::new();
    let (server, web) = started(&keys).await;
    for (algorithm, kid) in [("RS256", "rsa"), ("PS256", "rsa"), ("ES256", "p256"), ("EdDSA", "ed")] {
        assert_eq!(status(&server, &keys.sign(&header(algorithm, kid), &claims())).await, 200, "{algorithm}");
    }
    let of = |name: &str, value: Value| keys.sign(&header("EdDSA", "ed"), &with(&claims(), name, value));
    for (name, value) in [
        ("aud", json!(["other", "zarrd"])),
        ("exp", json!(NOW - 59)),
        ("exp", json!(1_800_000_000.5)),
        ("nbf", json!(NOW + 60)),
        ("nbf", json!("(none)")),
        ("iat", json!("(none)")),
        ("sub", json!("(none)")),
    ] {
        assert_eq!(status(&server, &of(name, value.clone())).await, 200, "{name} {value}");
    }
    for (groups, granted) in [
        (json!(["staff"]), true),
        (json!(["a", "staff"]), true),
        (json!("staff"), true),
        (json!("a staff b"), true),
        (json!(["staffs"]), false),
        (json!("staffs"), false),
        (json!({ "staff": true }), false),
        (json!("(none)"), false),
    ] {
        let token = of("groups", groups.clone());
        let answer = get_as(&server, &token, "/store/m/g/zarr.json").await;
        assert_eq!(answer.status, if granted { 200 } else { 403 }, "{groups}");
        assert_eq!(get_as(&server, &token, "/store/m/zarr.json").await.status, 403);
    }
    assert_eq!(web.fetches(), 1);
}

#[tokio::test]
async fn every_forged_token_of_an_issuer_is_rejected() {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (keys, others) = (Keys::new(), Keys::new());
    let (server, web) = started(&keys).await;
    let (head, body) = (header("RS256", "rsa"), claims());
    let good = keys.sign(&head, &body);
    assert_eq!(status(&server, &good).await, 200);
    let [first, second, third] = [0, 1, 2].map(|part| good.split('.').nth(part).unwrap().to_owned());

    let by_header = |name: &str, value: Value| keys.sign(&with(&head, name, value), &body);
    let by_claim = |name: &str, value: Value| keys.sign(&head, &with(&body, name, value));
    let unsigned = |header: &Value| format!("{}.{}.", text(header.to_string()), text(body.to_string()));
    let hmac_of = |header: &Value, secret: &[u8]| {
        let message = format!("{}.{}", text(header.to_string()), text(body.to_string()));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
        format!("{message}.{}", text(tag))
    };
    let jwk = others.set()["keys"][5].clone();
    let mut forged = vec![
        // Without a signature.
        unsigned(&header("none", "rsa")),
        unsigned(&header("None", "rsa")),
        unsigned(&header("NONE", "rsa")),
        unsigned(&head),
        format!("{}.{second}.{third}", text(header("none", "rsa").to_string())),
        // A public key taken for a secret.
        hmac_of(&header("HS256", "rsa"), &keys.rsa_components().n),
        hmac_of(&header("HS256", "rsa"), keys.rsa.public().as_ref()),
        hmac_of(&header("HS256", "rsa"), text(keys.rsa_components().n).as_bytes()),
        hmac_of(&header("HS256", "secret"), b"secret"),
        hmac_of(&header("RS256", "rsa"), keys.rsa.public().as_ref()),
        hmac_of(&header("HS256", "ed"), keys.ed.public_key().as_ref()),
        // By others, and by keys of another kind.
        others.sign(&header("ES256", "p256"), &body),
        others.sign(&header("EdDSA", "ed"), &body),
        others.sign(&with(&header("EdDSA", "ed"), "jwk", jwk.clone()), &body),
        keys.sign(&header("RS256", "ed"), &body),
        keys.sign(&header("EdDSA", "rsa"), &body),
        keys.sign(&header("ES256", "p384"), &body),
        keys.sign(&header("ES256", "rsa"), &body),
        // By ways that are not the issuer's, or not the key's.
        keys.sign(&header("RS512", "rsa"), &body),
        keys.sign(&header("RS512", "rsa-512-only"), &body),
        keys.sign(&header("ES384", "p384"), &body),
        keys.sign(&header("RS256", "rsa-512-only"), &body),
        keys.sign(&header("RS256", "rsa-enc"), &body),
        keys.sign(&header("rs256", "rsa"), &body),
        keys.sign(&header("ES256K", "p256"), &body),
        by_header("alg", json!(null)),
        by_header("alg", json!(["RS256"])),
        by_header("alg", json!("(none)")),
        // By no known key.
        by_header("kid", json!("unknown")),
        by_header("kid", json!("(none)")),
        by_header("kid", json!("")),
        by_header("kid", json!(0)),
        by_header("kid", json!("../rsa")),
        by_header("kid", json!("RSA")),
        // Headers that bring, point to, or ask for more.
        by_header("crit", json!(["exp"])),
        by_header("crit", json!([])),
        by_header("jwk", jwk),
        by_header("jwk", json!(null)),
        by_header("jku", json!("https://evil.example/keys")),
        by_header("x5u", json!("https://evil.example/cert")),
        by_header("x5c", json!(["MIIB"])),
        by_header("b64", json!(false)),
        by_header("zip", json!("DEF")),
        by_header("typ", json!("JWE")),
        by_header("typ", json!(1)),
        // For others, from others, at another time.
        by_claim("iss", json!("https://login.example/")),
        by_claim("iss", json!("https://evil.example")),
        by_claim("iss", json!("(none)")),
        by_claim("iss", json!([ISSUER])),
        by_claim("aud", json!("other")),
        by_claim("aud", json!("(none)")),
        by_claim("aud", json!([])),
        by_claim("aud", json!({ "zarrd": true })),
        by_claim("aud", json!("zarrd other")),
        by_claim("exp", json!("(none)")),
        by_claim("exp", json!(null)),
        by_claim("exp", json!(NOW - 60)),
        by_claim("exp", json!(0)),
        by_claim("exp", json!(-1)),
        by_claim("exp", json!((NOW + 600).to_string())),
        by_claim("exp", json!([NOW + 600])),
        by_claim("nbf", json!(NOW + 61)),
        by_claim("nbf", json!("soon")),
        by_claim("nbf", json!(null)),
        by_claim("iat", json!(NOW + 61)),
        // Not well formed.
        format!("{first}.{second}"),
        format!("{first}.{second}."),
        format!(".{second}.{third}"),
        format!("{first}..{third}"),
        "..".to_owned(),
        "...".to_owned(),
        format!("{good}.{third}"),
        format!("{good}."),
        format!("{good}="),
        format!("{first}=.{second}.{third}"),
        format!("{first}.{second}.{}", &third[..third.len() - 1]),
        format!("{first}.{second}.{}", &third[..third.len() / 2]),
        format!("{first}.{second}.{third}AAAA"),
        format!("{first}.{}.{third}", text(with(&body, "sub", json!("root")).to_string())),
        format!("{}.{second}.{third}", text(with(&head, "x", json!(1)).to_string())),
        format!("{second}.{first}.{third}"),
        format!("{}.{second}.{third}", text("[]")),
        format!("{}.{second}.{third}", text("null")),
        format!("{}.{second}.{third}", text("{")),
        format!("{first}.{}.{third}", text("[1]")),
        format!("{first}.{}.{third}", text([0xff, 0xfe])),
        good.to_uppercase(),
        good.replace('.', " "),
        format!("zs_{good}"),
    ];
    let zeros = |bytes: usize| text(vec![0; bytes]);
    for (algorithm, kid, bytes) in [("ES256", "p256", 64), ("EdDSA", "ed", 64), ("RS256", "rsa", 256)] {
        forged.push(format!("{}.{second}.{}", text(header(algorithm, kid).to_string()), zeros(bytes)));
    }
    // One bit of each letter, including the unused bits of the last letter.
    let by_ed = keys.sign(&header("EdDSA", "ed"), &body);
    for (place, letter) in by_ed.bytes().enumerate().filter(|(_, letter)| *letter != b'.') {
        let at = LETTERS.iter().position(|other| *other == letter).unwrap();
        let mut bytes = by_ed.clone().into_bytes();
        bytes[place] = LETTERS[at ^ 1];
        forged.push(String::from_utf8(bytes).unwrap());
    }
    assert!(forged.len() >= 300, "{}", forged.len());
    for token in &forged {
        let refused = status(&server, token).await;
        assert_eq!(refused, 401, "{token}");
    }
    assert_eq!(status(&server, &good).await, 200);
    assert_eq!(web.fetches(), 1, "keys that are known a moment ago are not asked for again");
}

#[tokio::test(start_paused = true)]
async fn invented_key_ids_cause_one_request_a_minute_to_the_issuer() {
    let keys = Keys::new();
    let (server, web) = started(&keys).await;
    let good = keys.sign(&header("EdDSA", "ed"), &claims());
    assert_eq!(status(&server, &good).await, 200);
    assert_eq!(web.fetches(), 1);
    tokio::time::advance(Duration::from_secs(61)).await;
    let forged = |number: usize| {
        let token = format!(
            "{}.{}.{}",
            text(header("EdDSA", &number.to_string()).to_string()),
            text(claims().to_string()),
            text([0; 64])
        );
        let server = server.clone();
        async move { status(&server, &token).await }
    };
    for round in 0..100 {
        let answers = futures::future::join_all((0..100).map(|number| forged(round * 100 + number))).await;
        assert!(answers.iter().all(|status| *status == 401), "{answers:?}");
    }
    assert_eq!(web.fetches(), 2, "one for 10,000 forged keys");
}

#[tokio::test(start_paused = true)]
async fn tokens_with_a_known_key_do_not_wait_for_an_issuer_that_hangs() {
    let keys = Keys::new();
    let (server, web) = started(&keys).await;
    let good = keys.sign(&header("EdDSA", "ed"), &claims());
    let waited = async || {
        let begun = tokio::time::Instant::now();
        assert_eq!(status(&server, &good).await, 200);
        begun.elapsed()
    };
    let fetched = async || tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(waited().await, Duration::ZERO);
    // Before they are old they are fetched again, without a delay for the caller.
    tokio::time::advance(Duration::from_mins(6)).await;
    assert_eq!(waited().await, Duration::ZERO);
    fetched().await;
    assert_eq!(web.fetches(), 2);
    tokio::time::advance(Duration::from_mins(4)).await;
    assert_eq!((waited().await, web.fetches()), (Duration::ZERO, 2));
    // Old ones are waited for, as the token's key may have been revoked; but not each time, where that is in vain.
    web.hang();
    tokio::time::advance(Duration::from_mins(20)).await;
    let once = waited().await;
    assert!(once > Duration::ZERO && once <= Duration::from_secs(10), "{once:?}");
    for _ in 0..10 {
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(waited().await, Duration::ZERO);
        fetched().await;
    }
    assert_eq!(web.fetches(), 13, "it is asked again once a minute");
}

#[tokio::test(start_paused = true)]
async fn keys_stay_valid_for_a_day_while_the_issuer_is_down() {
    let keys = Keys::new();
    let (server, web) = server(options(), &[]).await;
    let good = keys.sign(&header("EdDSA", "ed"), &claims());
    // The answer is not known yet.
    let answer = get_as(&server, &good, "/s3/").await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after").is_empty()), (503, false));
    web.set(Some(&keys.set()));
    assert_eq!(get_as(&server, &good, "/s3/").await.status, 503, "it was asked a moment ago");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(get_as(&server, &good, "/s3/").await.status, 200);
    web.set(None);
    for hours in [1, 10, 12] {
        tokio::time::advance(Duration::from_hours(hours)).await;
        assert_eq!(get_as(&server, &good, "/s3/").await.status, 200);
    }
    tokio::time::advance(Duration::from_hours(2)).await;
    assert_eq!(get_as(&server, &good, "/s3/").await.status, 503);
    // A token without a key ID is not waited for.
    assert_eq!(ask(&server, "GET", "/healthz", &[], "").await.status, 200);
    // Another key set: signatures by keys of the old one are no longer valid.
    let new = Keys::new();
    web.set(Some(&new.set()));
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(get_as(&server, &good, "/s3/").await.status, 401);
    assert_eq!(get_as(&server, &new.sign(&header("EdDSA", "ed"), &claims()), "/s3/").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn keys_stay_valid_for_a_day_across_a_configuration_reload() {
    let keys = Keys::new();
    let (server, web) = started(&keys).await;
    let good = keys.sign(&header("EdDSA", "ed"), &claims());
    assert_eq!(status(&server, &good).await, 200);
    let again = |options: Value| server.set_access(super::access(options, &[], &web));
    web.set(None);
    for hours in [0, 10, 13] {
        tokio::time::advance(Duration::from_hours(hours)).await;
        again(options());
        assert_eq!(status(&server, &good).await, 200, "{hours} hours later");
    }
    // Rights follow the new configuration.
    let mut fewer = options();
    fewer["issuers"]["corp"]["grants"] = json!([grant("m", "g", &["read"])]);
    again(fewer);
    assert_eq!(status(&server, &good).await, 403);
    again(options());
    assert_eq!(status(&server, &good).await, 200);
    tokio::time::advance(Duration::from_hours(2)).await;
    assert_eq!(status(&server, &good).await, 503, "reading it again makes them no younger");
    // Keys of other origin, for other algorithms or of another issuer are not these.
    for (member, other, expected) in [
        ("jwks_url", json!("https://other.example/keys"), 503),
        ("algorithms", json!(["EdDSA"]), 503),
        ("issuer", json!("https://other.example"), 401),
    ] {
        let (server, web) = started(&keys).await;
        assert_eq!(status(&server, &good).await, 200);
        web.set(None);
        let mut changed = options();
        changed["issuers"]["corp"][member] = other;
        server.set_access(super::access(changed, &[], &web));
        assert_eq!(status(&server, &good).await, expected, "{member}");
    }
}
