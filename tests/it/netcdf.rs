//! NetCDF files, read by a small reader of the classic format, and compared with what other formats of the same URL have.

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use serde_json::json;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::labels::array;
use crate::support::data_types::data_type;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, put};

/// A variable of a file.
#[derive(Debug)]
struct Variable {
    dimensions: Vec<(String, u64)>,
    attributes: BTreeMap<String, (u32, Vec<u8>)>,
    kind: u32,
    /// The bytes from its first value on, to the end of the file.
    rest: Vec<u8>,
}

/// A file.
#[derive(Debug)]
struct File {
    version: u8,
    attributes: BTreeMap<String, (u32, Vec<u8>)>,
    variables: BTreeMap<String, Variable>,
}

/// Reads a header from its start on.
struct Reader<'a> {
    file: &'a [u8],
    at: usize,
    version: u8,
}

impl Reader<'_> {
    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let taken = self.file[self.at..self.at + bytes].to_vec();
        self.at += bytes;
        taken
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).into_iter().fold(0, |number, byte| (number << 8) | u64::from(byte))
    }

    fn count(&mut self) -> u64 {
        self.number(if self.version == 5 { 8 } else { 4 })
    }

    fn padded(&mut self, bytes: usize) -> Vec<u8> {
        let taken = self.take(bytes);
        let padding = bytes.next_multiple_of(4) - bytes;
        assert!(self.take(padding).iter().all(|&byte| byte == 0));
        taken
    }

    fn name(&mut self) -> String {
        let length = usize::try_from(self.count()).unwrap();
        String::from_utf8(self.padded(length)).unwrap()
    }

    fn list(&mut self, tag: u64) -> u64 {
        let (found, length) = (self.number(4), self.count());
        assert_eq!(found, if length == 0 { 0 } else { tag });
        length
    }

    fn attributes(&mut self) -> BTreeMap<String, (u32, Vec<u8>)> {
        (0..self.list(0x0c))
            .map(|_| {
                let (name, kind) = (self.name(), u32::try_from(self.number(4)).unwrap());
                let bytes = usize::try_from(self.count()).unwrap() * size_of(kind);
                (name, (kind, self.padded(bytes)))
            })
            .collect()
    }
}

fn size_of(kind: u32) -> usize {
    [1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8][kind as usize - 1]
}

fn read(file: &[u8]) -> File {
    assert_eq!(&file[..3], b"CDF");
    let mut reader = Reader { file, at: 4, version: file[3] };
    assert_eq!(reader.count(), 0, "records");
    let dimensions: Vec<(String, u64)> =
        (0..reader.list(0x0a)).map(|_| (reader.name(), reader.count())).collect();
    let attributes = reader.attributes();
    let mut variables = BTreeMap::new();
    for _ in 0..reader.list(0x0b) {
        let name = reader.name();
        let rank = reader.count();
        let places: Vec<usize> = (0..rank).map(|_| usize::try_from(reader.count()).unwrap()).collect();
        let attributes = reader.attributes();
        let kind = u32::try_from(reader.number(4)).unwrap();
        let size = reader.count();
        let begin = usize::try_from(reader.number(8)).unwrap();
        let dimensions: Vec<(String, u64)> = places.iter().map(|&place| dimensions[place].clone()).collect();
        // Of a variable with records, of which there are none, one is counted.
        let of_record = dimensions.iter().skip_while(|(_, length)| *length == 0);
        let elements: u64 = of_record.map(|(_, length)| length).product();
        assert_eq!(size, (elements * size_of(kind) as u64).next_multiple_of(4), "{name}");
        let rest = file.get(begin..).unwrap_or_default().to_vec();
        variables.insert(name, Variable { dimensions, attributes, kind, rest });
    }
    File { version: file[3], attributes, variables }
}

async fn ok(server: &Server, url: &str) -> Answer {
    let answer = server.get(url).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    answer
}

