//! Random arrays and random selections, for proptest to draw and to shrink.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::data_types::{TypeCase, data_types};
use super::encode::{Codec, Shards};
use super::hierarchy::{Array, Edges, Format};
use super::model::Dim;

/// The encoding of a chunk or of a level of a shard, adjusted to the rank.
#[derive(Clone, Debug)]
struct Level {
    transposes: Vec<Vec<Index>>,
    /// Whether integers are stored as differences, which only a whole chunk gives back; and before the transposes or
    /// behind them.
    delta: Option<bool>,
    big: bool,
    compressors: Vec<Codec>,
    /// If it is a level of shards: how they are laid out.
    shards: Shards,
}

/// A dimension: its length, the edge of the innermost chunk, and how many of the next inner ones each level holds.
type Extent = (usize, usize, [usize; 2]);

/// Chunks of varied edges along a dimension: how many of the next inner ones they hold, over and over, and how many chunks
/// there are wholly beyond the end.
type Varied = (Vec<usize>, usize);

/// An array as it is drawn.
#[derive(Clone, Debug)]
pub struct Case {
    extents: Vec<Extent>,
    /// One for each dimension, for v3 arrays.
    varied: Vec<Option<Varied>>,
    pub data_type: TypeCase,
    format: Format,
    /// From the chunk inwards: one level for no sharding, three for shards in shards.
    levels: Vec<Level>,
    seed: u64,
    blanks: Vec<Vec<(Index, Index)>>,
}

impl Case {
    pub fn array(&self) -> Array {
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
            .edges(&self.stored_edges(&edges))
            .data_type(self.data_type.clone())
            .codecs(chain(&self.levels, &edges, &(0..shape.len()).collect::<Vec<_>>(), &self.data_type))
            .format(self.format.clone())
            .random(self.seed, &blanks)
    }

    /// The edges of the stored chunks, given the shape of chunks at each level.
    fn stored_edges(&self, levels: &[Vec<usize>]) -> Vec<Edges> {
        let v3 = matches!(self.format, Format::V3 { .. });
        let along = |axis: usize| match &self.varied[axis] {
            Some((held, beyond)) if v3 => {
                let inner = levels.get(1).map_or(1, |inner| inner[axis]);
                let mut left = self.extents[axis].0;
                let mut edges = held.iter().cycle().map(|held| held * inner);
                let mut found = Vec::new();
                while left > 0 || found.is_empty() {
                    let edge = edges.next().unwrap();
                    left = left.saturating_sub(edge);
                    found.push(edge);
                }
                found.extend(edges.take(*beyond));
                Edges::Each(found)
            }
            _ => Edges::All(levels[0][axis]),
        };
        (0..self.extents.len()).map(along).collect()
    }
}

/// The codecs of a level whose dimensions are `dims` of the array's.
fn chain(levels: &[Level], edges: &[Vec<usize>], dims: &[usize], data_type: &TypeCase) -> Vec<Codec> {
    let level = &levels[0];
    let mut dims = dims.to_vec();
    let mut codecs = Vec::new();
    for picks in &level.transposes {
        let order = permutation(dims.len(), picks);
        dims = order.iter().map(|&axis| dims[axis]).collect();
        codecs.push(Codec::Transpose(order));
    }
    if let Some(first) = level.delta.filter(|_| data_type.is_integer()) {
        codecs.insert(if first { 0 } else { codecs.len() }, Codec::Delta(data_type.v2));
    }
    codecs.push(match edges {
        [_] => Codec::serializer(data_type, level.big),
        [_, inner, ..] => {
            let inner = dims.iter().map(|&axis| inner[axis]).collect();
            let codecs = chain(&levels[1..], &edges[1..], &dims, data_type);
            Shards { inner, codecs, ..level.shards.clone() }.codec()
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
        let (edge, held, shards) =
            [(1_usize, 1_usize, 1_usize), (9, 4, 4), (4, 4, 3), (3, 4, 2), (2, 3, 2)][rank];
        let length = prop_oneof![1 => Just(0), 12 => 1..=longest[rank]];
        prop::collection::vec((length, 1..=edge, [1..=held, 1..=shards]), rank)
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
    let delta = prop_oneof![8 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (transposes, delta, any::<bool>(), compressors, shards()).prop_map(
        |(transposes, delta, big, compressors, shards)| Level { transposes, delta, big, compressors, shards },
    )
}

fn shards() -> impl Strategy<Value = Shards> {
    any::<[bool; 4]>().prop_map(|[at_start, scattered, big, checked]| {
        let checksum = checked.then_some(Codec::Crc32c);
        let index_codecs = [Codec::Bytes { big }].into_iter().chain(checksum).collect();
        Shards { index_codecs, at_start, scattered, ..Shards::of(&[], &[]) }
    })
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

fn varied() -> impl Strategy<Value = Vec<Option<Varied>>> {
    let along = proptest::option::of((prop::collection::vec(1..=4_usize, 1..=5), 0..=2_usize));
    prop_oneof![1 => Just(vec![None; 4]), 1 => prop::collection::vec(along, 4)]
}

pub fn case() -> impl Strategy<Value = Case> {
    let blank = prop::collection::vec(any::<(Index, Index)>(), 4);
    let blanks = prop::collection::vec(blank, 0..=3);
    (extents(), varied(), select(data_types()), format(), levels(), any::<u64>(), blanks).prop_map(
        |(extents, varied, data_type, format, levels, seed, blanks)| Case {
            extents,
            varied,
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
pub struct RandomSelection {
    picks: Vec<Pick>,
    ellipsis: Option<(Index, Index)>,
}

#[derive(Clone, Debug)]
enum Pick {
    Index(Index, bool),
    Slice(Option<i64>, Option<i64>, Option<i64>),
}

impl RandomSelection {
    pub fn dims(&self, shape: &[usize]) -> Vec<Dim> {
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

pub fn random_selection() -> impl Strategy<Value = RandomSelection> {
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
        .prop_map(|(picks, ellipsis)| RandomSelection { picks, ellipsis })
}
