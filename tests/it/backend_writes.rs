//! Conditional writes on every backend: exactly one of many rivals wins, and no lost response is reported as a condition that
//! did not hold. Uploads are complete or absent, and leave no parts behind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use zarrd::services::Mount;
use zarrd::store::{SharedStore, StoreOptions};

use crate::support::hierarchy::{memory, noise};
use crate::support::s3::{Fault, Kind, Rule, TestS3, When, tag};
use crate::support::server::{Answer, Server, cpu};

/// Racers of a round.
const RACERS: usize = 32;

/// Rounds of each race: few, or as many as `ZARRD_ROUNDS` says.
fn rounds() -> usize {
    let rounds_set = std::env::var_os("ZARRD_ROUNDS").and_then(|rounds| rounds.to_str()?.parse().ok());
    rounds_set.unwrap_or(4)
}

fn serve(store: SharedStore) -> Server {
    let mut builder = Server::build(Mount { writable: true, ..Mount::read_only("m", store) });
    builder.http.response_timeout = Duration::from_secs(20);
    builder.finish()
}

async fn send(server: &Server, method: Method, key: &str, condition: (&str, &str), body: String) -> Answer {
    let request = Request::builder().method(method).uri(format!("/store/m/{key}"));
    server.send(request.header(condition.0, condition.1).body(Body::from(body)).unwrap()).await
}

async fn create(server: &Server, key: &str, body: impl Into<String>) -> Answer {
    send(server, Method::PUT, key, ("if-none-match", "*"), body.into()).await
}

async fn replace(server: &Server, key: &str, tag: &str, body: impl Into<String>) -> Answer {
    send(server, Method::PUT, key, ("if-match", tag), body.into()).await
}

/// A value and its entity tag, read in one request; `None` where there is none.
async fn read(server: &Server, key: &str) -> Option<(String, String)> {
    for _ in 0..20 {
        let answer = server.get(&format!("/store/m/{key}")).await;
        match answer.status.as_u16() {
            200 => {
                let text = String::from_utf8(answer.body.to_vec()).unwrap();
                return Some((text, answer.header("etag").to_owned()));
            }
            404 => return None,
            status => assert!(matches!(status, 502..=504), "{answer:?}"),
        }
    }
    panic!("{key} cannot be read");
}

fn is_unknown(answer: &Answer) -> bool {
    answer.status == 503 && answer.json()["written"] == "unknown"
}

