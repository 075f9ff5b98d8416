//! Every fault of a backend, met by every kind of request: a client gets the exact bytes, or an error that says that the backend
//! failed. It never gets other bytes, fewer bytes, a false absence or an endless wait.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request};
use bytes::Bytes;
use futures::StreamExt;
use tokio::time::timeout;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::client;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, noise};
use crate::support::s3::{Fault, Kind, Objects, Rule, TestS3, When, tag};
use crate::support::server::{Attempt, Server};

/// How many backends are met at once: an odd number, so that the faults that are met always, which take long, and those that are
/// met once, in turn, are shared out evenly.
const LANES: usize = 25;
/// No request may take longer, whatever the backend does.
const TIMEOUT: Duration = Duration::from_secs(10);

fn serve(store: SharedStore) -> Server {
    let mut builder = Server::build(Mount { writable: true, ..Mount::read_only("m", store) });
    builder.http.response_timeout = Duration::from_secs(9);
    builder.finish()
}

/// The bytes that PATCH writes into the value.
const PART: &[u8] = b"0123456789";

/// The requests to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Get,
    Range,
    Head,
    /// Elements of a chunk; of a shard; of an array whose document fails.
    Slice,
    Shard,
    Open,
    Put,
    PutIf,
    Delete,
    DeleteIf,
    List,
    ListAll,
    /// A part of the value.
    Patch,
    /// The same listings and values in other dialects.
    Propfind,
    S3Get,
    S3List,
}

const ASKS: [Ask; 16] = [
    Ask::Get,
    Ask::Range,
    Ask::Head,
    Ask::Slice,
    Ask::Shard,
    Ask::Open,
    Ask::Put,
    Ask::PutIf,
    Ask::Delete,
    Ask::DeleteIf,
    Ask::List,
    Ask::ListAll,
    Ask::Patch,
    Ask::Propfind,
    Ask::S3Get,
    Ask::S3List,
];

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Exactly the requested bytes.
    Right,
    /// A failure that says so, before or within the answer.
    Failed,
}

impl Ask {
    /// The requests to the backend that fail, and a part of the keys they are about.
    fn at(self) -> (Kind, &'static str) {
        match self {
            Self::Get | Self::Range | Self::S3Get => (Kind::Get, "value"),
            Self::Head => (Kind::Head, "value"),
            Self::Slice => (Kind::Get, "plain/c/"),
            Self::Shard => (Kind::Get, "shards/c/"),
            Self::Open => (Kind::Get, "plain/zarr.json"),
            Self::Put | Self::PutIf | Self::Patch => (Kind::Put, "value"),
            Self::Delete | Self::DeleteIf => (Kind::Delete, "value"),
            Self::List | Self::ListAll | Self::Propfind | Self::S3List => (Kind::List, ""),
        }
    }

    fn reads(self) -> bool {
        matches!(self.at().0, Kind::Get | Kind::Head)
    }

    /// Whether a fault says anything about such a request.
    fn meets(self, fault: Fault) -> bool {
        match fault {
            Fault::WrongRange | Fault::WholeForRange => matches!(self, Self::Range | Self::Shard),
            Fault::PartForWhole => matches!(self, Self::Get | Self::S3Get | Self::Open),
            Fault::Replaced => self.at().0 == Kind::Get && self != Self::Open,
            Fault::Gzip => self.reads() || self.at().0 == Kind::List,
            // Every value that the server lists exists.
            Fault::Garbage | Fault::ErrorBody => self.at().0 == Kind::List,
            Fault::DoneThenReset | Fault::DoneThen(_) => !self.reads() && self.at().0 != Kind::List,
            Fault::Conflict => matches!(self, Self::PutIf | Self::Patch | Self::DeleteIf),
            Fault::Flipped => self.at().0 == Kind::Put,
            _ => true,
        }
    }

