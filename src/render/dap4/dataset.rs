//! [`Dap4Dataset`]: groups with dimensions and variables, and which variables share dimensions across groups.

use crate::render::dataset::{
    AttributeValue, ExportAttribute, ExportedDataset, ExportedDimension, ExternalType,
};

/// What a group has, before it is known which dimensions are those of a group above.
#[derive(Clone, Debug)]
pub struct Dap4GroupSource {
    /// Its name; that of the dataset for the first group.
    pub name: String,
    /// The place of the group that it is in, which comes before it.
    pub parent: Option<usize>,
    /// Its variables, whole.
    pub described: ExportedDataset,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dap4Group {
    /// Its name.
    pub name: String,
    /// The place of the group that it is in; `None` for the dataset itself.
    pub parent: Option<usize>,
    /// The dimensions that are declared in it.
    pub dimensions: Vec<ExportedDimension>,
    /// The attributes.
    pub attributes: Vec<ExportAttribute>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dap4Variable {
    /// Its name.
    pub name: String,
    /// The place of its group.
    pub group: usize,
    /// The type of its values; `Char` for texts.
    pub external: ExternalType,
    /// For each dimension, the place of the group that declares it and its place there.
    pub dimensions: Vec<(usize, usize)>,
    /// The places of the coordinates of its dimensions among the variables, as far as there are any.
    pub maps: Vec<usize>,
    /// Its attributes.
    pub attributes: Vec<ExportAttribute>,
}

/// A dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dap4Dataset {
    /// The groups, each before those in it; the first one is the dataset.
    pub groups: Vec<Dap4Group>,
    /// The variables, in the order of the groups, which is that of their values in a response.
    pub variables: Vec<Dap4Variable>,
}

impl Dap4Dataset {
    /// The dataset of groups, each after the one that it is in. Groups in the same group follow each other with all that is in them.
    #[must_use]
    pub fn new(sources: Vec<Dap4GroupSource>) -> Self {
        let mut dataset = Self { groups: Vec::with_capacity(sources.len()), variables: Vec::new() };
        for (group, source) in sources.into_iter().enumerate() {
            let Dap4GroupSource { name, parent, described } = source;
            let ExportedDataset { dimensions, variables, attributes } = described;
            let parent = parent.filter(|parent| *parent < group);
            let mut own = Vec::new();
            let places: Vec<(usize, usize)> = dimensions
                .into_iter()
                .map(|dimension| {
                    dataset.declared(parent, &dimension).unwrap_or_else(|| {
                        own.push(dimension.clone());
                        (group, own.len() - 1)
                    })
                })
                .collect();
            dataset.groups.push(Dap4Group { name, parent, dimensions: own, attributes });
            dataset.variables.extend(variables.into_iter().map(|variable| Dap4Variable {
                name: variable.name,
                group,
                external: variable.external,
                dimensions:
                    variable.dimensions.iter().filter_map(|place| places.get(*place).copied()).collect(),
                maps: Vec::new(),
                attributes: for_dap4(variable.external, variable.attributes),
            }));
        }
        let maps: Vec<Vec<usize>> =
            dataset.variables.iter().map(|variable| dataset.maps_of(variable)).collect();
        for (variable, maps) in dataset.variables.iter_mut().zip(maps) {
            variable.maps = maps;
        }
        dataset
    }

    /// The dimension of the same name and length in a group or above it.
    fn declared(&self, mut group: Option<usize>, wanted: &ExportedDimension) -> Option<(usize, usize)> {
        while let Some(place) = group {
            let current = self.groups.get(place)?;
            // One of the same name and another length hides those above.
            if let Some(found) = current.dimensions.iter().position(|known| known.name == wanted.name) {
                return (current.dimensions.get(found) == Some(wanted)).then_some((place, found));
            }
            group = current.parent;
        }
        None
    }

    /// The coordinates of the dimensions of a variable that is none itself.
    fn maps_of(&self, variable: &Dap4Variable) -> Vec<usize> {
        let is_map = |known: &Dap4Variable, dimension: &(usize, usize)| {
            known.dimensions == [*dimension]
                && known.external != ExternalType::Char
                && self.dimension(*dimension).is_some_and(|found| found.name == known.name)
        };
        let maps = variable.dimensions.iter().filter_map(|dimension| {
            let map = self.variables.iter().position(|known| is_map(known, dimension))?;
            (self.variables.get(map) != Some(variable)).then_some(map)
        });
        maps.collect()
    }

    /// A dimension, by the place of its group and its place there.
    #[must_use]
    pub fn dimension(&self, (group, place): (usize, usize)) -> Option<&ExportedDimension> {
        self.groups.get(group)?.dimensions.get(place)
    }

    /// The name of something in a group with those of the groups that it is in, such as `/g/air`.
    #[must_use]
    pub fn full_name(&self, group: usize, name: &str) -> String {
        let (mut full, mut group) = (format!("/{}", escaped(name)), Some(group));
        while let Some(current) = group.and_then(|place| self.groups.get(place)) {
            // The name of the dataset is no part of it.
            if current.parent.is_some() {
                full.insert_str(0, &format!("/{}", escaped(&current.name)));
            }
            group = current.parent;
        }
        full
    }
}

/// The attributes as DAP4 has them: without `_Encoding`, since every text is UTF-8 and xarray fails to decode one that says so; and
/// with `missing_value`, where `_FillValue` is a number of 32 bits. netCDF-C reads that with an error in the last digits, and without
/// another attribute nothing would be missing.
fn for_dap4(external: ExternalType, mut attributes: Vec<ExportAttribute>) -> Vec<ExportAttribute> {
    attributes.retain(|known| known.name != "_Encoding");
    let fill = attributes.iter().find_map(|known| match (known.name.as_str(), &known.value) {
        ("_FillValue", AttributeValue::Numbers(ExternalType::Float, bytes)) => Some(bytes.clone()),
        _ => None,
    });
    let number = fill.and_then(|bytes| <[u8; 4]>::try_from(bytes.as_slice()).ok()).map(f32::from_be_bytes);
    let is_known = attributes.iter().any(|known| known.name == "missing_value");
    if let Some(number) =
        number.filter(|number| number.is_finite() && !is_known && external == ExternalType::Float)
    {
        let value = AttributeValue::Numbers(ExternalType::Double, f64::from(number).to_be_bytes().to_vec());
        attributes.push(ExportAttribute { name: "missing_value".to_owned(), value });
    }
    attributes
}

/// A name in a path: signs with a meaning have a backslash before them.
fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '/' | '.' | '\\' | ';' | '[' | ']' | '=' | '|') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
