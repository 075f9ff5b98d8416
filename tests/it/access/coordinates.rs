//! A coordinate that the caller may not read is as if it was not there, whatever others have requested.

use std::sync::Arc;

use serde_json::json;

use super::{access, get_as, grant, known, token};
use crate::labels::{array, dataset, doubles};
use crate::support::server::Server;

#[tokio::test]
async fn labels_are_those_of_coordinates_that_the_caller_may_read() {
    let store = dataset().await;
    // Beside the array is another coordinate, which only the owner of everything may read.
    array(&store, "g/lat", &[3], "float64", &["lat"], json!({}), doubles(&[1.0, 2.0, 45.25])).await;
    let server = Server::of(store);
    let tokens = json!({
        "all": known("all", json!([grant("m", "", &["read"])])),
        "some": known("some", json!([grant("m", "g/v/", &["read"]), grant("m", "lat/", &["read"])])),
        "one": known("one", json!([grant("m", "g/v/", &["read"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    let url = "/v1/data/m/g/v?sel.lat=45.25&format=json";
    for _ in 0..3 {
        let all = get_as(&server, &token("all"), url).await;
        assert_eq!((all.status.as_u16(), all.header("array-selection")), (200, "lat=2"));
        let some = get_as(&server, &token("some"), url).await;
        assert_eq!((some.status.as_u16(), some.header("array-selection")), (200, "lat=1"));
        assert_ne!(some.body, all.body);
        get_as(&server, &token("one"), url).await.refuses(400, "no-coordinate", "no coordinate");
    }
    for route in ["stats", "image"] {
        let url = format!("/v1/{route}/m/g/v?sel.lat=45.25");
        get_as(&server, &token("one"), &url).await.refuses(400, "no-coordinate", route);
    }
}
