//! Invalid and unusual declarations of dependent arrays, each by the code that is reported.

use serde_json::{Value, json};

use crate::dependents::{codes, prefixed, primary};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// A server of the array `m/a` with these attributes, and other members where they are given.
async fn served(attributes: &Value, members: &Value) -> Server {
    let mut document = primary(attributes);
    for (name, value) in members.as_object().unwrap() {
        document[name] = value.clone();
    }
    let store = memory();
    put(&store, "a/zarr.json", document.to_string()).await;
    put(&store, "a/c/0", "ab").await;
    Server::of(store)
}

/// The same whose array declares `d`.
async fn declaring(dependent: &Value) -> Server {
    served(&json!({"dependent-arrays": {"d": dependent}}), &json!({})).await
}

/// Asserts that a dependent is refused with a code wherever it is asked for, that its primary's document says why and is
/// read all the same, and that views show it no more than a sibling that is in order keeps them from showing.
async fn assert_refused(dependent: &Value, status: u16, code: &str, field: Option<(&str, bool)>) {
    let attributes =
        json!({"dependent-arrays": {"d": dependent, "fine": {"chunk_key_encoding": prefixed("f/")}}});
    let server = served(&attributes, &json!({})).await;
    for route in ["nodes", "data", "chunk"] {
        let rest = if route == "chunk" { "/c/0" } else { "" };
        server.get(&format!("/v1/{route}/m/a/d{rest}")).await.refuses(status, code, route);
    }
    let problem = server.get("/v1/nodes/m/a/d").await.json();
    let listed = server.get("/v1/nodes/m/a").await.json();
    let entries = listed["dependents"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["name"] == "d").unwrap();
    assert_eq!(entry["error"]["code"], code, "{listed}");
    for error in [&problem, &entry["error"]] {
        let expected = field.map_or((Value::Null, Value::Null), |(name, own)| (json!(name), json!(own)));
        assert_eq!((error["field"].clone(), error["inherited"].clone()), expected, "{error}");
    }
    assert_eq!(server.elements("m/a", "0:2").await.as_ref(), b"ab");
    assert_eq!(server.elements("m/a/fine", "").await.as_ref(), [7; 4]);
    for view in ["plain", "unshard"] {
        server.get(&format!("/{view}/m/a/d/zarr.json")).await.refuses(404, "not-found", view);
        assert_eq!(server.get(&format!("/{view}/m/a/fine/zarr.json")).await.status, 200, "{view}");
        assert_eq!(&*server.get(&format!("/{view}/m/a/c/0")).await.body, b"ab", "{view}");
    }
}

/// Asserts that these are the remarks on a dependent that is read nevertheless, and refused with a code by those who
/// read to the letter, if there is one.
async fn assert_remarked(dependent: &Value, remark: &str, strict: Option<&str>) {
    let server = declaring(dependent).await;
    let found = server.get("/v1/nodes/m/a/d").await.json();
    assert!(codes(&found["diagnostics"]).contains(&remark), "{found}");
    let listed = server.get("/v1/nodes/m/a").await.json();
    assert!(codes(&listed["dependents"][0]["diagnostics"]).contains(&remark), "{listed}");
    assert_eq!(server.get("/plain/m/a/d/zarr.json").await.status, 200);
    let answer = server.get("/v1/nodes/m/a/d?strict").await;
    match strict {
        Some(code) => {
            answer.refuses(422, code, remark);
            server.get("/v1/data/m/a/d?strict").await.refuses(422, code, remark);
        }
        None => assert_eq!(answer.status, 200, "{remark}"),
    }
}

#[tokio::test]
async fn an_undeclared_path_is_reported_as_dependent_not_found() {
    let server = declaring(&json!({})).await;
    for path in ["a/e", "a/d/e", "a/D"] {
        for route in ["nodes", "data"] {
            server.get(&format!("/v1/{route}/m/{path}")).await.refuses(404, "dependent_not_found", path);
        }
        server.get(&format!("/plain/m/{path}/zarr.json")).await.refuses(404, "not-found", path);
    }
}

