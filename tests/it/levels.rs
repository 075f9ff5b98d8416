//! Which arrays are levels of images, and which images are of labels: every route has the same answer, whatever the length of
//! a level's path, and asks the store for it no more often than the freshness of the mount requires.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::cache::ValueCache;
use zarrd::services::Mount;
use zarrd::store::{CachePolicy, SharedStore};

use crate::pyramid::Remote;
use crate::support::counting::Counting;
use crate::support::data_types::data_type;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, put};

fn group(attributes: &Value) -> String {
    json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes }).to_string()
}

/// An image with one channel, whose levels have these paths.
fn image(levels: &[&str]) -> Value {
    let dataset = |(at, path): (usize, &&str)| {
        let scale = 0.5 * 2_f64.powi(i32::try_from(at).unwrap());
        json!({ "path": path, "coordinateTransformations": [{ "type": "scale", "scale": [scale, scale] }] })
    };
    json!({ "ome": {
        "version": "0.5",
        "multiscales": [{
            "axes": [
                { "name": "rows", "type": "space", "unit": "micrometer" },
                { "name": "columns", "type": "space", "unit": "micrometer" },
            ],
            "datasets": levels.iter().enumerate().map(dataset).collect::<Value>(),
        }],
        "omero": { "channels": [{ "color": "00ff00", "window": { "start": 5, "end": 50 } }] },
    } })
}

async fn array(store: &SharedStore, path: &str) {
    let members = json!({ "fill_value": 0 });
    let document = Array::of(&[2, 2]).data_type(data_type("uint8")).members(members).document().1;
    put(store, &format!("{path}/zarr.json"), document.to_string()).await;
    put(store, &format!("{path}/c/0/0"), vec![0, 9, 9, 2]).await;
}

/// The image `i` with levels further below it, and its labels `cells` and `other`, of which a list names the first alone.
async fn images() -> SharedStore {
    let store = memory();
    put(&store, "i/zarr.json", group(&image(&["s/full", "s/deep/er/half"]))).await;
    put(&store, "i/s/zarr.json", group(&json!({}))).await;
    put(&store, "i/labels/zarr.json", group(&json!({ "ome": { "version": "0.5", "labels": ["cells"] } })))
        .await;
    for path in ["i/s/full", "i/s/deep/er/half", "i/s/beside", "plain"] {
        array(&store, path).await;
    }
    for name in ["cells", "other"] {
        let mut attributes = image(&["s/full"]);
        attributes["ome"].as_object_mut().unwrap().remove("omero");
        put(&store, &format!("i/labels/{name}/zarr.json"), group(&attributes)).await;
        array(&store, &format!("i/labels/{name}/s/full")).await;
    }
    store
}

async fn get(server: &Server, url: &str) -> crate::support::server::Answer {
    let answer = server.get(url).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    answer
}

#[tokio::test]
async fn an_array_is_a_level_of_its_image_in_every_route() {
    let server = Server::of(images().await);
    for (path, level) in [("i/s/full", Some(0.5)), ("i/s/deep/er/half", Some(1.0)), ("i/s/beside", None)] {
        let summary = get(&server, &format!("/v1/nodes/m/{path}")).await.json()["summary"].clone();
        assert_eq!(summary["axes"][0]["name"] == "rows", level.is_some(), "{path}");
        assert_eq!(summary["axes"][0]["scale"], json!(level), "{path}");
        assert_eq!(summary["channels"].as_array().unwrap().len(), usize::from(level.is_some()), "{path}");
        let range = if level.is_some() { "5,50" } else { "0,9" };
        for url in [format!("/v1/image/m/{path}"), format!("/tiles/m/native/0/0/0/{path}")] {
            for _ in 0..3 {
                let picture = get(&server, &url).await;
                let from = if level.is_some() { "omero" } else { "sample" };
                assert!(picture.header("image-range-from").starts_with(from), "{url}");
                assert_eq!(picture.header("image-range") == range, level.is_some(), "{url}");
            }
        }
        let page = get(&server, &format!("/view/m/{path}")).await;
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        assert_eq!(page.contains("A level of the image"), level.is_some(), "{path}");
        let shown = get(&server, &format!("/pyramid/m/auto/auto/raw/{path}/zarr.json")).await.json();
        assert_eq!(shown["node_type"] == "array", level.is_some(), "{path}");
    }
}

