//! Whether the time that a refusal takes reveals how a token is wrong: an unknown name, a wrong first byte of the secret, or a
//! wrong last byte. Prints Welch's t for each pair; beyond 4.5 the times differ.
//!
//! `cargo bench --bench token`, on a machine that does nothing else. Each refusal goes through the whole of the routes, from an
//! address of its own, and the three kinds take turns in an order that is shuffled each time.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement, not a server"
)]

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::time::Instant;

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use sha2::{Digest, Sha256};
use zarrd::app::App;
use zarrd::config::Config;
use zarrd::http::Peer;

const SAMPLES: u32 = 100_000;
/// Between the first and the last letter of the secret.
const SECRET: &str = "123456789abcdef0123456789abcde";

/// Count, mean and variance, as samples come.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, sample: f64) {
        self.count += 1.0;
        let off = sample - self.mean;
        self.mean += off / self.count;
        self.squares += off * (sample - self.mean);
    }

    fn t(&self, other: &Self) -> f64 {
        let error = |one: &Self| one.squares / (one.count - 1.0) / one.count;
        (self.mean - other.mean) / (error(self) + error(other)).sqrt()
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let mut sha256 = String::new();
    for byte in Sha256::digest(format!("0{SECRET}0")) {
        write!(sha256, "{byte:02x}").unwrap();
    }
    let grants = json!([{ "mount": "demo", "scopes": ["read"] }]);
    let tokens = json!({ "tokens": { "alice": { "sha256": sha256, "grants": grants } } });
    let config = Config { access: serde_json::from_value(tokens).unwrap(), ..Config::default() };
    let site = App::build(config).await.unwrap().site();
    let kinds = [
        ("unknown name", format!("zs_carol_0{SECRET}0")),
        ("wrong first byte", format!("zs_alice_1{SECRET}0")),
        ("wrong last byte", format!("zs_alice_0{SECRET}1")),
    ];
    let mut moments = [Moments::default(); 3];
    let shuffle = RandomState::new();
    for round in 0..SAMPLES + 1000 {
        let mut order = [0, 1, 2];
        order.sort_by_key(|kind| shuffle.hash_one((round, *kind)));
        for kind in order {
            let number = round * 3 + u32::try_from(kind).unwrap();
            let from = Peer { address: Ipv4Addr::from(number).into(), is_encrypted: true };
            let bearer = format!("Bearer {}", kinds[kind].1);
            let request = Request::builder().uri("/store/demo/zarr.json").header("authorization", bearer);
            let request = request.body(Body::empty()).unwrap();
            let began = Instant::now();
            let answer = site.handle(request, from).await;
            let took = began.elapsed();
            assert_eq!(answer.status(), 401);
            // The first ones warm up; what was interrupted says nothing.
            let nanoseconds = took.as_nanos() as f64;
            if round >= 1000 && nanoseconds < 100_000.0 {
                moments[kind].add(nanoseconds);
            }
        }
    }
    for (kind, moments) in kinds.iter().zip(&moments) {
        println!("{:17} {:8.1} ns of {}", kind.0, moments.mean, moments.count);
    }
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let t = moments[one].t(&moments[other]);
        println!("t of `{}` and `{}`: {t:.2}", kinds[one].0, kinds[other].0);
    }
}
