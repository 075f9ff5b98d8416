//! Random selections of random arrays are answered as a naive model answers them, in every format.

use axum::http::{Method, StatusCode};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;
use serde_json::Value;
use zarrd::cache::CacheOptions;
use zarrd::http::Mount;

use crate::support::data_types::{TypeCase, data_types};
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Format, memory};
use crate::support::model::{Dim, Model, Selected, places, spell};
use crate::support::server::{Answer, Server};

/// How a chunk, or a level of a shard, is encoded. What does not fit the rank is made to.
#[derive(Clone, Debug)]
struct Level {
    transposes: Vec<Vec<Index>>,
    big: bool,
    compressors: Vec<Codec>,
    at_start: bool,
    scattered: bool,
    index_big: bool,
    index_checked: bool,
}

/// A dimension: its length, the edge of the innermost chunk, and how many of the next inner ones each level holds.
type Extent = (usize, usize, [usize; 2]);

/// An array as it is drawn.
#[derive(Clone, Debug)]
struct Case {
    extents: Vec<Extent>,
    data_type: TypeCase,
    format: Format,
    /// From the chunk inwards: one level for no sharding, three for shards in shards.
    levels: Vec<Level>,
    seed: u64,
    blanks: Vec<Vec<(Index, Index)>>,
}

impl Case {
    fn array(&self) -> Array {
        let shape: Vec<usize> = self.extents.iter().map(|extent| extent.0).collect();
        let depth = if matches!(self.format, Format::V3 { .. }) { self.levels.len() } else { 1 };
        // The shape of the chunk at each level, the stored one first, in the array's dimensions.
        let edges: Vec<Vec<usize>> = (0..depth)
            .map(|level| {
                let inner = depth - 1 - level;
                let edge = |&(_, edge, held): &Extent| edge * held[..inner].iter().product::<usize>();
                self.extents.iter().map(edge).collect()
            })
            .collect();
        let blanks: Vec<Vec<(usize, usize)>> = self
            .blanks
            .iter()
            .map(|blank| {
                let side = |(&length, (start, end)): (&usize, &(Index, Index))| {
                    let start = start.index(length + 1);
                    (start, end.index(length - start + 1))
                };
                shape.iter().zip(blank).map(side).collect()
            })
            .collect();
        Array::of(&shape)
            .chunks(&edges[0])
            .data_type(self.data_type.clone())
            .codecs(chain(&self.levels, &edges, &(0..shape.len()).collect::<Vec<_>>()))
            .format(self.format.clone())
            .random(self.seed, &blanks)
    }
}

/// The codecs of a level whose dimensions are `dims` of the array's.
fn chain(levels: &[Level], edges: &[Vec<usize>], dims: &[usize]) -> Vec<Codec> {
    let level = &levels[0];
    let mut dims = dims.to_vec();
    let mut codecs = Vec::new();
    for picks in &level.transposes {
        let order = permutation(dims.len(), picks);
        dims = order.iter().map(|&axis| dims[axis]).collect();
        codecs.push(Codec::Transpose(order));
    }
    codecs.push(match edges {
        [_] => Codec::Bytes { big: level.big },
        [_, inner, ..] => {
            let checksum = level.index_checked.then_some(Codec::Crc32c);
            Codec::Shards(Box::new(Shards {
                inner: dims.iter().map(|&axis| inner[axis]).collect(),
                codecs: chain(&levels[1..], &edges[1..], &dims),
                index_codecs: [Codec::Bytes { big: level.index_big }].into_iter().chain(checksum).collect(),
                at_start: level.at_start,
                scattered: level.scattered,
            }))
        }
        [] => panic!("a level has a chunk shape"),
    });
    codecs.extend(level.compressors.clone());
    codecs
}

fn permutation(rank: usize, picks: &[Index]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..rank).collect();
    picks.iter().take(rank).map(|pick| left.remove(pick.index(left.len()))).collect()
}

fn extents() -> impl Strategy<Value = Vec<Extent>> {
    // The more dimensions, the smaller.
    let longest = [1_usize, 40, 14, 9, 6];
    (0..=4_usize).prop_flat_map(move |rank| {
        let (edge, held) = [(1_usize, 1_usize), (9, 4), (4, 3), (3, 3), (2, 2)][rank];
        let length = prop_oneof![1 => Just(0), 12 => 1..=longest[rank]];
        prop::collection::vec((length, 1..=edge, [1..=held, 1..=held]), rank)
    })
}

fn compressor() -> impl Strategy<Value = Codec> {
    let cname = select(&["lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"][..]);
    let shuffle = select(&["noshuffle", "shuffle", "bitshuffle"][..]);
    prop_oneof![
        Just(Codec::Gzip),
        Just(Codec::Zstd),
        (cname, shuffle).prop_map(|(cname, shuffle)| Codec::Blosc { cname, shuffle }),
    ]
}

