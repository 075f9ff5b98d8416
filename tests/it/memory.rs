//! The server stays within its memory limit: under clients that hardly read, and while
//! it streams more than fits into memory.
//!
//! At full size by hand, with another binary than the one just built if its path is given:
//! `ZARRD_SELECTION_MIB=10240 ZARRD_BINARY=… cargo test --test it memory -- --nocapture`.
#![cfg(target_os = "linux")]

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::encode::Codec;
use crate::support::hierarchy::{Array, noise};
use crate::support::process::{Running, peak};
use crate::support::stamped::by_hand;

const READERS: usize = 64;
/// Callers that they are: of the budget for long responses, each leaves a part to others, so that one alone has not
/// enough for all.
const CALLERS: usize = 4;
/// Arrays that many readers read from.
const ARRAYS: usize = 8;
/// A `uint16` volume of planes of 512 KiB, in chunks of a quarter of 8 planes: 1 MiB each.
const EDGE: usize = 512;
const CHUNK: [usize; 3] = [8, EDGE / 2, EDGE / 2];
/// The element of absent chunks.
const FILL: u16 = 65_535;
const PLANE_BYTES: usize = EDGE * EDGE * 2;
/// Length of the value that is read as it is.
const VALUE_BYTES: usize = 48 << 20;
/// The bytes buffered by a reader's connection, and the pause after them.
const SIP_BYTES: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(10);

/// The number that a chunk's elements begin with; `None` for one that is not stored.
fn kind(coords: [usize; 3]) -> Option<u16> {
    let kind = (coords[0] * 4 + coords[1] * 2 + coords[2]) % 11;
    (kind > 0).then(|| u16::try_from(kind).unwrap())
}

/// The elements of a row within a chunk are equal: this many.
fn element(kind: Option<u16>, z: usize, y: usize) -> u16 {
    kind.map_or(FILL, |kind| kind + 11 * u16::try_from(z * CHUNK[1] + y).unwrap())
}

/// Whether bytes are those of the array from this place on, which is the start of a row.
fn is_right(at: usize, bytes: &[u8]) -> bool {
    let row_bytes = CHUNK[2] * 2;
    bytes.chunks(row_bytes).enumerate().all(|(row, found)| {
        let row = at / row_bytes + row;
        let (z, y, half) = (row / 2 / EDGE, row / 2 % EDGE, row % 2);
        let kind = kind([z / CHUNK[0], y / CHUNK[1], half]);
        let expected = element(kind, z % CHUNK[0], y % CHUNK[1]).to_le_bytes();
        // All alike: the first is right, and each is the one before it.
        found[..2] == expected && found[2..] == found[..found.len() - 2]
    })
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

/// Stores the volume, of this many planes, under this many names, and a value.
fn store(root: &Path, planes: usize, copies: usize) {
    let array =
        Array::of(&[planes, EDGE, EDGE]).chunks(&CHUNK).codecs([Codec::Bytes { big: false }, Codec::Zstd]);
    let array = array.members(json!({ "fill_value": FILL }));
    let document = array.document().1.to_string();
    (0..copies).for_each(|copy| write(root, &format!("{copy}/zarr.json"), document.as_bytes()));
    let chunks: Vec<Vec<u8>> = (1..11)
        .map(|kind| {
            let rows =
                (0..CHUNK[0] * CHUNK[1]).map(|row| element(Some(kind), row / CHUNK[1], row % CHUNK[1]));
            let elements: Vec<u8> = rows.flat_map(|row| row.to_le_bytes().repeat(CHUNK[2])).collect();
            zstd::bulk::compress(&elements, 1).unwrap()
        })
        .collect();
    for z in 0..planes / CHUNK[0] {
        for (y, x) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            if let Some(kind) = kind([z, y, x]) {
                let chunk = &chunks[usize::from(kind) - 1];
                (0..copies).for_each(|copy| write(root, &format!("{copy}/c/{z}/{y}/{x}"), chunk));
            }
        }
    }
    let block: Vec<u8> = noise(1).take(VALUE_BYTES / 64).collect();
    write(root, "value", &block.repeat(64));
}

/// The server, and the bound that it says it keeps, in bytes. Timeouts among the settings are in milliseconds.
fn start(root: &Path, settings: &[(&str, u64)]) -> (Running, u64) {
    let binary = std::env::var_os("ZARRD_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_zarrd").into());
    let mut command = Command::new(binary);
    command.args(["serve", &format!("m={}", root.display())]).env_clear().stdin(Stdio::null());
    // The log is not read here.
    command.env("ZARRD__LOG__LEVEL", "off");
    for (name, value) in settings {
        let unit = if name.ends_with("TIMEOUT") { "ms" } else { "" };
        command.env(format!("ZARRD__{name}"), format!("{value}{unit}"));
    }
    let server = Running::of(command);
    let bound = server.get("/v1/mounts")["memory"]["most_bytes"].as_u64().unwrap();
    (server, bound)
}

