//! Tests of overload: requests are rejected by class, by caller and by memory pressure.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Extensions, Method, Request, Response};

use super::Server;
use crate::admission::{AdmissionRequest, ClientBucket, MemoryPressure, Priority};
use crate::http::{HttpOptions, Peer, RateOptions};

const VALUES: &[(&str, &[u8])] = &[("zarr.json", b"{}"), ("a/c/0", b"0123456789")];

fn peer(number: u32) -> Peer {
    Peer { address: IpAddr::from(number.to_be_bytes()), is_encrypted: false }
}

/// A server whose budget covers sixteen streamed values at a time.
fn with_capacity_of_sixteen(queue_ms: u64) -> Server {
    let options = HttpOptions {
        inflight_size: 16 << 10,
        streamed_response_size: 1 << 10,
        admission_timeout: Duration::from_millis(queue_ms),
        ..HttpOptions::default()
    };
    Server::with_options(VALUES, options)
}

/// Starts a response; it is in flight as long as it is kept.
async fn begin(server: &Server, method: &str, url: &str, from: Peer) -> Response<Body> {
    let request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(url);
    server.site.handle(request.body(Body::empty()).unwrap(), from).await
}

#[tokio::test(start_paused = true)]
async fn the_last_part_of_the_budget_is_reserved_for_higher_classes() {
    let server = with_capacity_of_sixteen(100);
    let asked = [
        ("GET", "/store/m/a/?recursive", 13),
        ("GET", "/store/m/a/c/0", 2),
        ("GET", "/store/m/zarr.json", 1),
    ];
    let mut in_flight = Vec::new();
    // Each request has another caller, because no caller may have the whole budget.
    let mut peers = (1..).map(peer);
    for (method, url, most) in asked {
        let before = in_flight.len();
        loop {
            let answer = begin(&server, method, url, peers.next().unwrap()).await;
            if answer.status() == 503 {
                break;
            }
            assert_eq!(answer.status(), 200, "{url}");
            in_flight.push(answer);
        }
        assert_eq!(in_flight.len() - before, most, "{url}");
    }
    for url in ["/healthz", "/readyz", "/v1/mounts", "/openapi.json"] {
        assert_eq!(begin(&server, "GET", url, peer(1)).await.status(), 200, "{url}");
    }
    let load = server.state.traffic.load();
    assert_eq!((load.in_flight_bytes, load.waiting), (16 << 10, 0));
    assert_eq!(load.rejected, [("metadata", 1), ("values", 1), ("elements", 0), ("bulk", 1)]);
    in_flight.clear();
    assert_eq!(server.state.traffic.load().in_flight_bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_waited_the_configured_time_and_called_no_store() {
    let options = HttpOptions {
        inflight_size: 1,
        admission_timeout: Duration::from_millis(700),
        ..HttpOptions::default()
    };
    let server = Server::with_options(VALUES, options);
    let anyone = AdmissionRequest::new(Priority::Metadata, &Extensions::new());
    let held = server.state.traffic.admission.acquire(anyone, 1).await.unwrap();
    let began = tokio::time::Instant::now();
    let answer = server.get("/store/m/a/c/0").await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (503, "overloaded"));
    assert_eq!(began.elapsed(), Duration::from_millis(700));
    assert!((1..=5).contains(&answer.header("retry-after").parse::<u64>().unwrap()));
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
    // A cancelled request leaves the queue.
    let impatient = tokio::time::timeout(Duration::from_millis(10), server.get("/store/m/a/c/0")).await;
    assert!(impatient.is_err());
    assert_eq!(server.state.traffic.load().waiting, 0);
    drop(held);
    assert_eq!(server.get("/store/m/a/c/0").await.status.as_u16(), 200);
}

#[tokio::test(start_paused = true)]
async fn elements_are_not_planned_for_a_request_that_would_wait_too_long() {
    let options = HttpOptions {
        inflight_size: 2048,
        admission_timeout: Duration::from_secs(1),
        ..HttpOptions::default()
    };
    let server = Server::with_options(VALUES, options);
    let anyone = AdmissionRequest::new(Priority::Elements, &Extensions::new());
    let enter = || server.state.traffic.admission.acquire(anyone, 1);
    let (first, _second) = (enter().await.unwrap(), enter().await.unwrap());
    let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(enter())).collect();
    for waiter in &mut waiting {
        assert!(futures::poll!(waiter.as_mut()).is_pending());
    }
    // One unit per tenth of a second: behind the ten that wait, a request would take a second.
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(first);
    let began = tokio::time::Instant::now();
    let answer = server.get("/v1/data/m/a").await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (503, "overloaded"));
    assert!((1..=5).contains(&answer.header("retry-after").parse::<u64>().unwrap()));
    assert_eq!((began.elapsed(), server.store.take_asked()), (Duration::ZERO, Vec::<&str>::new()));
    // A client that may have the response already is not rejected early.
    server.send("GET", "/v1/data/m/a", &[("if-none-match", "\"x\"")]).await;
    assert_ne!(server.store.take_asked(), Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn callers_with_less_in_flight_go_first() {
    let server = with_capacity_of_sixteen(60_000);
    let ask = |from| begin(&server, "GET", "/store/m/a/c/0", from);
    let mut greedy = Vec::new();
    for from in [[1; 12].as_slice(), &[4, 5, 6]].concat() {
        greedy.push(ask(peer(from)).await);
    }
    // Twenty more requests of the greedy caller wait, and then two of other callers come.
    let mut waiting: Vec<_> = (0..20).map(|_| Box::pin(ask(peer(1)))).collect();
    let others = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        tokio::join!(ask(peer(2)), ask(peer(3)))
    };
    let ends = async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(server.state.traffic.load().waiting, 22);
        drop(greedy.drain(..2));
    };
    let all = futures::future::select_all(&mut waiting);
    tokio::select! {
        _ = all => panic!("the greedy one went first"),
        ((one, other), ()) = async { tokio::join!(others, ends) } => {
            assert_eq!((one.status(), other.status()), (200.try_into().unwrap(), 200.try_into().unwrap()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_reads_nothing_does_not_block_others() {
    let server = with_capacity_of_sixteen(100);
    let ask = |from| begin(&server, "GET", "/store/m/a/c/0", from);
    let mut greedy = Vec::new();
    loop {
        let answer = ask(peer(1)).await;
        if answer.status() == 503 {
            break;
        }
        greedy.push(answer);
    }
    assert_eq!(greedy.len(), 12);
    let mut waiting: Vec<_> = (0..20).map(|_| Box::pin(ask(peer(1)))).collect();
    for waiter in &mut waiting {
        assert!(futures::poll!(waiter.as_mut()).is_pending());
    }
    let began = tokio::time::Instant::now();
    for round in 0..20 {
        assert_eq!(ask(peer(2)).await.status(), 200, "{round}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn only_health_is_answered_under_critical_memory_pressure() {
    let server = Server::new(VALUES);
    assert!(server.site.keeps_connections());
    server.state.lifecycle.set_pressure(MemoryPressure::High);
    assert!(!server.site.keeps_connections());
    assert_eq!(server.get("/store/m/a/c/0").await.status.as_u16(), 200);
    server.state.lifecycle.set_pressure(MemoryPressure::Critical);
    server.store.take_asked();
    for url in ["/store/m/a/c/0", "/v1/data/m/a", "/v1/nodes/m/", "/store/m/", "/", "/none", "/v1/mounts"] {
        let answer = server.get(url).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (503, "overloaded"), "{url}");
        assert!(!answer.header("retry-after").is_empty());
    }
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
    assert_eq!(server.get("/healthz").await.status.as_u16(), 200);
    assert_eq!(server.get("/readyz").await.status.as_u16(), 200);
    server.state.lifecycle.set_pressure(MemoryPressure::None);
    assert_eq!(server.get("/store/m/a/c/0").await.status.as_u16(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limited_caller_gets_the_time_to_retry() {
    let rates = RateOptions { request_rate: 2, request_burst: 4, ..RateOptions::default() };
    let server = Server::with_options(VALUES, HttpOptions { rate_limit: rates, ..HttpOptions::default() });
    let status = async |url, from| begin(&server, "GET", url, from).await.status().as_u16();
    for _ in 0..4 {
        assert_eq!(status("/store/m/a/c/0", peer(1)).await, 200);
    }
    server.store.take_asked();
    for url in ["/store/m/a/c/0", "/v1/data/m/a", "/s3/m/a", "/v1/mounts", "/none"] {
        let answer = begin(&server, "GET", url, peer(1)).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (429, &"1".parse().unwrap()),
            "{url}"
        );
    }
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
    assert_eq!(status("/healthz", peer(1)).await, 200);
    assert_eq!(status("/store/m/a/c/0", peer(2)).await, 200, "others are not hindered");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(status("/store/m/a/c/0", peer(1)).await, 200, "after the announced time");
}

#[tokio::test(start_paused = true)]
async fn only_bytes_that_are_sent_count_towards_the_transfer_rate() {
    let rates = RateOptions { transfer_rate: 1, transfer_burst: 1, ..RateOptions::default() };
    let server = Server::with_options(VALUES, HttpOptions { rate_limit: rates, ..HttpOptions::default() });
    let status = async |method| begin(&server, method, "/store/m/a/c/0", peer(1)).await.status().as_u16();
    for _ in 0..4 {
        assert_eq!(status("HEAD").await, 200);
    }
    assert_eq!(status("GET").await, 200);
    assert_eq!((status("GET").await, status("HEAD").await), (429, 429));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_addresses_are_each_limited_to_their_rate() {
    let rates = RateOptions { request_rate: 1, request_burst: 1, ..RateOptions::default() };
    let server = Server::with_options(VALUES, HttpOptions { rate_limit: rates, ..HttpOptions::default() });
    let rates = server.state.traffic.rates.as_ref().unwrap();
    for round in 0..2 {
        let mut refused = 0;
        for number in 0..100_000 {
            let mut extensions = Extensions::new();
            extensions.insert(crate::auth::caller::Caller::at(peer(number)));
            refused += u32::from(rates.check(ClientBucket::of(&extensions)).is_err());
        }
        assert_eq!(refused, round * 100_000);
    }
}
