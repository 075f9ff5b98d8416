//! Amazon's own examples: "Signature calculations for the Authorization header" and "Authenticating requests: using query
//! parameters" in the S3 API reference.

use axum::body::Body;
use axum::extract::Request;
use sha2::{Digest, Sha256};

use super::{AwsError, AwsSignature, ChunkSigner};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const NOW: u64 = 1_369_353_600;
const HOST: &str = "examplebucket.s3.amazonaws.com";

fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request {
    let request = Request::builder().method(method).uri(uri);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Body::empty()).unwrap()
}

/// A request with `Authorization`; its other headers are the signed ones.
fn signed(method: &str, uri: &str, headers: &[(&str, &str)], signature: &str) -> Request {
    let mut names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders={},Signature={signature}",
        names.join(";")
    );
    request(method, uri, &[headers, &[("authorization", &authorization)]].concat())
}

fn verified(request: &Request, now: u64) -> Result<ChunkSigner, AwsError> {
    let found = AwsSignature::in_header(request)?.or(AwsSignature::in_query(request)?);
    found.unwrap().verify(SECRET, now)
}

fn examples() -> Vec<Request> {
    let date = ("x-amz-date", "20130524T000000Z");
    let plain = [("host", HOST), ("x-amz-content-sha256", EMPTY), date];
    let body = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    let put = [
        ("date", "Fri, 24 May 2013 00:00:00 GMT"),
        ("host", HOST),
        ("x-amz-content-sha256", body),
        date,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    vec![
        signed(
            "GET",
            "/test.txt",
            &[&plain[..], &[("range", "bytes=0-9")]].concat(),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        signed(
            "PUT",
            "/test$file.text",
            &put,
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        signed(
            "GET",
            "/?lifecycle",
            &plain,
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        signed(
            "GET",
            "/?prefix=J&max-keys=2",
            &plain,
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ]
}

fn presigned() -> Request {
    let uri = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F\
               aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&\
               X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    request("GET", uri, &[("host", HOST)])
}

#[test]
fn the_published_examples_are_right_and_any_change_to_them_is_wrong() {
    for example in examples().into_iter().chain([presigned()]) {
        assert!(verified(&example, NOW).is_ok(), "{example:?}");
        let again = || {
            let mut again = request(example.method().as_str(), &example.uri().to_string(), &[]);
            *again.headers_mut() = example.headers().clone();
            again
        };
        let mut method = again();
        *method.method_mut() = axum::http::Method::DELETE;
        let mut path = again();
        *path.uri_mut() = example.uri().to_string().replacen('/', "/x", 1).parse().unwrap();
        let mut query = again();
        let separator = if example.uri().query().is_some() { '&' } else { '?' };
        *query.uri_mut() = format!("{}{separator}x=1", example.uri()).parse().unwrap();
        let mut host = again();
        host.headers_mut().insert("host", "other".parse().unwrap());
        for changed in [method, path, query, host] {
            assert_eq!(verified(&changed, NOW).map(drop), Err(AwsError::Mismatch), "{changed:?}");
        }
        let mut header = again();
        header.headers_mut().insert("x-amz-meta-a", "1".parse().unwrap());
        assert_eq!(verified(&header, NOW).map(drop), Err(AwsError::Unsigned("x-amz-*")));
    }
    let other =
        |secret: &str| AwsSignature::in_query(&presigned()).unwrap().unwrap().verify(secret, NOW).is_ok();
    assert!(other(SECRET) && !other("") && !other(&SECRET.to_lowercase()));
}

#[test]
fn times_that_are_far_from_that_of_the_server_are_refused() {
    for example in examples() {
        for (now, outcome) in [
            (NOW - 900, Ok(())),
            (NOW + 900, Ok(())),
            (NOW - 901, Err(AwsError::Skewed)),
            (NOW + 901, Err(AwsError::Skewed)),
        ] {
            assert_eq!(verified(&example, now).map(drop), outcome);
        }
    }
    for (now, outcome) in [
        (NOW - 900, Ok(())),
        (NOW + 86_400, Ok(())),
        (NOW + 86_401, Err(AwsError::Expired)),
        (NOW - 901, Err(AwsError::Skewed)),
    ] {
        assert_eq!(verified(&presigned(), now).map(drop), outcome);
    }
}

fn chunked(payload: &str, trailer: &[(&str, &str)], length: &[(&str, &str)], seed: &str) -> ChunkSigner {
    let headers = [
        ("content-encoding", "aws-chunked"),
        ("host", "s3.amazonaws.com"),
        ("x-amz-content-sha256", payload),
        ("x-amz-date", "20130524T000000Z"),
        ("x-amz-decoded-content-length", "66560"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    let request =
        signed("PUT", "/examplebucket/chunkObject.txt", &[&headers[..], trailer, length].concat(), seed);
    verified(&request, NOW).unwrap()
}

#[test]
fn the_published_chunks_are_right_in_their_order_alone() {
    let sums = [vec![b'a'; 65_536], vec![b'a'; 1024], vec![]].map(|chunk| Sha256::digest(chunk).into());
    let plain = [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ];
    let begin = || {
        let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        chunked("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", &[], &[("content-length", "66824")], seed)
    };
    let mut signer = begin();
    for (sum, signature) in sums.iter().zip(plain) {
        assert!(signer.check_chunk(sum, signature));
    }
    assert!(!begin().check_chunk(&sums[1], plain[1]), "the second chunk is not the first");
    assert!(!begin().check_chunk(&sums[1], plain[0]), "other bytes");
    for bad in ["", "x", &plain[0][1..]] {
        assert!(!begin().check_chunk(&sums[0], bad));
    }

    let seed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
    let trailer = [("x-amz-trailer", "x-amz-checksum-crc32c")];
    let mut signer = chunked("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", &trailer, &[], seed);
    for (sum, signature) in sums.iter().zip([
        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
    ]) {
        assert!(signer.check_chunk(sum, signature));
    }
    let fields = |value: &str| [("x-amz-checksum-crc32c".to_owned(), value.to_owned())];
    let signature = "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435";
    assert!(!signer.clone().check_trailer(&fields("AAAAAA=="), signature));
    assert!(signer.check_trailer(&fields("sOO8/Q=="), signature));
}

#[test]
fn what_cannot_be_a_signature_is_refused_without_a_check() {
    let date = ("x-amz-date", "20130524T000000Z");
    let hash = ("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    let hex = "0".repeat(64);
    let of = |authorization: &str, headers: &[(&str, &str)]| {
        let request =
            request("GET", "/", &[headers, &[("host", HOST), ("authorization", authorization)]].concat());
        AwsSignature::in_header(&request).map(|found| found.is_some())
    };
    let scope = "k/20130524/r/s3/aws4_request";
    let right =
        format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature={hex}");
    assert_eq!(of(&right, &[date, hash]), Ok(true));
    assert_eq!(of(&right, &[date]), Err(AwsError::NoPayloadHash));
    assert_eq!(of("Bearer x", &[]), Ok(false));
    for other in ["AWS key:signature", "AWS4-ECDSA-P256-SHA256 Credential=x"] {
        assert_eq!(of(other, &[date, hash]), Err(AwsError::Algorithm));
    }
    let without_host = right.replace("host;", "");
    assert_eq!(of(&without_host, &[date, hash]), Err(AwsError::Unsigned("host")));
    for wrong in [
        right.replace("s3/", "ec2/"),
        right.replace("20130524", "20130525"),
        right.replace("/r/", "/"),
        right.replace("aws4_request", "aws4"),
        right.replace(&hex, "00"),
        right.replace("host;", "host;none;"),
        right.replace("Signature=", "Other="),
        format!("{right}, Signature={hex}"),
        "AWS4-HMAC-SHA256 x".to_owned(),
        "AWS4-HMAC-SHA256 ".to_owned(),
    ] {
        assert!(matches!(of(&wrong, &[date, hash]), Err(AwsError::Malformed(_))), "{wrong}");
    }
    for time in ["20130524", "20130524T000000", "20130524T0000é0Z", "20131324T000000Z", "20130524T250000Z"] {
        assert!(matches!(of(&right, &[("x-amz-date", time), hash]), Err(AwsError::Malformed(_))), "{time}");
    }
    for (from, to) in [
        ("86400", "604801"),
        ("86400", "-1"),
        ("X-Amz-Date", "X-Amz-Day"),
        ("/test", "/test?X-Amz-Signature=1&x="),
    ] {
        let uri = presigned().uri().to_string().replacen(from, to, 1);
        let request = request("GET", &uri, &[("host", HOST)]);
        assert!(AwsSignature::in_query(&request).is_err(), "{uri}");
    }
}
