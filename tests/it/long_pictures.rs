//! Pictures of more than a megapixel, which are drawn while they are sent: their bytes, their headers, and how they end.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use futures::StreamExt;
use serde_json::json;
use zarrd::array::ReadLimits;
use zarrd::http::Peer;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::counting::Counting;
use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server, put};

const ROWS: usize = 1100;
const COLUMNS: usize = 1000;
const EDGE: usize = 100;
/// Bytes that are read at a time, of pictures that are drawn as they are read.
const BAND: u64 = 64 << 10;

/// A store with an array `a` of these elements in chunks of 100 by 100.
async fn stored(data_type: &str, element: impl Fn(usize, usize) -> Vec<u8>) -> SharedStore {
    let store = memory();
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [ROWS, COLUMNS], "data_type": data_type, "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [EDGE, EDGE] } },
        "chunk_key_encoding": { "name": "default" },
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    });
    put(&store, "a/zarr.json", document.to_string()).await;
    for row in 0..ROWS / EDGE {
        for column in 0..COLUMNS / EDGE {
            let element = |at: usize| element(row * EDGE + at / EDGE, column * EDGE + at % EDGE);
            let chunk: Vec<u8> = (0..EDGE * EDGE).flat_map(element).collect();
            put(&store, &format!("a/c/{row}/{column}"), chunk).await;
        }
    }
    store
}

/// Bytes that follow no pattern.
fn noise(row: usize, column: usize) -> u8 {
    let number = ((row * COLUMNS + column) as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)).to_be_bytes()[0]
}

fn float(row: usize, column: usize) -> Vec<u8> {
    let is_missing = row == ROWS - 1 && column > 900;
    let number = if is_missing { f32::NAN } else { f32::from(noise(row, column) / 2) };
    number.to_le_bytes().to_vec()
}

fn server(store: SharedStore, segment_size: u64) -> Server {
    let mut server = Server::build(Mount::read_only("m", store));
    server.read = ReadLimits { segment_size, ..ReadLimits::default() };
    server.finish()
}

fn pixels(answer: &Answer) -> Vec<[u8; 4]> {
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "image/png"));
    let mut decoder = png::Decoder::new(std::io::Cursor::new(&answer.body));
    decoder.set_transformations(
        png::Transformations::EXPAND | png::Transformations::ALPHA | png::Transformations::STRIP_16,
    );
    let mut reader = decoder.read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    reader.finish().unwrap();
    match info.color_type {
        png::ColorType::GrayscaleAlpha => {
            data.as_chunks::<2>().0.iter().map(|&[gray, opacity]| [gray, gray, gray, opacity]).collect()
        }
        _ => data.as_chunks::<4>().0.to_vec(),
    }
}

#[tokio::test]
async fn a_long_picture_has_the_same_bytes_whatever_is_read_at_a_time_and_the_pixels_of_its_parts() {
    let bytes = stored("uint8", |row, column| vec![noise(row, column)]).await;
    let floats = stored("float32", float).await;
    let labels =
        stored("uint32", |row, column| u32::from(noise(row, column)).wrapping_mul(3).to_le_bytes().to_vec())
            .await;
    for (store, words) in [
        (&bytes, "range=0,255"),
        (&bytes, "range=0,255&axes=1,0&origin=lower"),
        (&bytes, "range=10,200&below=transparent&above=ff0000"),
        (&bytes, "range=slice&scale=sqrt"),
        (&floats, "range=0,100"),
        (&floats, "range=0,100&colormap=none&bits=16"),
        (&labels, "colormap=categories"),
    ] {
        let whole = server(store.clone(), 32 << 20).get(&format!("/v1/image/m/a?size=max&{words}")).await;
        assert_eq!(whole.header("content-length"), "", "{words}: it is not known");
        let banded = server(store.clone(), BAND).get(&format!("/v1/image/m/a?size=max&{words}")).await;
        assert_eq!(whole.header("etag"), banded.header("etag"), "{words}");
        assert!(whole.body == banded.body, "{words}: other bytes");
        let found = pixels(&whole);
        assert_eq!(found.len(), ROWS * COLUMNS, "{words}");
        // Short pictures are made as a whole. They have the range of all, as the request says it.
        if words.contains("slice") {
            continue;
        }
        let (is_turned, is_flipped) = (words.contains("axes"), words.contains("lower"));
        let (rows, columns) = if is_turned { (COLUMNS, ROWS) } else { (ROWS, COLUMNS) };
        let server = server(store.clone(), 32 << 20);
        for top in (0..rows).step_by(400) {
            let height = 400.min(rows - top);
            let url = format!("/v1/image/m/a?size=max&{words}&box=0,{top},{columns},{height}");
            let part = server.get(&url).await;
            assert_eq!(part.header("content-length"), part.body.len().to_string(), "{url}");
            let first = if is_flipped { rows - top - height } else { top };
            assert!(pixels(&part) == found[first * columns..(first + height) * columns], "{url}");
        }
    }
}

