//! The three profiles: each store opens in its own, and all return the same for the same data.

use serde_json::{Value, json};

use super::{ask, expected, get_json, server, sorted};

#[tokio::test]
async fn the_profile_of_each_store_is_detected() {
    for (folder, profile, stores) in [
        (
            "real",
            "v9",
            &[
                "graph",
                "points_2d_sharded",
                "points_cloud",
                "points_negative_f64",
                "points_objects",
                "points_pyramid",
                "points_rounding",
                "points_tiny",
                "streamlines",
            ][..],
        ),
        ("v07", "v7", &["points_negative_v07", "points_tiny_v07", "streamlines_v07"]),
        ("doc", "doc", &["doc_points", "doc_points_gzip", "doc_points_shortkeys", "doc_streamlines"]),
    ] {
        let server = server(folder);
        for store in stores {
            let summary = get_json(&server, &format!("{store}.zarrvectors")).await;
            assert_eq!(summary["profile"], profile, "{store}");
            assert_eq!(summary["diagnostics"], json!([]), "{store}");
            assert_eq!(summary["dims"], summary["axes"].as_array().unwrap().len(), "{store}");
            for level in summary["levels"].as_array().unwrap() {
                let at = format!("{store}.zarrvectors/levels/{}", level["level"]);
                let found = get_json(&server, &at).await;
                assert_eq!(found["chunk_shape"], level["chunk_shape"], "{at}");
                assert!(found["chunks"].as_u64().unwrap() > 0, "{at}");
                let vertices = get_json(&server, &format!("{at}/vertices")).await;
                assert_eq!(vertices["stats"]["rows"], level["vertex_count"], "{at}");
                assert_eq!((&vertices["errors"], &vertices["warnings"]), (&json!([]), &json!([])), "{at}");
            }
        }
    }
}

/// The positions in each chunk, in stored order.
fn by_chunk(vertices: &Value) -> serde_json::Map<String, Value> {
    let mut positions = vertices["positions"].as_array().unwrap().iter();
    let chunks = vertices["chunks"].as_array().unwrap().iter().map(|chunk| {
        let rows = chunk["rows"].as_array().unwrap().len();
        let coord: Vec<String> = chunk["coord"].as_array().unwrap().iter().map(Value::to_string).collect();
        (coord.join("."), positions.by_ref().take(rows).cloned().collect::<Value>())
    });
    chunks.collect()
}

fn floats(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(floats).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), floats(value))).collect())
        }
        number => json!(number.as_f64().unwrap()),
    }
}

#[tokio::test]
async fn stores_of_the_documents_profile_are_read() {
    let server = server("doc");
    for (name, store) in expected("doc/expected_doc.json").as_object().unwrap() {
        let at = format!("{name}.zarrvectors");
        let level = get_json(&server, &format!("{at}/levels/0")).await;
        assert_eq!(
            (&level["grid"], &level["bins_per_chunk"]),
            (&store["grid"], &store["bins_per_chunk"]),
            "{name}"
        );
        let vertices = get_json(&server, &format!("{at}/vertices?columns=position,chunk,row,fragment")).await;
        assert_eq!(floats(&Value::Object(by_chunk(&vertices))), floats(&store["chunks"]), "{name}");
        // The response has the key that exists.
        let listed = get_json(&server, &format!("{at}/chunks")).await;
        for chunk in listed["chunks"].as_array().unwrap() {
            let key = chunk["keys"]["vertices"].as_str().unwrap();
            let found = server.get(&format!("/store/m/{at}/{key}")).await;
            assert!(found.status.is_success(), "{name} {key}");
            let numbers = key.split('/').skip(3).count();
            assert_eq!(numbers, if name == "doc_points_shortkeys" { 3 } else { 5 }, "{name} {key}");
        }
    }
    let intensity = get_json(&server, "doc_points.zarrvectors/vertices?attributes=intensity").await;
    assert_eq!(intensity["attributes"]["intensity"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn objects_and_links_of_the_documents_profile_are_read() {
    let server = server("doc");
    let store = &expected("doc/expected_doc.json")["doc_streamlines"];
    let at = "doc_streamlines.zarrvectors";
    let links = get_json(&server, &format!("{at}/links")).await;
    // Two within the first chunk, and two between chunks: row 1 of chunk 0 to row 0 of chunk 2, and on to that of chunk 3.
    assert_eq!(
        links["links"],
        json!([
            [[[0, 0, 0], 0], [[0, 0, 0], 1]],
            [[[0, 0, 0], 2], [[0, 0, 0], 3]],
            [[[0, 0, 0], 1], [[1, 0, 0], 0]],
            [[[1, 0, 0], 0], [[1, 1, 0], 0]],
        ])
    );
    assert_eq!(store["cross_chunk_links"], json!([[1, 8], [8, 12]]));
    for (id, polyline) in store["polylines"].as_array().unwrap().iter().enumerate() {
        let found = get_json(&server, &format!("{at}/objects/{id}/vertices")).await;
        assert_eq!(floats(&found["positions"]), floats(polyline), "{id}");
        let edges = get_json(&server, &format!("{at}/objects/{id}/edges")).await;
        assert_eq!(edges["edges"].as_array().unwrap().len(), polyline.as_array().unwrap().len() - 1, "{id}");
    }
    let objects = get_json(&server, &format!("{at}/objects")).await;
    let manifests: Vec<&Value> =
        objects["objects"].as_array().unwrap().iter().map(|object| &object["manifest"]).collect();
    assert_eq!(
        json!(manifests),
        json!([[{"chunk": [0, 0, 0], "fragments": [0]}], [{"chunk": [0, 0, 0], "fragments": [7]}]])
    );
}

#[tokio::test]
async fn all_profiles_return_the_same_points() {
    let (real, old) = (server("real"), server("v07"));
    for query in [
        "",
        "?bbox=0,0,0,49,49,49",
        "?bbox=150,150,150,250,250,250",
        "?bbox=0,0,0,200,200,200&interval=half-open",
    ] {
        let new = get_json(&real, &format!("points_tiny.zarrvectors/vertices{query}")).await;
        let old = get_json(&old, &format!("points_tiny_v07.zarrvectors/vertices{query}")).await;
        assert_eq!(by_chunk(&new), by_chunk(&old), "{query}");
        assert_eq!(new["stats"]["rows"], old["stats"]["rows"], "{query}");
    }
    // The store of the documents' profile has one more point, at the origin, and slightly different positions.
    let doc = server("doc");
    let found = get_json(&doc, "doc_points.zarrvectors/vertices?bbox=200,0,0,400,400,400").await;
    let same = get_json(&real, "points_tiny.zarrvectors/vertices?bbox=200,0,0,400,400,400").await;
    assert_eq!(sorted(&found["positions"]), sorted(&same["positions"]));
}

#[tokio::test]
async fn features_that_a_profile_lacks_are_reported() {
    let server = server("v07");
    ask(&server, "streamlines_v07.zarrvectors/links").await.refuses(501, "unsupported_in_profile", "links");
    let objects = get_json(&server, "streamlines_v07.zarrvectors/objects").await;
    assert_eq!(objects["count"], 2);
}
