//! Arrays built in one chained expression: stored in a memory store, and kept as a [`Model`].

use serde_json::{Value, json};
use zarrd::store::SharedStore;

use super::data_types::{TypeCase, data_type};
use super::encode::{Block, Codec, documents};
use super::model::{Dim, Model, flat, places};
use super::server::{cpu, put};

/// An empty store.
pub fn memory() -> SharedStore {
    let options = zarrd::store::StoreOptions { writable: true, ..Default::default() };
    zarrd::store::open("memory://", &options, &cpu()).unwrap()
}

/// Which documents and keys an array has.
#[derive(Clone, Debug)]
pub enum Format {
    /// The chunk key encoding's name and its separator.
    V3 {
        encoding: &'static str,
        separator: char,
    },
    V2 {
        compressor: Option<Codec>,
        fortran: bool,
        big: bool,
        separator: char,
    },
}

/// Where the elements come from.
#[derive(Clone, Debug)]
enum Source {
    /// Random numbers, with boxes of nothing but the fill value.
    Random { seed: u64, blanks: Vec<Vec<(usize, usize)>> },
    /// Each element its own number.
    Counting,
    /// One byte, repeated.
    Uniform(u8),
}

/// The edges of an array's chunks along one dimension.
#[derive(Clone, Debug)]
pub enum Edges {
    All(usize),
    Each(Vec<usize>),
}

impl Edges {
    fn edge(&self, coord: usize) -> usize {
        match self {
            Self::All(edge) => *edge,
            Self::Each(edges) => edges[coord],
        }
    }

    fn start(&self, coord: usize) -> usize {
        (0..coord).map(|before| self.edge(before)).sum()
    }

    /// Chunks that hold elements of a dimension of this length.
    fn count(&self, length: usize) -> usize {
        (0..length).find(|&coord| self.start(coord) >= length).unwrap_or(length)
    }

    /// As a rectilinear grid has them: three equal edges and more as runs.
    fn document(&self) -> Value {
        match self {
            Self::All(edge) => json!(edge),
            Self::Each(edges) => {
                let run = |run: &[usize]| match run.len() {
                    1 | 2 => run.iter().map(|edge| json!(edge)).collect(),
                    count => vec![json!([run[0], count])],
                };
                edges.chunk_by(usize::eq).flat_map(run).collect()
            }
        }
    }
}

/// An array in the making.
#[derive(Clone, Debug)]
pub struct Array {
    shape: Vec<usize>,
    edges: Vec<Edges>,
    data_type: TypeCase,
    codecs: Vec<Codec>,
    format: Format,
    source: Source,
    members: Value,
}

impl Array {
    /// A v3 array of `uint16` in one chunk, little endian, each element its own number.
    pub fn of(shape: &[usize]) -> Self {
        Self {
            shape: shape.to_vec(),
            edges: shape.iter().copied().map(Edges::All).collect(),
            data_type: data_type("uint16"),
            codecs: vec![Codec::Bytes { big: false }],
            format: Format::V3 { encoding: "default", separator: '/' },
            source: Source::Counting,
            members: json!({}),
        }
    }

    pub fn chunks(mut self, chunk_shape: &[usize]) -> Self {
        self.edges = chunk_shape.iter().copied().map(Edges::All).collect();
        self
    }

    /// A rectilinear grid, if any edges differ.
    pub fn edges(mut self, edges: &[Edges]) -> Self {
        self.edges = edges.to_vec();
        self
    }

    pub fn data_type(mut self, data_type: TypeCase) -> Self {
        self.data_type = data_type;
        self
    }

    pub fn codecs(mut self, codecs: impl Into<Vec<Codec>>) -> Self {
        self.codecs = codecs.into();
        self
    }

    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Random elements but for some boxes, each a start and a length along every dimension.
    pub fn random(mut self, seed: u64, blanks: &[Vec<(usize, usize)>]) -> Self {
        self.source = Source::Random { seed, blanks: blanks.to_vec() };
        self
    }

    pub fn uniform(mut self, byte: u8) -> Self {
        self.source = Source::Uniform(byte);
        self
    }

    /// Puts members of the document in place of its own.
    pub fn members(mut self, members: Value) -> Self {
        self.members = members;
        self
    }

