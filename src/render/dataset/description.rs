//! [`ExportedDataset`]: variables over their selections, the dimensions that they share, and typed attributes.
//!
//! Two dimensions are one if they have the same name and length and the same indices of them are selected. Where arrays of
//! one group disagree on the length of a dimension, as the levels of a pyramid do, the later one gets its length as a suffix.

use std::collections::HashMap;
use std::sync::Arc;

use super::attribute::{self, AttributeValue, ExportAttribute};
use super::element_encoding::ElementEncoding;
use super::external_type::ExternalType;
use crate::chunk::{AxisRange, Subset};
use crate::metadata::{ArrayMetadata, Attributes};

/// A variable that is to be described.
#[derive(Clone, Debug)]
pub struct VariableSource {
    /// Its name.
    pub name: String,
    /// The array.
    pub metadata: Arc<ArrayMetadata>,
    /// The names of its dimensions, as many as there are.
    pub dimension_names: Vec<Option<String>>,
    /// The selected elements.
    pub subset: Subset,
    /// Whether it has the labels of the dimension of its name.
    pub is_coordinate: bool,
    /// How its elements are written.
    pub encoding: VariableEncoding,
}

/// How the elements of a variable are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableEncoding {
    /// As numbers.
    Numbers(ElementEncoding),
    /// As texts, of which the longest has this many bytes.
    Texts {
        /// Bytes of the longest text.
        longest_bytes: u64,
    },
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedDimension {
    /// Its name, unique in the dataset.
    pub name: String,
    /// The number of selected indices.
    pub length: u64,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedVariable {
    /// Its name.
    pub name: String,
    /// The places of its dimensions among those of the dataset.
    pub dimensions: Vec<usize>,
    /// The type of its values.
    pub external: ExternalType,
    /// How its elements are written.
    pub encoding: VariableEncoding,
    /// Its attributes, `_FillValue` first.
    pub attributes: Vec<ExportAttribute>,
    /// The number of its elements.
    pub elements: u64,
}

/// A dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportedDataset {
    /// The dimensions of all variables.
    pub dimensions: Vec<ExportedDimension>,
    /// The variables, in the order that they were given in.
    pub variables: Vec<ExportedVariable>,
    /// The attributes of the group.
    pub attributes: Vec<ExportAttribute>,
}

/// What makes two dimensions the same.
type DimensionKey = (String, u64, AxisRange);

/// The dimensions that are known so far.
#[derive(Default)]
struct KnownDimensions {
    places: HashMap<DimensionKey, usize>,
    list: Vec<ExportedDimension>,
}

impl KnownDimensions {
    fn place(&mut self, name: String, length: u64, range: AxisRange) -> usize {
        let key = (name, length, range);
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        let place = self.list.len();
        let name = self.unused_name(&key.0, range.count);
        self.list.push(ExportedDimension { name, length: range.count });
        self.places.insert(key, place);
        place
    }

    /// A name that no dimension has.
    fn unused_name(&self, name: &str, length: u64) -> String {
        let is_used = |name: &str| self.list.iter().any(|known| known.name == name);
        let mut unused = name.to_owned();
        if is_used(&unused) {
            unused = format!("{name}_{length}");
        }
        let mut number = 2;
        while is_used(&unused) {
            unused = format!("{name}_{length}_{number}");
            number += 1;
        }
        unused
    }
}

impl ExportedDataset {
    /// Describes variables, with the attributes of their group.
    #[must_use]
    pub fn new(sources: &[VariableSource], attributes: &Attributes) -> Self {
        let mut known = KnownDimensions::default();
        let mut variables: Vec<ExportedVariable> =
            sources.iter().map(|source| variable(source, &mut known)).collect();
        for (source, variable) in sources.iter().zip(&mut variables) {
            if !source.is_coordinate {
                name_scalar_coordinates(source, sources, &mut variable.attributes);
            }
        }
        Self { dimensions: known.list, variables, attributes: attribute::of_group(attributes) }
    }

    /// The length of each dimension of a variable.
    #[must_use]
    pub fn shape(&self, variable: &ExportedVariable) -> Vec<u64> {
        let length = |place: &usize| self.dimensions.get(*place).map_or(0, |dimension| dimension.length);
        variable.dimensions.iter().map(length).collect()
    }
}

fn variable(source: &VariableSource, known: &mut KnownDimensions) -> ExportedVariable {
    let metadata = &source.metadata;
    let names = &source.dimension_names;
    let axes = source.subset.axes();
    let dimensions = axes.iter().enumerate().filter(|(_, range)| range.keep).map(|(place, range)| {
        let name = names.get(place).cloned().flatten();
        let name = name.unwrap_or_else(|| format!("dim_{place}"));
        known.place(name, metadata.shape.get(place).copied().unwrap_or_default(), *range)
    });
    let dimensions = dimensions.collect();
    let (external, encoding) = match &source.encoding {
        VariableEncoding::Numbers(encoding) => (encoding.external(), Some(encoding)),
        VariableEncoding::Texts { .. } => (ExternalType::Char, None),
    };
    ExportedVariable {
        name: source.name.clone(),
        dimensions,
        external,
        encoding: source.encoding.clone(),
        attributes: attribute::of_variable(metadata, encoding, source.is_coordinate),
        elements: u64::try_from(source.subset.elements()).unwrap_or(u64::MAX),
    }
}

/// Adds the coordinates of dimensions that an index drops to the attribute `coordinates` (CF 1.12, section 5.7).
fn name_scalar_coordinates(
    source: &VariableSource,
    sources: &[VariableSource],
    attributes: &mut Vec<ExportAttribute>,
) {
    let dropped = source.dimension_names.iter().zip(source.subset.axes()).filter(|(_, range)| !range.keep);
    let is_scalar = |name: &&String| sources.iter().any(|other| other.is_coordinate && other.name == **name);
    let scalars: Vec<String> =
        dropped.filter_map(|(name, _)| name.as_ref()).filter(is_scalar).cloned().collect();
    if scalars.is_empty() {
        return;
    }
    match attributes.iter_mut().find(|attribute| attribute.name == "coordinates") {
        None => attributes.push(ExportAttribute::text("coordinates", scalars.join(" "))),
        Some(ExportAttribute { value: AttributeValue::Text(text), .. }) => {
            for scalar in scalars {
                if !text.split_whitespace().any(|word| word == scalar) {
                    text.push(' ');
                    text.push_str(&scalar);
                }
            }
        }
        Some(_) => {}
    }
}