    /// Whether a client need not see that the fault happened, if it happens once.
    fn outlives(self, fault: Fault) -> bool {
        match fault {
            Fault::HangMidBody => self.at().0 == Kind::Get,
            Fault::NoTag => self.at().0 == Kind::List || matches!(self, Self::PutIf | Self::Patch),
            Fault::Status(status) => matches!(status, 429 | 500 | 502 | 503),
            Fault::ClockSkew
            | Fault::CutWithoutLength
            | Fault::WrongRange
            | Fault::WholeForRange
            | Fault::PartForWhole
            | Fault::Replaced
            | Fault::Flipped => false,
            Fault::ResetBeforeHead
            | Fault::Hang
            | Fault::ResetMidBody
            | Fault::Cut
            | Fault::Conflict
            | Fault::Longer
            | Fault::Garbage
            | Fault::ErrorBody
            | Fault::Dribble
            | Fault::Gzip
            | Fault::Wait
            | Fault::DoneThenWait
            | Fault::DoneThenFailLater(_)
            | Fault::DoneThenReset
            | Fault::DoneThen(_) => true,
        }
    }
}

const FAULTS: [Fault; 32] = [
    Fault::Status(500),
    Fault::Status(503),
    Fault::Status(429),
    Fault::Status(403),
    Fault::Status(401),
    Fault::Status(400),
    Fault::Status(409),
    Fault::Status(501),
    Fault::Status(502),
    Fault::Status(301),
    Fault::ClockSkew,
    Fault::Conflict,
    Fault::ResetBeforeHead,
    Fault::ResetMidBody,
    Fault::Cut,
    Fault::CutWithoutLength,
    Fault::Longer,
    Fault::WrongRange,
    Fault::WholeForRange,
    Fault::PartForWhole,
    Fault::Replaced,
    Fault::NoTag,
    Fault::Garbage,
    Fault::ErrorBody,
    Fault::Hang,
    Fault::HangMidBody,
    Fault::Dribble,
    Fault::Gzip,
    Fault::Flipped,
    Fault::DoneThenReset,
    Fault::DoneThen(500),
    Fault::DoneThen(503),
];

/// A backend with something in it, and a server before it.
struct Scene {
    s3: TestS3,
    store: SharedStore,
    server: Server,
    objects: Objects,
    value: Bytes,
    plain: Vec<u8>,
    shards: Vec<u8>,
    keys: Vec<String>,
}

impl Scene {
    async fn set() -> Self {
        let s3 = TestS3::start().await;
        s3.page_keys(3);
        // Long enough for a busy machine.
        // One failure is followed by the next here, and each is to be met.
        let store = s3.store_with(|options| {
            (options.remote.read_timeout, options.remote.retry_timeout) =
                (Duration::from_millis(1500), Duration::from_secs(4));
            (options.remote.max_retry_percent, options.remote.circuit_breaker_failures) = (100, 0);
        });
        let array = Array::of(&[8, 8]).chunks(&[4, 4]);
        let plain = array.store(&store, "plain").await;
        let shards = Shards::of(&[2, 2], &[Codec::Bytes { big: false }]).codec();
        let shards = array.codecs([shards]).store(&store, "shards").await;
        let value: Bytes = noise(7).take(3000).collect();
        s3.insert("value", value.clone());
        let server = serve(store.clone());
        let first = request(Method::PUT, "/store/m/first", &[("if-none-match", "*")], "first");
        assert_eq!(server.send(first).await.status, 201, "the backend heeds conditions");
        let keys = s3.keys();
        let keys = keys.iter().map(|key| key.strip_prefix("some/prefix/").unwrap().to_owned()).collect();
        let objects = s3.objects();
        Self { s3, store, server, objects, value, plain: plain.elements, shards: shards.elements, keys }
    }

    /// The initial state, with a server without caches.
    fn reset(&mut self) {
        self.s3.put_back(&self.objects);
        self.server = serve(self.store.clone());
    }

