//! [`DapDataset`]: the variables of a dataset, and which of them are grids.

use crate::render::dataset::{
    AttributeValue, ExportAttribute, ExportedDataset, ExportedVariable, ExternalType,
};

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DapVariable {
    /// Its name, as in Zarr.
    pub name: String,
    /// The type of its values; `Char` for texts.
    pub external: ExternalType,
    /// The name and the length of each dimension.
    pub dimensions: Vec<(String, u64)>,
    /// For a grid, the place of the coordinate of each dimension among the variables.
    pub maps: Option<Vec<usize>>,
    /// Its attributes.
    pub attributes: Vec<ExportAttribute>,
}

/// A dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DapDataset {
    /// Its name.
    pub name: String,
    /// Its variables, in the order of the arrays that they are.
    pub variables: Vec<DapVariable>,
    /// The attributes of the group.
    pub attributes: Vec<ExportAttribute>,
}

impl DapDataset {
    /// The dataset of some variables, whole.
    #[must_use]
    pub fn new(name: &str, described: ExportedDataset) -> Self {
        let dimensions_of = |variable: &ExportedVariable| -> Vec<(String, u64)> {
            let dimension = |place: &usize| described.dimensions.get(*place);
            let pairs = variable.dimensions.iter().filter_map(dimension);
            pairs.map(|dimension| (dimension.name.clone(), dimension.length)).collect()
        };
        let dimensions: Vec<Vec<(String, u64)>> = described.variables.iter().map(dimensions_of).collect();
        let map_of = |place: &usize| {
            let name = &described.dimensions.get(*place)?.name;
            described.variables.iter().position(|variable| {
                variable.name == *name
                    && variable.dimensions == [*place]
                    && variable.external != ExternalType::Char
            })
        };
        let maps_of = |variable: &ExportedVariable| {
            let is_map = matches!(variable.dimensions.as_slice(), [place]
                if described.dimensions.get(*place).is_some_and(|one| one.name == variable.name));
            let maps: Option<Vec<usize>> = variable.dimensions.iter().map(map_of).collect();
            maps.filter(|maps| !maps.is_empty() && !is_map && variable.external != ExternalType::Char)
        };
        let maps: Vec<Option<Vec<usize>>> = described.variables.iter().map(maps_of).collect();
        let variables = described.variables.into_iter().zip(dimensions).zip(maps);
        let variables = variables.map(|((variable, dimensions), maps)| DapVariable {
            name: variable.name,
            external: variable.external,
            dimensions,
            maps,
            attributes: with_sign(variable.external, variable.attributes),
        });
        Self { name: name.to_owned(), variables: variables.collect(), attributes: described.attributes }
    }
}

/// The attributes with `_Unsigned`: netCDF-C reads a `Byte` as an integer with a sign.
fn with_sign(external: ExternalType, mut attributes: Vec<ExportAttribute>) -> Vec<ExportAttribute> {
    if external == ExternalType::UByte && !attributes.iter().any(|known| known.name == "_Unsigned") {
        let value = AttributeValue::Text("true".to_owned());
        attributes.push(ExportAttribute { name: "_Unsigned".to_owned(), value });
    }
    attributes
}