/// An answer to one of the readers, whose body is still to be read.
async fn ask_as(server: &Running, reader: usize, path: &str) -> (TcpStream, usize) {
    let address = Ipv4Addr::new(127, 0, 0, u8::try_from(1 + reader % CALLERS).unwrap());
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((address, 0).into()).unwrap();
    body(path, begin_on(socket.connect(server.address).await.unwrap(), path).await)
}

/// An answer, whose body is still to be read.
async fn ask(server: &Running, path: &str) -> (TcpStream, usize) {
    body(path, begin(server, path).await)
}

fn body(path: &str, (head, stream): (String, TcpStream)) -> (TcpStream, usize) {
    assert!(head.starts_with("http/1.1 200 "), "{path}: {head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    (stream, length.parse().unwrap())
}

/// The head of an answer, and where its body will come.
async fn begin(server: &Running, path: &str) -> (String, TcpStream) {
    begin_on(TcpStream::connect(server.address).await.unwrap(), path).await
}

async fn begin_on(mut stream: TcpStream, path: &str) -> (String, TcpStream) {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (String::from_utf8(head).unwrap().to_ascii_lowercase(), stream)
}

/// Reads an answer in sips, each checked, until it ends or the time is over; how many bytes there were.
async fn sip(
    (mut stream, length): (TcpStream, usize),
    until: Instant,
    is_right: impl Fn(usize, &[u8]) -> bool,
) -> usize {
    let mut sip = vec![0; SIP_BYTES];
    let mut at = 0;
    while at < length && Instant::now() < until {
        let take = SIP_BYTES.min(length - at);
        stream.read_exact(&mut sip[..take]).await.unwrap();
        assert!(is_right(at, &sip[..take]), "at {at}");
        at += take;
        tokio::time::sleep(PAUSE).await;
    }
    at
}

#[tokio::test]
async fn slow_readers_are_served_within_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), 64, 1);
    let settings = [
        ("CACHE__DECODED_SIZE", 16 << 20),
        ("CACHE__INDEX_SIZE", 1 << 20),
        ("CACHE__NODE_SIZE", 1 << 20),
        ("CACHE__VALUE_SIZE", 1 << 20),
        ("READ__SEGMENT_SIZE", 1 << 20),
        // Capacity for two segments of each reader, and a quarter that long responses may not use.
        ("HTTP__INFLIGHT_SIZE", 192 << 20),
        // On a busy machine it takes a while until it is known that a reader has left.
        ("HTTP__ADMISSION_TIMEOUT", 10_000),
        ("FETCH__INFLIGHT_SIZE", 64 << 20),
    ];
    let (server, bound) = start(folder.path(), &settings);
    let value = std::fs::read(folder.path().join("value")).unwrap();
    let first = Instant::now();
    let slices = join_all((0..READERS).map(|reader| ask_as(&server, reader, "/v1/data/m/0"))).await;
    let until = Instant::now() + Duration::from_millis(1500);
    println!("answers have begun after {:?}", first.elapsed());
    let read = join_all(slices.into_iter().map(|slice| sip(slice, until, is_right))).await;
    println!(
        "slices: {} to {} bytes read, {} MiB",
        read.iter().min().unwrap(),
        read.iter().max().unwrap(),
        peak(&server) >> 20
    );
    assert!(read.iter().all(|read| (SIP_BYTES..64 * PLANE_BYTES).contains(read)), "slow, and none left out");
    let values = join_all((0..READERS).map(|reader| ask_as(&server, reader, "/store/m/value"))).await;
    let until = Instant::now() + Duration::from_millis(500);
    let same = |at: usize, bytes: &[u8]| value[at..at + bytes.len()] == *bytes;
    let read = join_all(values.into_iter().map(|value| sip(value, until, same))).await;
    assert!(read.iter().all(|read| (SIP_BYTES..VALUE_BYTES).contains(read)), "slow, and none left out");
    let peak = peak(&server);
    println!("{} MiB at most, {} MiB allowed", peak >> 20, bound >> 20);
    assert!(peak <= bound, "{} MiB of {}", peak >> 20, bound >> 20);
}