    /// The value after a write.
    fn new_value(&self, ask: Ask) -> Bytes {
        match ask {
            Ask::Patch => [&self.value[..10], PART, &self.value[20..]].concat().into(),
            _ => noise(8).take(2000).collect(),
        }
    }

    async fn ask(&self, ask: Ask) -> Attempt {
        let matches = tag(&self.value);
        let if_match = [("if-match", &*matches)];
        let new = self.new_value(ask);
        let request = match ask {
            Ask::Get => request(Method::GET, "/store/m/value", &[], ""),
            Ask::Range => request(Method::GET, "/store/m/value", &[("range", "bytes=100-1099")], ""),
            Ask::Head => request(Method::HEAD, "/store/m/value", &[], ""),
            Ask::Slice | Ask::Open => request(Method::GET, "/v1/data/m/plain?slice=:4,:4", &[], ""),
            Ask::Shard => request(Method::GET, "/v1/data/m/shards?slice=:2,:2", &[], ""),
            Ask::Put => request(Method::PUT, "/store/m/value", &[], new),
            Ask::PutIf => request(Method::PUT, "/store/m/value", &if_match, new),
            Ask::Delete => request(Method::DELETE, "/store/m/value", &[], ""),
            Ask::DeleteIf => request(Method::DELETE, "/store/m/value", &if_match, ""),
            Ask::List => request(Method::GET, "/store/m/?format=json", &[], ""),
            Ask::ListAll => request(Method::GET, "/store/m/?format=json&recursive", &[], ""),
            Ask::Patch => {
                request(Method::PATCH, "/store/m/value", &[("content-range", "bytes 10-19/*")], PART)
            }
            Ask::Propfind => request(Method::from_bytes(b"PROPFIND").unwrap(), "/store/m/", &[], ""),
            Ask::S3Get => request(Method::GET, "/s3/m/value", &[], ""),
            Ask::S3List => request(Method::GET, "/s3/m?list-type=2", &[], ""),
        };
        timeout(TIMEOUT, self.server.attempt(request)).await.expect("an answer, whatever the backend does")
    }

    /// The outcome of a response, or its fault.
    fn judge(&self, ask: Ask, fault: Fault, answer: &Attempt) -> Result<Outcome, String> {
        let status = answer.status.as_u16();
        let body = match &answer.body {
            Ok(body) => body,
            Err(_) if matches!(status, 200 | 206 | 207) => return Ok(Outcome::Failed),
            Err(error) => return Err(format!("{status} that breaks off: {error}")),
        };
        let stored = self.s3.value("value");
        let is = |stored: Option<&Bytes>, wanted: &[Option<&Bytes>]| {
            let found = wanted.contains(&stored);
            if found { Ok(()) } else { Err("something else is stored now".to_owned()) }
        };
        let (old, new) = (self.value.clone(), self.new_value(ask));
        if matches!(status, 502..=504) {
            for canary in ["canary", "127.0.0.1", "bucket", "prefix"] {
                if String::from_utf8_lossy(body).contains(canary) {
                    return Err(format!("the response reveals {canary}"));
                }
            }
            match ask {
                Ask::Put | Ask::PutIf | Ask::Patch => is(stored.as_ref(), &[Some(&old), Some(&new)])?,
                Ask::Delete | Ask::DeleteIf => is(stored.as_ref(), &[Some(&old), None])?,
                _ => {}
            }
            return Ok(Outcome::Failed);
        }
        if status == 500 && ask == Ask::Shard && fault == Fault::Replaced {
            // The shard is another now, and no shard.
            return Ok(Outcome::Failed);
        }
        let flipped = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
        let exact = |wanted: &[u8]| {
            let is_other = fault == Fault::Replaced && **body == *flipped(wanted);
            if **body == *wanted || is_other { Ok(Outcome::Right) } else { Err("other bytes".to_owned()) }
        };
        let corner = |elements: &[u8], edge: usize| -> Vec<u8> {
            (0..edge).flat_map(|row| elements[row * 16..][..edge * 2].to_vec()).collect()
        };
        let right = match ask {
            Ask::Get | Ask::S3Get => (200, exact(&old)),
            Ask::Range => (206, exact(&old[100..1100])),
            Ask::Head => {
                let length = answer.headers.get("content-length").and_then(|length| length.to_str().ok());
                let right = length == Some("3000");
                (200, right.then_some(Outcome::Right).ok_or_else(|| format!("length {length:?}")))
            }
            Ask::Slice | Ask::Open => (200, exact(&corner(&self.plain, 4))),
            Ask::Shard => (200, exact(&corner(&self.shards, 2))),
            Ask::Put | Ask::PutIf | Ask::Patch => {
                let has_new_tag = answer.headers.get("etag").is_none_or(|found| *found == tag(&new));
                let stored = is(stored.as_ref(), &[Some(&new)]).map(|()| Outcome::Right);
                (204, if has_new_tag { stored } else { Err("another tag than the value's".to_owned()) })
            }
            Ask::Delete | Ask::DeleteIf => (204, is(stored.as_ref(), &[None]).map(|()| Outcome::Right)),
            Ask::List | Ask::ListAll => (200, self.lists(ask == Ask::ListAll, body)),
            Ask::Propfind => {
                (207, self.names_every_key(body, "<D:resourcetype/>", "<D:href>/store/m/", "</D:href>"))
            }
            Ask::S3List => (200, self.names_every_key(body, "<Key>", "<Key>", "</Key>")),
        };
        if status == right.0 { right.1 } else { Err(format!("{status}: {body:?}")) }
    }

