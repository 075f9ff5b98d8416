//! Random selections of random arrays, compared with a naive model in every format.

use axum::http::{Method, StatusCode};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use zarrd::chunk::ChunkGrid;
use zarrd::services::Mount;

use crate::support::data_types::{TypeCase, data_types};
use crate::support::encoded::{bound, parsed};
use crate::support::hierarchy::{Array, memory};
use crate::support::model::{Dim, Model, Selected, flat, places, spell};
use crate::support::property::holds;
use crate::support::server::{Answer, Server, no_caches};
use crate::support::strategies::{Case, case, random_selection};

/// A configuration of the server; responses are the same under each.
#[derive(Clone, Debug)]
struct Setup {
    band_bytes: u64,
    cache: bool,
    gap_bytes: u64,
}

fn setup() -> impl Strategy<Value = Setup> {
    (select(&[1, 7, 64, 1000, 32 << 20][..]), any::<bool>(), select(&[0, 16, 4096][..]))
        .prop_map(|(band_bytes, cache, gap_bytes)| Setup { band_bytes, cache, gap_bytes })
}

/// A data type whose elements are of one size.
fn fixed() -> impl Strategy<Value = TypeCase> {
    select(data_types()).prop_filter("one size", |data_type| !data_type.is_variable())
}

/// A server with the drawn array as `m/a`.
async fn serve(case: &Case, setup: &Setup) -> (Server, Model, Array) {
    let (store, array) = (memory(), case.array());
    let model = array.store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.segment_size = setup.band_bytes;
    server.fetch.max_coalesce_gap = setup.gap_bytes;
    if !setup.cache {
        server.cache = no_caches();
    }
    (server.finish(), model, array)
}

fn expect(answer: &Answer, expected: &Selected, data_type: &TypeCase, what: &str) {
    assert_eq!(answer.status, StatusCode::OK, "{what}: {:?}", answer.body);
    assert_eq!(answer.header("array-shape"), format!("{:?}", expected.shape), "{what}");
    assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{what}");
    assert!(answer.body == data_type.packed(&expected.elements), "{what}: other elements than the model's");
}

#[test]
fn random_slices_of_random_arrays_match_a_naive_model() {
    let selections = prop::collection::vec(random_selection(), 1..=4);
    holds(256, (case(), setup(), selections), async |(case, setup, selections)| {
        let (server, model, _) = serve(&case, &setup).await;
        for drawn in selections {
            let dims = drawn.dims(&model.shape);
            let answer = server.get(&format!("/v1/data/m/a?slice={}", spell(&dims))).await;
            expect(&answer, &model.select(&dims), &case.data_type, &spell(&dims));
        }
    });
}

/// The array as its chunks, each decoded as a whole, say.
fn fully_decoded(array: &Array, model: &Model, data_type: &TypeCase) -> Model {
    let metadata = parsed(&array.document());
    let grid = ChunkGrid::new(&metadata.shape, &metadata.chunk_grid);
    let lengths = |numbers: Vec<u64>| -> Vec<usize> {
        numbers.into_iter().map(|number| number.try_into().unwrap()).collect()
    };
    let item = model.element_bytes;
    let mut elements = data_type.fill.repeat(model.shape.iter().product());
    for coords in array.grid().filter(|coords| array.has_other_than_fill(model, coords)) {
        let chunk: Vec<u64> = coords.iter().map(|&coord| coord.try_into().unwrap()).collect();
        let shape = grid.chunk_shape_at(&chunk);
        let start = grid.chunk_ranges(&chunk).unwrap().iter().map(|range| range.start).collect();
        let (start, chain) = (lengths(start), bound(&metadata, &shape));
        let decoded = chain.decode(array.chunk(model, &coords).into()).unwrap();
        let decoded = if data_type.is_variable() {
            decoded.variable_elements().flat_map(TypeCase::slot).collect()
        } else {
            decoded.into_items().to_vec()
        };
        for (place, element) in places(&lengths(shape)).zip(decoded.chunks(item)) {
            let at: Vec<usize> = start.iter().zip(&place).map(|(start, place)| start + place).collect();
            if at.iter().zip(&model.shape).all(|(at, length)| at < length) {
                elements[flat(&model.shape, &at) * item..][..item].copy_from_slice(element);
            }
        }
    }
    Model { elements, ..model.clone() }
}

