//! Arrays that the library itself encodes: documents, elements, and chunks. The list is `catalogue`.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use zarrd::chunk::{ChunkGrid, ChunkKeyEncoding, Elements, VarSlice};
use zarrd::codec::{CodecChain, CodecLimits, v2_codec};
use zarrd::metadata::{ArrayMetadata, DataType, MetadataLimits, v2, v3};

use super::hierarchy::noise;
use super::model::{flat, places};

/// An array as a document describes it, and its elements.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub name: String,
    /// The document as it was thought up, and its name.
    pub document: (&'static str, Value),
    pub metadata: ArrayMetadata,
    /// In C order, each in canonical form; of variable length, its bytes.
    pub elements: Vec<Vec<u8>>,
    chain: Arc<CodecChain>,
    /// Encoded once, for all tests.
    chunks: OnceLock<Vec<(String, Vec<u8>)>>,
}

/// From where on along the first dimension there is nothing but the fill value.
const BLANK_FROM: usize = 4;

impl Encoded {
    pub fn new(name: &str, document: (&'static str, Value)) -> Self {
        let metadata = parsed(&document);
        let grid = ChunkGrid::new(&metadata.shape, &metadata.chunk_grid);
        let chain = Arc::new(bound(&metadata, &grid.first_chunk_shape()));
        let shape: Vec<usize> = metadata.shape.iter().map(|&length| length.try_into().unwrap()).collect();
        let mut noise = noise(name.bytes().map(u64::from).sum());
        // The last chunk along the first dimension holds nothing but the fill value, and so does some of the rest.
        let elements = places(&shape)
            .map(|place| {
                let blank = place.first().is_some_and(|&at| at >= BLANK_FROM) || place.get(1) == Some(&1);
                let element = element(&metadata.data_type, &mut noise);
                if blank { metadata.fill_value.as_bytes().to_vec() } else { element }
            })
            .collect();
        Self { name: name.to_owned(), document, metadata, elements, chain, chunks: OnceLock::new() }
    }

    /// The elements as `/v1/data` returns them: one after another, each of variable length after its length.
    pub fn packed(&self) -> Vec<u8> {
        self.pack(&self.elements)
    }

    /// Elements of this array's type, as above.
    pub fn pack(&self, elements: &[Vec<u8>]) -> Vec<u8> {
        if !self.metadata.data_type.is_variable() {
            return elements.concat();
        }
        let packed =
            |element: &Vec<u8>| [&u32::try_from(element.len()).unwrap().to_le_bytes(), &**element].concat();
        elements.iter().flat_map(packed).collect()
    }

    /// The chunks with their keys, without chunks of the fill value alone, which are not stored.
    pub fn chunks(&self) -> &[(String, Vec<u8>)] {
        self.chunks.get_or_init(|| self.encode())
    }

    fn encode(&self) -> Vec<(String, Vec<u8>)> {
        let mut chunks = Vec::new();
        for (coords, elements) in self.decoded_chunks() {
            if elements.iter().any(|element| element != self.metadata.fill_value.as_bytes()) {
                let key = ChunkKeyEncoding::new(self.metadata.chunk_key_encoding.clone()).encode(&coords);
                let encoded = self.chain.encode(self.to_elements(&elements));
                chunks.push((key, encoded.unwrap_or_else(|error| panic!("{}: {error}", self.name)).to_vec()));
            }
        }
        chunks
    }

    /// For a codec that loses something: the same array with the elements that are left of its own.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        let shape = self.shape();
        for (coords, elements) in self.decoded_chunks() {
            if elements.iter().all(|element| element == self.metadata.fill_value.as_bytes()) {
                continue;
            }
            let decoded = self.chain.decode(self.chain.encode(self.to_elements(&elements)).unwrap()).unwrap();
            let left: Vec<_> = decoded.items().chunks(self.metadata.data_type.element_bytes()).collect();
            for (place, element) in places(&self.chunk_shape()).zip(left) {
                if let Some(at) = self.within(&coords, &place) {
                    self.elements[flat(&shape, &at)] = element.to_vec();
                }
            }
        }
        self
    }

    fn shape(&self) -> Vec<usize> {
        self.metadata.shape.iter().map(|&length| length.try_into().unwrap()).collect()
    }

    fn grid(&self) -> ChunkGrid {
        ChunkGrid::new(&self.metadata.shape, &self.metadata.chunk_grid)
    }

    fn chunk_shape(&self) -> Vec<usize> {
        self.grid().first_chunk_shape().into_iter().map(|edge| edge.try_into().unwrap()).collect()
    }

    /// The place in the array of one in a chunk.
    fn within(&self, coords: &[u64], place: &[usize]) -> Option<Vec<usize>> {
        let at = coords.iter().zip(self.chunk_shape()).zip(place);
        let at: Vec<usize> =
            at.map(|((&coord, edge), at)| usize::try_from(coord).unwrap() * edge + at).collect();
        at.iter().zip(self.shape()).all(|(&at, length)| at < length).then_some(at)
    }