    /// Whether a listing in XML, of which each line with `mark` is about a key, names every key.
    fn names_every_key(
        &self,
        body: &Bytes,
        mark: &str,
        before: &str,
        after: &str,
    ) -> Result<Outcome, String> {
        let text = String::from_utf8_lossy(body).replace("<Contents>", "\n<Contents>");
        let keys = text.lines().filter(|line| line.contains(mark));
        let keys: Vec<&str> = keys
            .filter_map(|line| line.split_once(before)?.1.split_once(after))
            .map(|(key, _)| key)
            .collect();
        if keys == self.keys { Ok(Outcome::Right) } else { Err(format!("other keys: {text}")) }
    }

    fn lists(&self, all: bool, body: &Bytes) -> Result<Outcome, String> {
        let page: serde_json::Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let names = |member: &str| -> Vec<String> {
            let entries = page[member].as_array().cloned().unwrap_or_default();
            let name = |entry: serde_json::Value| {
                entry["key"].as_str().or_else(|| entry.as_str()).unwrap_or("?").to_owned()
            };
            entries.into_iter().map(name).collect()
        };
        let (keys, prefixes) = (names("keys"), names("prefixes"));
        let right = if all { keys == self.keys } else { keys == ["first", "value"] && prefixes.len() == 2 };
        if right { Ok(Outcome::Right) } else { Err(format!("other keys: {body:?}")) }
    }
}

