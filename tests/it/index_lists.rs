//! Lists of positions, `isel.NAME=9,1,5`: what they select in every format, and what their responses are bound by. Those of random
//! arrays are compared with xarray in `tests/clients`.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::labels::dataset;
use crate::support::server::{Answer, Server};

async fn get(server: &Server, url: &str) -> Answer {
    let answer = server.get(url).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    answer
}

#[tokio::test]
async fn a_list_selects_its_elements_in_its_order_along_each_dimension() {
    let server = Server::of(dataset().await);
    let found = get(&server, "/v1/data/m/g/v?isel.lat=2,0&isel.lon=-1,1,1&isel.time=3&format=json").await;
    assert_eq!(found.json(), json!([[47, 45, 45], [39, 37, 37]]));
    assert_eq!(found.header("array-shape"), "[2, 3]");
    assert_eq!(found.header("array-dimension-names"), r#"["lat","lon"]"#);
    let found = get(&server, "/v1/data/m/g/v?isel.lat=2,0&isel.lon=3,1,1&isel.time=3&format=csv").await;
    assert_eq!(&found.body[..], b"3,1,1\r\n47,45,45\r\n39,37,37\r\n");
    let none = get(&server, "/v1/data/m/g/v?isel.lat=0:0,3:3&isel.time=0&format=json").await;
    assert_eq!(none.json(), json!([]));
}

#[tokio::test]
async fn a_list_of_neighbours_is_their_slice_in_every_format() {
    let server = Server::of(dataset().await);
    for format in ["npy", "bytes", "json", "csv", "arrow", "npy&endian=big", "json&decode=cf"] {
        let listed = format!("/v1/data/m/g/v?isel.time=0&isel.lat=1,2&format={format}");
        let listed = get(&server, &listed).await;
        let sliced = get(&server, &format!("/v1/data/m/g/v?isel.time=0&isel.lat=1:3&format={format}")).await;
        assert_eq!(listed.body, sliced.body, "{format}");
        assert_eq!(listed.header("content-type"), sliced.header("content-type"), "{format}");
    }
}

#[tokio::test]
async fn a_range_over_the_end_of_the_coordinate_gives_both_pieces_in_order() {
    let server = Server::of(dataset().await);
    let found =
        get(&server, "/v1/data/m/g/v?sel.lon=170..10&wrap=360&isel.time=0&isel.lat=0&format=json").await;
    assert_eq!(found.json(), json!([2, 3, 0]));
    assert_eq!(found.header("array-selection"), "time=0, lat=0, lon=2:4,0:1");
    let again = get(&server, "/v1/data/m/g/v?isel.lon=2:4,0:1&isel.time=0&isel.lat=0&format=json").await;
    assert_eq!(again.body, found.body);
}

#[tokio::test]
async fn the_response_of_a_list_has_an_entity_tag_of_its_own_and_ranges() {
    let server = Server::of(dataset().await);
    let url = "/v1/data/m/g/v?isel.lat=2,0&format=bytes";
    let whole = get(&server, url).await;
    let other = get(&server, "/v1/data/m/g/v?isel.lat=0,2&format=bytes").await;
    let tag = whole.header("etag").to_owned();
    assert_ne!(tag, other.header("etag"));
    let unchanged = server.ask(Method::GET, url, &[("if-none-match", &tag)]).await;
    assert_eq!(unchanged.status, StatusCode::NOT_MODIFIED);
    let part = server.ask(Method::GET, url, &[("range", "bytes=7-29")]).await;
    assert_eq!((part.status, &part.body[..]), (StatusCode::PARTIAL_CONTENT, &whole.body[7..30]));
}

#[tokio::test]
async fn what_no_list_can_be_is_refused_with_what_would_be_right() {
    let server = Server::of(dataset().await);
    for (url, says) in [
        ("/v1/data/m/g/v?isel.lat=0,3", "index 3 is out of range for axis 1 of length 3"),
        ("/v1/data/m/g/v?isel.lat=0,x", "`x` (item 1 of the list)"),
        ("/v1/data/m/g/v?isel.lat=0,1&isel.lat=2", "`lat` is selected twice"),
        ("/v1/data/m/g/v?isel.lat=0,1&sel.lat=60", "`lat` is selected twice"),
        ("/v1/data/m/g/v?isel.level=0,1", "its dimensions are time, lat, lon"),
        ("/v1/data/m/g/v?isel.lat=0,2&slice=0", "`slice` cannot be mixed"),
        ("/v1/data/m/g/v?isel.lat=0,2&reduce.lon=mean", "are not reduced"),
        ("/v1/data/m/g/v?isel.lat=0,2&format=nc", "select one range"),
        ("/v1/data/m/g?isel.lat=0,2&format=nc", "select one range"),
        ("/v1/stats/m/g/v?isel.lat=0,2", "select one range"),
        ("/v1/image/m/g/v?isel.time=0,2", "select one range"),
    ] {
        let detail = server.get(url).await.refuses(400, "invalid-request", url);
        assert!(detail.contains(says), "{url}: {detail}");
    }
}
