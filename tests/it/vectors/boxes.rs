//! Boxes: the vertices in them, the chunks that are read, and the read amplification.

use serde_json::{Value, json};

use super::{ask, expected, get_json, joined, server, sorted};

/// Whether two numbers are equal up to rounding, or both missing.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * other.abs(),
        (one, other) => one == other,
    }
}

/// JSON writes a `float32` with fewer digits than the equal `float64`.
fn rows(found: &Value, kind: &str) -> Vec<Vec<f64>> {
    let mut rows = sorted(found);
    if kind == "float32" {
        for number in rows.iter_mut().flatten() {
            *number = f64::from(*number as f32);
        }
    }
    rows
}

#[tokio::test]
async fn boxes_return_what_brute_force_finds() {
    let server = server("real");
    let mut queries = 0;
    for (name, levels) in expected("real/expected_bbox.json").as_object().unwrap() {
        for level in levels.as_array().unwrap() {
            let at = format!("{name}.zarrvectors/levels/{}", level["level"]);
            let summary = get_json(&server, &at).await;
            assert_eq!(summary["chunk_shape"], level["chunk_shape"], "{at}");
            assert_eq!(summary["bin_shape"], level["bin_shape"], "{at}");
            assert_eq!((&summary["origin"], &summary["grid"]), (&level["origin"], &level["grid"]), "{at}");
            assert_eq!(summary["vertex_count"], level["total"], "{at}");
            let kind = summary["coordinate_type"].as_str().unwrap();
            for query in level["queries"].as_array().unwrap() {
                let (low, high, interval) = (joined(&query["lo"]), joined(&query["hi"]), &query["interval"]);
                let bbox = format!("bbox={low},{high}&interval={}", interval.as_str().unwrap());
                let what = format!("{at} {bbox}");
                queries += 1;
                if query["error"] == "inverted" {
                    ask(&server, &format!("{at}/vertices?{bbox}")).await.refuses(400, "bbox_inverted", &what);
                    continue;
                }
                let found = get_json(&server, &format!("{at}/vertices?{bbox}")).await;
                // For large results the fixture has only the number of vertices.
                if !query["positions_sorted"].is_null() {
                    let expected = sorted(&query["positions_sorted"]);
                    assert_eq!(rows(&found["positions"], kind), expected, "{what}");
                }
                assert_eq!(
                    found["positions"].as_array().unwrap().len() as u64,
                    query["vertex_count"],
                    "{what}"
                );
                let stats = &found["stats"];
                assert_eq!(stats["chunks"], query["chunks"].as_array().unwrap().len(), "{what}");
                assert_eq!(stats["candidates"], query["chunks_candidate"], "{what}");
                assert_eq!(stats["bins"], query["bins"], "{what}");
                assert_eq!(stats["rows_loaded"], query["vertices_loaded"], "{what}");
                assert_eq!(stats["rows"], query["vertex_count"], "{what}");
                for number in ["formula", "rows"] {
                    let (found, expected) =
                        (&stats["amplification"][number], &query["amplification"][number]);
                    assert!(is_same(found, expected), "{what} {number}: {found} {expected}");
                }
                let listed = get_json(&server, &format!("{at}/chunks?{bbox}")).await;
                let coords: Vec<&Value> =
                    listed["chunks"].as_array().unwrap().iter().map(|chunk| &chunk["coord"]).collect();
                assert_eq!(json!(coords), query["chunks"], "{what}");
                assert_eq!(listed["candidates"], query["chunks_candidate"], "{what}");
            }
        }
    }
    assert_eq!(queries, 80);
}