#[test]
fn a_partial_decode_equals_the_full_decode() {
    let selections = prop::collection::vec(random_selection(), 1..=4);
    holds(128, (case(), setup(), selections), async |(case, setup, selections)| {
        let (server, model, array) = serve(&case, &setup).await;
        let whole = fully_decoded(&array, &model, &case.data_type);
        for drawn in selections {
            let dims = drawn.dims(&whole.shape);
            let answer = server.get(&format!("/v1/data/m/a?slice={}", spell(&dims))).await;
            expect(&answer, &whole.select(&dims), &case.data_type, &spell(&dims));
        }
    });
}

#[test]
fn random_byte_ranges_in_either_byte_order_are_parts_of_the_full_response() {
    holds(
        96,
        (case(), fixed(), setup(), random_selection(), any::<(Index, Index)>()),
        async |(mut case, data_type, setup, drawn, (from, to))| {
            case.data_type = data_type;
            let (server, model, _) = serve(&case, &setup).await;
            let dims = drawn.dims(&model.shape);
            let mut expected = model.select(&dims).elements;
            for endian in ["little", "big"] {
                if endian == "big" {
                    case.data_type.swap(&mut expected);
                }
                let url = format!("/v1/data/m/a?slice={}&endian={endian}", spell(&dims));
                if expected.is_empty() {
                    let answer = server.ask(Method::GET, &url, &[("range", "bytes=0-0")]).await;
                    assert_eq!(answer.status, StatusCode::RANGE_NOT_SATISFIABLE);
                    continue;
                }
                let first = from.index(expected.len());
                let last = first + to.index(expected.len() - first);
                let range = format!("bytes={first}-{last}");
                let answer = server.ask(Method::GET, &url, &[("range", &range)]).await;
                assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT, "{url} {range}: {:?}", answer.body);
                let content_range = format!("bytes {first}-{last}/{}", expected.len());
                assert_eq!(answer.header("content-range"), content_range);
                assert!(answer.body == expected[first..=last], "{url} {range}: other bytes than the model's");
            }
        },
    );
}

#[test]
fn random_slices_as_npy_match_the_model() {
    let named = fixed().prop_filter("one name", |data_type| !data_type.is_struct());
    holds(
        48,
        (case(), named, setup(), random_selection(), any::<bool>()),
        async |(mut case, data_type, setup, drawn, big)| {
            case.data_type = data_type;
            let (server, model, _) = serve(&case, &setup).await;
            let dims = drawn.dims(&model.shape);
            let endian = if big { "big" } else { "little" };
            let url = format!("/v1/data/m/a?slice={}&format=npy&endian={endian}", spell(&dims));
            let answer = server.get(&url).await;
            assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
            let mut expected = model.select(&dims);
            let TypeCase { v2, unit_bytes, .. } = case.data_type;
            if big {
                case.data_type.swap(&mut expected.elements);
            }
            let order = if unit_bytes == 1 {
                '|'
            } else if big {
                '>'
            } else {
                '<'
            };
            let (header, elements) = npy(&answer.body);
            let lengths: Vec<String> = expected.shape.iter().map(usize::to_string).collect();
            let shape = if lengths.len() == 1 { format!("{},", lengths[0]) } else { lengths.join(", ") };
            let dictionary =
                format!("{{'descr': '{order}{v2}', 'fortran_order': False, 'shape': ({shape}), }}");
            assert_eq!(header.trim_end(), dictionary, "{url}");
            assert!(elements == expected.elements, "{url}: other elements than the model's");
        },
    );
}

/// The dictionary and the elements of an npy file of version 1.
fn npy(file: &[u8]) -> (&str, &[u8]) {
    assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    assert_eq!(end % 64, 0, "the elements are aligned");
    (std::str::from_utf8(&file[10..end]).unwrap(), &file[end..])
}

