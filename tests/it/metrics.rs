//! Metrics: they report what happened, in series that clients cannot multiply, and the dashboard queries only what is
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use axum::http::{Method, StatusCode};
use zarrd::app::App;
use zarrd::config::Config;
use zarrd::http::HttpOptions;
use zarrd::services::Mount;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, put};

/// The exported series with their values, and metrics with their types.
struct Metrics {
    series: BTreeMap<String, String>,
    types: BTreeMap<String, String>,
}

impl Metrics {
    async fn of(admin: &Server) -> Self {
        let answer = admin.get("/metrics").await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
        Self::read(std::str::from_utf8(&answer.body).unwrap())
    }

    fn read(text: &str) -> Self {
        assert!(text.ends_with("# EOF\n"), "{text}");
        let (mut series, mut types) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(described) = line.strip_prefix("# TYPE ") {
                let (name, kind) = described.split_once(' ').unwrap();
                assert_eq!(types.insert(name.to_owned(), kind.to_owned()), None, "{name} is described once");
            } else if !line.starts_with('#') {
                let (name, number) = line.rsplit_once(' ').unwrap();
                assert!(number.parse::<f64>().is_ok(), "{line}");
                assert_eq!(series.insert(name.to_owned(), number.to_owned()), None, "{name} is there once");
            }
        }
        Self { series, types }
    }

    /// The number of a series; 0 if it was never counted.
    fn get(&self, series: &str) -> u64 {
        self.series.get(series).map_or(0, |number| number.parse().unwrap())
    }

    /// The names that can be asked for.
    fn names(&self) -> BTreeSet<String> {
        let named = |(name, kind): (&String, &String)| match kind.as_str() {
            "counter" => vec![format!("{name}_total")],
            "histogram" => ["bucket", "sum", "count"].map(|part| format!("{name}_{part}")).into(),
            _ => vec![name.clone()],
        };
        self.types.iter().flat_map(named).collect()
    }
}

/// A server with an array in shards, and its admin listener.
async fn served(change: impl FnOnce(&mut HttpOptions)) -> (Server, Server) {
    let store = memory();
    let shards = Shards::of(&[8, 8], &[Codec::Bytes { big: false }]).codec();
    Array::of(&[32, 32]).chunks(&[32, 32]).codecs([shards]).random(1, &[]).store(&store, "a").await;
    put(&store, "k", "value").await;
    let mut builder = Server::build(Mount { writable: true, ..Mount::read_only("m", store) });
    change(&mut builder.http);
    builder.finish_with_admin()
}

fn requests(route: &str, method: &str, status: &str) -> String {
    format!("zarrd_http_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}}")
}

#[tokio::test]
async fn every_response_is_counted_by_route_method_and_status() {
    let (server, admin) = served(|_| ()).await;
    for _ in 0..3 {
        server.get("/store/m/k").await;
    }
    server.ask(Method::HEAD, "/store/m/k", &[]).await;
    server.get("/store/m/missing").await;
    server.get("/store/m/").await;
    server.get("/nowhere/at/all").await;
    server.get("/v1/nodes/m/a").await;
    server.request("PUT", "/store/m/new", &[], "12345").await;
    let metrics = Metrics::of(&admin).await;
    let key = "/store/{mount}/{*key}";
    for (route, method, status, times) in [
        (key, "GET", "200", 3),
        (key, "HEAD", "200", 1),
        (key, "GET", "404", 1),
        (key, "PUT", "201", 1),
        ("/store/{mount}/", "GET", "200", 1),
        ("unmatched", "GET", "404", 1),
        ("/v1/nodes/{mount}/{*path}", "GET", "200", 1),
    ] {
        assert_eq!(metrics.get(&requests(route, method, status)), times, "{method} {route} {status}");
    }
    assert_eq!(metrics.get(&format!("zarrd_http_request_bytes_total{{route=\"{key}\"}}")), 5);
    // Three times the value; of the rest, problem documents.
    assert!(metrics.get(&format!("zarrd_http_response_bytes_total{{route=\"{key}\"}}")) >= 15);
    assert_eq!(metrics.get("zarrd_http_problems_total{code=\"not-found\"}"), 2);
    assert_eq!(metrics.get(&format!("zarrd_http_request_seconds_count{{route=\"{key}\"}}")), 6);
    assert_eq!(metrics.get("zarrd_http_requests_in_flight"), 1, "the one that asks");
    assert_eq!(metrics.get("zarrd_mount_ready{mount=\"m\"}"), 1);
}