    /// The array as its readers see it.
    pub fn model(&self) -> Model {
        let element_bytes = self.data_type.element_bytes;
        let count: usize = self.shape.iter().product();
        let mut elements = match self.source {
            Source::Uniform(byte) => vec![byte; count * element_bytes],
            Source::Counting => {
                let mut elements = Vec::with_capacity(count * element_bytes);
                for number in 1..=count {
                    let number = u64::try_from(number).unwrap().to_le_bytes();
                    for left in (1..=element_bytes).rev().step_by(number.len()) {
                        elements.extend_from_slice(&number[..left.min(number.len())]);
                    }
                }
                elements
            }
            Source::Random { seed, .. } => noise(seed).take(count * element_bytes).collect(),
        };
        self.data_type.tame(&mut elements);
        if let Source::Random { blanks, .. } = &self.source {
            for blank in blanks {
                let within = |place: &[usize]| {
                    place
                        .iter()
                        .zip(blank)
                        .all(|(at, (start, length))| (start..&(start + length)).contains(&at))
                };
                for place in places(&self.shape).filter(|place| within(place)) {
                    let at = flat(&self.shape, &place) * element_bytes;
                    elements[at..at + element_bytes].copy_from_slice(&self.data_type.fill);
                }
            }
        }
        Model { shape: self.shape.clone(), element_bytes, elements }
    }

    /// The metadata document, and its name.
    pub fn document(&self) -> (&'static str, Value) {
        let TypeCase { v2, unit_bytes, fill_value, .. } = &self.data_type;
        let (name, mut document) = match &self.format {
            Format::V3 { encoding, separator } => (
                "zarr.json",
                json!({
                    "zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": self.data_type.in_v3(),
                    "chunk_grid": self.grid_document(),
                    "chunk_key_encoding": { "name": encoding, "configuration": { "separator": separator } },
                    "codecs": documents(&self.codecs, *unit_bytes), "fill_value": fill_value,
                }),
            ),
            Format::V2 { compressor, fortran, big, separator } => {
                let filters = self.data_type.is_variable().then(|| json!([{ "id": v2 }]));
                (
                    ".zarray",
                    json!({
                        "zarr_format": 2, "shape": self.shape, "chunks": self.edges_at(&vec![0; self.shape.len()]),
                        "dtype": self.data_type.in_v2(*big), "fill_value": self.data_type.fill_value_in_v2(*big), "filters": filters,
                        "order": if *fortran { "F" } else { "C" },
                        "compressor": compressor.as_ref().map(Codec::compressor),
                        "dimension_separator": separator,
                    }),
                )
            }
        };
        for (member, value) in self.members.as_object().unwrap() {
            document[member] = value.clone();
        }
        (name, document)
    }

    fn grid_document(&self) -> Value {
        if self.edges.iter().all(|edges| matches!(edges, Edges::All(_))) {
            let chunk_shape: Vec<Value> = self.edges.iter().map(Edges::document).collect();
            return json!({ "name": "regular", "configuration": { "chunk_shape": chunk_shape } });
        }
        let edges: Vec<Value> = self.edges.iter().map(Edges::document).collect();
        json!({ "name": "rectilinear", "configuration": { "kind": "inline", "chunk_shapes": edges } })
    }

    /// The shape of a chunk as stored.
    fn edges_at(&self, coords: &[usize]) -> Vec<usize> {
        self.edges.iter().zip(coords).map(|(edges, &coord)| edges.edge(coord)).collect()
    }

    /// The first element of a chunk.
    fn start_of(&self, coords: &[usize]) -> Vec<usize> {
        self.edges.iter().zip(coords).map(|(edges, &coord)| edges.start(coord)).collect()
    }

    /// The key of a chunk below the array.
    pub fn chunk_key(&self, coords: &[usize]) -> String {
        let (encoding, separator) = match self.format {
            Format::V3 { encoding, separator } => (encoding, separator),
            Format::V2 { separator, .. } => ("v2", separator),
        };
        let numbers: Vec<String> = coords.iter().map(usize::to_string).collect();
        let joined = numbers.join(&separator.to_string());
        match (encoding, coords) {
            ("default", []) => "c".to_owned(),
            ("default", _) => format!("c{separator}{joined}"),
            (_, []) => "0".to_owned(),
            (_, _) => joined,
        }
    }

