//! Writing chunks as another implementation would: transposition, byte order and sharding are written here a second
//! time, naively. Of the server's own encoders only blosc is used, whose decoder has fixtures by others.

use std::io::Write;

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd::chunk::Elements;
use zarrd::codec::{CodecChain, CodecLimits};
use zarrd::metadata::{CodecMetadata, DataType, FillValue};

use super::data_types::{TypeCase, packed, swap};
use super::model::{flat, places};

/// A codec as a document names it.
#[derive(Clone, Debug)]
pub enum Codec {
    Transpose(Vec<usize>),
    /// `delta`, of integers of this v2 type, which wrap around.
    Delta(&'static str),
    Bytes {
        big: bool,
    },
    /// The codec for elements of variable length of this name.
    Variable(&'static str),
    Shards(Box<Shards>),
    Gzip,
    Zlib,
    Zstd,
    Blosc {
        cname: &'static str,
        shuffle: &'static str,
    },
    Crc32c,
}

/// `sharding_indexed`.
#[derive(Clone, Debug)]
pub struct Shards {
    pub inner: Vec<usize>,
    pub codecs: Vec<Codec>,
    pub index_codecs: Vec<Codec>,
    pub at_start: bool,
    /// Whether inner chunks are stored in reverse, with a byte between each two.
    pub scattered: bool,
}

impl Shards {
    /// Shards with the index that the specification recommends, at the end.
    pub fn of(inner: &[usize], codecs: &[Codec]) -> Self {
        let index_codecs = vec![Codec::Bytes { big: false }, Codec::Crc32c];
        let (inner, codecs) = (inner.to_vec(), codecs.to_vec());
        Self { inner, codecs, index_codecs, at_start: false, scattered: false }
    }

    pub fn at_start(mut self) -> Self {
        self.at_start = true;
        self
    }

    pub fn codec(self) -> Codec {
        Codec::Shards(Box::new(self))
    }
}

impl Codec {
    /// The array-to-bytes codec of a type.
    pub fn serializer(data_type: &TypeCase, big: bool) -> Self {
        if data_type.is_variable() { Self::Variable(data_type.v2) } else { Self::Bytes { big } }
    }

    /// As it stands in a v3 document.
    pub fn document(&self, unit_bytes: usize) -> Value {
        match self {
            Self::Transpose(order) => json!({ "name": "transpose", "configuration": { "order": order } }),
            Self::Bytes { big } => {
                let endian = if *big { "big" } else { "little" };
                json!({ "name": "bytes", "configuration": { "endian": endian } })
            }
            Self::Shards(shards) => json!({ "name": "sharding_indexed", "configuration": {
                "chunk_shape": shards.inner,
                "codecs": documents(&shards.codecs, unit_bytes),
                "index_codecs": documents(&shards.index_codecs, 8),
                "index_location": if shards.at_start { "start" } else { "end" },
            } }),
            Self::Delta(v2) => {
                let dtype = format!("<{v2}");
                json!({ "name": "numcodecs.delta", "configuration": { "dtype": dtype, "astype": dtype } })
            }
            Self::Crc32c | Self::Variable(_) => json!({ "name": self.name() }),
            Self::Gzip | Self::Zlib | Self::Zstd | Self::Blosc { .. } => {
                json!({ "name": self.name(), "configuration": self.configuration(unit_bytes) })
            }
        }
    }

    /// As it stands in a v2 document's `compressor`.
    pub fn compressor(&self) -> Value {
        let mut document = match self {
            // v2 takes the element's size from the data type, and has numbers for the shuffles.
            Self::Blosc { cname, shuffle } => {
                let shuffle = ["noshuffle", "shuffle", "bitshuffle"].iter().position(|name| name == shuffle);
                json!({ "cname": cname, "clevel": 5, "shuffle": shuffle.unwrap(), "blocksize": 0 })
            }
            other => other.configuration(1),
        };
        document["id"] = json!(self.name());
        document
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Transpose(_) => "transpose",
            Self::Delta(_) => "delta",
            Self::Variable(name) => name,
            Self::Bytes { .. } => "bytes",
            Self::Shards(_) => "sharding_indexed",
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Blosc { .. } => "blosc",
            Self::Crc32c => "crc32c",
        }
    }

    fn configuration(&self, unit_bytes: usize) -> Value {
        match self {
            Self::Gzip | Self::Zlib => json!({ "level": 6 }),
            Self::Zstd => json!({ "level": 3, "checksum": false }),
            Self::Blosc { cname, shuffle } => json!({
                "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": unit_bytes, "blocksize": 0,
            }),
            _ => json!({}),
        }
    }
}

pub fn documents(codecs: &[Codec], unit_bytes: usize) -> Vec<Value> {
    codecs.iter().map(|codec| codec.document(unit_bytes)).collect()
}

/// A chunk on its way through codecs: elements in C order.
#[derive(Clone, Debug)]
pub struct Block {
    pub shape: Vec<usize>,
    pub elements: Vec<u8>,
    pub fill: Vec<u8>,
    /// Bytes of each unit of an element that byte order is about: half of a complex one.
    pub units: Vec<usize>,
}

impl Block {
    /// The chunk, encoded.
    pub fn encode(mut self, codecs: &[Codec]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for codec in codecs {
            match codec {
                Codec::Transpose(order) => self = self.transposed(order),
                Codec::Delta(_) => self = self.differences(),
                Codec::Variable(_) => bytes = self.interleaved(),
                Codec::Bytes { big } => bytes = self.in_order(*big),
                Codec::Shards(shards) => bytes = self.sharded(shards),
                compressor => bytes = compress(compressor, &bytes, self.units[0]),
            }
        }
        bytes
    }