#[tokio::test]
async fn repeated_names_and_broken_json_in_a_declaration_are_reported_as_invalid_json() {
    let store = memory();
    let twice = r#"{"fill_value":1,"fill_value":2}"#;
    let document = primary(&json!({"dependent-arrays": {"d": "here"}})).to_string();
    for text in [document.replace("\"here\"", twice), document.replace("\"here\"", "{,}")] {
        put(&store, "a/zarr.json", text.clone()).await;
        let server = Server::of(store.clone());
        let detail = server.get("/v1/nodes/m/a/d").await.refuses(422, "invalid_json", &text);
        assert!(detail.contains("line 1"), "{detail}");
        server.get("/plain/m/a/d/zarr.json").await.refuses(404, "not-found", "its kind is unknown");
    }
}

#[tokio::test]
async fn a_dependent_without_a_required_member_is_reported_as_incomplete() {
    let mut document = primary(&json!({"dependent-arrays": {"d": {}, "whole": {"fill_value": 1}}}));
    document.as_object_mut().unwrap().remove("fill_value");
    let store = memory();
    put(&store, "a/zarr.json", document.to_string()).await;
    let server = Server::of(store);
    server.get("/v1/nodes/m/a/d").await.refuses(422, "incomplete", "neither has a fill value");
    let problem = server.get("/v1/nodes/m/a/d").await.json();
    assert_eq!((&problem["field"], &problem["inherited"]), (&json!("fill_value"), &json!(false)));
    assert_eq!(server.get("/v1/nodes/m/a").await.json()["error"]["code"], "incomplete");
    assert_eq!(server.elements("m/a/whole", "").await.as_ref(), [1; 4]);
}

#[tokio::test]
async fn a_member_with_an_invalid_value_is_reported_as_bad_field() {
    assert_refused(&json!({"shape": [-1]}), 422, "bad_field", Some(("shape", false))).await;
    assert_refused(&json!({"zarr_format": 2}), 422, "bad_field", Some(("zarr_format", false))).await;
    assert_refused(&json!({"attributes": []}), 422, "bad_field", Some(("attributes", false))).await;
}

#[tokio::test]
async fn members_of_another_rank_are_reported_as_rank_mismatch() {
    assert_refused(&json!({"shape": [4, 4]}), 422, "rank_mismatch", Some(("chunk_grid", true))).await;
    let names = json!({"dimension_names": ["x", "y"]});
    assert_refused(&names, 422, "rank_mismatch", Some(("dimension_names", false))).await;
    let transpose = json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, "bytes"]);
    assert_refused(&json!({"codecs": transpose}), 422, "rank_mismatch", Some(("codecs", false))).await;
}

#[tokio::test]
async fn a_fill_value_outside_the_data_type_is_reported_as_fill_value_mismatch() {
    let field = Some(("fill_value", false));
    assert_refused(&json!({"fill_value": "NaN"}), 422, "fill_value_mismatch", field).await;
    assert_refused(&json!({"fill_value": null}), 422, "fill_value_mismatch", field).await;
    let inherited = Some(("fill_value", true));
    assert_refused(&json!({"data_type": "bool"}), 422, "fill_value_mismatch", inherited).await;
}

#[tokio::test]
async fn an_unknown_member_is_reported_as_must_understand_unless_it_may_be_ignored() {
    assert_refused(&json!({"x": {"name": "y"}}), 422, "must_understand", Some(("x", false))).await;
    let server = declaring(&json!({"x": {"must_understand": false}})).await;
    assert_eq!(server.get("/v1/nodes/m/a/d").await.status, 200);
}

#[tokio::test]
async fn encodings_of_invalid_keys_are_reported_as_invalid_chunk_key_encoding() {
    let field = Some(("chunk_key_encoding", false));
    for encoding in [
        prefixed(""),
        prefixed("/x"),
        prefixed("../"),
        prefixed("a//b"),
        prefixed("zarr.json/"),
        json!({"name": "suffix", "configuration": {"suffix": "x/"}}),
        json!({"name": "prefix", "configuration": {"prefix": "a/"}}),
        json!({"name": "default", "configuration": {"separator": "_"}}),
        json!({"name": "default", "configuration": {"other": 1}}),
        json!({"name": "template", "configuration": {"format": "{1}"}}),
        json!({"name": "fanout", "configuration": {"max_children": 3}}),
    ] {
        let dependent = json!({"chunk_key_encoding": encoding});
        assert_refused(&dependent, 422, "invalid_chunk_key_encoding", field).await;
    }
}

#[tokio::test]
async fn a_dependent_that_is_not_an_object_is_reported_as_not_object() {
    for dependent in [json!([]), json!(null), json!("d")] {
        assert_refused(&dependent, 422, "not_object", None).await;
    }
}

