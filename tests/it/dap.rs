//! DAP2: descriptors, attributes, values and errors, byte for byte where the protocol says so.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::support::data_types::data_type;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, put};

/// A group with the grid `air` over `time` and `lat`, their coordinates, and `plain` over dimensions without.
async fn climate() -> Server {
    let store = memory();
    put(
        &store,
        "g/zarr.json",
        r#"{"zarr_format": 3, "node_type": "group", "attributes": {"title": "a \"b\" \\"}}"#,
    )
    .await;
    let names = |names: &[&str]| json!({"dimension_names": names});
    let mut air = names(&["time", "lat"]);
    air["attributes"] = json!({"_FillValue": -1, "scale_factor": 0.5, "flags": [1, 2]});
    let array = |shape: &[usize], kind: &'static str| Array::of(shape).data_type(data_type(kind));
    array(&[6, 5], "int16").chunks(&[4, 2]).members(air).store(&store, "g/air").await;
    array(&[6], "int64").chunks(&[4]).members(names(&["time"])).store(&store, "g/time").await;
    array(&[5], "float32").chunks(&[5]).members(names(&["lat"])).store(&store, "g/lat").await;
    array(&[5], "uint8").chunks(&[5]).store(&store, "g/plain").await;
    array(&[5], "complex64").chunks(&[5]).store(&store, "g/complex").await;
    Server::of(store)
}

async fn ok(server: &Server, url: &str, description: &str) -> Answer {
    let answer = server.get(&format!("/dap/m/{url}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    assert_eq!((answer.header("xdap"), answer.header("content-description")), ("2.0", description), "{url}");
    assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{url}");
    answer
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_descriptor_has_grids_where_the_maps_are_there() {
    let server = climate().await;
    let expected = "Dataset {
    Grid {
     Array:
        Int16 air[time = 2][lat = 5];
     Maps:
        Int32 time[time = 2];
        Float32 lat[lat = 5];
    } air;
    Byte plain[dim_0 = 5];
} g;
";
    assert_eq!(text(&ok(&server, "g.dds?plain,air[0:3:5][0:4]", "dods-dds").await), expected);
    let members = "Dataset {
    Structure {
        Int16 air[time = 1][lat = 1];
        Float32 lat[lat = 5];
    } air;
} g;
";
    assert_eq!(text(&ok(&server, "g.dds?air.lat,air.air%5B2%5D%5B1%5D", "dods-dds").await), members);
}

#[tokio::test]
async fn attributes_have_the_type_of_their_variable_and_texts_are_quoted() {
    let server = climate().await;
    let attributes = text(&ok(&server, "g.das", "dods-das").await);
    for line in [
        "        String title \"a \\\"b\\\" \\\\\";\n",
        "        Int16 _FillValue -1;\n",
        "        Float64 scale_factor 0.5;\n",
        "        Int32 flags 1, 2;\n",
        "        String _Unsigned \"true\";\n",
    ] {
        assert!(attributes.contains(line), "{attributes}");
    }
    let described = text(&ok(&server, "g.info", "dods-info").await);
    assert!(described.contains("complex: complex64, which DAP2 has no type for"), "{described}");
}

#[tokio::test]
async fn values_follow_the_descriptor_in_xdr() {
    let server = climate().await;
    let url = "g.dods?air[1:2:5][4],plain";
    let answer = ok(&server, url, "dods-data").await;
    let (descriptor, values) = {
        let at = answer.body.windows(7).position(|bytes| bytes == b"\nData:\n").unwrap();
        (&answer.body[..=at], &answer.body[at + 7..])
    };
    assert_eq!(descriptor, ok(&server, "g.dds?air[1:2:5][4],plain", "dods-dds").await.body);
    let elements = async |url: &str| server.get(&format!("/v1/data/m/g/{url}&format=json")).await.json();
    let mut expected: Vec<u8> = Vec::new();
    let numbers = |value: serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
    };
    let length = |bytes: &mut Vec<u8>, count: i32| bytes.extend([count.to_be_bytes(); 2].concat());
    #[expect(clippy::cast_possible_truncation, reason = "small integers")]
    let int = |number: f64| number as i32;
    length(&mut expected, 3);
    for number in numbers(elements("air?slice=1::2,4").await) {
        expected.extend(int(number).to_be_bytes());
    }
    length(&mut expected, 3);
    for number in numbers(elements("time?slice=1::2").await) {
        expected.extend(int(number).to_be_bytes());
    }
    length(&mut expected, 1);
    #[expect(clippy::cast_possible_truncation, reason = "a float32")]
    for number in numbers(elements("lat?slice=4:5").await) {
        expected.extend((number as f32).to_be_bytes());
    }
    length(&mut expected, 5);
    expected.extend(server.get("/v1/data/m/g/plain").await.body);
    expected.extend([0; 3]);
    assert_eq!(values, expected);
    let part = server.ask(Method::GET, &format!("/dap/m/{url}"), &[("range", "bytes=20-90")]).await;
    assert_eq!((part.status, &part.body[..]), (StatusCode::PARTIAL_CONTENT, &answer.body[20..=90]));
    let tag = answer.header("etag");
    let same = server.ask(Method::GET, &format!("/dap/m/{url}"), &[("if-none-match", tag)]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn errors_are_error_objects_with_the_status_of_the_problem() {
    let server = climate().await;
    for (url, status, message) in [
        ("/dap/m/none.dds", 404, ""),
        ("/dap/none/g.dds", 404, "there is no mount"),
        ("/dap/m/g.dods?none", 400, "there is: "),
        ("/dap/m/g.dods?air[0:9][0]", 400, "the indices 0 to 5"),
        ("/dap/m/g.dods?air[0]", 400, "2 dimensions"),
        ("/dap/m/g.dods?air[", 400, "hyperslab"),
        ("/dap/m/g.dods?air&lat%3E3", 400, "relations"),
    ] {
        let answer = server.get(url).await;
        assert_eq!(answer.status.as_u16(), status, "{url}");
        let found = text(&answer);
        assert!(found.starts_with(&format!("Error {{\n    code = {status};\n    message = \"")), "{found}");
        assert!(found.contains(message), "{url}: {found}");
        assert_eq!(answer.header("content-description"), "dods-error", "{url}");
    }
    assert!(text(&ok(&server, "g.ver", "dods-version").await).contains("DAP/2.0"));
}

#[tokio::test]
async fn values_as_text_have_a_line_for_each_row() {
    let server = climate().await;
    let found = text(&ok(&server, "g.ascii?time[0:1:2]", "dods-ascii").await);
    let times = server.get("/v1/data/m/g/time?slice=:3&format=json").await.json();
    let [one, two, three] = [0, 1, 2].map(|place| times[place].to_string());
    assert_eq!(found, format!("Dataset: g\ntime, {one}, {two}, {three}\n"));
}
