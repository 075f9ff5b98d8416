//! Shutdown under load: every admitted request gets a complete response.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;
use zarrd::config::ServerOptions;

use super::{BOUND, Plain, Served, long_timeouts, until, until_closed};

const LARGE: usize = 4 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admitted_requests_are_answered_completely_at_shutdown() {
    let slow = || async {
        sleep(Duration::from_millis(20)).await;
        "done"
    };
    let routes = Router::new().route("/slow", get(slow)).route("/large", get(|| async { vec![b'x'; LARGE] }));
    let served =
        Served::start(Plain(routes), ServerOptions { drain_timeout: BOUND, ..long_timeouts() }).await;
    let address = served.address;

    // Slow readers in the middle of a long response.
    let mut readers = Vec::new();
    for _ in 0..10 {
        let mut stream = served.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await;
        let begun = until(&mut stream, "\r\n\r\n").await;
        let got = begun.len() - begun.find("\r\n\r\n").unwrap() - 4;
        readers.push(tokio::spawn(async move {
            let (mut got, mut part) = (got, vec![0; 1 << 16]);
            while got < LARGE {
                let read = stream.read(&mut part).await.unwrap();
                assert!(read > 0, "cut off after {got} bytes");
                got += read;
                sleep(Duration::from_millis(5)).await;
            }
        }));
    }
    let mut halves = Vec::new();
    for _ in 0..20 {
        halves.push(served.send("GET /slow HTTP/1.1\r\nHo").await);
    }
    // Clients that connect until no connection is accepted.
    let answered = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let answered = Arc::clone(&answered);
            tokio::spawn(async move {
                while let Ok(mut stream) = TcpStream::connect(address).await {
                    let request = "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                    stream.write_all(request.as_bytes()).await.unwrap();
                    let answer = until_closed(stream).await;
                    assert!(answer.ends_with("\r\n\r\ndone"), "{answer:?}");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    while answered.load(Ordering::SeqCst) < 100 {
        sleep(Duration::from_millis(5)).await;
    }
    served.shutdown.advance();
    for client in clients {
        client.await.unwrap();
    }
    for half in halves {
        until_closed(half).await;
    }
    for reader in readers {
        reader.await.unwrap();
    }
    served.ended().await;
}