    /// The chunk at these coordinates, encoded; beyond the array's edge there is noise.
    pub fn chunk(&self, model: &Model, coords: &[usize]) -> Vec<u8> {
        let mut noise = noise(1);
        let mut elements = Vec::new();
        for (within, count) in self.rows(model, coords) {
            elements.extend_from_slice(within);
            for _ in within.len() / model.element_bytes..count {
                let mut beyond: Vec<u8> = noise.by_ref().take(model.element_bytes).collect();
                self.data_type.tame(&mut beyond);
                elements.extend(beyond);
            }
        }
        let shape = self.edges_at(coords);
        let TypeCase { units, fill, .. } = self.data_type.clone();
        Block { shape, elements, fill, units }.encode(&self.stored_codecs())
    }

    /// The rows of a chunk along the last dimension: the elements of each that are within the array, and how many it has with those
    /// beyond.
    fn rows<'m>(&self, model: &'m Model, coords: &[usize]) -> impl Iterator<Item = (&'m [u8], usize)> {
        let (start, edges) = (self.start_of(coords), self.edges_at(coords));
        let (count, outer) = edges.split_last().map_or((1, &[][..]), |(count, outer)| (*count, outer));
        let (shape, item) = (self.shape.clone(), model.element_bytes);
        places(outer).map(move |mut place| {
            place.resize(start.len(), 0);
            let at: Vec<usize> = start.iter().zip(&place).map(|(start, place)| start + place).collect();
            let is_within = at.iter().zip(&shape).all(|(at, length)| at < length);
            let left = at.last().zip(shape.last()).map_or(1, |(at, length)| length.saturating_sub(*at));
            let within = if is_within { left.min(count) } else { 0 };
            (&model.elements[flat(&shape, &at) * item * usize::from(is_within)..][..within * item], count)
        })
    }

    /// v2's members as codecs.
    fn stored_codecs(&self) -> Vec<Codec> {
        let Format::V2 { compressor, fortran, big, .. } = &self.format else { return self.codecs.clone() };
        let reversed = (0..self.shape.len()).rev().collect();
        let order = fortran.then_some(Codec::Transpose(reversed));
        order
            .into_iter()
            .chain([Codec::serializer(&self.data_type, *big)])
            .chain(compressor.clone())
            .collect()
    }

    /// Coordinates of all chunks of the grid.
    pub fn grid(&self) -> impl Iterator<Item = Vec<usize>> + use<> {
        let counts: Vec<usize> =
            self.edges.iter().zip(&self.shape).map(|(edges, &length)| edges.count(length)).collect();
        places(&counts)
    }

    /// The part of the array that a chunk holds, as a selection.
    pub fn chunk_box(&self, coords: &[usize]) -> Vec<Dim> {
        let side = |(&coord, edges): (&usize, &Edges)| {
            let start = i64::try_from(edges.start(coord)).unwrap();
            let stop = start + i64::try_from(edges.edge(coord)).unwrap();
            Dim::Slice { start: Some(start), stop: Some(stop), step: None }
        };
        coords.iter().zip(&self.edges).map(side).collect()
    }

    /// Stores the document and every chunk with an element that is not the fill value.
    pub async fn store(&self, store: &SharedStore, path: &str) -> Model {
        let model = self.model();
        let (name, document) = self.document();
        put(store, &format!("{path}/{name}"), document.to_string()).await;
        for coords in self.grid() {
            if self.has_other_than_fill(&model, &coords) {
                let chunk = self.chunk(&model, &coords);
                put(store, &format!("{path}/{}", self.chunk_key(&coords)), chunk).await;
            }
        }
        model
    }

    /// Whether a chunk is stored.
    pub fn has_other_than_fill(&self, model: &Model, coords: &[usize]) -> bool {
        let mut within = self.rows(model, coords).flat_map(|(row, _)| row.chunks_exact(model.element_bytes));
        within.any(|element| element != self.data_type.fill)
    }
}

/// Bytes without a pattern, the same for the same seed (xorshift).
pub fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
}
