//! The header of a file ("NetCDF Classic Format Specification", the grammar of `header`).

use super::name::netcdf_name;
use crate::render::dataset::{AttributeValue, ExportAttribute, ExternalType};

const DIMENSION: u32 = 0x0a;
const VARIABLE: u32 = 0x0b;
const ATTRIBUTE: u32 = 0x0c;
/// Everything in a file begins at a multiple of this.
const ALIGNMENT: usize = 4;

/// A dimension of a file.
pub(super) struct HeaderDimension {
    pub(super) name: String,
    pub(super) length: u64,
}

/// A variable of a file.
pub(super) struct HeaderVariable<'a> {
    pub(super) name: &'a str,
    /// Places of its dimensions.
    pub(super) dimensions: Vec<usize>,
    pub(super) attributes: &'a [ExportAttribute],
    pub(super) external: ExternalType,
    /// Bytes of its values, with their padding.
    pub(super) padded_bytes: u64,
    /// Bytes of one record, with their padding, if it has the record dimension. It has no values then, and its place is behind those of
    /// all others.
    pub(super) record_bytes: Option<u64>,
}

/// What is in a header.
pub(super) struct Header<'a> {
    /// Whether numbers have 64 bits (CDF-5), not 32 (CDF-2).
    pub(super) is_wide: bool,
    pub(super) dimensions: &'a [HeaderDimension],
    pub(super) attributes: &'a [ExportAttribute],
    pub(super) variables: &'a [HeaderVariable<'a>],
}

/// A header in bytes, and where each variable begins.
pub(super) struct WrittenHeader {
    pub(super) bytes: Vec<u8>,
    pub(super) begins: Vec<u64>,
}

impl Header<'_> {
    /// Writes the header. The values of the variables follow it, in their order.
    pub(super) fn write(&self) -> WrittenHeader {
        let mut out = HeaderBytes { bytes: b"CDF".to_vec(), is_wide: self.is_wide };
        out.bytes.push(if self.is_wide { 5 } else { 2 });
        // The number of records.
        out.count(0);
        out.list(DIMENSION, self.dimensions.len());
        for dimension in self.dimensions {
            out.name(&dimension.name);
            out.count(dimension.length);
        }
        out.attributes(self.attributes);
        out.list(VARIABLE, self.variables.len());
        let mut places = Vec::with_capacity(self.variables.len());
        for variable in self.variables {
            out.name(&netcdf_name(variable.name));
            out.count(variable.dimensions.len() as u64);
            for &dimension in &variable.dimensions {
                out.count(dimension as u64);
            }
            out.attributes(variable.attributes);
            out.tag(code(variable.external));
            // A size that 32 bits cannot have is written as their largest number.
            let size = variable.record_bytes.unwrap_or(variable.padded_bytes);
            out.count(if self.is_wide { size } else { size.min(u32::MAX.into()) });
            places.push(out.bytes.len());
            out.bytes.extend_from_slice(&[0; 8]);
        }
        let mut bytes = out.bytes;
        let mut begin = bytes.len() as u64;
        let mut end =
            self.variables.iter().fold(begin, |end, variable| end.saturating_add(variable.padded_bytes));
        let mut begins = Vec::with_capacity(places.len());
        for (place, variable) in places.into_iter().zip(self.variables) {
            let own = if variable.record_bytes.is_some() { end } else { begin };
            if let Some(slot) = bytes.get_mut(place..place + 8) {
                slot.copy_from_slice(&own.to_be_bytes());
            }
            begins.push(own);
            begin = begin.saturating_add(variable.padded_bytes);
            // There is no record, but where each variable would begin in one.
            end = end.saturating_add(variable.record_bytes.unwrap_or_default());
        }
        WrittenHeader { bytes, begins }
    }
}

/// The number of a type (`nc_type`).
const fn code(external: ExternalType) -> u32 {
    match external {
        ExternalType::Byte => 1,
        ExternalType::Char => 2,
        ExternalType::Short => 3,
        ExternalType::Int => 4,
        ExternalType::Float => 5,
        ExternalType::Double => 6,
        ExternalType::UByte => 7,
        ExternalType::UShort => 8,
        ExternalType::UInt => 9,
        ExternalType::Int64 => 10,
        ExternalType::UInt64 => 11,
    }
}

/// The bytes of a header while it is written.
struct HeaderBytes {
    bytes: Vec<u8>,
    is_wide: bool,
}

impl HeaderBytes {
    fn tag(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_be_bytes());
    }

    /// A length or an index (`NON_NEG`).
    fn count(&mut self, number: u64) {
        if self.is_wide {
            self.bytes.extend_from_slice(&number.to_be_bytes());
        } else {
            self.tag(u32::try_from(number).unwrap_or(u32::MAX));
        }
    }

    /// The head of a list; an empty one has no tag.
    fn list(&mut self, tag: u32, length: usize) {
        self.tag(if length == 0 { 0 } else { tag });
        self.count(length as u64);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.padded(name.as_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let length = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(length, 0);
    }

    fn attributes(&mut self, attributes: &[ExportAttribute]) {
        let mut named: Vec<(String, &AttributeValue)> = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            let name = netcdf_name(&attribute.name);
            // Names that differ in characters that a file cannot have are one name here, and the first counts.
            if !named.iter().any(|(known, _)| *known == name) {
                named.push((name, &attribute.value));
            }
        }
        self.list(ATTRIBUTE, named.len());
        for (name, value) in named {
            self.name(&name);
            let (external, bytes) = match value {
                AttributeValue::Text(text) => (ExternalType::Char, text.as_bytes()),
                AttributeValue::Texts(texts) => {
                    // The classic format has no list of texts; JSON keeps where each ends.
                    let text = serde_json::to_string(texts).unwrap_or_default();
                    self.values(ExternalType::Char, text.as_bytes());
                    continue;
                }
                AttributeValue::Numbers(external, bytes) => (*external, bytes.as_slice()),
            };
            self.values(external, bytes);
        }
    }

    fn values(&mut self, external: ExternalType, bytes: &[u8]) {
        self.tag(code(external));
        self.count((bytes.len() / external.bytes()) as u64);
        self.padded(bytes);
    }
}