#[test]
fn random_slices_as_json_match_the_model() {
    let numbers = select(data_types()).prop_filter("numbers of JSON", |data_type| {
        ["bool", "float32", "float64"].contains(&data_type.v3) || data_type.v3.contains("int")
    });
    holds(48, (case(), numbers, setup(), random_selection()), async |(mut case, data_type, setup, drawn)| {
        case.data_type = data_type;
        let (server, model, _) = serve(&case, &setup).await;
        let dims = drawn.dims(&model.shape);
        let url = format!("/v1/data/m/a?slice={}&format=json", spell(&dims));
        let answer = server.get(&url).await;
        assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
        let expected = model.select(&dims);
        let mut numbers = Vec::new();
        flatten(&answer.json(), &expected.shape, &mut numbers);
        let model: Vec<&[u8]> = expected.elements.chunks(model.element_bytes).collect();
        assert_eq!(numbers.len(), model.len(), "{url}");
        for (number, element) in numbers.iter().zip(model) {
            assert!(says(number, case.data_type.v3, element), "{url}: {number} is not {element:?}");
        }
    });
}

/// The elements of nested lists, which must have this shape as far down as there are elements.
fn flatten(lists: &Value, shape: &[usize], numbers: &mut Vec<Value>) {
    let [length, inner @ ..] = shape else { return numbers.push(lists.clone()) };
    let list = lists.as_array().unwrap_or_else(|| panic!("{lists} is no list"));
    assert_eq!(list.len(), *length);
    for lists in list {
        flatten(lists, inner, numbers);
    }
}

/// Whether JSON says this element.
fn says(json: &Value, data_type: &str, element: &[u8]) -> bool {
    let unsigned = element.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    let unused = 64 - 8 * element.len();
    match data_type {
        "bool" => *json == Value::Bool(element == [1]),
        "float32" => {
            let float = f32::from_le_bytes(element.try_into().unwrap());
            json.as_str()
                .map_or_else(|| json.to_string().parse() == Ok(float), |word| word == spelt(float.into()))
        }
        "float64" => {
            let float = f64::from_le_bytes(element.try_into().unwrap());
            json.as_str().map_or_else(|| json.to_string().parse() == Ok(float), |word| word == spelt(float))
        }
        _ if data_type.starts_with('u') => *json == json!(unsigned),
        _ => *json == json!((unsigned << unused).cast_signed() >> unused),
    }
}

/// Values that JSON cannot express as numbers.
fn spelt(float: f64) -> &'static str {
    match float {
        _ if float.is_nan() => "NaN",
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "a number",
    }
}

#[test]
fn every_chunk_of_random_arrays_matches_the_model() {
    holds(48, (case(), setup()), async |(case, setup)| {
        let (server, model, array) = serve(&case, &setup).await;
        for coords in array.grid() {
            let key: Vec<String> =
                std::iter::once("c".to_owned()).chain(coords.iter().map(usize::to_string)).collect();
            let answer = server.get(&format!("/v1/chunk/m/a/{}", key.join("/"))).await;
            let expected = model.select(&array.chunk_box(&coords));
            expect(&answer, &expected, &case.data_type, &key.join("/"));
        }
    });
}

#[test]
fn the_model_selects_as_numpy_does() {
    let elements: Vec<u8> = (0..12).collect();
    let model = Model { shape: vec![3, 4], element_bytes: 1, elements };
    let slice = |start, stop, step| Dim::Slice { start, stop, step };
    for (dims, shape, elements) in [
        (vec![], vec![3, 4], (0..12).collect()),
        (vec![Dim::Index(-1)], vec![4], vec![8, 9, 10, 11]),
        (vec![Dim::Ellipsis, Dim::Index(1)], vec![3], vec![1, 5, 9]),
        (vec![slice(None, None, Some(-2)), slice(Some(1), Some(-1), None)], vec![2, 2], vec![9, 10, 1, 2]),
        (vec![slice(Some(5), Some(1), None)], vec![0, 4], vec![]),
        (vec![slice(Some(-2), Some(100), None), Dim::Index(0)], vec![2], vec![4, 8]),
        (vec![Dim::Index(1), Dim::Index(2)], vec![], vec![6]),
    ] {
        assert_eq!(model.select(&dims), Selected { shape, elements }, "{}", spell(&dims));
    }
    assert_eq!(places(&[]).count(), 1, "a rank of 0 has one place");
}