fn level(compressed: u32) -> impl Strategy<Value = Level> {
    let compressors = prop_oneof![
        20 - compressed => Just(vec![]),
        compressed => prop::collection::vec(prop_oneof![3 => compressor(), 1 => Just(Codec::Crc32c)], 1..=2),
    ];
    let transposes = prop::collection::vec(prop::collection::vec(any::<Index>(), 4), 0..=2);
    (transposes, any::<[bool; 5]>(), compressors).prop_map(
        |(transposes, [big, at_start, scattered, index_big, index_checked], compressors)| Level {
            transposes,
            big,
            compressors,
            at_start,
            scattered,
            index_big,
            index_checked,
        },
    )
}

fn levels() -> impl Strategy<Value = Vec<Level>> {
    // A compressor behind a shard is legal, and rare because it hides partial reads.
    (prop::collection::vec(level(1), 0..=2), level(15)).prop_map(|(mut shards, innermost)| {
        shards.push(innermost);
        shards
    })
}

fn format() -> impl Strategy<Value = Format> {
    let separator = || select(&['.', '/'][..]);
    let v3 = (select(&["default", "v2"][..]), separator());
    let compressor = proptest::option::of(prop_oneof![3 => compressor(), 1 => Just(Codec::Zlib)]);
    prop_oneof![
        3 => v3.prop_map(|(encoding, separator)| Format::V3 { encoding, separator }),
        1 => (compressor, any::<bool>(), any::<bool>(), separator()).prop_map(
            |(compressor, fortran, big, separator)| Format::V2 { compressor, fortran, big, separator }
        ),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let blank = prop::collection::vec(any::<(Index, Index)>(), 4);
    let blanks = prop::collection::vec(blank, 0..=3);
    (extents(), select(data_types()), format(), levels(), any::<u64>(), blanks).prop_map(
        |(extents, data_type, format, levels, seed, blanks)| Case {
            extents,
            data_type,
            format,
            levels,
            seed,
            blanks,
        },
    )
}

/// A selection as it is drawn: one pick for each dimension of the array, and which of them to leave to an ellipsis.
#[derive(Clone, Debug)]
struct Asked {
    picks: Vec<Pick>,
    ellipsis: Option<(Index, Index)>,
}

#[derive(Clone, Debug)]
enum Pick {
    Index(Index, bool),
    Slice(Option<i64>, Option<i64>, Option<i64>),
}

impl Asked {
    fn dims(&self, shape: &[usize]) -> Vec<Dim> {
        let mut dims: Vec<Dim> =
            shape.iter().zip(&self.picks).map(|(&length, pick)| pick.dim(length)).collect();
        if let Some((start, end)) = self.ellipsis {
            let start = start.index(dims.len() + 1);
            let end = start + end.index(dims.len() - start + 1);
            dims.splice(start..end, [Dim::Ellipsis]);
        }
        dims
    }
}

impl Pick {
    fn dim(&self, length: usize) -> Dim {
        let whole = Dim::Slice { start: None, stop: None, step: None };
        match *self {
            Self::Index(..) if length == 0 => whole,
            Self::Index(index, from_end) => {
                let (index, length) =
                    (index.index(length).try_into().unwrap(), i64::try_from(length).unwrap());
                Dim::Index(if from_end { index - length } else { index })
            }
            Self::Slice(start, stop, step) => Dim::Slice { start, stop, step },
        }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let number = || {
        proptest::option::of(
            prop_oneof![8 => -12..=12_i64, 2 => -45..=45_i64, 1 => select(&[i64::MIN, i64::MAX][..])],
        )
    };
    let step = prop_oneof![
        4 => Just(None),
        4 => (1..=4_i64, any::<bool>()).prop_map(|(step, back)| Some(if back { -step } else { step })),
        1 => select(&[Some(i64::MIN), Some(i64::MAX), Some(17)][..]),
    ];
    let pick = prop_oneof![
        1 => any::<(Index, bool)>().prop_map(|(index, from_end)| Pick::Index(index, from_end)),
        1 => Just(Pick::Slice(None, None, None)),
        3 => (number(), number(), step).prop_map(|(start, stop, step)| Pick::Slice(start, stop, step)),
    ];
    (prop::collection::vec(pick, 4), proptest::option::of(any::<(Index, Index)>()))
        .prop_map(|(picks, ellipsis)| Asked { picks, ellipsis })
}

/// How the server is set up: whatever it is, the answers are the same.
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

/// A server with the drawn array as `m/a`.
async fn serve(case: &Case, setup: &Setup) -> (Server, Model, Array) {
    let (store, array) = (memory(), case.array());
    let model = array.store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.band_bytes = setup.band_bytes;
    server.fetch.coalesce_gap_bytes = setup.gap_bytes;
    if !setup.cache {
        server.cache = CacheOptions { decoded_bytes: 0, index_bytes: 0, nodes: 0 };
    }
    (server.finish(), model, array)
}

/// Runs a property on a runtime of its own.
fn holds<S: Strategy>(cases: u32, strategy: S, property: impl AsyncFn(S::Value)) {
    // What fails is printed in full; no file is left behind.
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let run = runner.run(&strategy, |value| {
        runtime.block_on(property(value));
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

fn expect(answer: &Answer, expected: &Selected, what: &str) {
    assert_eq!(answer.status, StatusCode::OK, "{what}: {:?}", answer.body);
    assert_eq!(answer.header("array-shape"), format!("{:?}", expected.shape), "{what}");
    assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{what}");
    assert!(answer.body == expected.elements, "{what}: other elements than the model's");
}

#[test]
fn random_slices_of_random_arrays_are_those_of_a_naive_model() {
    let selections = prop::collection::vec(asked(), 1..=4);
    holds(256, (case(), setup(), selections), async |(case, setup, selections)| {
        let (server, model, _) = serve(&case, &setup).await;
        for asked in selections {
            let dims = asked.dims(&model.shape);
            let answer = server.get(&format!("/v1/data/m/a?slice={}", spell(&dims))).await;
            expect(&answer, &model.select(&dims), &spell(&dims));
        }
    });
}

#[test]
fn random_byte_ranges_in_either_byte_order_are_parts_of_the_whole_answer() {
    holds(
        96,
        (case(), setup(), asked(), any::<(Index, Index)>()),
        async |(case, setup, asked, (from, to))| {
            let (server, model, _) = serve(&case, &setup).await;
            let dims = asked.dims(&model.shape);
            let mut expected = model.select(&dims).elements;
            for endian in ["little", "big"] {
                if endian == "big" {
                    expected.chunks_mut(case.data_type.unit_bytes).for_each(<[u8]>::reverse);
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
fn random_slices_as_npy_are_files_with_the_shape_type_and_elements_of_the_model() {
    holds(48, (case(), setup(), asked(), any::<bool>()), async |(case, setup, asked, big)| {
        let (server, model, _) = serve(&case, &setup).await;
        let dims = asked.dims(&model.shape);
        let endian = if big { "big" } else { "little" };
        let url = format!("/v1/data/m/a?slice={}&format=npy&endian={endian}", spell(&dims));
        let answer = server.get(&url).await;
        assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
        let mut expected = model.select(&dims);
        let TypeCase { v2, unit_bytes, .. } = case.data_type;
        if big {
            expected.elements.chunks_mut(unit_bytes).for_each(<[u8]>::reverse);
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
        let dictionary = format!("{{'descr': '{order}{v2}', 'fortran_order': False, 'shape': ({shape}), }}");
        assert_eq!(header.trim_end(), dictionary, "{url}");
        assert!(elements == expected.elements, "{url}: other elements than the model's");
    });
}

/// The dictionary and the elements of an npy file of version 1.
fn npy(file: &[u8]) -> (&str, &[u8]) {
    assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    assert_eq!(end % 64, 0, "the elements are aligned");
    (std::str::from_utf8(&file[10..end]).unwrap(), &file[end..])
}

#[test]
fn random_slices_as_json_are_lists_of_the_models_numbers() {
    let numbers = select(data_types()).prop_filter("numbers of JSON", |data_type| {
        ["bool", "float32", "float64"].contains(&data_type.v3) || data_type.v3.contains("int")
    });
    holds(48, (case(), numbers, setup(), asked()), async |(mut case, data_type, setup, asked)| {
        case.data_type = data_type;
        let (server, model, _) = serve(&case, &setup).await;
        let dims = asked.dims(&model.shape);
        let url = format!("/v1/data/m/a?slice={}&format=json", spell(&dims));
        let answer = server.get(&url).await;
        assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
        let expected = model.select(&dims);
        let mut numbers = Vec::new();
        flatten(&answer.json(), &expected.shape, &mut numbers);
        let model: Vec<&[u8]> = expected.elements.chunks(model.item_bytes).collect();
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
    list.iter().for_each(|lists| flatten(lists, inner, numbers));
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
        _ if data_type.starts_with('u') => json.to_string() == unsigned.to_string(),
        _ => json.to_string() == ((unsigned << unused).cast_signed() >> unused).to_string(),
    }
}

/// What JSON has no number for.
fn spelt(float: f64) -> &'static str {
    match float {
        _ if float.is_nan() => "NaN",
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "a number",
    }
}

#[test]
fn every_chunk_of_random_arrays_is_the_models_trimmed_to_the_array() {
    holds(48, (case(), setup()), async |(case, setup)| {
        let (server, model, array) = serve(&case, &setup).await;
        for coords in array.grid() {
            let numbers: String = coords.iter().map(|number| format!("/{number}")).collect();
            let answer = server.get(&format!("/v1/chunk/m/a/c{numbers}")).await;
            expect(&answer, &model.select(&array.chunk_box(&coords)), &numbers);
        }
    });
}

#[test]
fn the_model_selects_as_numpy_does() {
    let elements: Vec<u8> = (0..12).collect();
    let model = Model { shape: vec![3, 4], item_bytes: 1, elements };
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
