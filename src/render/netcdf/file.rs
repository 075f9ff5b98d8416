//! [`NetcdfFile`]: the header of a file, and the place of the values of each variable.

use std::ops::Range;

use super::header::{Header, HeaderDimension, HeaderVariable};
use super::name::netcdf_name;
use crate::render::dataset::{
    DatasetError, ExportedDataset, ExportedVariable, ExternalType, VariableEncoding,
};

/// Most bytes of a variable in CDF-2, whose values begin at a multiple of four.
const MAX_CDF2_VARIABLE_BYTES: u64 = u32::MAX as u64 - 3;
/// Longest dimension in CDF-2.
const MAX_CDF2_LENGTH: u64 = i32::MAX as u64;
/// The most variables that an error names.
const MAX_NAMED: usize = 8;

/// Which of the formats a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetcdfVariant {
    /// CDF-2 if it has all types and lengths, else CDF-5.
    Smallest,
    /// CDF-2, whose types are those of netCDF-3.
    Classic,
}

/// Where the values of a variable are in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariablePlace {
    /// The bytes of the values.
    pub values: Range<u64>,
    /// The bytes after them, to a multiple of four.
    pub padding: Vec<u8>,
    /// Of texts, the bytes of the cell of each.
    pub cell_bytes: u64,
}

/// A file without the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetcdfFile {
    /// The header, which is followed by the values of the first variable.
    pub header: Vec<u8>,
    /// The places of the variables, in the order of the dataset.
    pub places: Vec<VariablePlace>,
    /// Bytes of the file.
    pub bytes: u64,
}

impl NetcdfFile {
    /// Lays a dataset out.
    ///
    /// # Errors
    /// [`DatasetError::NotClassic`], [`DatasetError::EmptyDimension`].
    pub fn new(dataset: &ExportedDataset, variant: NetcdfVariant) -> Result<Self, DatasetError> {
        let mut dimensions = dimensions(dataset)?;
        let mut sized = Vec::with_capacity(dataset.variables.len());
        for variable in &dataset.variables {
            sized.push(SizedVariable::new(variable, dataset, &mut dimensions));
        }
        let is_wide = !sized.iter().all(SizedVariable::is_classic)
            || dimensions.iter().any(|dimension| dimension.length > MAX_CDF2_LENGTH);
        if is_wide && variant == NetcdfVariant::Classic {
            return Err(not_classic(&sized, &dimensions));
        }
        let variables: Vec<HeaderVariable<'_>> = sized
            .iter()
            .map(|SizedVariable { variable, dimensions, padded_bytes, record_bytes, .. }| HeaderVariable {
                name: &variable.name,
                dimensions: dimensions.clone(),
                attributes: &variable.attributes,
                external: variable.external,
                padded_bytes: *padded_bytes,
                record_bytes: *record_bytes,
            })
            .collect();
        let header = Header {
            is_wide,
            dimensions: &dimensions,
            attributes: &dataset.attributes,
            variables: &variables,
        };
        let written = header.write();
        let place = |(begin, sized): (u64, &SizedVariable<'_>)| {
            let end = begin.saturating_add(sized.bytes);
            let padding = usize::try_from(sized.padded_bytes - sized.bytes).unwrap_or(0);
            VariablePlace {
                values: begin..end,
                padding: padding_of(sized.variable.external, padding),
                cell_bytes: sized.cell_bytes,
            }
        };
        let places: Vec<VariablePlace> = written.begins.into_iter().zip(&sized).map(place).collect();
        let header_bytes = written.bytes.len() as u64;
        let bytes = sized.iter().map(|sized| sized.padded_bytes).fold(header_bytes, u64::saturating_add);
        Ok(Self { header: written.bytes, places, bytes })
    }
}

/// A variable with the bytes that it takes.
struct SizedVariable<'a> {
    variable: &'a ExportedVariable,
    /// The places of its dimensions, with that of the characters of a text.
    dimensions: Vec<usize>,
    bytes: u64,
    padded_bytes: u64,
    record_bytes: Option<u64>,
    cell_bytes: u64,
}

