//! Memory that is short: budgets that cannot be kept are refused, and connections do not stay.

use axum::body::Body;
use axum::http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zarrd::app::{Limits, Routes, Shutdown, serve};
use zarrd::config::ServerOptions;
use zarrd::http::{HttpOptions, Peer};

use crate::support::client;
use crate::support::process::{text, zarrd};

#[test]
fn budgets_that_add_up_to_more_than_there_is_are_refused_by_name() {
    let output = zarrd(&["serve", "--demo", "--listen", "127.0.0.1:0"])
        .env("ZARRD__SERVER__MEMORY_LIMIT_BYTES", (512 << 20).to_string())
        .output()
        .unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(78), String::new()));
    let message = text(&output.stderr);
    for part in ["512 MiB", "`server.memory_limit_bytes`", "`cache.decoded_bytes`", "`http.inflight_bytes`"] {
        assert!(message.contains(part), "{message}");
    }
}

/// Routes of a server whose memory is short.
#[derive(Clone, Debug)]
struct Short;

impl Routes for Short {
    async fn answer(&self, _: Request<Body>, _: Peer) -> Response<Body> {
        Response::new(Body::from("here"))
    }

    fn keeps_connections(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn while_memory_is_short_each_answer_is_the_last_of_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits::of(&ServerOptions::default(), HttpOptions::default().headers);
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