#[tokio::test]
async fn an_invalid_name_is_reported_as_invalid_name_and_hides_no_other_dependent() {
    for name in ["", "a/b", "..", "__x", "zarr.json"] {
        let attributes =
            json!({"dependent-arrays": {name: {}, "fine": {"chunk_key_encoding": prefixed("f/")}}});
        let server = served(&attributes, &json!({})).await;
        let listed = server.get("/v1/nodes/m/a").await.json();
        let entries = listed["dependents"].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["name"] == name).unwrap();
        assert_eq!(entry["error"]["code"], "invalid_name", "{listed}");
        assert_eq!(server.elements("m/a/fine", "").await.as_ref(), [7; 4]);
    }
}

#[tokio::test]
async fn unsupported_extensions_are_named() {
    let encoding = json!({"chunk_key_encoding": {"name": "x.keys"}});
    assert_refused(&encoding, 501, "unsupported_chunk_key_encoding", None).await;
    let data_type = json!({"data_type": "x.type", "chunk_key_encoding": prefixed("p/")});
    assert_refused(&data_type, 501, "unsupported_data_type", None).await;
    let server =
        declaring(&json!({"codecs": ["bytes", "x.codec"], "chunk_key_encoding": prefixed("p/")})).await;
    let refused = server.get("/v1/data/m/a/d").await;
    assert!(refused.refuses(501, "unsupported", "codec").contains("x.codec"), "{refused:?}");
    // The document can be read, and others may know the codec.
    let found = server.get("/v1/nodes/m/a/d").await.json();
    assert!(found["unreadable"].as_str().unwrap().contains("x.codec"));
    assert_eq!(server.get("/plain/m/a/d/zarr.json").await.json()["codecs"][1], json!({"name": "x.codec"}));
}

#[tokio::test]
async fn other_codecs_for_the_same_keys_are_reported_as_key_collision() {
    let server = declaring(&json!({"codecs": ["bytes", "gzip"]})).await;
    for diagnostics in [
        &server.get("/v1/nodes/m/a/d").await.json()["diagnostics"],
        &server.get("/v1/nodes/m/a").await.json()["diagnostics"],
    ] {
        assert!(codes(diagnostics).contains(&"key_collision"), "{diagnostics}");
    }
    server.get("/v1/data/m/a/d").await.refuses(409, "key_collision", "elements");
    server.get("/v1/chunk/m/a/d/c/0").await.refuses(409, "key_collision", "a chunk");
    server.get("/v1/data/m/a/d?allow_collision=1").await.refuses(500, "corrupt-data", "they are no gzip");
    assert_eq!(server.elements("m/a", "0:2").await.as_ref(), b"ab");
}

#[tokio::test]
async fn another_type_of_the_same_chunks_is_reported_as_aliased_chunks() {
    assert_remarked(&json!({"data_type": "int8"}), "aliased_chunks", None).await;
    let server = declaring(&json!({"data_type": "int8"})).await;
    assert_eq!(server.elements("m/a/d", "0:2").await.as_ref(), b"ab");
    assert_eq!(&*server.get("/plain/m/a/d/c/0").await.body, b"ab");
}

#[tokio::test]
async fn keys_too_many_to_compare_are_reported_as_collision_unknown() {
    let (shape, grid) =
        (json!([1_u64 << 40]), json!({"name": "regular", "configuration": {"chunk_shape": [1]}}));
    let suffixed = json!({"name": "suffix", "configuration": {"suffix": "1", "base_encoding": "v2"}});
    let one = json!({"chunk_key_encoding": {"name": "prefix", "configuration": {"prefix": "1", "base_encoding": "v2"}}});
    let attributes = json!({"dependent-arrays": {"one": one, "two": {"chunk_key_encoding": suffixed}}});
    let server = served(&attributes, &json!({"shape": shape, "chunk_grid": grid})).await;
    for path in ["one", "two"] {
        let found = server.get(&format!("/v1/nodes/m/a/{path}")).await.json();
        assert_eq!(codes(&found["diagnostics"]), ["collision_unknown"], "{found}");
    }
}

