//! Requests with wrong or ambiguous framing (RFC 9112): they are refused, and nothing after them is served.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::io::AsyncWriteExt;

use zarrd::config::ServerOptions;

use super::{OK, Plain, SHORT, Served, long_timeouts, until, until_closed};

async fn server() -> Served {
    let echo = |body: Body| async move {
        match to_bytes(body, 1 << 20).await {
            Ok(bytes) => (StatusCode::OK, bytes),
            Err(_) => (StatusCode::BAD_REQUEST, "broken".into()),
        }
    };
    let routes = Router::new().route("/ok", get(|| async { "ok" })).route("/echo", post(echo));
    Served::start(
        Plain(routes),
        ServerOptions { idle_timeout: SHORT, header_timeout: SHORT, ..long_timeouts() },
    )
    .await
}

/// The bytes after each, which must not be read as a request.
const NEXT: &str = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn a_request_with_wrong_framing_is_refused_and_ends_the_connection() {
    let server = server().await;
    let post = |fields: &str| format!("POST /echo HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
    for (request, status) in [
        // Which host (RFC 9112, section 3.2).
        ("GET /ok HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nhOST: y\r\n\r\n".to_owned(), 400),
        // How the body is sent (section 6.1).
        (post("Transfer-Encoding: gzip, chunked\r\n"), 501),
        (post("Transfer-Encoding: chunked, chunked\r\n"), 501),
        (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 501),
        (post("Transfer-Encoding: identity\r\n"), 400),
        (post("Transfer-Encoding: chunked, gzip\r\n"), 400),
        (post("Transfer-Encoding: xchunked\r\n"), 400),
        (post("Transfer-Encoding:\r\n"), 400),
        (post("Transfer-Encoding : chunked\r\n"), 400),
        // How long it is (section 6.2, RFC 9110, section 8.6).
        (post("Content-Length: +4\r\n"), 400),
        (post("Content-Length: -4\r\n"), 400),
        (post("Content-Length: 0x4\r\n"), 400),
        (post("Content-Length: 4 4\r\n"), 400),
        (post("Content-Length: 4, 5\r\n"), 400),
        (post("Content-Length: 4\r\nContent-Length: 5\r\n"), 400),
        (post("Content-Length: four\r\n"), 400),
        (post("Content-Length:\r\n"), 400),
        (post("Content-Length: 9223372036854775808\r\n"), 400),
        // hyper has a status of its own for the largest number.
        (post("Content-Length: 18446744073709551615\r\n"), 431),
        (post("Content-Length: 18446744073709551616\r\n"), 400),
        (post("Content-Length: 99999999999999999999999\r\n"), 400),
        // Fields (section 5).
        ("GET /ok HTTP/1.1\r\nHost : x\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\n Host: x\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nA\0: b\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nA b\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nA(b): c\r\n\r\n".to_owned(), 400),
        // The line (section 3).
        ("GET /ok HTTP/1.1\rHost: x\r\n\r\n".to_owned(), 400),
        ("GET /o k HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET  /ok HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.2\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/9.9\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET /ok\r\n\r\n".to_owned(), 400),
        ("GET /ok# HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET /ok#/../other HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET /ok?a#b HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET http://x/ok#b HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("OPTIONS *#b HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        // Line ends (section 2.2): a proxy may take a line feed alone for part of a value.
        ("GET /ok HTTP/1.1\nHost: x\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\r\nHost: x\r\n\n".to_owned(), 400),
        ("GET /ok HTTP/1.1\nHost: x\n\n".to_owned(), 400),
        ("\nGET /ok HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("G(T /ok HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
    ] {
        let refused = server.ask(format!("{request}{NEXT}")).await;
        assert!(refused.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?} was answered {refused:?}");
        assert_eq!(refused.matches("HTTP/1.").count(), 1, "{request:?}: one answer, in {refused:?}");
    }
    server.serves_others().await;
}

#[tokio::test]
async fn wrong_chunked_coding_ends_the_request_and_the_connection() {
    let server = server().await;
    for chunks in [
        "10000000000000004\r\nabcd\r\n0\r\n\r\n",
        "-4\r\nabcd\r\n0\r\n\r\n",
        "+4\r\nabcd\r\n0\r\n\r\n",
        "0x4\r\nabcd\r\n0\r\n\r\n",
        "4 4\r\nabcd\r\n0\r\n\r\n",
        "g\r\nabcd\r\n0\r\n\r\n",
        "\r\nabcd\r\n0\r\n\r\n",
        "4\rabcd\r\n0\r\n\r\n",
        "4\r\nabcde\r\n0\r\n\r\n",
        "5\r\nabcd\r\n0\r\n\r\n",
        "4\r\nabcd0\r\n\r\n",
        "4\r\nabcd\r\n0\r\nA b\r\n\r\n",
    ] {
        let head = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let refused = server.ask(format!("{head}{chunks}{NEXT}")).await;
        // Whether it gets an error or is disconnected, nothing of it is accepted, and nothing after it is read as a request.
        assert!(!refused.contains(" 200 "), "{chunks:?} was answered {refused:?}");
        assert!(refused.matches("HTTP/1.").count() <= 1, "{chunks:?} was answered {refused:?}");
    }
    server.serves_others().await;
}

/// The second request of a connection, behind a body of each kind, with and without a pause in which the first is answered.
#[tokio::test]
async fn requests_after_a_body_obey_the_same_framing_rules() {
    let server = server().await;
    let body = "GET /o#k HTTP/1.1\nHost: x\n\n";
    let length = body.len();
    let firsts = [
        format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"),
        format!(
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{length:X};a=b\r\n{body}\r\n0\r\nA: b\r\n\r\n"
        ),
        "GET /ok HTTP/1.1\r\nHost: x\r\nReferer: /#\r\n\r\n".to_owned(),
    ];
    for first in firsts {
        for (second, status) in [
            ("GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),
            ("\r\nGET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),
            ("GET /ok#x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
            ("GET /ok HTTP/1.1\r\nHost: x\nConnection: close\r\n\r\n", 400),
        ] {
            let together = server.ask(format!("{first}{second}")).await;
            let mut stream = server.send(&first).await;
            let end = if first.starts_with("POST") { body } else { "ok" };
            let mut apart = until(&mut stream, end).await;
            for byte in second.as_bytes() {
                // The server may have refused already.
                if stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            apart.push_str(&until_closed(stream).await);
            for answers in [together, apart] {
                let (_, last) = answers.rsplit_once("HTTP/1.1 ").unwrap();
                assert!(answers.starts_with("HTTP/1.1 200 OK\r\n"), "{first:?} {second:?}: {answers:?}");
                assert!(last.starts_with(&status.to_string()), "{first:?} {second:?}: {answers:?}");
                assert_eq!(answers.matches("HTTP/1.1 ").count(), 2, "{answers:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_with_two_lengths_gets_one_response_and_ends_the_connection() {
    let server = server().await;
    for fields in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 30\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let head = format!("POST /echo HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        let answer = server.ask(format!("{head}3\r\nabc\r\n0\r\n\r\n{OK}")).await;
        assert_eq!(answer.matches("HTTP/1.").count(), 1, "{fields:?} was answered {answer:?}");
    }
}

#[tokio::test]
async fn unusual_but_unambiguous_framing_is_served() {
    let server = server().await;
    let close = "Connection: close\r\n";
    for (request, end) in [
        (format!("GET /ok HTTP/1.1\r\nhost:x\r\n{close}\r\n"), "ok"),
        (format!("GET /ok HTTP/1.1\r\nHost: \t x \t\r\n{close}\r\n"), "ok"),
        (format!("\r\n\r\nGET /ok HTTP/1.1\r\nHost: x\r\n{close}\r\n"), "ok"),
        (format!("GET http://x/ok HTTP/1.1\r\nHost: x\r\n{close}\r\n"), "ok"),
        ("GET /ok HTTP/1.0\r\n\r\n".to_owned(), "ok"),
        (format!("POST /echo HTTP/1.1\r\nHost: x\r\n{close}Content-Length: 4\r\n\r\nabcd"), "abcd"),
        (format!("POST /echo HTTP/1.1\r\nHost: x\r\n{close}Content-Length: 0004\r\n\r\nabcd"), "abcd"),
        (
            format!(
                "POST /echo HTTP/1.1\r\nHost: x\r\n{close}Transfer-Encoding: Chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"
            ),
            "abcd",
        ),
        (
            format!(
                "POST /echo HTTP/1.1\r\nHost: x\r\n{close}Transfer-Encoding: chunked\r\n\r\n0004;a=b\r\nabcd\r\n0\r\nA: b\r\n\r\n"
            ),
            "abcd",
        ),
    ] {
        let answer = server.ask(&request).await;
        assert!(
            answer.contains(" 200 OK\r\n") && answer.ends_with(&format!("\r\n\r\n{end}")),
            "{request:?}: {answer:?}"
        );
    }
}
