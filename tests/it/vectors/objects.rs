//! Objects, their parts and their links.

use serde_json::{Value, json};

use super::{ask, copied, expected, get_json, held, joined, server, sorted};
use crate::support::server::{Server, put};

/// Links as sorted text.
fn texts(links: &Value) -> Vec<String> {
    let mut texts: Vec<String> = links.as_array().unwrap().iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn the_links_that_the_library_wrote_are_returned_whole_and_in_pages() {
    let server = server("real");
    let real = expected("real/expected.json");
    for store in ["graph", "streamlines"] {
        let found = get_json(&server, &format!("{store}.zarrvectors/links")).await;
        assert_eq!(texts(&found["links"]), texts(&real[store]["links"]), "{store}");
        assert_eq!(found["num_links"], found["links"].as_array().unwrap().len(), "{store}");
    }
    let weights = get_json(&server, "graph.zarrvectors/links").await;
    assert_eq!(weights["attributes"]["weight"].as_array().unwrap().len(), 5);
    // Pages give the same links.
    let (mut paged, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let at = cursor.as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let page = get_json(&server, &format!("streamlines.zarrvectors/links?limit=5{at}")).await;
        paged.extend(page["links"].as_array().unwrap().clone());
        cursor = page["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(json!(paged), get_json(&server, "streamlines.zarrvectors/links").await["links"]);
}

#[tokio::test]
async fn links_between_levels_name_rows_of_both_levels() {
    let server = server("real");
    for (store, level, delta) in
        [("streamlines", 0, 1), ("streamlines", 1, -1), ("streamlines", 2, -1), ("points_pyramid", 2, -1)]
    {
        let at = format!("{store}.zarrvectors/levels/{level}/links?delta={delta}&limit=100000");
        let found = get_json(&server, &at).await;
        let links = found["links"].as_array().unwrap();
        assert_eq!(found["num_links"], links.len(), "{at}");
        for (place, of) in [(0, level), (1, level + delta)] {
            let vertices = get_json(&server, &format!("{store}.zarrvectors/levels/{of}/vertices")).await;
            let rows = |coord: &Value| {
                let chunks = vertices["chunks"].as_array().unwrap().iter();
                let chunk = chunks.clone().find(|chunk| chunk["coord"] == *coord);
                chunk.map_or(0, |chunk| chunk["rows"].as_array().unwrap().len() as u64)
            };
            for link in links {
                let (coord, row) = (&link[place][0], link[place][1].as_u64().unwrap());
                assert!(row < rows(coord), "{at}: {link}");
            }
        }
    }
}

#[tokio::test]
async fn objects_are_found_by_box_in_every_mode() {
    let server = server("real");
    let real = expected("real/expected.json");
    let at = "streamlines.zarrvectors";
    for query in real["streamlines"]["queries"].as_array().unwrap() {
        let Some(low) = query.get("lo") else { continue };
        let bbox = format!("bbox={},{}", joined(low), joined(&query["hi"]));
        let whole =
            get_json(&server, &format!("{at}/vertices?{bbox}&mode=objects&columns=position,object_id")).await;
        let ids: Vec<&Value> =
            whole["objects"].as_array().unwrap().iter().map(|object| &object["id"]).collect();
        assert_eq!(json!(ids), query["object_ids"], "{bbox}");
        assert_eq!(whole["stats"]["rows"], query["vertex_count"], "{bbox}");
        let parts: Vec<usize> = ids
            .iter()
            .map(|id| whole["object_ids"].as_array().unwrap().iter().filter(|other| other == id).count())
            .collect();
        assert_eq!(parts.iter().sum::<usize>() as u64, query["vertex_count"].as_u64().unwrap(), "{bbox}");
        let listed = get_json(&server, &format!("{at}/objects?{bbox}")).await;
        assert_eq!(listed["count"], ids.len(), "{bbox}");
    }
    // Three rows are in the box; one object has them.
    let inside = get_json(&server, &format!("{at}/vertices?bbox=0,0,0,20,20,20")).await;
    assert_eq!(inside["stats"]["rows"], 3);
    let exact = get_json(
        &server,
        &format!("{at}/vertices?bbox=0,0,0,20,20,20&mode=objects_exact&columns=position,object_id"),
    )
    .await;
    assert_eq!(exact["objects"].as_array().unwrap().len(), 1, "{}", exact["objects"]);
    let rows = exact["stats"]["rows"].as_u64().unwrap();
    assert!((3..243).contains(&rows), "{rows}");
    for row in sorted(&inside["positions"]) {
        assert!(sorted(&exact["positions"]).contains(&row));
    }
    // `crop` returns the rows of touched chunks alone.
    let crop = get_json(&server, &format!("{at}/vertices?bbox=0,0,0,20,20,20&mode=crop")).await;
    let chunks = get_json(&server, &format!("{at}/vertices?bbox=0,0,0,20,20,20&mode=chunks")).await;
    assert_eq!(crop["positions"], chunks["positions"]);
    assert_eq!(crop["objects"].as_array().unwrap().len(), 7);
    assert!(
        crop["objects"]
            .as_array()
            .unwrap()
            .iter()
            .all(|object| object["parts"].as_array().unwrap().len() == 1)
    );
}

#[tokio::test]
async fn object_vertices_follow_the_polyline() {
    let server = server("real");
    let input = &expected("real/expected.json")["streamlines"]["input"];
    for (id, polyline) in input.as_array().unwrap().iter().enumerate() {
        let at = format!("streamlines.zarrvectors/objects/{id}");
        let found = get_json(&server, &format!("{at}/vertices?attributes=fa")).await;
        let narrow = |rows: &Value| -> Vec<Vec<f32>> {
            let row = |row: &Value| {
                row.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
            };
            rows.as_array().unwrap().iter().map(row).collect()
        };
        assert_eq!(narrow(&found["positions"]), narrow(polyline), "{id}");
        assert_eq!(
            found["attributes"]["fa"].as_array().unwrap().len(),
            polyline.as_array().unwrap().len(),
            "{id}"
        );
        let edges = get_json(&server, &format!("{at}/edges")).await;
        // A line of n vertices has n-1 edges, also across chunks.
        assert_eq!(edges["edges"].as_array().unwrap().len(), polyline.as_array().unwrap().len() - 1, "{id}");
        let object = get_json(&server, &at).await;
        assert_eq!(object["attributes"]["length"], polyline.as_array().unwrap().len(), "{id}");
    }
}

#[tokio::test]
async fn missing_objects_are_listed_separately() {
    let server = server("real");
    let at = "points_objects.zarrvectors";
    let all = get_json(&server, &format!("{at}/objects")).await;
    let ids: Vec<i64> =
        all["objects"].as_array().unwrap().iter().map(|object| object["id"].as_i64().unwrap()).collect();
    let first = ids[0];
    let some = get_json(&server, &format!("{at}/objects?ids={first},99999")).await;
    assert_eq!((&some["count"], &some["missing"]), (&json!(1), &json!([99999])));
    let none = ask(&server, &format!("{at}/objects?ids=99999,-5")).await;
    none.refuses(404, "object_not_found", "none of them");
    assert_eq!(none.json()["missing"], json!([99999, -5]));
    ask(&server, &format!("{at}/objects/99999")).await.refuses(404, "object_not_found", "one");
    ask(&server, &format!("{at}/objects/x")).await.refuses(400, "bad_param", "no id");
    ask(&server, &format!("{at}/objects?group=7")).await.refuses(404, "group_not_found", "no group");
    let group = get_json(&server, &format!("{at}/objects?group=0")).await;
    assert!(
        group["count"].as_u64().unwrap() > 0 && group["group_attributes"]["weight"].is_number(),
        "{group}"
    );
    ask(&server, "points_tiny.zarrvectors/objects/0").await.refuses(
        404,
        "object_not_found",
        "no objects at all",
    );
}

#[tokio::test]
async fn a_chunk_document_lists_fragments_and_objects() {
    let server = server("real");
    let chunk = get_json(&server, "streamlines.zarrvectors/chunks/0.0.0").await;
    assert_eq!((&chunk["rows"], chunk["fragments"].as_array().unwrap().len()), (&json!(69), 7));
    assert_eq!(chunk["objects"].as_array().unwrap().len(), 7);
    let binned = get_json(&server, "points_tiny.zarrvectors/chunks/1.1.1").await;
    assert_eq!((binned["fragments"].as_array().unwrap().len(), &binned["tiles"]), (64, &json!(true)));
    for none in ["9.9.9", "0.0", "x", "0.0.1"] {
        ask(&server, &format!("points_tiny.zarrvectors/chunks/{none}")).await.refuses(
            404,
            "chunk_not_found",
            none,
        );
    }
    let negative = get_json(&server, "points_negative_f64.zarrvectors/chunks/-3.-1.0").await;
    assert_eq!(
        (&negative["cell"], &negative["bounds"]["min"]),
        (&json!([0, 0, 0]), &json!([-300.0, -100.0, 0.0]))
    );
}

#[tokio::test]
async fn vertices_of_an_object_are_charged_what_they_take() {
    const ROWS: u32 = 150_000;
    let store = copied("real/points_objects.zarrvectors").await;
    let cell = |bytes: &[u8]| [&1_u32.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat();
    // Each fragment of the first chunk has all of its rows.
    let rows: Vec<u8> = (0..3 * ROWS).flat_map(|row| ((row as f32).sqrt() / 20.0).to_le_bytes()).collect();
    put(&store, "s/0/vertices/c/0/0/0", cell(&rows)).await;
    let mut index = b"GFVZ\x01\0\0\0\x03\0\0\0\x03\0\0\0\x07\0\0\0\0\0\0\0".to_vec();
    index.extend([0_i64.to_le_bytes(), i64::from(ROWS).to_le_bytes()].concat().repeat(3));
    index.extend(0_u32.to_le_bytes());
    put(&store, "s/0/vertex_fragments/c/0/0/0", cell(&index)).await;
    let server = Server::of(store);
    let (length, charged) = held(&server, "s/objects/3/vertices").await;
    assert!(length > 4 << 20 && charged.checked_sub(length).unwrap() < 1024, "{length} {charged}");
    let (length, charged) = held(&server, "s/objects/3").await;
    assert!(length < charged, "{length} {charged}");
    assert_eq!(server.in_flight_bytes(), 0);
}