#[tokio::test]
async fn a_client_that_disconnects_early_is_counted_as_such() {
    let (server, admin) = served(|_| ()).await;
    let body = axum::body::Body::from_stream(futures::stream::pending::<Result<&str, std::io::Error>>());
    let request = axum::http::Request::put("/store/m/new").body(body).unwrap();
    let left = tokio::time::timeout(std::time::Duration::from_millis(50), server.send(request)).await;
    assert!(left.is_err());
    let metrics = Metrics::of(&admin).await;
    assert_eq!(metrics.get(&requests("/store/{mount}/{*key}", "PUT", "left")), 1);
    assert_eq!(metrics.get("zarrd_http_requests_in_flight"), 1);
}

#[tokio::test]
async fn reads_of_elements_are_counted_by_stage_by_mount_and_by_cache() {
    let (server, admin) = served(|_| ()).await;
    let cold = server.get("/v1/data/m/a?slice=:8,:8&format=json").await;
    assert_eq!(cold.status, StatusCode::OK, "{:?}", cold.body);
    let timing = cold.header("server-timing");
    for stage in ["plan;dur=", "fetch;dur=", "decode;dur=", "encode;dur="] {
        assert!(timing.contains(stage), "{timing}");
    }
    let before = Metrics::of(&admin).await;
    for stage in ["plan", "fetch", "decode", "encode"] {
        let times = before.get(&format!("zarrd_stage_seconds_count{{stage=\"{stage}\"}}"));
        // A duration below a microsecond counts as zero.
        assert!(times <= 1, "{stage}: {times}");
    }
    let from = |place: &str| format!("zarrd_chunks_total{{mount=\"m\",from=\"{place}\"}}");
    assert_eq!((before.get(&from("store")), before.get(&from("memory"))), (1, 0));
    for _ in 0..3 {
        server.get("/v1/data/m/a?slice=:8,:8").await;
    }
    let after = Metrics::of(&admin).await;
    assert_eq!((after.get(&from("store")), after.get(&from("memory"))), (1, 2), "the second was kept whole");
    let of = |what: &str, kind: &str| after.get(&format!("zarrd_cache_{what}{{kind=\"{kind}\"}}"));
    for kind in ["decoded", "index", "node", "answers"] {
        assert!(of("hits_total", kind) >= 1, "{kind}");
        assert!(of("misses_total", kind) >= 1, "{kind}");
        assert!(of("entries", kind) >= 1 && of("bytes", kind) >= 1, "{kind}");
        assert_eq!(of("evictions_total", kind), 0, "{kind}");
    }
    assert!(after.series.contains_key("zarrd_cache_bytes{kind=\"encoded\"}"));
}

#[tokio::test]
async fn evictions_are_counted() {
    let store = memory();
    Array::of(&[64, 8]).chunks(&[1, 8]).random(1, &[]).store(&store, "a").await;
    let mut builder = Server::build(Mount::read_only("m", store));
    builder.cache.decoded_size = 8 << 10;
    let (server, admin) = builder.finish_with_admin();
    for _ in 0..4 {
        server.get("/v1/data/m/a").await;
    }
    let metrics = Metrics::of(&admin).await;
    let evicted = metrics.get("zarrd_cache_evictions_total{kind=\"decoded\"}");
    assert!(evicted > 0, "{:?}", metrics.series);
    assert!(metrics.get("zarrd_cache_bytes{kind=\"decoded\"}") <= 8192);
}

#[tokio::test]
async fn backends_are_counted_by_mount_verb_and_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store: SharedStore = std::sync::Arc::new(LocalStore::open(folder.path(), &options).unwrap());
    put(&store, "k", "value").await;
    drop(store);
    let mut config = Config::default();
    let mount = serde_json::json!({ "url": folder.path() });
    config.mounts.insert("here".to_owned(), serde_json::from_value(mount).unwrap());
    config.cache.value_size = 0;
    let app = App::build(config).await.unwrap();
    let (site, admin) = (Server::at(app.site()), Server::at(app.admin_site()));
    site.get("/store/here/k").await;
    site.get("/store/here/none").await;
    let metrics = Metrics::of(&admin).await;
    let of = |verb: &str, outcome: &str| {
        metrics.get(&format!(
            "zarrd_backend_requests_total{{mount=\"here\",verb=\"{verb}\",outcome=\"{outcome}\"}}"
        ))
    };
    assert_eq!((of("get", "done"), of("get", "absent")), (1, 1));
    assert_eq!(metrics.get("zarrd_backend_bytes_total{mount=\"here\"}"), 5);
    assert_eq!(metrics.get("zarrd_backend_seconds_count{mount=\"here\",verb=\"get\"}"), 2);
    assert_eq!(metrics.get("zarrd_backend_requests_in_flight{mount=\"here\"}"), 0);
}