    fn is_fill(&self) -> bool {
        self.elements.chunks(self.fill.len()).all(|element| element == self.fill)
    }

    fn transposed(self, order: &[usize]) -> Self {
        let shape: Vec<usize> = order.iter().map(|&axis| self.shape[axis]).collect();
        let mut elements = Vec::with_capacity(self.elements.len());
        for place in places(&shape) {
            let mut before = vec![0; place.len()];
            for (&axis, &at) in order.iter().zip(&place) {
                before[axis] = at;
            }
            elements.extend_from_slice(self.element(&before));
        }
        Self { shape, elements, ..self }
    }

    fn element(&self, place: &[usize]) -> &[u8] {
        let item = self.fill.len();
        &self.elements[flat(&self.shape, place) * item..][..item]
    }

    fn in_order(&self, big: bool) -> Vec<u8> {
        let mut bytes = self.elements.clone();
        if big {
            swap(&self.units, &mut bytes);
        }
        bytes
    }

    /// Their number and the elements, each behind its length.
    fn interleaved(&self) -> Vec<u8> {
        let number = u32::try_from(self.elements.len() / self.fill.len()).unwrap();
        [number.to_le_bytes().to_vec(), packed(&self.elements)].concat()
    }

    /// Each integer less the one before it.
    fn differences(self) -> Self {
        let bits = 8 * self.fill.len();
        let number =
            |element: &[u8]| element.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let mut before = 0;
        let elements = self.elements.chunks(bits / 8).flat_map(|element| {
            let this = number(element);
            let difference = this.wrapping_sub(before);
            before = this;
            difference.to_le_bytes().into_iter().take(bits / 8)
        });
        Self { elements: elements.collect(), ..self.clone() }
    }

    fn sharded(&self, shards: &Shards) -> Vec<u8> {
        let grid: Vec<usize> =
            self.shape.iter().zip(&shards.inner).map(|(length, edge)| length / edge).collect();
        let mut inner_chunks: Vec<(usize, Vec<u8>)> = Vec::new();
        for (number, coords) in places(&grid).enumerate() {
            let elements = places(&shards.inner).flat_map(|place| {
                let in_shard: Vec<usize> =
                    (0..place.len()).map(|axis| coords[axis] * shards.inner[axis] + place[axis]).collect();
                self.element(&in_shard).to_vec()
            });
            let inner = Self { shape: shards.inner.clone(), elements: elements.collect(), ..self.clone() };
            if !inner.is_fill() {
                inner_chunks.push((number, inner.encode(&shards.codecs)));
            }
        }
        if shards.scattered {
            inner_chunks.reverse();
        }
        let index = |entries: &[u64]| {
            let mut shape = grid.clone();
            shape.push(2);
            let elements = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
            Self { shape, elements, fill: vec![0xff; 8], units: vec![8] }.encode(&shards.index_codecs)
        };
        let mut entries = vec![u64::MAX; 2 * grid.iter().product::<usize>()];
        let start = if shards.at_start { index(&entries).len() } else { 0 };
        let mut stored = Vec::new();
        for (number, encoded) in inner_chunks {
            entries[2 * number] = u64::try_from(start + stored.len()).unwrap();
            entries[2 * number + 1] = u64::try_from(encoded.len()).unwrap();
            stored.extend_from_slice(&encoded);
            if shards.scattered {
                stored.push(0x5a);
            }
        }
        let index = index(&entries);
        if shards.at_start { [index, stored].concat() } else { [stored, index].concat() }
    }
}

fn compress(codec: &Codec, bytes: &[u8], unit_bytes: usize) -> Vec<u8> {
    match codec {
        Codec::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Zstd => zstd::bulk::compress(bytes, 3).unwrap(),
        Codec::Crc32c => [bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat(),
        Codec::Blosc { .. } => {
            let configuration = codec.configuration(unit_bytes);
            let codecs = [CodecMetadata::new("bytes", json!({})), CodecMetadata::new("blosc", configuration)];
            let shape = [u64::try_from(bytes.len()).unwrap()];
            let (data_type, fill) = (DataType::UInt8, FillValue::from_bytes(&[0]));
            let chain =
                CodecChain::bind(&codecs, &data_type, &shape, &fill, &CodecLimits::default()).unwrap();
            chain.encode(Elements::fixed(Bytes::copy_from_slice(bytes))).unwrap().into()
        }
        Codec::Transpose(_)
        | Codec::Delta(_)
        | Codec::Bytes { .. }
        | Codec::Variable(_)
        | Codec::Shards(_) => panic!("{codec:?} does not compress"),
    }
}