#[tokio::test]
async fn a_name_that_is_a_prefix_of_chunk_keys_is_reported_as_name_shadows_chunk_key() {
    let dependents =
        json!({"x": {"chunk_key_encoding": prefixed("y/")}, "y": {"chunk_key_encoding": prefixed("x/")}});
    let server = served(&json!({"dependent-arrays": dependents}), &json!({})).await;
    for path in ["x", "y"] {
        let found = server.get(&format!("/v1/nodes/m/a/{path}")).await.json();
        assert_eq!(codes(&found["diagnostics"]), ["name_shadows_chunk_key"]);
        assert_eq!(found["links"].get("plain"), None, "{found}");
        let rebased = server.get(&format!("/v1/nodes/m/a/{path}?view=rebased")).await;
        rebased.refuses(404, "name_shadows_chunk_key", path);
        server.get(&format!("/plain/m/a/{path}/zarr.json")).await.refuses(404, "not-found", path);
        assert_eq!(server.elements(&format!("m/a/{path}"), "").await.as_ref(), [7; 4]);
    }
}

#[tokio::test]
async fn a_name_like_the_first_segment_of_chunk_keys_is_reported_as_name_resembles_chunk_prefix() {
    let dependents = json!({"c": {"chunk_key_encoding": prefixed("p/")}});
    let server = served(&json!({"dependent-arrays": dependents}), &json!({})).await;
    let found = server.get("/v1/nodes/m/a/c").await.json();
    assert_eq!(codes(&found["diagnostics"]), ["name_resembles_chunk_prefix"]);
    assert_eq!(server.get("/plain/m/a/c/zarr.json").await.status, 200);
    assert_eq!(&*server.get("/plain/m/a/c/0").await.body, b"ab");
}

#[tokio::test]
async fn a_name_of_unusual_characters_is_reported_as_nonrecommended_name() {
    let server =
        served(&json!({"dependent-arrays": {"é x": {"chunk_key_encoding": prefixed("p/")}}}), &json!({}))
            .await;
    let found = server.get("/v1/nodes/m/a/%C3%A9%20x").await.json();
    assert_eq!(codes(&found["diagnostics"]), ["nonrecommended_name"]);
    assert_eq!(server.get("/plain/m/a/%C3%A9%20x/zarr.json").await.status, 200);
}

#[tokio::test]
async fn an_optional_member_of_null_is_absent_and_reported() {
    let dependent = json!({"dimension_names": null, "chunk_key_encoding": prefixed("p/")});
    assert_remarked(&dependent, "null_means_absent", Some("null_field")).await;
}

#[tokio::test]
async fn inherited_dimension_names_of_another_rank_are_dropped_and_reported() {
    let dependent = json!({
        "shape": [4, 4], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": prefixed("p/"),
    });
    let attributes = json!({"dependent-arrays": {"d": dependent}});
    let server = served(&attributes, &json!({"dimension_names": ["x"]})).await;
    let found = server.get("/v1/nodes/m/a/d").await.json();
    assert_eq!(codes(&found["diagnostics"]), ["inherited_dimension_names_dropped"]);
    assert_eq!(found["metadata"].get("dimension_names"), None);
    server.get("/v1/nodes/m/a/d?strict=1").await.refuses(422, "rank_mismatch", "strict");
}

#[tokio::test]
async fn a_bytes_codec_without_endian_is_read_and_reported() {
    let dependent = json!({"data_type": "uint16", "chunk_key_encoding": prefixed("p/")});
    assert_remarked(&dependent, "bytes_codec_without_endian", Some("bytes_codec_without_endian")).await;
}

#[tokio::test]
async fn a_suffix_encoding_with_a_prefix_member_is_read_and_reported() {
    let encoding = json!({"name": "suffix", "configuration": {"prefix": "p/", "base_encoding": "default"}});
    let dependent = json!({"chunk_key_encoding": encoding});
    assert_remarked(&dependent, "suffix_encoding_with_prefix_member", Some("invalid_chunk_key_encoding"))
        .await;
}

/// Asserts which remarks the primary has on its declaration, and which dependents it has then.
async fn assert_declaration(attributes: &Value, remark: &str, names: &[&str]) {
    let server = served(attributes, &json!({})).await;
    let listed = server.get("/v1/nodes/m/a").await.json();
    assert!(codes(&listed["diagnostics"]).contains(&remark), "{listed}");
    let found: Vec<&str> =
        listed["dependents"].as_array().unwrap().iter().filter_map(|entry| entry["name"].as_str()).collect();
    assert_eq!(found, names, "{listed}");
    assert_eq!(server.elements("m/a", "0:2").await.as_ref(), b"ab");
    for name in names {
        assert_eq!(server.get(&format!("/plain/m/a/{name}/zarr.json")).await.status, 200);
    }
    let shown = server.get("/plain/m/a/zarr.json").await.json();
    assert_eq!(shown["attributes"], json!({}), "what declares is not shown");
}