#[tokio::test]
async fn requested_paths_create_no_new_time_series() {
    let (server, admin) = served(|_| ()).await;
    let mut state = 1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let ask = async |number: u64| {
        let name = format!("{number:x}");
        let url = match number % 6 {
            0 => format!("/store/m/{name}"),
            1 => format!("/{name}/{name}"),
            2 => format!("/v1/data/m/{name}?slice={name}"),
            3 => format!("/store/{name}/zarr.json"),
            4 => format!("/v1/nodes/{name}"),
            _ => format!("/docs/{name}"),
        };
        let method = ["GET", "HEAD", &*format!("M{}", number % 1000)]
            [usize::try_from(number / 6 % 3).unwrap()]
        .parse()
        .unwrap();
        let id = format!("{name}-{name}");
        let _: Answer = server.ask(method, &url, &[("x-request-id", &id), ("traceparent", &id)]).await;
    };
    for number in 0..5_000 {
        ask(number).await;
    }
    // To ask for metrics is counted, too.
    Metrics::of(&admin).await;
    let before: BTreeSet<String> = Metrics::of(&admin).await.series.into_keys().collect();
    for _ in 0..10_000 {
        ask(random()).await;
    }
    let after: BTreeSet<String> = Metrics::of(&admin).await.series.into_keys().collect();
    // How long something took may fall into a class of its own, but classes are all there from the start.
    let new: Vec<_> = after.difference(&before).collect();
    assert!(new.is_empty(), "{new:?}");
}

#[tokio::test]
async fn metrics_are_public_only_if_configured() {
    let (server, admin) = served(|_| ()).await;
    server.get("/metrics").await.refuses(404, "not-found", "/metrics");
    assert_eq!(admin.get("/metrics").await.status, StatusCode::OK);
    assert_eq!(admin.get("/healthz").await.status, StatusCode::OK);
    assert_eq!(admin.get("/readyz").await.json()["mounts"]["m"], "ready");
    admin.get("/store/m/k").await.is_problem(404, "not-found", "what is stored is not at the admin listener");
    let (server, _) = served(|http| http.public_metrics = true).await;
    assert_eq!(server.get("/metrics").await.status, StatusCode::OK);
}

/// The names of metrics in the queries of a dashboard.
fn asked_for(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| ["expr", "query", "definition"].contains(&name.as_str())) {
                    Some(query) => {
                        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                        let is_metric =
                            |word: &&str| word.starts_with("zarrd_") || word.starts_with("process_");
                        names.extend(words.filter(is_metric).map(str::to_owned));
                    }
                    None => asked_for(member, names),
                }
            }
        }
        serde_json::Value::Array(members) => members.iter().for_each(|member| asked_for(member, names)),
        _ => {}
    }
}

#[tokio::test]
async fn the_dashboard_queries_exactly_the_exported_metrics() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/deploy/grafana/zarrd.json");
    let dashboard = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut asked = BTreeSet::new();
    asked_for(&dashboard, &mut asked);
    assert!(asked.len() >= 20, "{asked:?}");
    let app =
        App::build(Config::default()).await.unwrap().with_process_metrics(zarrd::metrics::ProcessMetrics {
            process: zarrd::config::process::in_use,
            dropped_log_lines: || 0,
            dropped_spans: || 0,
        });
    let exported = Metrics::of(&Server::at(app.admin_site())).await.names();
    let unknown: Vec<_> = asked.difference(&exported).collect();
    assert!(unknown.is_empty(), "{unknown:?}\n  of {exported:?}");
    // Of a histogram, sum and count are in the quantiles.
    let unasked = exported.difference(&asked);
    let unasked: Vec<_> =
        unasked.filter(|name| !name.ends_with("_sum") && !name.ends_with("_count")).collect();
    assert!(unasked.is_empty(), "{unasked:?}");
}
