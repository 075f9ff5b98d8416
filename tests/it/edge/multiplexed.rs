//! Responses that share a connection (HTTP/2): each is in flight until it is sent, however many wait for the client's window.

use std::time::Duration;

use serde_json::json;
use tokio::time::{sleep, timeout};
use zarrd::http::HttpOptions;
use zarrd::services::Mount;

use super::frames::{DATA, END_HEADERS, END_STREAM, Frame, Framed, HEADERS, get, status};
use super::{BOUND, Served, long_timeouts};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

const STREAMS: u32 = 64;
/// Bytes of an answer: as many as a connection is taken to hold.
const ANSWER: u64 = 128 << 10;
const INITIAL_WINDOW_SIZE: u16 = 4;

#[tokio::test]
async fn responses_waiting_for_an_http2_window_hold_their_budget_until_sent() {
    let store = memory();
    let array = json!({
        "zarr_format": 3, "node_type": "array", "shape": [STREAMS, ANSWER], "data_type": "uint8", "fill_value": 7,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1, ANSWER] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "bytes" }],
    });
    put(&store, "fill/zarr.json", array.to_string()).await;
    put(&store, "value", vec![7; usize::try_from(ANSWER).unwrap()]).await;
    let mut builder = Server::build(Mount::read_only("m", store));
    builder.http =
        HttpOptions { inflight_size: 32 << 20, streamed_response_size: ANSWER, ..HttpOptions::default() };
    let site = builder.finish().site();
    let state = site.state();
    let in_flight = || state.traffic.load().in_flight_bytes;
    let served = Served::start(site, long_timeouts()).await;
    for url in ["/v1/data/m/fill?slice=", "/store/m/value?"] {
        let mut framed = Framed::open(served.address, &[(INITIAL_WINDOW_SIZE, 1)]).await;
        for number in 0..STREAMS {
            let head = get(&format!("{url}{number}"));
            framed.send(&[Frame::of(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * number, head)]).await;
        }
        // The first byte of each.
        let (mut begun, mut heads) = (0, 0);
        while begun < STREAMS {
            let frame = framed.next().await.expect("a frame");
            match frame.kind {
                HEADERS => {
                    assert_eq!(status(&frame.payload), 200, "{url}");
                    heads += 1;
                }
                DATA => begun += 1,
                // Of the connection.
                _ => assert_eq!(frame.stream, 0, "{frame:?}"),
            }
        }
        assert_eq!(heads, STREAMS);
        assert!(in_flight() >= u64::from(STREAMS) * ANSWER, "{url}: {} bytes are charged", in_flight());
        drop(framed);
        let given_back = async {
            while in_flight() > 0 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(BOUND, given_back).await.expect("what is charged is given back with the connection");
    }
    served.shutdown.force();
}
