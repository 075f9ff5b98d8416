//! Memory pressure: impossible budgets are refused, and connections are closed.

use axum::body::Body;
use axum::http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zarrd::app::{ConnectionLimits, RequestHandler, Shutdown, serve};
use zarrd::config::ServerOptions;
use zarrd::http::{HttpOptions, Peer};

use crate::support::client;
use crate::support::process::{Running, serving, text, zarrd};

#[test]
fn budgets_over_the_available_memory_are_refused_by_name() {
    let output = zarrd(&["serve", "--demo", "--listen", "127.0.0.1:0"])
        .env("ZARRD__SERVER__MAX_MEMORY", "512MiB")
        .env("ZARRD__CACHE__DECODED_SIZE", "1GiB")
        .output()
        .unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(78), String::new()));
    let message = text(&output.stderr);
    for part in ["512 MiB", "`server.max_memory`", "lower `cache.decoded_size`"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn budgets_follow_the_available_memory_and_are_reported() {
    for (limit, total) in [("512MiB", 512 << 20), ("64GiB", 64_u64 << 30)] {
        let mut command = serving();
        command.env("ZARRD__SERVER__MAX_MEMORY", limit);
        let server = Running::of(command);
        let memory = &server.get("/v1/mounts")["memory"];
        let most = memory["most_bytes"].as_u64().unwrap();
        assert_eq!(memory["total_bytes"], total);
        assert!(most <= total / 5 * 4 && most > total / 2, "{memory}");
        assert!(memory["budgets"]["cache.decoded_size"].as_u64().unwrap() >= total / 20, "{memory}");
    }
}

/// Routes of a server whose memory is short.
#[derive(Clone, Debug)]
struct Short;

impl RequestHandler for Short {
    async fn handle(self, _: Request<Body>, _: Peer) -> Response<Body> {
        Response::new(Body::from("here"))
    }

    fn keeps_connections(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn under_memory_pressure_every_response_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ConnectionLimits::new(ServerOptions::default(), HttpOptions::default().max_headers);
    tokio::spawn(serve(listener, Short, limits, Shutdown::default()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.to_ascii_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhere"), "{answer}");

    let http2 = client::builder().http2_prior_knowledge().build().unwrap();
    for _ in 0..3 {
        let answer = http2.get(format!("http://{address}/")).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "here");
    }
}
