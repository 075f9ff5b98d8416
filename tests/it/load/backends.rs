//! A failing backend gets few requests and fails fast; other backends are not affected.

use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep, timeout};
use zarrd::key::StoreKey;
use zarrd::services::Mount;
use zarrd::store::{ByteRange, CircuitState, StoreError};

use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::Server;

const TIMEOUT: Duration = Duration::from_secs(30);

fn always(fault: Fault) -> Vec<Rule> {
    vec![Rule { kinds: vec![Kind::Get, Kind::Head], key: "", when: When::Always, fault }]
}

#[tokio::test]
async fn the_circuit_opens_for_a_dead_backend_and_closes_when_it_recovers() {
    let s3 = TestS3::start().await;
    s3.insert("value", "0123456789");
    let store = s3.store_with(|options| options.remote.max_attempts = 1);
    let server = Server::of(store.clone());
    for fault in [Fault::Status(500), Fault::Status(503), Fault::ResetBeforeHead] {
        let before = s3.requests(Kind::Get);
        s3.inject(always(fault), 1);
        let began = Instant::now();
        for _ in 0..200 {
            let answer = server.get("/store/m/value").await;
            assert!(matches!(answer.status.as_u16(), 502 | 503), "{answer:?}");
            assert_eq!(answer.status == 503, !answer.header("retry-after").is_empty());
        }
        assert_ne!(store.backend().unwrap().circuit, CircuitState::Closed, "{fault:?}");
        // The last of them fail without a request. An open circuit lets one request through each second.
        let asked = s3.requests(Kind::Get) - before;
        let tried = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
        assert!((10..=10 + tried).contains(&asked), "{asked} of 200 in {:?}", began.elapsed());
        assert!(s3.heal() >= 10);
        let back = async {
            while server.get("/store/m/value").await.status != 200 {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(TIMEOUT, back).await.expect("it is tried again");
        assert_eq!(store.backend().unwrap().circuit, CircuitState::Closed);
    }
    assert!(store.backend().unwrap().opened_total >= 3);
}

#[tokio::test]
async fn retries_do_not_multiply_the_load_of_a_failing_backend() {
    const ASKED: usize = 400;
    const LANES: usize = 8;
    let s3 = TestS3::start().await;
    s3.insert("value", "0123456789");
    let store = s3.store_with(|options| options.remote.circuit_breaker_failures = 0);
    let server = Server::of(store);
    s3.inject(always(Fault::Status(503)), 1);
    let answers = stream::iter(0..ASKED).map(|_| server.get("/store/m/value")).buffer_unordered(LANES);
    let statuses: Vec<u16> = answers.map(|answer| answer.status.as_u16()).collect().await;
    assert_eq!(statuses, [503; ASKED]);
    // The retry budget at first, and what requests had begun before it was used up.
    let asked = s3.requests(Kind::Get);
    assert!((ASKED + 1..=ASKED + 20 + 2 * LANES).contains(&asked), "{asked} for {ASKED}");
    s3.heal();
    assert_eq!(server.get("/store/m/value").await.status, 200);
}

#[tokio::test]
async fn absent_and_forbidden_keys_do_not_open_the_circuit() {
    let s3 = TestS3::start().await;
    let store = s3.store_with(|options| options.remote.max_attempts = 1);
    let key = StoreKey::parse("none").unwrap();
    for _ in 0..50 {
        assert!(store.get(&key, ByteRange::Whole, None).await.unwrap().is_none());
    }
    s3.inject(always(Fault::Status(403)), 1);
    for _ in 0..50 {
        let refused = store.get(&key, ByteRange::Whole, None).await.unwrap_err();
        assert!(matches!(refused, StoreError::Backend(_)), "{refused:?}");
    }
    assert_eq!(s3.heal(), 50);
    let state = store.backend().unwrap();
    assert_eq!((state.circuit, state.opened_total), (CircuitState::Closed, 0));
    assert_eq!((state.in_flight, state.waiting, state.limit), (0, 0, 64));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_backend_does_not_affect_other_mounts() {
    let (hung, well) = (TestS3::start().await, TestS3::start().await);
    for s3 in [&hung, &well] {
        s3.insert("value", "0123456789");
    }
    let store = hung.store_with(|options| {
        (
            options.remote.max_attempts,
            options.remote.max_concurrent_requests,
            options.remote.queue_timeout,
            options.remote.read_timeout,
        ) = (1, 4, Duration::from_millis(500), Duration::from_secs(3));
    });
    let server = Server::build(Mount::read_only("hung", store.clone()))
        .beside(Mount::read_only("well", well.store()))
        .finish();
    hung.inject(always(Fault::Hang), 1);
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move { server.get("/store/hung/value").await })
        })
        .collect();
    while store.backend().unwrap().waiting == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..50 {
        assert_eq!(server.get("/store/well/value").await.body, "0123456789");
    }
    let statuses: Vec<u16> = timeout(TIMEOUT, join_all(waiting))
        .await
        .expect("all get a response")
        .into_iter()
        .map(|answer| answer.unwrap().status.as_u16())
        .collect();
    assert_eq!(statuses.iter().filter(|status| **status == 504).count(), hung.requests(Kind::Get));
    assert!(hung.requests(Kind::Get) <= 4, "no more than have their turn");
    assert!(statuses.iter().all(|status| matches!(status, 503 | 504)), "{statuses:?}");
    let state = store.backend().unwrap();
    assert_eq!((state.in_flight, state.waiting), (0, 0));
}