#[tokio::test]
async fn a_declaration_under_the_other_spelling_is_read_and_reported() {
    let dependents = json!({"d": {"chunk_key_encoding": prefixed("p/")}});
    let attributes = json!({"dependent_arrays": dependents});
    assert_declaration(&attributes, "alias_key", &["d"]).await;
    let server = served(&attributes, &json!({})).await;
    server.get("/v1/nodes/m/a/d?strict").await.refuses(404, "dependent_not_found", "strict");
}

#[tokio::test]
async fn equal_declarations_under_both_spellings_are_read_and_reported() {
    let dependents = json!({"d": {"chunk_key_encoding": prefixed("p/")}});
    let attributes = json!({"dependent-arrays": dependents, "dependent_arrays": dependents});
    assert_declaration(&attributes, "duplicate_declaration", &["d"]).await;
}

#[tokio::test]
async fn different_declarations_under_both_spellings_are_reported_and_not_read() {
    let attributes = json!({"dependent-arrays": {"d": {}}, "dependent_arrays": {"e": {}}});
    assert_declaration(&attributes, "ambiguous_declaration", &[]).await;
}

#[tokio::test]
async fn a_declaration_that_is_not_an_object_is_reported_and_not_read() {
    assert_declaration(&json!({"dependent-arrays": ["d"]}), "declaration_not_object", &[]).await;
}

#[tokio::test]
async fn a_declaration_on_a_group_is_reported_and_not_read() {
    let store = memory();
    let group =
        json!({"zarr_format": 3, "node_type": "group", "attributes": {"dependent-arrays": {"d": {}}}});
    put(&store, "g/zarr.json", group.to_string()).await;
    let server = Server::of(store);
    assert_eq!(codes(&server.get("/v1/nodes/m/g").await.json()["diagnostics"]), ["declared_on_group"]);
    server.get("/v1/nodes/m/g/d").await.refuses(404, "not-found", "a group declares nothing");
    assert_eq!(server.get("/plain/m/g/zarr.json").await.json(), group);
}

#[tokio::test]
async fn dependents_too_deep_or_too_many_are_reported_and_not_read() {
    let mut dependent = json!({"chunk_key_encoding": prefixed("p/")});
    for _ in 0..8 {
        dependent = json!({"attributes": {"dependent-arrays": {"d": dependent}}});
    }
    let server = declaring(&dependent).await;
    let deepest = ["d"; 9].join("/");
    let listed = server.get("/v1/nodes/m/a").await.json();
    let last = listed["dependents"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["path"], &last["error"]["code"]), (&json!(format!("a/{deepest}")), &json!("too_deep")));
    let many: serde_json::Map<String, Value> =
        (0..2000).map(|number| (format!("d{number}"), json!({}))).collect();
    let server = served(&json!({"dependent-arrays": many}), &json!({})).await;
    let listed = server.get("/v1/nodes/m/a").await.json();
    assert!(codes(&listed["diagnostics"]).contains(&"too_many"));
    server.get("/v1/nodes/m/a/d999").await.refuses(422, "too_many", "not checked");
}

#[tokio::test]
async fn an_asset_of_a_layout_that_is_a_dependent_is_marked_virtual_and_reported() {
    let store = memory();
    let layout =
        json!([{"asset": "a"}, {"asset": "a/d", "derived_from": "a"}, {"asset": "nothing"}, {"x": 1}]);
    let group =
        json!({"zarr_format": 3, "node_type": "group", "attributes": {"multiscales": {"layout": layout}}});
    put(&store, "g/zarr.json", group.to_string()).await;
    let dependents = json!({"d": {"shape": [2], "chunk_key_encoding": prefixed("p/")}});
    put(&store, "g/a/zarr.json", primary(&json!({"dependent-arrays": dependents})).to_string()).await;
    let server = Server::of(store);
    let found = server.get("/v1/nodes/m/g").await.json();
    assert_eq!(
        found["multiscales"],
        json!([
            {"asset": "a", "href": "/v1/nodes/m/g/a", "virtual": false},
            {"asset": "a/d", "href": "/v1/nodes/m/g/a/d", "virtual": true},
            {"asset": "nothing", "href": null},
        ])
    );
    assert_eq!(codes(&found["diagnostics"]), ["virtual_asset"]);
}
