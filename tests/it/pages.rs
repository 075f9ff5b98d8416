//! Pages as HTML: what is in them before any script runs. `tests/clients` has them in browsers.

use axum::http::StatusCode;
use serde_json::json;

use crate::labels::{array, doubles, integers};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// The HTML of a page, and its status.
async fn page(server: &Server, url: &str) -> (StatusCode, String) {
    let answer = server.request("GET", url, &[("accept", "text/html")], "").await;
    (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
}

/// A server of a folder, which is no node, with the dataset `era.zarr` in it.
async fn folder() -> Server {
    let store = memory();
    put(&store, "era.zarr/zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    array(&store, "era.zarr/v", &[2, 3], "int32", &["lat", "lon"], json!({}), integers(0..6)).await;
    array(&store, "era.zarr/lat", &[2], "float64", &["lat"], json!({}), doubles(&[60.0, 30.0])).await;
    array(&store, "era.zarr/lon", &[3], "float64", &["lon"], json!({}), doubles(&[0.0, 1.0, 2.0])).await;
    Server::of(store)
}

#[tokio::test]
async fn the_page_of_a_folder_of_other_files_links_to_its_keys() {
    let store = memory();
    put(&store, "many/a b.txt", "x").await;
    let server = Server::of(store);
    let (status, html) = page(&server, "/view/m/many").await;
    assert_eq!(status, 404);
    assert!(html.contains(r#"<a href="/store/m/many/"><bdi>List its keys</bdi></a>"#), "{html}");
    assert_eq!(server.get("/store/m/many/").await.status, 200);
    let (_, html) = page(&server, "/view/m/none").await;
    assert!(!html.contains("List its keys"), "{html}");
}

#[tokio::test]
async fn a_dataset_in_a_folder_has_a_picture_on_the_first_page() {
    let (status, html) = page(&folder().await, "/").await;
    assert_eq!(status, StatusCode::OK);
    assert!(html.contains(r#"src="/v1/image/m/era.zarr/v?"#), "{html}");
}

#[tokio::test]
async fn a_page_that_is_refused_for_its_words_leads_to_the_same_page_without_them() {
    let server = folder().await;
    let link = r#"href="/view/m/era.zarr/v">"#;
    for words in ["sel.lat=45", "sel.tim=3"] {
        let (status, html) = page(&server, &format!("/view/m/era.zarr/v?{words}")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{words}");
        assert!(html.contains(link), "{words}: {html}");
    }
    let (status, html) = page(&server, "/view/m/none?sel.lat=45").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(!html.contains(r#"href="/view/m/none"#), "{html}");
}

#[tokio::test]
async fn what_has_no_statistics_has_no_histogram() {
    let store = memory();
    let of_dates = json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}});
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let arrays = [
        ("real", json!("float32"), json!(0.0), bytes.clone()),
        ("complex", json!("complex64"), json!([0.0, 0.0]), bytes.clone()),
        ("dates", of_dates, json!("NaT"), bytes),
        ("text", json!("string"), json!(""), json!({"name": "vlen-utf8"})),
    ];
    for (path, data_type, fill, codec) in arrays {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": data_type, "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": [codec],
        });
        put(&store, &format!("{path}/zarr.json"), document.to_string()).await;
    }
    let server = Server::of(store);
    for (path, has_histogram) in [("real", true), ("complex", false), ("dates", false), ("text", false)] {
        let (status, html) = page(&server, &format!("/view/m/{path}?tab=hist")).await;
        assert_eq!(status, StatusCode::OK, "{path}: {html}");
        assert_eq!(html.contains(r#"data-tab="hist""#), has_histogram, "{path}: {html}");
        assert_eq!(html.contains("Statistics as JSON"), has_histogram, "{path}");
    }
}

#[tokio::test]
async fn stripes_behind_a_small_picture_leave_gaps() {
    let (_, html) = page(&folder().await, "/view/m/era.zarr/v").await;
    let pattern = html.split("<pattern").nth(1).unwrap().split("</pattern>").next().unwrap();
    let widths: Vec<f64> = pattern
        .split(r#" width=""#)
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    let [of_pattern, of_stripe] = widths[..] else { panic!("{pattern}") };
    assert!(of_stripe > 0.0 && of_stripe <= of_pattern / 2.0, "{pattern}");
}

#[tokio::test]
async fn a_name_without_its_extension_leads_to_the_node() {
    let server = folder().await;
    let detail = server.get("/v1/nodes/m/era").await.refuses(404, "not-found", "no extension");
    assert!(detail.contains("did you mean `/era.zarr`?"), "{detail}");
}

/// The links of a page to its elements: format and URL.
fn downloads(html: &str) -> Vec<(String, String)> {
    let links = html.split("<a href=\"").skip(1).filter_map(|rest| {
        let (url, rest) = rest.split_once("\" data-format=\"")?;
        let format = rest.split('"').next()?;
        (!url.contains('"')).then(|| (format.to_owned(), url.replace("&amp;", "&")))
    });
    links.collect()
}

#[tokio::test]
async fn every_download_that_a_page_offers_is_served() {
    let store = memory();
    let fields = json!([{ "name": "a", "data_type": "int16" }, { "name": "b", "data_type": "float32" }]);
    for (path, shape) in [("pairs", vec![3]), ("table", vec![3, 4])] {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "fill_value": "AAAAAAAA",
            "data_type": { "name": "struct", "configuration": { "fields": fields } },
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": shape } },
            "chunk_key_encoding": { "name": "default" },
            "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
        });
        put(&store, &format!("{path}/zarr.json"), document.to_string()).await;
    }
    array(&store, "photo", &[5, 6, 3], "uint8", &["y", "x", "c"], json!({}), vec![0; 90]).await;
    array(&store, "cube", &[2, 3, 4], "int32", &["t", "y", "x"], json!({}), integers(0..24)).await;
    array(&store, "value", &[], "int32", &[], json!({}), integers(0..1)).await;
    let server = Server::of(store);
    for (url, has_csv) in [
        ("photo", false),
        ("photo?slice=:,:,0", true),
        ("photo?tab=use", false),
        ("cube", true),
        ("cube?slice=:,:,:&tab=table", false),
        ("value", true),
        ("pairs", true),
        ("table", false),
        ("table?fields=a", true),
        ("table?fields=a,b", false),
        ("table?tab=use", false),
        ("table?tab=use&fields=b", true),
    ] {
        let (status, html) = page(&server, &format!("/view/m/{url}")).await;
        assert_eq!(status, StatusCode::OK, "{url}");
        let has_table = |url: &str| url.contains("coords=1");
        if url.contains("tab=use") {
            assert_eq!(html.contains("read.csv("), has_csv, "{url}: {html}");
            assert!(!html.contains("It needs a token"), "{url}: {html}");
            continue;
        }
        let offered = downloads(&html);
        let csv = offered.iter().any(|(format, link)| format == "csv" && !has_table(link));
        assert_eq!(csv, has_csv, "{url}: {offered:?}");
        assert!(offered.iter().any(|(format, _)| format == "json"), "{url}: {offered:?}");
        for (_, link) in &offered {
            let answer = server.get(link).await;
            assert_eq!(answer.status, StatusCode::OK, "{link} on {url}: {:?}", answer.body);
        }
    }
}