#[tokio::test]
async fn read_amplification_matches_the_worked_example() {
    let server = server("real");
    for (low, high, interval, formula) in [
        (50, 100, "half-open", 64.0),
        (0, 200, "half-open", 1.0),
        (150, 250, "half-open", 64.0),
        (50, 100, "closed", 8.0),
        (0, 200, "closed", 4.096),
        (150, 250, "closed", 512.0 / 27.0),
    ] {
        let bbox = format!("bbox={low},{low},{low},{high},{high},{high}&interval={interval}");
        for dry in ["&dry_run=1", ""] {
            let found =
                get_json(&server, &format!("points_cloud.zarrvectors/amplification?{bbox}{dry}")).await;
            assert!(is_same(&found["amplification"]["formula"], &json!(formula)), "{bbox}: {found}");
            let is_dry = !dry.is_empty();
            assert_eq!(found["amplification"]["bytes"].is_null(), is_dry, "{bbox}: {found}");
            assert!(found["amplification"]["per_loaded"].as_f64().unwrap() >= 1.0, "{bbox}: {found}");
        }
    }
}

#[tokio::test]
async fn an_unbounded_box_returns_everything() {
    let server = server("real");
    for (name, levels) in expected("real/expected_bbox.json").as_object().unwrap() {
        for level in levels.as_array().unwrap() {
            let dims = level["grid"].as_array().unwrap().len();
            let at = format!("{name}.zarrvectors/levels/{}/vertices", level["level"]);
            let ends = ["-inf", "inf"].map(|end| vec![end; dims].join(","));
            for route in [
                format!("{at}?bbox={}", ends.join(",")),
                at.clone(),
                format!("{at}?min={}&max={}", ends[0], ends[1]),
            ] {
                let found = get_json(&server, &route).await;
                assert_eq!(found["stats"]["rows"], level["total"], "{route}");
            }
            let nowhere = vec!["1e300"; dims].join(",");
            let found = get_json(&server, &format!("{at}?bbox={nowhere},{}", ends[1])).await;
            assert_eq!((&found["stats"]["rows"], &found["stats"]["chunks"]), (&json!(0), &json!(0)), "{at}");
        }
    }
}

#[tokio::test]
async fn invalid_boxes_are_rejected_with_a_code_each() {
    let server = server("real");
    for (query, status, code) in [
        ("bbox=0,0,0,1,1", 400, "bbox_rank"),
        ("bbox=0,0,0,1,1,1,1,1", 400, "bbox_rank"),
        ("min=0,0&max=1,1", 400, "bbox_rank"),
        ("bbox=0,0,NaN,1,1,1", 400, "bbox_nan"),
        ("bbox=0,0,0,1,1,nan", 400, "bbox_nan"),
        ("bbox=0,0,2,1,1,1", 400, "bbox_inverted"),
        ("bbox=0,0,inf,1,1,-inf", 400, "bbox_inverted"),
        ("bbox=0,0,x,1,1,1", 400, "bad_param"),
        ("bbox=", 400, "bad_param"),
        ("min=0,0,0", 400, "bad_param"),
        ("bbox=0,0,0,1,1,1&min=0,0,0&max=1,1,1", 400, "bad_param"),
        ("interval=open", 400, "bad_param"),
        ("where=gene:Sst", 400, "bad_param"),
        ("box=1", 400, "bad_param"),
        ("level=0&level=0", 400, "bad_param"),
        ("format=json&f=arrow", 400, "bad_param"),
        ("level=x", 400, "bad_level"),
        ("level=00", 400, "bad_level"),
        ("level=7", 404, "level_not_found"),
    ] {
        for route in ["vertices", "chunks", "amplification"] {
            let what = format!("points_tiny.zarrvectors/{route}?{query}");
            ask(&server, &what).await.refuses(status, code, &what);
        }
    }
    ask(&server, "points_tiny.zarrvectors/levels/x/vertices").await.refuses(400, "bad_level", "levels/x");
    ask(&server, "points_tiny.zarrvectors/vertices?attributes=none").await.refuses(
        404,
        "attribute_not_found",
        "none",
    );
    ask(&server, "points_tiny.zarrvectors/0/vertices").await.refuses(
        404,
        "not_a_zvf_store",
        "a level is no store",
    );
    ask(&server, "nothing").await.refuses(404, "not-found", "nothing is there");
}