#[tokio::test]
async fn a_selection_larger_than_memory_is_streamed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mib = usize::try_from(by_hand("ZARRD_SELECTION_MIB", 512)).unwrap();
    let planes = (mib << 20) / PLANE_BYTES;
    store(folder.path(), planes, 1);
    let settings = [
        ("CACHE__DECODED_SIZE", 16 << 20),
        ("CACHE__INDEX_SIZE", 1 << 20),
        ("CACHE__NODE_SIZE", 1 << 20),
        ("CACHE__VALUE_SIZE", 1 << 20),
        ("READ__SEGMENT_SIZE", 8 << 20),
        ("READ__MAX_RESPONSE_SIZE", u64::MAX >> 1),
        ("READ__MAX_DECODED_SIZE", u64::MAX >> 1),
        ("READ__MAX_CHUNKS", u64::MAX >> 1),
        ("HTTP__INFLIGHT_SIZE", 64 << 20),
        ("FETCH__INFLIGHT_SIZE", 64 << 20),
    ];
    let (server, bound) = start(folder.path(), &settings);
    let start = Instant::now();
    let (mut stream, length) = ask(&server, "/v1/data/m/0").await;
    println!("the answer has begun after {:?}", start.elapsed());
    assert_eq!(length, planes * PLANE_BYTES);
    let mut piece = vec![0; PLANE_BYTES];
    for plane in 0..planes {
        stream.read_exact(&mut piece).await.unwrap();
        assert!(is_right(plane * PLANE_BYTES, &piece), "plane {plane}");
    }
    let peak = peak(&server);
    println!("{mib} MiB in {:?}: {} MiB at most, {} MiB allowed", start.elapsed(), peak >> 20, bound >> 20);
    assert!(peak <= bound, "{} MiB of {}", peak >> 20, bound >> 20);
}

#[tokio::test]
async fn small_responses_from_many_large_chunks_stay_within_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let planes = 256;
    store(folder.path(), planes, ARRAYS);
    let settings = [
        ("CACHE__DECODED_SIZE", 0),
        ("CACHE__INDEX_SIZE", 1 << 20),
        ("CACHE__NODE_SIZE", 1 << 20),
        ("CACHE__VALUE_SIZE", 1 << 20),
        ("HTTP__INFLIGHT_SIZE", 32 << 20),
        ("FETCH__INFLIGHT_SIZE", 32 << 20),
    ];
    let (server, bound) = start(folder.path(), &settings);
    let begin = Instant::now();
    let series = |reader: usize| {
        let (y, x) = (reader * 7 % EDGE, reader * 11 % EDGE);
        let server = &server;
        async move {
            let (mut stream, length) =
                ask(server, &format!("/v1/data/m/{}?slice=:,{y},{x}", reader % ARRAYS)).await;
            let mut found = vec![0; length];
            stream.read_exact(&mut found).await.unwrap();
            let expected = (0..planes).flat_map(|z| {
                element(kind([z / CHUNK[0], y / CHUNK[1], x / CHUNK[2]]), z % CHUNK[0], y % CHUNK[1])
                    .to_le_bytes()
            });
            assert!(expected.eq(found), "{y}, {x}");
        }
    };
    join_all((0..READERS).map(series)).await;
    let peak = peak(&server);
    println!("{:?}: {} MiB at most, {} MiB allowed", begin.elapsed(), peak >> 20, bound >> 20);
    assert!(peak <= bound, "{} MiB of {}", peak >> 20, bound >> 20);
}

#[tokio::test]
async fn unread_responses_hold_their_budget_until_sent() {
    // Chunks of 4 MiB: more than sockets take.
    const CHUNKS: usize = 200;
    const CHUNK_BYTES: usize = 4 << 20;
    let folder = tempfile::tempdir().unwrap();
    let array = Array::of(&[CHUNKS, CHUNK_BYTES / 2]).chunks(&[1, CHUNK_BYTES / 2]);
    let array = array.codecs([Codec::Bytes { big: false }, Codec::Zstd]);
    write(folder.path(), "zarr.json", array.document().1.to_string().as_bytes());
    let chunk = zstd::bulk::compress(&vec![7; CHUNK_BYTES], 1).unwrap();
    (0..CHUNKS).for_each(|at| write(folder.path(), &format!("c/{at}/0"), &chunk));
    let settings = [
        ("CACHE__DECODED_SIZE", 64 << 20),
        ("CACHE__INDEX_SIZE", 1 << 20),
        ("CACHE__NODE_SIZE", 1 << 20),
        ("CACHE__VALUE_SIZE", 1 << 20),
        ("READ__SEGMENT_SIZE", 4 << 20),
        ("HTTP__INFLIGHT_SIZE", 64 << 20),
        ("HTTP__ADMISSION_TIMEOUT", 200),
        ("FETCH__INFLIGHT_SIZE", 32 << 20),
    ];
    let (server, bound) = start(folder.path(), &settings);
    let paths: Vec<String> = (0..CHUNKS).map(|at| format!("/v1/chunk/m/c/{at}/0")).collect();
    let mut served = Vec::new();
    for some in paths.chunks(25) {
        let begun = join_all(some.iter().map(|path| begin(&server, path))).await;
        served.extend(begun.into_iter().filter(|(head, _)| head.starts_with("http/1.1 200 ")));
    }
    let peak = peak(&server);
    println!("{} of {CHUNKS} begun: {} MiB at most, {} MiB allowed", served.len(), peak >> 20, bound >> 20);
    // 56 MiB are for elements.
    assert!((7..=14).contains(&served.len()), "{}", served.len());
    assert!(peak <= bound, "{} MiB of {}", peak >> 20, bound >> 20);
}