/// A group with `air` over `time`, `lat` and `lon`, of which the first two have coordinates; `counts` over `time`; and
/// `complex`, which no file can have.
async fn climate() -> Server {
    let store = memory();
    put(
        &store,
        "g/zarr.json",
        r#"{"zarr_format": 3, "node_type": "group", "attributes": {"Conventions": "CF-1.8"}}"#,
    )
    .await;
    let names = |names: &[&str]| json!({"dimension_names": names});
    let mut air = names(&["time", "lat", "lon"]);
    air["attributes"] = json!({"units": "K", "_FillValue": -1, "scale_factor": 0.5});
    let array = |shape: &[usize], kind: &'static str| Array::of(shape).data_type(data_type(kind));
    array(&[6, 5, 4], "int16").chunks(&[4, 2, 3]).members(air).store(&store, "g/air").await;
    array(&[6], "int32").chunks(&[4]).members(names(&["time"])).store(&store, "g/time").await;
    array(&[5], "float64").chunks(&[5]).members(names(&["lat"])).store(&store, "g/lat").await;
    array(&[6], "uint8").chunks(&[6]).members(names(&["time"])).store(&store, "g/counts").await;
    array(&[6], "complex64").chunks(&[6]).members(names(&["time"])).store(&store, "g/complex").await;
    Server::of(store)
}

/// Fails unless a variable has the elements that the array has over a selection.
async fn assert_elements(server: &Server, file: &File, name: &str, slice: &str) {
    let url = format!("/v1/data/m/g/{name}?format=bytes&endian=big&slice={slice}");
    let expected = ok(server, &url).await.body;
    assert_eq!(file.variables[name].rest[..expected.len()], expected, "{name}");
}

#[tokio::test]
async fn a_file_has_an_array_and_its_coordinates_over_the_same_selection() {
    let server = climate().await;
    let file = read(&ok(&server, "/v1/data/m/g/air?format=nc&slice=1::2,::-2,3").await.body);
    assert_eq!(file.version, 2);
    assert_eq!(file.variables.keys().collect::<Vec<_>>(), ["air", "lat", "time"]);
    let dimension = |name: &str, length: u64| (name.to_owned(), length);
    assert_eq!(file.variables["air"].dimensions, [dimension("time", 3), dimension("lat", 3)]);
    assert_eq!(file.variables["time"].dimensions, [dimension("time", 3)]);
    assert_elements(&server, &file, "air", "1::2,::-2,3").await;
    assert_elements(&server, &file, "time", "1::2").await;
    assert_elements(&server, &file, "lat", "::-2").await;
    let attributes = &file.variables["air"].attributes;
    assert_eq!(attributes["_FillValue"], (3, vec![0xff, 0xff]), "of the variable's type");
    assert_eq!(attributes["scale_factor"], (6, 0.5_f64.to_be_bytes().to_vec()));
    assert_eq!(attributes["units"], (2, b"K".to_vec()));
}