fn request(
    method: Method,
    url: &str,
    headers: &[(&'static str, &str)],
    body: impl Into<Bytes>,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(url);
    for &(name, value) in headers {
        request = request.header(name, HeaderValue::from_str(value).unwrap());
    }
    request.body(Body::from(body.into())).unwrap()
}

/// One fault, met by one request: at the first request to the backend that fits, or at each.
async fn meet(scene: &Scene, ask: Ask, fault: Fault, when: When) -> Option<String> {
    let (kind, key) = ask.at();
    scene.s3.inject(vec![Rule { kinds: vec![kind], key, when, fault }], 1);
    let answer = scene.ask(ask).await;
    let injected = scene.s3.heal();
    let complaint = |what: String| Some(format!("{ask:?} {fault:?} {when:?}: {what}"));
    if injected == 0 {
        return complaint("the fault was never injected".to_owned());
    }
    let came = match scene.judge(ask, fault, &answer) {
        Ok(came) => came,
        Err(what) => return complaint(what),
    };
    let once = matches!(when, When::Nth(_));
    if once && ask.outlives(fault) && came == Outcome::Failed {
        return complaint(format!("{} where asking again would have done", answer.status));
    }
    // The fault is over: nothing of it is cached.
    let reads_again = if ask.reads() { ask } else { Ask::List };
    let again = scene.ask(reads_again).await;
    if reads_again == ask {
        match scene.judge(ask, fault, &again) {
            Ok(Outcome::Right) => {}
            Ok(Outcome::Failed) if fault == Fault::Replaced => {}
            other => return complaint(format!("afterwards {other:?}: {again:?}")),
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_fault_is_retried_or_reported_and_never_becomes_wrong_bytes_or_an_absence() {
    let mut cells = Vec::new();
    for ask in ASKS {
        for fault in FAULTS.into_iter().filter(|fault| ask.meets(*fault)) {
            cells.extend([When::Nth(0), When::Always].map(|when| (ask, fault, when)));
        }
    }
    assert!(cells.len() > 600, "only {} cells", cells.len());
    let lanes = (0..LANES).map(|lane| {
        let cells: Vec<_> = cells.iter().copied().skip(lane).step_by(LANES).collect();
        async move {
            let (mut scene, mut complaints) = (Scene::set().await, Vec::new());
            for (ask, fault, when) in cells {
                complaints.extend(meet(&scene, ask, fault, when).await);
                scene.reset();
            }
            complaints
        }
    });
    let complaints = futures::future::join_all(lanes).await.concat();
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// A small generator, the same for the same seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % end
    }
}

/// Rounds of the random run at each rate: few, or as many as `ZARRD_ROUNDS` says.
fn rounds() -> usize {
    let rounds_set = std::env::var_os("ZARRD_ROUNDS").and_then(|rounds| rounds.to_str()?.parse().ok());
    rounds_set.unwrap_or(40)
}

/// The possible contents of a key: one value, or several after an unacknowledged write; `None` is no value.
type May = Vec<Option<Bytes>>;

/// After the faults, each key has a possible value. The circuit of a failed backend may stay open for a moment.
async fn afterwards(server: &Server, keys: &[&str], may: &[May]) -> Result<(), String> {
    for (key, may) in keys.iter().zip(may) {
        let url = format!("/store/m/{key}");
        let ask = || request(Method::GET, &url, &[], "");
        let mut answer = server.send(ask()).await;
        for _ in 0..100 {
            if !answer.status.is_server_error() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            answer = server.send(ask()).await;
        }
        let there = match answer.status.as_u16() {
            200 => Some(answer.body.clone()),
            404 => None,
            _ => return Err(format!("afterwards, {key}: {answer:?}")),
        };
        if !may.contains(&there) {
            return Err(format!("afterwards, {key} is {answer:?}"));
        }
    }
    Ok(())
}

/// How many faults were injected.
async fn random_run(per_mille: u64, seed: u64) -> Result<usize, String> {
    const KINDS: [Kind; 5] = [Kind::Get, Kind::Head, Kind::Put, Kind::Delete, Kind::List];
    const KEYS: [&str; 4] = ["a", "b/c", "b/d", "e"];
    let s3 = TestS3::start().await;
    s3.page_keys(2);
    // With the default timeouts: many runs start at once.
    let first = serve(s3.store_with(|_| ()));
    let created = first.send(request(Method::PUT, "/store/m/a", &[("if-none-match", "*")], "0")).await;
    assert_eq!(created.status, 201);
    let server = serve(s3.store_with(|options| {
        (options.remote.read_timeout, options.remote.retry_timeout) =
            (Duration::from_millis(400), Duration::from_millis(1500));
    }));
    let mut draws = Draws(seed);
    let mut may: Vec<May> = vec![vec![Some("0".into())], vec![None], vec![None], vec![None]];
    let mut injected = 0;
    for round in 0..rounds() {
        let fault = loop {
            let fault = FAULTS[draws.below(FAULTS.len())];
            // These change or invent values by themselves.
            if !matches!(fault, Fault::Replaced | Fault::Garbage | Fault::ErrorBody) {
                break fault;
            }
        };
        let rule = Rule { kinds: KINDS.to_vec(), key: "", when: When::PerMille(per_mille), fault };
        s3.inject(vec![rule], seed + u64::try_from(round).unwrap());
        let at = draws.below(KEYS.len());
        let url = format!("/store/m/{}", KEYS[at]);
        let new: Bytes = noise(u64::try_from(round).unwrap()).take(500 + draws.below(1000)).collect();
        let what = draws.below(6);
        let ask = match what {
            0 => request(Method::PUT, &url, &[], new.clone()),
            1 => request(Method::PUT, &url, &[("if-none-match", "*")], new.clone()),
            2 => request(Method::DELETE, &url, &[], ""),
            3 => request(Method::GET, "/store/m/?format=json&recursive", &[], ""),
            4 => request(Method::GET, &url, &[("range", "bytes=-100")], ""),
            _ => request(Method::GET, &url, &[], ""),
        };
        let answer =
            timeout(TIMEOUT, server.attempt(ask)).await.map_err(|late| format!("{fault:?}: {late}"))?;
        injected += s3.heal();
        let status = answer.status.as_u16();
        let report =
            |text: &str| Err(format!("seed {seed}, round {round}, {fault:?}, {what}: {text}: {answer:?}"));
        let body = match &answer.body {
            _ if matches!(status, 502..=504) => None,
            Err(_) if what >= 4 => None,
            Err(_) => return report("broke off"),
            Ok(body) => Some(body.clone()),
        };
        let written = Some(new.clone());
        match (what, status, body) {
            (0 | 1, _, None) => may[at].push(written),
            (2, _, None) => may[at].push(None),
            (_, _, None) => {}
            (0, 204, _) => may[at] = vec![written],
            (1, 201, _) if may[at].contains(&None) => may[at] = vec![written],
            (1, 412, _) if may[at].iter().any(Option::is_some) => may[at].retain(Option::is_some),
            (2, 204, _) => may[at] = vec![None],
            (3, 200, Some(body)) => {
                let page: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let keys: Vec<&str> =
                    page["keys"].as_array().unwrap().iter().map(|key| key["key"].as_str().unwrap()).collect();
                for (key, may) in KEYS.iter().zip(&mut may) {
                    let is_listed = keys.contains(key);
                    may.retain(|value| value.is_some() == is_listed);
                    if may.is_empty() {
                        return report("another listing");
                    }
                }
            }
            (4 | 5, 404, _) => {
                may[at].retain(Option::is_none);
                if may[at].is_empty() {
                    return report("an absence");
                }
            }
            (4, 200 | 206, Some(body)) | (5, 200, Some(body)) => {
                let is = |value: &Bytes| {
                    if status == 206 {
                        value[value.len().saturating_sub(100)..] == body
                    } else {
                        *value == body
                    }
                };
                may[at].retain(|value| value.as_ref().is_some_and(is));
                if may[at].is_empty() {
                    return report("other bytes");
                }
            }
            _ => return report("another status"),
        }
    }
    afterwards(&server, &KEYS, &may).await.map_err(|text| format!("seed {seed}: {text}"))?;
    Ok(injected)
}

#[tokio::test(flavor = "multi_thread")]
async fn random_backend_faults_never_change_the_bytes_read() {
    // Most of the time of a run is waiting: many go side by side.
    const RUNS: u64 = 16;
    let (mut injected, mut asked) = (0, 0);
    let runs = [10, 100, 500, 1000].map(|per_mille| {
        let runs = (0..RUNS).map(move |run| random_run(per_mille, per_mille * RUNS + run));
        async { futures::future::join_all(runs).await.into_iter().map(Result::unwrap).sum::<usize>() }
    });
    for faults in futures::future::join_all(runs).await {
        assert!(faults > 0, "nothing was injected");
        injected += faults;
        asked += usize::try_from(RUNS).unwrap() * rounds();
    }
    println!("{injected} faults in {asked} requests");
}

#[tokio::test]
async fn a_backend_that_is_down_gets_a_bounded_number_of_requests() {
    let scene = Scene::set().await;
    let before = scene.s3.requests(Kind::Get);
    scene.s3.inject(
        vec![Rule { kinds: vec![Kind::Get], key: "", when: When::Always, fault: Fault::Status(503) }],
        1,
    );
    let answer = scene.ask(Ask::Get).await;
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!((scene.s3.heal(), scene.s3.requests(Kind::Get) - before), (3, 3), "three tries in all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_gets_the_complete_value() {
    let s3 = TestS3::start().await;
    let value = Bytes::from(noise(5).take(3 << 20).collect::<Vec<u8>>().repeat(16));
    s3.insert("long", value.clone());
    let store = s3.store_with(|options| options.remote.read_timeout = Duration::from_secs(1));
    let address = Server::of(store).listen().await;
    let stream = client::get(format!("http://{address}/store/m/long")).await.unwrap().bytes_stream();
    let mut stream = Box::pin(stream);
    let (mut at, mut pauses) = (0, 0);
    while let Some(piece) = stream.next().await {
        let piece = piece.unwrap();
        assert!(value[at..at + piece.len()] == piece, "other bytes at {at}");
        at += piece.len();
        if at / (16 << 20) > pauses {
            // Longer than the backend may stall.
            pauses += 1;
            tokio::time::sleep(Duration::from_millis(1500)).await;
        }
    }
    assert_eq!((at, pauses), (value.len(), 3));
    assert_eq!(s3.requests(Kind::Get), 1, "in one piece");
}

#[tokio::test]
async fn an_unreachable_backend_is_a_failure_and_not_an_absence() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let s3 = TestS3::start().await;
    let plain = s3.options().bucket.endpoint.unwrap();
    for endpoint in
        [format!("http://{closed}"), "http://nowhere.invalid".to_owned(), plain.replace("http:", "https:")]
    {
        let mut options = s3.options();
        options.bucket.endpoint = Some(endpoint.clone());
        options.remote.connect_timeout = Duration::from_secs(1);
        let Ok(store) = zarrd::store::open("s3://bucket/x", &options, &crate::support::server::cpu()) else {
            assert!(
                endpoint.starts_with("https:"),
                "only a machine without certificates cannot open {endpoint}"
            );
            continue;
        };
        let server = serve(store);
        let asks = [
            request(Method::GET, "/store/m/value", &[], ""),
            request(Method::HEAD, "/store/m/value", &[], ""),
            request(Method::GET, "/store/m/?format=json", &[], ""),
            request(Method::GET, "/v1/data/m/a", &[], ""),
            request(Method::PUT, "/store/m/value", &[], "x"),
            request(Method::PUT, "/store/m/value", &[("if-none-match", "*")], "x"),
            request(Method::DELETE, "/store/m/value", &[], ""),
        ];
        let answers = asks.map(|ask| {
            let what = format!("{} {} at {endpoint}", ask.method(), ask.uri());
            let server = &server;
            async move {
                let answer = timeout(TIMEOUT, server.attempt(ask)).await.expect(&what);
                assert!(matches!(answer.status.as_u16(), 502..=504), "{what}: {answer:?}");
            }
        });
        futures::future::join_all(answers).await;
    }
}