#[tokio::test]
async fn a_long_picture_whose_file_is_short_has_a_length() {
    let store = stored("uint8", |_, _| vec![7]).await;
    let answer = server(store, BAND).get("/v1/image/m/a?size=max&range=0,255").await;
    assert_eq!(answer.header("content-length"), answer.body.len().to_string());
    let found = pixels(&answer);
    assert!(found.len() == ROWS * COLUMNS && found.iter().all(|pixel| *pixel == found[0]));
}

/// The headers that do not depend on what was measured.
fn lasting(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in ["server-timing", "cache-status", "x-request-id", "date"] {
        headers.remove(name);
    }
    headers
}

#[tokio::test]
async fn a_head_has_the_headers_of_a_long_picture_and_a_known_one_is_not_sent_again() {
    let store = stored("float32", float).await;
    let counting = Counting::new(store);
    let server = server(counting.clone(), BAND);
    let url = "/v1/image/m/a?size=max&range=0,100";
    let answer = server.get(url).await;
    counting.reset();
    let head = server.ask(Method::HEAD, url, &[]).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(lasting(&head.headers), lasting(&answer.headers));
    let same = server.ask(Method::GET, url, &[("if-none-match", answer.header("etag"))]).await;
    assert_eq!((same.status.as_u16(), same.body.len()), (304, 0));
    assert_eq!(same.header("etag"), answer.header("etag"));
    let failed = server.ask(Method::GET, url, &[("if-match", "\"other\"")]).await;
    failed.refuses(412, "precondition-failed", "another picture");
    assert_eq!(counting.ranges(), []);
    // It has no ranges.
    let part = server.ask(Method::GET, url, &[("range", "bytes=0-99")]).await;
    assert_eq!((part.status.as_u16(), part.header("content-range")), (200, ""));
    assert!(part.body == answer.body);
}

#[tokio::test]
async fn a_long_picture_that_cannot_be_read_to_its_end_breaks_off() {
    let store = stored("uint8", |row, column| vec![noise(row, column)]).await;
    // The last chunk is too short.
    put(&store, &format!("a/c/{}/{}", ROWS / EDGE - 1, COLUMNS / EDGE - 1), vec![1, 2, 3]).await;
    let server = server(store, BAND);
    let url = "/v1/image/m/a?size=max&range=0,255";
    let request = || Request::get(url).body(Body::empty()).unwrap();
    let attempt = server.attempt(request()).await;
    assert_eq!(attempt.status, 200);
    assert!(attempt.body.is_err(), "an end would say that it is complete");
    // Over a connection the end of the last chunk is missing.
    let address = server.listen().await;
    let answer = crate::support::client::get(&format!("http://{address}{url}")).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().await.is_err());
    // What has to be read as a whole is not begun.
    let whole = server.get(&format!("{url}&origin=lower")).await;
    assert!(!whole.status.is_success(), "{whole:?}");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_work_for_its_picture() {
    let store = stored("uint8", |row, column| vec![noise(row, column)]).await;
    let counting = Counting::new(store);
    let server = server(counting.clone(), BAND);
    let request = Request::get("/v1/image/m/a?size=max&range=0,255").body(Body::empty()).unwrap();
    let answer = server.site().handle(request, Peer::LOOPBACK).await;
    let mut body = answer.into_body().into_data_stream();
    assert!(body.next().await.unwrap().is_ok());
    let charged = server.in_flight_bytes();
    assert!(charged > 0);
    drop(body);
    let is_done = async {
        while server.in_flight_bytes() > 0 || counting.in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), is_done).await.unwrap();
    let read = counting.bytes();
    let all = (ROWS * COLUMNS) as u64;
    assert!(read < all, "{read} bytes of {all}");
}

#[tokio::test]
async fn a_long_picture_is_served_within_a_budget_that_its_file_exceeds() {
    let store = stored("uint8", |row, column| vec![noise(row, column)]).await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read = ReadLimits { segment_size: BAND, ..ReadLimits::default() };
    // A request can hold less than the file has.
    server.http.inflight_size = 4 << 20;
    let answer = server.finish().get("/v1/image/m/a?size=max&range=0,255").await;
    assert_eq!(pixels(&answer).len(), ROWS * COLUMNS);
}