#[tokio::test]
async fn a_decoded_file_has_the_values_that_attributes_describe_and_no_other_attributes() {
    let store = memory();
    let packed = json!({"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -1, "valid_range": [0, 9], "units": "K"});
    array(&store, "g/t", &[2, 2], "int16", &["time", "x"], packed, vec![4, 0, 0xff, 0xff, 2, 0, 0, 0]).await;
    let times = json!({"units": "days since 2000-01-01", "_FillValue": 9});
    array(&store, "g/time", &[2], "int32", &["time"], times, crate::labels::integers(3..5)).await;
    let labels = json!({"scale_factor": 0.25});
    array(&store, "g/x", &[2], "int16", &["x"], labels, vec![4, 0, 8, 0]).await;
    let unsigned = json!({"_Unsigned": "true"});
    array(&store, "g/u", &[2], "int8", &["x"], unsigned, vec![0xff, 1]).await;
    array(&store, "g/plain", &[2], "int16", &["x"], json!({}), vec![1, 0, 2, 0]).await;
    put(&store, "g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    let server = Server::of(store);
    let stored = ok(&server, "/v1/data/m/g?format=nc").await;
    assert_eq!(stored.body, ok(&server, "/v1/data/m/g?format=nc&decode=none").await.body);
    let answer = ok(&server, "/v1/data/m/g?format=nc&decode=cf").await;
    assert_ne!(answer.header("etag"), stored.header("etag"));
    let file = read(&answer.body);
    let bytes = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
    let is = |name: &str, kind: u32, expected: &[u8]| {
        let variable = &file.variables[name];
        assert_eq!((variable.kind, &variable.rest[..expected.len()]), (kind, expected), "{name}");
    };
    is("t", 6, &bytes(&[12.0, f64::NAN, 11.0, 10.0]));
    is("time", 4, &[0, 0, 0, 3, 0, 0, 0, 4]);
    is("x", 6, &bytes(&[1.0, 2.0]));
    is("u", 7, &[0xff, 1]);
    is("plain", 3, &[0, 1, 0, 2]);
    let attributes = |name: &str| file.variables[name].attributes.keys().cloned().collect::<Vec<_>>();
    assert_eq!(attributes("t"), ["_FillValue", "units"]);
    assert!(
        f64::from_be_bytes(file.variables["t"].attributes["_FillValue"].1[..].try_into().unwrap()).is_nan()
    );
    assert_eq!(attributes("time"), ["_FillValue", "units"]);
    assert_eq!((attributes("x"), attributes("u")), (vec![], vec![]));
    // Of one array the same, in any range.
    let one = ok(&server, "/v1/data/m/g/t?format=nc&decode=cf").await.body;
    assert_eq!(read(&one).variables["t"].rest[..32], file.variables["t"].rest[..32]);
    for (start, end) in [(0, 10), (one.len() - 33, one.len() - 5), (one.len() - 1, one.len())] {
        let range = format!("bytes={start}-{}", end - 1);
        let part = server.ask(Method::GET, "/v1/data/m/g/t?format=nc&decode=cf", &[("range", &range)]).await;
        assert_eq!((part.status, &part.body[..]), (StatusCode::PARTIAL_CONTENT, &one[start..end]), "{range}");
    }
}

#[tokio::test]
async fn a_file_by_label_is_that_by_the_position_of_the_label() {
    let server = climate().await;
    let times = ok(&server, "/v1/data/m/g/time?format=json").await.json();
    let by_label = ok(&server, &format!("/v1/data/m/g/air?format=nc&sel.time={}", times[2])).await;
    let by_position = ok(&server, "/v1/data/m/g/air?format=nc&isel.time=2").await;
    assert_eq!(by_label.body, by_position.body);
    assert_eq!(by_label.header("array-selection"), "time=2");
    // Of a group, each variable along the dimensions that it has.
    let range = format!("{}..{}", times[1], times[2]);
    let by_label = ok(&server, &format!("/v1/data/m/g?format=nc&sel.time={range}")).await;
    let by_position = ok(&server, "/v1/data/m/g?format=nc&isel.time=1:3").await;
    assert_eq!(by_label.body, by_position.body);
    assert_eq!(by_label.header("etag"), by_position.header("etag"));
    assert_eq!(by_label.header("array-selection"), "time=1:3");
    let head =
        server.ask(Method::HEAD, &format!("/v1/data/m/g?format=nc&sel.time={range}&vars=air"), &[]).await;
    assert_eq!((head.status, head.header("array-selection")), (StatusCode::OK, "time=1:3"));
    let none = server.get("/v1/data/m/g?format=nc&sel.time=1e9").await;
    assert!(none.refuses(400, "no-such-label", "beyond the last").contains("`sel.time=1e9`"), "{none:?}");
}

#[tokio::test]
async fn labels_select_in_no_group_whose_arrays_disagree_about_the_dimension() {
    let store = memory();
    put(&store, "g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    for (name, length) in [("x", 2), ("a", 2), ("b", 3)] {
        let array = json!({
            "zarr_format": 3, "node_type": "array", "shape": [length], "data_type": "int8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [length]}}, "dimension_names": ["x"],
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]
        });
        put(&store, &format!("g/{name}/zarr.json"), array.to_string()).await;
    }
    put(&store, "g/x/c/0", vec![3_u8, 4]).await;
    let server = Server::of(store);
    let refused = server.get("/v1/data/m/g?format=nc&sel.x=4").await;
    assert!(refused.refuses(400, "invalid-request", "two lengths").contains("`x`"), "{refused:?}");
    let named = read(&ok(&server, "/v1/data/m/g?format=nc&vars=a&sel.x=4").await.body);
    assert!(named.variables["a"].dimensions.is_empty());
}

#[tokio::test]
async fn a_file_of_a_group_leaves_out_what_it_cannot_have_and_says_so() {
    let server = climate().await;
    let answer = ok(&server, "/v1/data/m/g?format=nc&isel.time=2:4").await;
    assert_eq!(answer.header("variables-omitted"), "complex (complex64)");
    let file = read(&answer.body);
    assert_eq!(file.version, 5, "for the unsigned integers");
    assert_eq!(file.variables.keys().collect::<Vec<_>>(), ["air", "counts", "lat", "time"]);
    assert_eq!((file.variables["counts"].kind, &*file.attributes["Conventions"].1), (7, &b"CF-1.8"[..]));
    for (name, slice) in [("air", "2:4"), ("counts", "2:4"), ("time", "2:4"), ("lat", "...")] {
        assert_elements(&server, &file, name, slice).await;
    }
    let some = read(&ok(&server, "/v1/data/m/g?format=nc3&vars=air&isel.time=0").await.body);
    assert_eq!(some.variables.keys().collect::<Vec<_>>(), ["air", "lat", "time"]);
    assert!(some.variables["time"].dimensions.is_empty());
    assert_eq!(some.variables["air"].attributes["coordinates"], (2, b"time".to_vec()));
}

#[tokio::test]
async fn any_range_of_a_file_is_that_part_of_it_and_a_known_tag_costs_no_chunk() {
    let server = climate().await;
    let url = "/v1/data/m/g?format=nc";
    let whole = ok(&server, url).await;
    assert_eq!(whole.header("content-length"), whole.body.len().to_string());
    let head = server.ask(Method::HEAD, url, &[]).await;
    assert_eq!(head.header("content-length"), whole.header("content-length"));
    assert_eq!(head.header("etag"), whole.header("etag"));
    for start in (0..whole.body.len()).step_by(7) {
        let end = (start + 29).min(whole.body.len());
        let range = format!("bytes={start}-{}", end - 1);
        let part = server.ask(Method::GET, url, &[("range", &range)]).await;
        assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
        assert_eq!(part.body, whole.body[start..end], "{range}");
    }
    let same = server.ask(Method::GET, url, &[("if-none-match", whole.header("etag"))]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    let other = server.ask(Method::GET, url, &[("if-match", "\"other\"")]).await;
    other.refuses(412, "precondition-failed", "another version");
    let selected = ok(&server, "/v1/data/m/g?format=nc&isel.time=:6").await;
    assert_eq!(selected.body, whole.body);
}

#[tokio::test]
async fn requests_that_no_file_can_answer_say_what_is_wrong() {
    let server = climate().await;
    for (url, detail) in [
        ("g/complex?format=nc", "complex64"),
        ("g?format=nc&vars=complex", "complex64"),
        ("g?format=nc3", "`counts` (UByte)"),
        ("g?format=nc&slice=0", "isel.NAME"),
        ("g?format=nc&isel.none=0", "`none`"),
        ("g?format=nc&sel.none=1", "`none`"),
        ("g/air?format=nc&vars=air", "`vars`"),
        ("g/air?vars=air", "format=nc"),
        ("g/air?format=nc&downsample=2,2,2", "downsample"),
        ("g/air?format=nc&slice=:,:0", "dimension `lat`"),
    ] {
        let refused = server.get(&format!("/v1/data/m/{url}")).await;
        let found = refused.refuses(400, "invalid-request", url);
        assert!(found.contains(detail), "{url}: {found}");
    }
    server.get("/v1/data/m/g?format=nc&vars=none").await.refuses(404, "not-found", "no such array");
    server.get("/v1/chunk/m/g/air/c/0/0/0?format=nc").await.refuses(400, "invalid-request", "a chunk");
    let file = ok(&server, "/v1/data/m/g/air?format=nc&slice=:0").await.body;
    let empty = read(&file);
    assert_eq!(empty.variables["air"].dimensions[0], ("time".to_owned(), 0));
    for variable in ["air", "time"] {
        // NetCDF-C opens no file in which records begin before another variable.
        assert!(empty.variables[variable].rest.is_empty(), "{variable} begins behind all values");
    }
    assert_elements(&server, &empty, "lat", ":").await;
}

/// A group with `air` over `time`, and the integers of 64 bits that climate data has beside it.
async fn with_long_integers(times: &[i64], scalar: i64) -> SharedStore {
    let store = memory();
    put(&store, "g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    let longs = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let length = times.len() as u64;
    let air = (0..length).flat_map(|_| 1.5_f32.to_le_bytes()).collect();
    array(&store, "g/air", &[length], "float32", &["time"], json!({ "grid_mapping": "crs" }), air).await;
    let attributes = json!({ "units": "hours since 1900-01-01", "bounds": "time_bnds" });
    array(&store, "g/time", &[length], "int64", &["time"], attributes, longs(times)).await;
    let bounds: Vec<i64> = times.iter().flat_map(|time| [*time, *time]).collect();
    array(&store, "g/time_bnds", &[length, 2], "int64", &["time", "bnds"], json!({}), longs(&bounds)).await;
    array(&store, "g/crs", &[], "int64", &[], json!({}), longs(&[scalar])).await;
    store
}

#[tokio::test]
async fn integers_of_64_bits_whose_values_fit_in_smaller_types_leave_a_file_in_cdf_2() {
    let (int, double, int64) = (4, 6, 10);
    for (times, scalar, version, kinds) in [
        ([0, 876_576, -1], 0, 2, [int, int, int]),
        // Nanoseconds: too large for 32 bits, and exact as floats.
        ([1_577_836_800_000_000_000, 0, i64::MIN], 7, 2, [double, double, int]),
        ([1, 2, (1 << 53) + 1], 7, 5, [int64, int64, int64]),
        ([1, 2, 3], i64::MAX, 5, [int64, int64, int64]),
    ] {
        let server = Server::of(with_long_integers(&times, scalar).await);
        let file = read(&ok(&server, "/v1/data/m/g?format=nc").await.body);
        let found = ["time", "time_bnds", "crs"].map(|name| file.variables[name].kind);
        assert_eq!((file.version, found), (version, kinds), "{times:?} {scalar}");
        let classic = server.get("/v1/data/m/g?format=nc3").await;
        assert_eq!(classic.status.is_success(), version == 2, "{times:?}");
        let values: Vec<u8> = match kinds[0] {
            4 => times.iter().flat_map(|&time| i32::try_from(time).unwrap().to_be_bytes()).collect(),
            #[expect(clippy::cast_precision_loss, reason = "they are exact")]
            6 => times.iter().flat_map(|&time| (time as f64).to_be_bytes()).collect(),
            _ => times.iter().flat_map(|time| time.to_be_bytes()).collect(),
        };
        assert!(file.variables["time"].rest.starts_with(&values), "{times:?}");
    }
    // Where something else needs CDF-5, integers keep their type.
    let store = with_long_integers(&[1, 2], 3).await;
    array(&store, "g/wide", &[1, 1], "int64", &["x", "y"], json!({}), 5_i64.to_le_bytes().to_vec()).await;
    let file = read(&ok(&Server::of(store), "/v1/data/m/g?format=nc").await.body);
    assert_eq!((file.version, file.variables["time"].kind), (5, int64));
}

#[tokio::test]
async fn a_file_of_a_group_leaves_out_variables_whose_empty_dimensions_no_file_has() {
    let server = climate().await;
    let answer = ok(&server, "/v1/data/m/g?format=nc&isel.lat=0:0").await;
    assert_eq!(answer.header("variables-omitted"), "complex (complex64), air (no element along lat)");
    let file = read(&answer.body);
    assert_eq!(file.variables.keys().collect::<Vec<_>>(), ["counts", "lat", "time"]);
    assert_eq!(file.variables["lat"].dimensions, [("lat".to_owned(), 0)]);
    let answer = ok(&server, "/v1/data/m/g?format=nc&isel.lat=0:0&isel.time=0:0").await;
    let omitted = answer.header("variables-omitted");
    assert_eq!(
        read(&answer.body).variables.len(),
        1 + usize::from(!omitted.contains("counts")) * 2,
        "{omitted}"
    );
    let named = server.get("/v1/data/m/g?format=nc&vars=air&isel.lat=0:0").await;
    assert!(named.refuses(400, "invalid-request", "it is named").contains("dimension `lat`"));
}

#[tokio::test]
async fn limits_hold_for_all_variables_together() {
    let store = memory();
    put(&store, "g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    for name in ["a", "b", "c"] {
        Array::of(&[10, 10])
            .chunks(&[10, 10])
            .data_type(data_type("int32"))
            .store(&store, &format!("g/{name}"))
            .await;
    }
    Array::of(&[20, 20]).chunks(&[10, 10]).data_type(data_type("int32")).store(&store, "large").await;
    let texts = json!({
        "zarr_format": 2, "shape": [40], "chunks": [40], "dtype": "<U5", "order": "C", "fill_value": "abcde", "filters": null,
        "compressor": null,
    });
    put(&store, "texts/.zarray", texts.to_string()).await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.max_response_size = 1000;
    let server = server.finish();
    assert_eq!(server.get("/v1/data/m/g?format=nc&vars=a,b").await.status, StatusCode::OK);
    server.get("/v1/data/m/g?format=nc").await.refuses(413, "too-large", "three arrays");
    let large = server.get("/v1/data/m/large?format=nc").await;
    assert_eq!((large.status.as_u16(), &large.json()["suggested_slices"][0]), (413, &json!("0:20,0:10")));
    assert_eq!(server.get("/v1/data/m/large?format=nc&slice=0:20,0:10").await.status, StatusCode::OK);
    let problem = server.get("/v1/data/m/texts?format=nc").await.json();
    assert_eq!(
        (&problem["setting"], &problem["suggested_slices"]),
        (&json!("read.max_response_size"), &json!([])),
        "{problem}"
    );
}