#[tokio::test]
async fn an_image_that_only_a_list_names_is_one_of_labels_in_every_route() {
    let store = images().await;
    let server = Server::of(store.clone());
    let expect = async |name: &str, is_labels: bool| {
        let path = format!("i/labels/{name}");
        let summary = get(&server, &format!("/v1/nodes/m/{path}")).await.json()["summary"].clone();
        assert_eq!(summary["kind"], if is_labels { "ome-labels" } else { "ome-image" }, "{path}");
        for path in [path.clone(), format!("{path}/s/full")] {
            for _ in 0..3 {
                let picture = get(&server, &format!("/v1/image/m/{path}")).await;
                let from = picture.header("image-range-from");
                assert_eq!(from, if is_labels { "" } else { "sample" }, "{path}");
            }
            let page = get(&server, &format!("/view/m/{path}")).await;
            let page = String::from_utf8(page.body.to_vec()).unwrap();
            let flag = format!("\"labels\":{is_labels}");
            assert!(page.contains(&flag) || page.contains(&flag.replace('"', "&quot;")), "{path}");
        }
        for _ in 0..3 {
            let data = get(&server, &format!("/v1/data/m/{path}/s/full?downsample=2,2&format=bytes")).await;
            assert_eq!(data.body[0], if is_labels { 9 } else { 5 }, "{path}");
        }
        let shown = get(&server, &format!("/pyramid/m/auto/auto/raw/{path}/s/full/zarr.json")).await.json();
        assert_eq!(shown["node_type"], "array", "{path}");
    };
    expect("cells", true).await;
    expect("other", false).await;
    // The list is what says it, and what says it may change.
    put(&store, "i/labels/zarr.json", group(&json!({ "ome": { "version": "0.5", "labels": ["other"] } })))
        .await;
    expect("cells", false).await;
    expect("other", true).await;
}

#[tokio::test]
async fn a_picture_changes_when_a_group_further_above_declares_its_array_a_level() {
    let store = images().await;
    put(&store, "a/b/zarr.json", group(&json!({}))).await;
    array(&store, "a/b/c/d").await;
    let server = Server::of(store.clone());
    let range_from = async || {
        let answer = get(&server, "/v1/image/m/a/b/c/d").await;
        answer.header("image-range-from").split_whitespace().next().unwrap_or_default().to_owned()
    };
    for _ in 0..4 {
        assert_eq!(range_from().await, "sample");
    }
    put(&store, "a/zarr.json", group(&image(&["b/c/d"]))).await;
    assert!(range_from().await.starts_with("omero"));
    put(&store, "a/zarr.json", group(&image(&["b/c/e"]))).await;
    assert_eq!(range_from().await, "sample");
}

#[tokio::test]
async fn what_is_above_an_array_is_requested_as_often_as_the_freshness_of_the_mount_requires() {
    for freshness in [CachePolicy::Ttl(Duration::from_hours(1)), CachePolicy::Immutable, CachePolicy::Always]
    {
        let local = memory();
        Array::of(&[600, 600]).chunks(&[300, 300]).store(&local, "a/b/c/d").await;
        let counting = Counting::new(Arc::new(Remote(local)));
        let store = ValueCache::new(16 << 20).wrap("m", Arc::clone(&counting) as SharedStore, freshness);
        let mount = Mount { writable: true, ..Mount::read_only("m", store) };
        let server = Server::build(mount).finish();
        let root = "/pyramid/m/mean/300,300/raw/a/b/c/d";
        let urls = [format!("{root}/1/c/0/0"), format!("{root}/zarr.json"), format!("{root}/1/zarr.json")];
        for url in &urls {
            get(&server, url).await;
        }
        for url in &urls {
            counting.reset();
            get(&server, url).await;
            let mut asked = counting.asked();
            if freshness == CachePolicy::Always {
                // Each document of the array and of what is above it, once; whether there are declared arrays, once more.
                asked.retain(|key| !key.ends_with("zarr.json"));
                let count = asked.len();
                asked.sort();
                asked.dedup();
                assert_eq!(asked.len(), count, "{url}: {:?}", counting.asked());
                assert!(counting.asked().len() <= 20, "{url}: {:?}", counting.asked());
            } else {
                assert_eq!(asked, Vec::<String>::new(), "{freshness} {url}");
                assert_eq!(counting.heads(), 0, "{freshness} {url}");
            }
        }
        // What is written through the server counts at once.
        let document = group(&image(&["b/c/d"]));
        let written = server.request("PUT", "/store/m/a/zarr.json", &[], document.into_bytes()).await;
        assert_eq!(written.status, StatusCode::CREATED, "{freshness}");
        let shown = get(&server, &format!("{root}/zarr.json")).await.json();
        assert_eq!(shown["node_type"], "array", "{freshness}");
        assert_eq!(
            server.ask(Method::DELETE, "/store/m/a/zarr.json", &[]).await.status,
            StatusCode::NO_CONTENT
        );
        let shown = get(&server, &format!("{root}/zarr.json")).await.json();
        assert_eq!(shown["node_type"], "group", "{freshness}");
    }
}
