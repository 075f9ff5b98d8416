//! Every value that numcodecs wrote decodes to the array it was given. The fixtures stand beside a checkout, not in it.
//!
//! They are read as Zarr v2 arrays, so that the tests cover what users get.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd::chunk::Elements;
use zarrd::codec::{CodecChain, CodecLimits, v2_codec};
use zarrd::error::{Classify, ErrorClass};
use zarrd::metadata::{DataType, MetadataLimits, canonical_json, v2};

use crate::support::not_supported::NotSupported;
use crate::support::pickle::{Object, objects};

/// Codecs that Zarr v2 has as the compressor; all others are filters.
const COMPRESSORS: [&str; 9] = ["blosc", "bz2", "gzip", "lz4", "lzma", "pcodec", "zfpy", "zlib", "zstd"];
/// The codecs that have one encoding of everything, so that ours is that of numcodecs.
const ONE_ENCODING: [&str; 15] = [
    "adler32",
    "astype",
    "base64",
    "categorize",
    "crc32",
    "crc32c",
    "delta",
    "fixedscaleoffset",
    "packbits",
    "quantize",
    "shuffle",
    "vlen-array",
    "vlen-bytes",
    "vlen-utf8",
    "zfpy",
];

/// An array as an `.npy` file has it.
struct Npy {
    descr: String,
    is_fortran: bool,
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl Npy {
    fn read(path: &Path) -> Self {
        let npy = std::fs::read(path).unwrap();
        let (start, length) = match npy[6] {
            1 => (10, usize::from(u16::from_le_bytes([npy[8], npy[9]]))),
            _ => (12, u32::from_le_bytes([npy[8], npy[9], npy[10], npy[11]]).try_into().unwrap()),
        };
        let header = String::from_utf8(npy[start..start + length].to_vec()).unwrap();
        let between = |from: &str, to: &str| header.split(from).nth(1).unwrap().split(to).next().unwrap();
        let shape = between("'shape': (", ")").split(',').map(str::trim).filter(|edge| !edge.is_empty());
        Self {
            descr: between("'descr': '", "'").to_owned(),
            is_fortran: between("'fortran_order': ", ",") == "True",
            shape: shape.map(|edge| edge.parse().unwrap()).collect(),
            data: npy[start + length..].to_vec(),
        }
    }

    /// The elements in C order.
    fn elements(&self, data_type: &DataType) -> Vec<Vec<u8>> {
        if data_type.is_variable() {
            // A pickle has them in C order, whatever their order in memory.
            return objects(&self.data).iter().map(|object| element(object, data_type)).collect();
        }
        let elements: Vec<Vec<u8>> =
            self.data.chunks(data_type.element_bytes()).map(<[u8]>::to_vec).collect();
        if !self.is_fortran {
            return elements;
        }
        // The element at each place, counted with the last dimension fastest, stands where the first is.
        let place = |index: usize| {
            let (mut index, mut place, mut step) = (index, 0, self.shape.iter().product::<usize>());
            for edge in self.shape.iter().rev() {
                step /= edge;
                place += index % edge * step;
                index /= edge;
            }
            place
        };
        (0..elements.len()).map(|index| elements[place(index)].clone()).collect()
    }
}

/// An object as an element of a type of variable length.
fn element(object: &Object, data_type: &DataType) -> Vec<u8> {
    match (data_type, object) {
        (DataType::String, Object::Text(text)) => text.as_bytes().to_vec(),
        (DataType::VariableBytes, Object::Bytes(bytes)) => bytes.clone(),
        (DataType::Json, json) => canonical_json(&json.to_json()).into_bytes(),
        // The codec casts its input, and the fixtures are small integers.
        (DataType::VariableArray(item), Object::Numbers(dtype, numbers)) if dtype == "i8" => {
            numbers.chunks(8).flat_map(|number| number[..item.element_bytes()].to_vec()).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// The tolerance of decoded elements.
fn tolerance(codec: &str, config: &Value) -> f64 {
    match codec {
        "astype" | "delta" => 1e-3,
        "fixedscaleoffset" => 0.5001 / config["scale"].as_f64().unwrap() + 1e-9,
        "quantize" => {
            // Half a unit of what it is stored as, for numbers up to 1100.
            let stored = if config["astype"] == "<f2" { 0.5 } else { 1e-4 };
            0.5 * 10_f64.powf(-config["digits"].as_f64().unwrap()) + stored
        }
        _ => 0.0,
    }
}

fn floats(data_type: &DataType, elements: &[Vec<u8>]) -> Option<Vec<f64>> {
    let float = |element: &Vec<u8>| match data_type {
        DataType::Float32 => Some(f32::from_le_bytes(element.as_slice().try_into().unwrap()).into()),
        DataType::Float64 => Some(f64::from_le_bytes(element.as_slice().try_into().unwrap())),
        _ => None,
    };
    elements.iter().map(float).collect()
}

fn is_near(data_type: &DataType, one: &[Vec<u8>], other: &[Vec<u8>], tolerance: f64) -> bool {
    match (floats(data_type, one), floats(data_type, other)) {
        (Some(one), Some(other)) if tolerance > 0.0 => {
            one.len() == other.len()
                && one.iter().zip(&other).all(|(one, other)| (one - other).abs() <= tolerance)
        }
        _ => one == other,
    }
}

fn split(elements: &Elements, data_type: &DataType) -> Vec<Vec<u8>> {
    if data_type.is_variable() {
        elements.variable_elements().map(<[u8]>::to_vec).collect()
    } else {
        elements.items().chunks(data_type.element_bytes()).map(<[u8]>::to_vec).collect()
    }
}

/// The outcome for one value.
enum Outcome {
    Right,
    /// Refused as not supported, saying so.
    Refused(String),
    Wrong(String),
}

fn check(codec: &str, config: &Value, npy: &Npy, encoded: &Bytes) -> Outcome {
    let is_compressor = COMPRESSORS.contains(&codec);
    let document = json!({
        "zarr_format": 2,
        "shape": npy.shape,
        "chunks": npy.shape,
        "dtype": npy.descr,
        "fill_value": null,
        "order": if npy.is_fortran { "F" } else { "C" },
        "filters": if is_compressor { Value::Null } else { json!([config]) },
        "compressor": if is_compressor { config.clone() } else { Value::Null },
    });
    let refused = |class: ErrorClass, message: String| match class {
        ErrorClass::Unsupported => Outcome::Refused(message),
        _ => Outcome::Wrong(message),
    };
    let array =
        match v2::parse_array(document.to_string().as_bytes(), None, v2_codec, &MetadataLimits::default()) {
            Ok(array) => array,
            Err(error) => return refused(error.class(), error.to_string()),
        };
    let (data_type, limits) = (&array.data_type, CodecLimits::default());
    let chain = match CodecChain::bind(&array.codecs, data_type, &array.shape, &array.fill_value, &limits) {
        Ok(chain) => chain,
        Err(error) => return refused(error.class(), error.to_string()),
    };
    if encoded.len() as u64 > chain.encoded_limit() {
        return Outcome::Wrong(format!("is {} bytes, over the limit", encoded.len()));
    }
    let decoded = match chain.decode(encoded.clone()) {
        Ok(decoded) => decoded,
        Err(error) => return Outcome::Wrong(error.to_string()),
    };
    let expected = npy.elements(data_type);
    let tolerance = tolerance(codec, config);
    if !is_near(data_type, &split(&decoded, data_type), &expected, tolerance) {
        return Outcome::Wrong("decodes to something else".to_owned());
    }
    let given = if data_type.is_variable() { decoded } else { Elements::fixed(expected.concat().into()) };
    let ours = match chain.encode(given) {
        Ok(ours) => ours,
        Err(error) => return Outcome::Wrong(error.to_string()),
    };
    // What numcodecs gave to zfp then was flat.
    let is_one = ONE_ENCODING.contains(&codec) && (codec != "zfpy" || npy.shape.len() == 1);
    if is_one && ours != *encoded {
        return Outcome::Wrong("is encoded to something else".to_owned());
    }
    match chain.decode(ours) {
        Ok(again) if is_near(data_type, &split(&again, data_type), &expected, tolerance) => Outcome::Right,
        Ok(_) => Outcome::Wrong("does not come back from our encoding".to_owned()),
        Err(error) => Outcome::Wrong(format!("our encoding: {error}")),
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The folders of codecs below a folder.
fn codec_folders(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in sorted(folder) {
        if path.join("config.json").exists() {
            found.push(path);
        } else if path.is_dir() {
            codec_folders(&path, found);
        }
    }
}

#[test]
fn every_numcodecs_fixture_decodes_or_is_listed_as_unsupported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/public/numcodecs/fixture");
    if !root.is_dir() {
        println!("the fixtures of numcodecs are not here: nothing to compare with");
        return;
    }
    let listed = NotSupported::read("numcodecs");
    let mut folders = Vec::new();
    codec_folders(&root, &mut folders);
    let (mut right, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for folder in folders {
        let config: Value =
            serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
        for encoded in sorted(&folder) {
            let path = encoded.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let Some(number) = path.split("encoded.").nth(1).map(|name| name.trim_end_matches(".dat")) else {
                continue;
            };
            let npy = Npy::read(&folder.parent().unwrap().join(format!("array.{number}.npy")));
            let codec = path.split('/').next().unwrap();
            match check(codec, &config, &npy, &std::fs::read(&encoded).unwrap().into()) {
                Outcome::Right if listed.holds(&path) => wrong.push(format!("{path}: read, though listed")),
                Outcome::Right => right += 1,
                Outcome::Refused(why) if listed.holds(&path) && why.contains(codec) => refused.push(path),
                Outcome::Refused(why) | Outcome::Wrong(why) => wrong.push(format!("{path}: {why}")),
            }
        }
    }
    println!("{right} values right, {} refused", refused.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(listed.without(&refused), [""; 0]);
    assert!(right >= 1025, "{right}");
}