impl<'a> SizedVariable<'a> {
    fn new(
        variable: &'a ExportedVariable,
        dataset: &ExportedDataset,
        dimensions: &mut Vec<HeaderDimension>,
    ) -> Self {
        let mut places = variable.dimensions.clone();
        let mut cell_bytes = variable.external.bytes() as u64;
        if let VariableEncoding::Texts { longest_bytes } = variable.encoding {
            // A length of 0 would be the record dimension.
            cell_bytes = longest_bytes.max(1);
            places.push(character_dimension(cell_bytes, dimensions));
        }
        let shape = dataset.shape(variable);
        let bytes = shape.iter().fold(cell_bytes, |product, &one| product.saturating_mul(one));
        let padded = |bytes: u64| bytes.checked_next_multiple_of(4).unwrap_or(u64::MAX);
        // A dimension that is empty is the first, and that of the records.
        let record_bytes = (shape.first() == Some(&0)).then(|| {
            padded(shape.iter().skip(1).fold(cell_bytes, |product, &one| product.saturating_mul(one)))
        });
        Self { variable, dimensions: places, bytes, padded_bytes: padded(bytes), record_bytes, cell_bytes }
    }

    fn is_classic(&self) -> bool {
        self.variable.external.is_classic() && self.bytes <= MAX_CDF2_VARIABLE_BYTES
    }
}

/// The dimensions of a file; an empty one must be the first of every variable that has it.
fn dimensions(dataset: &ExportedDataset) -> Result<Vec<HeaderDimension>, DatasetError> {
    let empty: Vec<usize> =
        (0..).zip(&dataset.dimensions).filter(|(_, one)| one.length == 0).map(|(place, _)| place).collect();
    let is_first = |variable: &ExportedVariable| {
        variable.dimensions.iter().skip(1).all(|dimension| !empty.contains(dimension))
    };
    if let Some(place) = empty.last()
        && (empty.len() > 1 || !dataset.variables.iter().all(is_first))
    {
        let name = dataset.dimensions.get(*place).map_or_else(String::new, |one| one.name.clone());
        return Err(DatasetError::EmptyDimension(name));
    }
    let mut named: Vec<HeaderDimension> = Vec::with_capacity(dataset.dimensions.len());
    for dimension in &dataset.dimensions {
        let name = unused_name(&netcdf_name(&dimension.name), &named);
        named.push(HeaderDimension { name, length: dimension.length });
    }
    Ok(named)
}

/// The place of the dimension of the characters of texts, as xarray names it.
fn character_dimension(length: u64, dimensions: &mut Vec<HeaderDimension>) -> usize {
    let name = format!("string{length}");
    let known = dimensions.iter().position(|known| known.name == name && known.length == length);
    known.unwrap_or_else(|| {
        let name = unused_name(&name, dimensions);
        dimensions.push(HeaderDimension { name, length });
        dimensions.len() - 1
    })
}

fn unused_name(name: &str, known: &[HeaderDimension]) -> String {
    let mut unused = name.to_owned();
    while known.iter().any(|known| known.name == unused) {
        unused.push('_');
    }
    unused
}

/// The bytes that fill up the values of a variable: its fill value, by the format that of its type.
fn padding_of(external: ExternalType, bytes: usize) -> Vec<u8> {
    let value: &[u8] = match external {
        ExternalType::Byte => &[0x81],
        ExternalType::UByte => &[0xff],
        ExternalType::Short => &[0x80, 0x01],
        ExternalType::UShort => &[0xff, 0xff],
        _ => &[0],
    };
    value.iter().copied().cycle().take(bytes).collect()
}

fn not_classic(sized: &[SizedVariable<'_>], dimensions: &[HeaderDimension]) -> DatasetError {
    let variables = sized.iter().filter(|sized| !sized.is_classic());
    let mut names: Vec<String> =
        variables.map(|sized| format!("`{}` ({:?})", sized.variable.name, sized.variable.external)).collect();
    let long = dimensions.iter().filter(|dimension| dimension.length > MAX_CDF2_LENGTH);
    names.extend(long.map(|dimension| format!("dimension `{}`", dimension.name)));
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    DatasetError::NotClassic(names.join(", ") + &more)
}
