//! File descriptors: more connections than the process may open.

use std::time::Duration;

use futures::future::join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{BOUND, until_closed};
use crate::support::process::{Running, SMALL};

/// How long a refusal takes at most.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Lets this process have as many open files as it may.
pub fn have_many() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

#[tokio::test]
async fn a_flood_of_connections_is_survived_with_few_descriptors() {
    have_many();
    let mut command = std::process::Command::new("sh");
    let few = "ulimit -n 256 && exec \"$0\" \"$@\"";
    command.args(["-c", few, env!("CARGO_BIN_EXE_zarrd"), "serve", SMALL]);
    command.env_clear().env("ZARRD__LOG__LEVEL", "error").env("ZARRD__SERVER__HEADER_TIMEOUT", "1h");
    let mut server = Running::of(command);
    let mut held = Vec::new();
    for _ in 0..1000 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // A refused connection may be closed already.
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHo").await;
        held.push(stream);
    }
    // All that came above the limit are closed, the others kept: half of what is open may be connections.
    let ends =
        held.iter_mut().map(|stream| timeout(TIMEOUT, async { stream.read(&mut [0; 1]).await.is_ok() }));
    let open = join_all(ends).await.into_iter().filter(Result::is_err).count();
    assert_eq!(open, 128);
    assert!(server.child.try_wait().unwrap().is_none(), "the server is alive");
    drop(held);
    let normal = async {
        for url in ["/healthz", "/v1/data/m/none_C_i4?slice=0,0", "/store/m/none_C_i4/meta"] {
            loop {
                let mut stream = TcpStream::connect(server.address).await.unwrap();
                let request = format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(request.as_bytes()).await;
                if until_closed(stream).await.starts_with("HTTP/1.1 200 ") {
                    break;
                }
            }
        }
    };
    timeout(BOUND, normal).await.expect("the server is as before");
}
