//! Clients that disconnect within an upload: before its last byte nothing is visible or left behind; after it
//! the value is the complete old one or the complete new one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::client;
use crate::support::process::{Running, zarrd};
use crate::support::stamped::{Dice, number_of, value};

const KEY: &str = "a/b";
const BYTES: usize = 3 << 20;

/// Waits until no staging file is there; a disconnect is noticed soon, but not at once.
async fn nothing_is_staged(root: &Path) {
    let staging = root.join(".zarr-server/staging");
    for _ in 0..1_000 {
        if std::fs::read_dir(&staging).unwrap().count() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left behind: {:?}", std::fs::read_dir(&staging).unwrap().collect::<Vec<_>>());
}

/// Sends this many bytes of a PUT of `bytes`. Dropping the stream disconnects.
async fn send(server: &Running, bytes: &[u8], sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!("PUT /store/w/{KEY} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", bytes.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&bytes[..sent]).await.unwrap();
    stream
}

/// Waits until all bytes of a value are in its staging file, or it is the key's value already.
async fn has_arrived(root: &Path, number: u64) {
    let staging = root.join(".zarr-server/staging");
    for _ in 0..10_000 {
        let staged = std::fs::read_dir(&staging).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        // A PUT of before may still be staged, too.
        let is_it = |path: PathBuf| {
            std::fs::read(path).is_ok_and(|bytes| bytes.len() == BYTES && number_of(KEY, &bytes) == number)
        };
        if staged.chain([root.join(KEY)]).any(is_it) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{number} never came");
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_put_leaves_the_old_value_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = zarrd(&["serve", "--writable", &format!("w={}", folder.path().display())]);
    command.env("ZARRD__LOG__LEVEL", "error");
    let server = Running::of(command);
    let url = format!("http://{}/store/w/{KEY}", server.address);
    let read = || async {
        let answer = client::get(&url).await.unwrap();
        (answer.status(), answer.bytes().await.unwrap())
    };

    let mut dice = Dice::of(5);
    let first = value(KEY, 0, BYTES);
    for _ in 0..20 {
        // Up to all but the last byte.
        let sent = usize::try_from(dice.below(u64::try_from(BYTES).unwrap())).unwrap();
        drop(send(&server, &first, sent).await);
    }
    nothing_is_staged(folder.path()).await;
    assert_eq!(read().await.0, StatusCode::NOT_FOUND);
    assert!(!folder.path().join("a").exists(), "not even a directory");

    // The value that was read last, and the value of the last PUT that was not waited for: it may arrive late.
    let (mut last, mut late) = (None, None);
    for number in 1..20 {
        let stream = send(&server, &value(KEY, number, BYTES), BYTES).await;
        let wait = number % 2 == 0;
        if wait {
            has_arrived(folder.path(), number).await;
        }
        drop(stream);
        nothing_is_staged(folder.path()).await;
        let (status, body) = read().await;
        let found = (status == StatusCode::OK).then(|| number_of(KEY, &body));
        // One that arrives late may also replace this one.
        let is_earlier = found.is_some() && found == late || !wait && found == last;
        assert!(found == Some(number) || is_earlier, "{found:?} after {last:?} and {number}");
        (last, late) = (found, (!wait).then_some(number));
    }
}
