//! What the fast path saves: the same requests through it and through the router, in turns. Prints the median time of both,
//! and their ratio.
//!
//! `cargo bench --bench fast_path`, on a machine that does nothing else. No connection is part of it: a request is handed to
//! the endpoint and its body is read, so that the ratio is that of the handling alone.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, not a server")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use zarrd::app::App;
use zarrd::config::Config;
use zarrd::http::Peer;
use zarrd::web::Endpoint;

/// Requests that are timed together, so that reading the clock takes no share.
const BATCH: u32 = 200;
/// Batches of each way, without those that warm up.
const BATCHES: usize = 200;
const WARM_UP: usize = 20;

/// Requests whose handling is short: there the router's share is largest.
const REQUESTS: [(&str, &str); 5] = [
    ("GET", "/store/demo/zarr.json"),
    ("HEAD", "/store/demo/zarr.json"),
    ("GET", "/store/demo/no-such-document/zarr.json"),
    ("GET", "/v1/data/demo/field?slice=0,0,0:10"),
    ("GET", "/unshard/demo/sharded/zarr.json"),
];

/// The time of one request, on average over a batch.
async fn time_batch(site: &Endpoint, (method, url): (&str, &str), uses_fast_path: bool) -> Duration {
    let began = Instant::now();
    for _ in 0..BATCH {
        let request = Request::builder().method(method).uri(url).body(Body::empty()).unwrap();
        let response = if uses_fast_path {
            site.handle(request, Peer::LOOPBACK).await
        } else {
            site.handle_routed(request, Peer::LOOPBACK).await
        };
        black_box(to_bytes(response.into_body(), usize::MAX).await.unwrap());
    }
    began.elapsed() / BATCH
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn measure() {
    let site = App::build(Config::default()).await.unwrap().site();
    println!("| request | status | fast path | router | router / fast path |");
    println!("|---|--:|--:|--:|--:|");
    for request in REQUESTS {
        let (mut fast, mut routed) = (Vec::new(), Vec::new());
        for batch in 0..WARM_UP + BATCHES {
            // The first of a pair is each in turn.
            for uses_fast_path in [batch % 2 == 0, batch % 2 == 1] {
                let time = time_batch(&site, request, uses_fast_path).await;
                if batch >= WARM_UP {
                    if uses_fast_path { &mut fast } else { &mut routed }.push(time);
                }
            }
        }
        let (method, url) = request;
        let probe = Request::builder().method(method).uri(url).body(Body::empty()).unwrap();
        let status = site.handle(probe, Peer::LOOPBACK).await.status().as_u16();
        let (fast, routed) = (median(fast), median(routed));
        let ratio = routed.as_secs_f64() / fast.as_secs_f64();
        println!("| `{method} {url}` | {status} | {fast:.2?} | {routed:.2?} | {ratio:.2} |");
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}