    /// The chunks' elements; beyond the array there is the fill value.
    pub fn decoded_chunks(&self) -> Vec<(Vec<u64>, Vec<Vec<u8>>)> {
        let counts: Vec<usize> =
            self.grid().grid_shape().into_iter().map(|count| count.try_into().unwrap()).collect();
        let chunk = |coords: Vec<usize>| {
            let coords: Vec<u64> = coords.into_iter().map(|coord| coord.try_into().unwrap()).collect();
            let elements = places(&self.chunk_shape()).map(|place| match self.within(&coords, &place) {
                Some(at) => self.elements[flat(&self.shape(), &at)].clone(),
                None => self.metadata.fill_value.as_bytes().to_vec(),
            });
            let elements = elements.collect();
            (coords, elements)
        };
        places(&counts).map(chunk).collect()
    }

    fn to_elements(&self, elements: &[Vec<u8>]) -> Elements {
        if !self.metadata.data_type.is_variable() {
            return Elements::fixed(elements.concat().into());
        }
        let mut offset = 0;
        let spans: Vec<u8> = elements
            .iter()
            .flat_map(|element| {
                let span = VarSlice { offset, length: element.len().try_into().unwrap() };
                offset += span.length;
                span.to_item()
            })
            .collect();
        Elements::variable(spans.into(), elements.concat().into())
    }
}

/// The content of a document of this name.
pub fn parsed((name, document): &(&'static str, Value)) -> ArrayMetadata {
    let (text, limits) = (document.to_string(), MetadataLimits::default());
    let metadata = match *name {
        ".zarray" => v2::parse_array(text.as_bytes(), None, v2_codec, &limits),
        _ => v3::parse(text.as_bytes(), &limits).map(|node| match node {
            v3::V3Node::Array(array) => array,
            other @ v3::V3Node::Group(_) => panic!("{other:?}"),
        }),
    };
    metadata.unwrap_or_else(|error| panic!("{error}: {document}"))
}

/// The chain of an array's chunks of this shape.
pub fn bound(metadata: &ArrayMetadata, chunk_shape: &[u64]) -> CodecChain {
    let ArrayMetadata { codecs, data_type, fill_value, .. } = metadata;
    let chain = CodecChain::bind(codecs, data_type, chunk_shape, fill_value, &CodecLimits::default());
    chain.unwrap_or_else(|error| panic!("{error}: {codecs:?}"))
}

/// A random element, in canonical form.
fn element(data_type: &DataType, noise: &mut impl Iterator<Item = u8>) -> Vec<u8> {
    let mut byte = || noise.next().unwrap();
    match data_type {
        DataType::Bool => vec![byte() & 1],
        DataType::UInt2 => vec![byte() & 3],
        DataType::UInt4 => vec![byte() & 15],
        DataType::Int2 => vec![(byte().cast_signed() >> 6).cast_unsigned()],
        DataType::Int4 => vec![(byte().cast_signed() >> 4).cast_unsigned()],
        DataType::SmallFloat(float) => vec![byte() >> (8 - float.bits())],
        DataType::ComplexSmallFloat(float) => {
            vec![byte() >> (8 - float.bits()), byte() >> (8 - float.bits())]
        }
        DataType::FixedLengthUtf32 { code_points } => {
            let letters = u32::from(byte()) % (code_points + 1);
            let text = (0..letters).flat_map(|_| u32::from(letter(byte())).to_le_bytes());
            padded(text.collect(), data_type)
        }
        DataType::NullTerminatedBytes { bytes } => {
            let letters = u32::from(byte()) % (bytes + 1);
            padded((0..letters).map(|_| byte() | 1).collect(), data_type)
        }
        DataType::String => {
            let letters = byte() % 6;
            (0..letters).map(|_| letter(byte())).collect::<String>().into_bytes()
        }
        DataType::VariableBytes => {
            let length = byte() % 6;
            (0..length).map(|_| byte()).collect()
        }
        DataType::VariableArray(item) => {
            let length = byte() % 4;
            (0..length).flat_map(|_| element(item, noise)).collect()
        }
        DataType::Struct(structure) => {
            structure.fields().iter().flat_map(|field| element(&field.data_type, noise)).collect()
        }
        other => noise.take(other.element_bytes()).collect(),
    }
}

fn padded(mut text: Vec<u8>, data_type: &DataType) -> Vec<u8> {
    text.resize(data_type.element_bytes(), 0);
    text
}

fn letter(byte: u8) -> char {
    ['a', 'Z', '0', ' ', 'é', 'µ', '漢', '\u{1f600}'][usize::from(byte % 8)]
}