/// One backend of each kind, and the guards that must outlive it.
async fn backends() -> (Vec<(&'static str, SharedStore)>, TestS3, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions { writable: true, ..StoreOptions::default() };
    let open = |url: &str| zarrd::store::open(url, &options, &cpu()).unwrap();
    let s3 = TestS3::start().await;
    let upstream = serve(memory()).listen().await;
    let stores = vec![
        ("local", open(directory.path().to_str().unwrap())),
        ("memory", memory()),
        ("s3", s3.store()),
        ("http", open(&format!("http://{upstream}/store/m/below"))),
    ];
    (stores, s3, directory)
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_of_many_concurrent_conditional_writes_wins_on_every_backend() {
    let (stores, _s3, _directory) = backends().await;
    for (name, store) in stores {
        let server = serve(store);
        for round in 0..rounds() {
            let key = format!("races/{round}");
            let created = join_all((0..RACERS).map(|n| create(&server, &key, format!("created {n}")))).await;
            let statuses: Vec<u16> = created.iter().map(|answer| answer.status.as_u16()).collect();
            let won: Vec<usize> = (0..RACERS).filter(|&n| statuses[n] == 201).collect();
            assert_eq!(won.len(), 1, "{name}: {statuses:?}");
            let lost = statuses.iter().filter(|status| **status == 412).count();
            assert_eq!(lost, RACERS - 1, "{name}: {statuses:?}");
            let (value, tag) = read(&server, &key).await.unwrap();
            assert_eq!(value, format!("created {}", won[0]), "{name}");
            assert_eq!(created[won[0]].header("etag"), tag, "{name}: the winner knows its version");

            let replaced =
                join_all((0..RACERS).map(|n| replace(&server, &key, &tag, format!("replaced {n}")))).await;
            let statuses: Vec<u16> = replaced.iter().map(|answer| answer.status.as_u16()).collect();
            let won: Vec<usize> = (0..RACERS).filter(|&n| statuses[n] == 204).collect();
            assert_eq!(won.len(), 1, "{name}: {statuses:?}");
            assert_eq!(statuses.iter().filter(|status| **status == 412).count(), RACERS - 1, "{name}");
            assert_eq!(read(&server, &key).await.unwrap().0, format!("replaced {}", won[0]), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_of_concurrent_erases_and_replacements_of_a_version_wins() {
    let (stores, _s3, _directory) = backends().await;
    for (name, store) in stores {
        let server = serve(store);
        for round in 0..rounds() {
            let key = format!("erased/{round}");
            let tag = create(&server, &key, "first").await.header("etag").to_owned();
            let race = (0..RACERS).map(|n| {
                let (server, key, tag) = (&server, &key, &tag);
                async move {
                    if n % 2 == 0 {
                        return send(server, Method::DELETE, key, ("if-match", tag), String::new()).await;
                    }
                    replace(server, key, tag, format!("replaced {n}")).await
                }
            });
            let statuses: Vec<u16> =
                join_all(race).await.iter().map(|answer| answer.status.as_u16()).collect();
            let won: Vec<usize> = (0..RACERS).filter(|&n| statuses[n] == 204).collect();
            assert_eq!(won.len(), 1, "{name}: {statuses:?}");
            assert!(statuses.iter().all(|status| matches!(status, 204 | 412)), "{name}: {statuses:?}");
            let left = read(&server, &key).await.map(|(value, _)| value);
            let expected = (won[0] % 2 == 1).then(|| format!("replaced {}", won[0]));
            assert_eq!(left, expected, "{name}");
        }
    }
}

/// The faults of responses of a failing backend.
fn bad_day(kinds: &[Kind]) -> Vec<Rule> {
    let rule =
        |per_mille, fault| Rule { kinds: kinds.to_vec(), key: "", when: When::PerMille(per_mille), fault };
    vec![
        rule(50, Fault::DoneThenReset),
        rule(25, Fault::DoneThen(500)),
        rule(25, Fault::Status(500)),
        rule(20, Fault::Conflict),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_response_never_yields_two_winners_or_a_stored_loser() {
    let s3 = TestS3::start().await;
    // Two servers before one bucket.
    let servers = [serve(s3.store()), serve(s3.store())];
    for server in &servers {
        assert_eq!(create(server, &format!("first/{}", s3.keys().len()), "x").await.status, 201);
    }
    s3.inject(bad_day(&[Kind::Put]), 42);
    for round in 0..2 * rounds() {
        let key = format!("races/{round}");
        let race = (0..RACERS).map(|n| create(&servers[n % 2], &key, n.to_string()));
        let answers = join_all(race).await;
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
        let won: Vec<usize> = (0..RACERS).filter(|&n| statuses[n] == 201).collect();
        let there: usize = read(&servers[0], &key).await.unwrap().0.parse().unwrap();
        assert!(won.iter().all(|winner| *winner == there), "{there} is there, {won:?} got that answer");
        assert!(statuses[there] == 201 || is_unknown(&answers[there]), "{:?}", answers[there]);
        for answer in &answers {
            assert!(matches!(answer.status.as_u16(), 201 | 412 | 503), "{answer:?}");
        }
    }
    assert!(s3.heal() > 0, "nothing was injected");
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_are_stored_once_and_refused_ones_are_not_stored() {
    let s3 = TestS3::start().await;
    let servers = [serve(s3.store()), serve(s3.store())];
    assert_eq!(create(&servers[0], "log", "").await.status, 201);
    assert_eq!(create(&servers[1], "first", "").await.status, 201);
    s3.inject(bad_day(&[Kind::Put, Kind::Head, Kind::Get]), 43);
    // How long the log was that was acknowledged last.
    let acknowledged = AtomicUsize::new(0);
    let writers = (0..8).map(|writer| {
        let (servers, acknowledged) = (&servers, &acknowledged);
        async move {
            let (mut outcomes, mut seen) = (Vec::new(), Vec::new());
            for n in 0..4 * rounds() {
                // A write acknowledged by one server is visible through the other.
                let server = &servers[(writer + n) % 2];
                let least = acknowledged.load(Ordering::SeqCst);
                let (log, tag) = read(server, "log").await.unwrap();
                assert!(
                    log.len() >= least,
                    "older than what was acknowledged before it was asked for: {log}"
                );
                let word = format!("{writer}-{n};");
                let longer = format!("{log}{word}");
                let answer = replace(server, "log", &tag, longer.clone()).await;
                if answer.status == 204 {
                    acknowledged.fetch_max(longer.len(), Ordering::SeqCst);
                }
                outcomes.push((word, answer.status.as_u16(), is_unknown(&answer)));
                seen.push(log);
            }
            (outcomes, seen)
        }
    });
    let (outcomes, seen): (Vec<_>, Vec<_>) = join_all(writers).await.into_iter().unzip();
    let (outcomes, seen) = (outcomes.concat(), seen.concat());
    assert!(s3.heal() > 0, "nothing was injected");
    let (log, _) = read(&servers[0], "log").await.unwrap();
    assert!(seen.iter().all(|seen| log.starts_with(seen.as_str())), "all saw one history: {log} {seen:?}");
    for (word, status, is_unknown) in &outcomes {
        let times = log.split_inclusive(';').filter(|found| found == word).count();
        match status {
            204 => assert_eq!(times, 1, "{word} was acknowledged: {log}"),
            412 => assert_eq!(times, 0, "{word} was refused: {log}"),
            503 if *is_unknown => assert!(times <= 1, "{word}: {log}"),
            // The condition could not even be checked, or nothing was written.
            502..=504 => assert_eq!(times, 0, "{word}: {log}"),
            status => panic!("{word}: {status}"),
        }
    }
    assert!(outcomes.iter().any(|(_, status, _)| *status == 204), "{outcomes:?}");
    println!("{} writes by two servers, {} reads", outcomes.len(), seen.len());
}

#[tokio::test]
async fn the_outcome_of_a_write_with_a_lost_response_is_found_by_its_id() {
    let s3 = TestS3::start().await;
    let server = serve(s3.store());
    assert_eq!(create(&server, "first", "x").await.status, 201);
    for fault in [Fault::DoneThenReset, Fault::DoneThen(500), Fault::DoneThen(503), Fault::NoTag] {
        let rule = Rule { kinds: vec![Kind::Put], key: "value", when: When::Nth(0), fault };
        let key = format!("value {fault:?}");
        s3.inject(vec![rule.clone()], 1);
        let answer = create(&server, &key.replace([' ', '(', ')'], "-"), "one").await;
        assert_eq!(answer.status, 201, "{fault:?}: {answer:?}");
        assert_eq!(s3.heal(), 1);
        let tag = answer.header("etag").to_owned();
        assert_eq!(tag, crate::support::s3::tag(b"one"));
        s3.inject(vec![rule], 1);
        let answer = replace(&server, &key.replace([' ', '(', ')'], "-"), &tag, "two").await;
        assert_eq!((answer.status.as_u16(), answer.header("etag")), (204, &*crate::support::s3::tag(b"two")));
        assert_eq!(s3.heal(), 1);
    }
}

#[tokio::test]
async fn an_unknown_outcome_is_reported_as_unknown_and_never_as_a_failed_condition() {
    let s3 = TestS3::start().await;
    let server = serve(s3.store());
    assert_eq!(create(&server, "first", "x").await.status, 201);
    let lost =
        |kinds: &[Kind], fault| Rule { kinds: kinds.to_vec(), key: "value", when: When::Always, fault };
    for fault in [Fault::DoneThenReset, Fault::DoneThen(500), Fault::Status(412)] {
        // The HEAD request fails, too.
        s3.inject(vec![lost(&[Kind::Put], fault), lost(&[Kind::Head], Fault::Status(500))], 1);
        let answer = create(&server, &format!("value-{}", s3.keys().len()), "one").await;
        assert!(is_unknown(&answer), "{fault:?}: {answer:?}");
        assert!(!answer.header("retry-after").is_empty());
        assert!(s3.heal() >= 2);
    }
    // What the backend keeps does not say who wrote it.
    s3.drop_metadata();
    s3.inject(vec![lost(&[Kind::Put], Fault::DoneThenReset)], 1);
    let answer = create(&server, "value-x", "one").await;
    assert!(is_unknown(&answer), "{answer:?}");
    assert_eq!((s3.heal(), s3.value("value-x")), (1, Some("one".into())));
    assert_eq!(create(&server, "value-x", "two").await.status, 412, "a clear answer is a clear answer");
}

#[tokio::test]
async fn a_write_that_loses_every_conflict_has_written_nothing() {
    let s3 = TestS3::start().await;
    let server = serve(s3.store());
    assert_eq!(create(&server, "first", "x").await.status, 201);
    let rule = Rule { kinds: vec![Kind::Put], key: "value", when: When::Always, fault: Fault::Conflict };
    s3.inject(vec![rule], 1);
    let answer = create(&server, "value", "one").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["written"]), (503, &serde_json::json!(false)));
    assert!(s3.heal() > 1, "it was tried more than once");
    assert_eq!(s3.value("value"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_is_probed_once_for_conditional_writes() {
    let s3 = TestS3::start().await;
    let server = serve(s3.store());
    let keys: Vec<String> = (0..RACERS).map(|n| format!("key/{n}")).collect();
    let answers = join_all(keys.iter().map(|key| create(&server, key, "x"))).await;
    assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
    assert_eq!(s3.requests(Kind::Put), RACERS + 3, "two creations and a replacement of the backend's own");
    assert_eq!(s3.keys().len(), RACERS, "which leave nothing behind: {:?}", s3.keys());

    // A failed probe has no result, so the next write probes again.
    let s3 = TestS3::start().await;
    let server = serve(s3.store());
    let rule = Rule { kinds: vec![Kind::Put], key: "", when: When::Nth(0), fault: Fault::Status(403) };
    s3.inject(vec![rule], 1);
    assert_eq!(create(&server, "a", "x").await.status, 502);
    assert_eq!(s3.heal(), 1);
    assert_eq!(create(&server, "a", "x").await.status, 201);
}

#[tokio::test]
async fn a_backend_that_ignores_conditions_gets_no_conditional_writes() {
    let s3 = TestS3::start().await;
    s3.ignore_conditions();
    s3.insert("there", "old");
    let options = StoreOptions { writable: true, ..StoreOptions::default() };
    let http = zarrd::store::open(&s3.url(), &options, &cpu()).unwrap();
    for server in [serve(s3.store()), serve(http)] {
        for _ in 0..2 {
            let answer = create(&server, "there", "new").await;
            assert_eq!((answer.status.as_u16(), answer.code()), (405, "not-allowed".to_owned()));
            assert!(answer.json()["detail"].as_str().unwrap().contains("conditional writes"));
            assert_eq!(replace(&server, "there", &tag(b"old"), "new").await.status, 405);
        }
        assert_eq!((s3.value("there"), s3.keys().len()), (Some("old".into()), 1));
        let plain = send(&server, Method::PUT, "plain", ("x-plain", "1"), "x".to_owned()).await;
        assert_eq!(plain.status, 204, "others are as welcome as ever");
        assert_eq!(send(&server, Method::DELETE, "plain", ("x-plain", "1"), String::new()).await.status, 204);
    }
}

#[tokio::test]
async fn the_outcome_of_a_write_to_a_web_server_is_never_misreported() {
    let s3 = TestS3::start().await;
    let options = s3.options();
    let server = serve(zarrd::store::open(&s3.url(), &options, &cpu()).unwrap());
    let created = create(&server, "value", "one").await;
    assert_eq!((created.status.as_u16(), created.header("etag")), (201, &*tag(b"one")));
    assert_eq!(create(&server, "value", "two").await.status, 412);
    assert_eq!(replace(&server, "value", "\"other\"", "two").await.status, 412);
    assert_eq!(replace(&server, "value", &tag(b"one"), "two").await.status, 204);
    for fault in [Fault::DoneThenReset, Fault::DoneThen(500)] {
        let before = tag(&s3.value("value").unwrap());
        let rule = Rule { kinds: vec![Kind::Put], key: "value", when: When::Nth(0), fault };
        s3.inject(vec![rule], 1);
        let answer = replace(&server, "value", &before, format!("{fault:?}")).await;
        assert!(is_unknown(&answer), "{answer:?}");
        assert_eq!(s3.heal(), 1);
    }
    // Nothing was written: it is made again.
    let before = tag(&s3.value("value").unwrap());
    let rule = Rule { kinds: vec![Kind::Put], key: "value", when: When::Nth(0), fault: Fault::Status(500) };
    s3.inject(vec![rule], 1);
    assert_eq!(replace(&server, "value", &before, "three").await.status, 204);
    assert_eq!((s3.heal(), s3.value("value")), (1, Some("three".into())));
    let erased = send(&server, Method::DELETE, "value", ("if-match", &tag(b"three")), String::new()).await;
    assert_eq!((erased.status.as_u16(), s3.value("value")), (204, None));
}

#[tokio::test]
async fn reserved_names_of_the_store_are_not_keys() {
    let s3 = TestS3::start().await;
    s3.insert(".zarr-server/left", "behind");
    s3.insert("a/.zarr-server/left", "behind");
    s3.insert("a/key", "value");
    let server = serve(s3.store());
    for key in [".zarr-server/left", "a/.zarr-server/left"] {
        assert_eq!(server.get(&format!("/store/m/{key}")).await.status, 404);
        assert_eq!(create(&server, key, "x").await.code(), "invalid-request");
    }
    let all = server.get("/store/m/?format=json&recursive").await.json();
    assert_eq!(all["keys"].as_array().unwrap().len(), 1, "{all}");
    let root = server.get("/store/m/?format=json").await.json();
    assert_eq!(root["prefixes"].as_array().unwrap().len(), 1, "{root}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_multipart_upload_is_complete_or_leaves_nothing() {
    let s3 = TestS3::start().await;
    let store = s3.store();
    let server = serve(store);
    let bytes = Bytes::from(noise(3).take(1 << 20).collect::<Vec<u8>>().repeat(20));
    let put = |body: Body| {
        let request = Request::put("/store/m/long").body(body).unwrap();
        server.attempt(request)
    };
    assert_eq!(put(Body::from(bytes.clone())).await.status, 204);
    assert!(s3.value("long").unwrap() == bytes, "what was sent");
    assert_eq!(s3.checksums(), 3, "each part carried a checksum");
    let old = s3.insert("long", "old");

    // The body breaks off.
    let pieces = futures::stream::iter((0..20).map(|_| Ok(Bytes::from(vec![1; 1 << 20]))));
    let broken = pieces.clone().chain(futures::stream::iter([Err("the client left")]));
    let answer = put(Body::from_stream(broken)).await;
    assert_eq!(answer.status, 400);
    // The client leaves.
    let waits = pieces.map(|piece: Result<Bytes, &str>| piece).chain(futures::stream::pending());
    let left = tokio::time::timeout(Duration::from_millis(1500), put(Body::from_stream(waits))).await;
    assert!(left.is_err(), "it was still sending");
    // A part, the beginning, or the end fails.
    for (kind, fault) in [
        (Kind::Part, Fault::Status(403)),
        (Kind::Part, Fault::Flipped),
        (Kind::Create, Fault::Status(500)),
        (Kind::Create, Fault::Garbage),
        (Kind::Complete, Fault::ErrorBody),
        (Kind::Complete, Fault::Garbage),
        (Kind::Complete, Fault::Status(500)),
    ] {
        // A 200 without a result was carried out by this backend, so its response is wrong.
        let done = matches!(fault, Fault::ErrorBody | Fault::Garbage) && kind == Kind::Complete;
        s3.inject(vec![Rule { kinds: vec![kind], key: "", when: When::Always, fault }], 1);
        let answer = put(Body::from(bytes.slice(..9 << 20))).await;
        assert!(matches!(answer.status.as_u16(), 502..=504), "{kind:?} {fault:?}: {answer:?}");
        assert!(s3.heal() > 0, "{kind:?} {fault:?}");
        let stored = s3.value("long").unwrap();
        assert!(stored == "old" || (done && stored == bytes[..9 << 20]), "{kind:?} {fault:?}");
        assert_eq!(s3.insert("long", "old"), old);
    }
    for _ in 0..200 {
        if s3.unfinished_uploads() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // An upload that a garbled answer begins has no name that it could be withdrawn by.
    assert!(s3.unfinished_uploads() <= 1, "{} uploads were left", s3.unfinished_uploads());
}

#[tokio::test]
async fn bytes_damaged_in_transfer_are_not_stored() {
    let s3 = TestS3::start().await;
    let server = serve(s3.store());
    for n in 0..20 {
        let key = format!("key-{n}");
        let rule = Rule { kinds: vec![Kind::Put], key: "key", when: When::Always, fault: Fault::Flipped };
        s3.inject(vec![rule], 1);
        let answer = send(&server, Method::PUT, &key, ("x-plain", "1"), format!("bytes {n}")).await;
        assert_eq!((answer.status.as_u16(), s3.value(&key)), (502, None));
        assert!(s3.heal() > 0);
    }
    let without = serve(s3.store_with(|options| options.s3.upload_checksum = false));
    let before = s3.checksums();
    assert_eq!(send(&without, Method::PUT, "plain", ("x-plain", "1"), "x".to_owned()).await.status, 204);
    assert_eq!(s3.checksums(), before, "unless it is switched off");
}
