//! [`ConstrainedDataset`]: what a constraint selects of a dataset, in the order of the dataset.

use super::constraint::{Constraint, Hyperslab, Projection};
use super::dataset::{DapDataset, DapVariable};
use super::error::DapError;
use crate::chunk::AxisRange;

/// The most names that an error lists.
const MAX_NAMED: usize = 20;

/// What is selected of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstrainedArray {
    /// The place of the variable in the dataset.
    pub variable: usize,
    /// The selected indices of each dimension.
    pub ranges: Vec<AxisRange>,
}

/// What is selected of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstrainedVariable {
    /// An array.
    Array(ConstrainedArray),
    /// A grid: the array, and the map of each of its dimensions.
    Grid(ConstrainedArray, Vec<ConstrainedArray>),
    /// Some members of a grid, at this place of the dataset: its array, and some of its maps.
    Members(usize, Option<ConstrainedArray>, Vec<ConstrainedArray>),
}

/// What a constraint selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstrainedDataset {
    /// The variables, in the order of the dataset.
    pub variables: Vec<ConstrainedVariable>,
}

impl ConstrainedVariable {
    /// The arrays of the variable, in the order of their values in a response.
    pub fn arrays(&self) -> impl Iterator<Item = &ConstrainedArray> {
        let (array, maps): (Option<&ConstrainedArray>, &[ConstrainedArray]) = match self {
            Self::Array(array) => (Some(array), &[]),
            Self::Grid(array, maps) => (Some(array), maps),
            Self::Members(_, array, maps) => (array.as_ref(), maps),
        };
        array.into_iter().chain(maps)
    }
}

impl ConstrainedDataset {
    /// Applies a constraint to a dataset.
    ///
    /// # Errors
    /// [`DapError`] with what does not fit.
    pub fn new(dataset: &DapDataset, constraint: &Constraint) -> Result<Self, DapError> {
        let mut selected: Vec<Option<ConstrainedVariable>> = vec![None; dataset.variables.len()];
        if constraint.projections.is_empty() {
            for (place, slot) in selected.iter_mut().enumerate() {
                *slot = dataset
                    .variables
                    .get(place)
                    .map(|variable| whole(dataset, place, variable))
                    .transpose()?;
            }
        }
        for projection in &constraint.projections {
            let found = dataset.variables.iter().position(|variable| variable.name == projection.name);
            // A coordinate that a client names as the member of a grid of another name is not there.
            let Some(place) = found else { return Err(unknown(dataset, &projection.name)) };
            let Some(variable) = dataset.variables.get(place) else { continue };
            let new = project(dataset, place, variable, projection)?;
            if let Some(slot) = selected.get_mut(place) {
                *slot = Some(match slot.take() {
                    None => new,
                    Some(known) => merged(&variable.name, known, new)?,
                });
            }
        }
        Ok(Self { variables: selected.into_iter().flatten().collect() })
    }

    /// The arrays in the order of their values in a response.
    pub fn arrays(&self) -> impl Iterator<Item = &ConstrainedArray> {
        self.variables.iter().flat_map(ConstrainedVariable::arrays)
    }
}

fn whole(
    dataset: &DapDataset,
    place: usize,
    variable: &DapVariable,
) -> Result<ConstrainedVariable, DapError> {
    let projection = Projection { name: variable.name.clone(), member: None, slabs: Vec::new() };
    project(dataset, place, variable, &projection)
}

/// What one projection selects of a variable.
fn project(
    dataset: &DapDataset,
    place: usize,
    variable: &DapVariable,
    projection: &Projection,
) -> Result<ConstrainedVariable, DapError> {
    let maps = variable.maps.as_deref();
    match (&projection.member, maps) {
        (None, None) => Ok(ConstrainedVariable::Array(constrained(place, variable, &projection.slabs)?)),
        (None, Some(maps)) => {
            let array = constrained(place, variable, &projection.slabs)?;
            let maps = maps.iter().zip(&array.ranges);
            let maps =
                maps.map(|(&variable, &range)| ConstrainedArray { variable, ranges: vec![range] }).collect();
            Ok(ConstrainedVariable::Grid(array, maps))
        }
        (Some(member), Some(_)) if *member == variable.name => {
            let array = constrained(place, variable, &projection.slabs)?;
            Ok(ConstrainedVariable::Members(place, Some(array), Vec::new()))
        }
        (Some(member), Some(maps)) => {
            let named = |map: &usize| dataset.variables.get(*map).filter(|map| map.name == *member);
            let found = maps.iter().find_map(|map| Some((*map, named(map)?)));
            let Some((map, variable)) = found else {
                let known: Vec<&str> = maps
                    .iter()
                    .filter_map(|map| dataset.variables.get(*map))
                    .map(|map| map.name.as_str())
                    .chain([variable.name.as_str()])
                    .collect();
                let name = format!("{}.{member}", variable.name).chars().take(80).collect();
                return Err(DapError::UnknownVariable { name, known: known.join(", ") });
            };
            let map = constrained(map, variable, &projection.slabs)?;
            Ok(ConstrainedVariable::Members(place, None, vec![map]))
        }
        (Some(member), None) if *member == variable.name => {
            Ok(ConstrainedVariable::Array(constrained(place, variable, &projection.slabs)?))
        }
        (Some(member), None) => Err(unknown(dataset, &format!("{}.{member}", variable.name))),
    }
}

/// The union of two selections of one variable.
fn merged(
    name: &str,
    known: ConstrainedVariable,
    new: ConstrainedVariable,
) -> Result<ConstrainedVariable, DapError> {
    if known == new {
        return Ok(known);
    }
    let twice = || DapError::Twice { name: name.to_owned() };
    let (place, array, mut maps, others) = match (known, new) {
        (ConstrainedVariable::Members(place, one, maps), ConstrainedVariable::Members(_, other, more)) => {
            if one.is_some() && other.is_some() && one != other {
                return Err(twice());
            }
            (place, one.or(other), maps, more)
        }
        _ => return Err(twice()),
    };
    for map in others {
        match maps.iter().find(|known| known.variable == map.variable) {
            None => maps.push(map),
            Some(known) if *known == map => {}
            Some(_) => return Err(twice()),
        }
    }
    Ok(ConstrainedVariable::Members(place, array, maps))
}

fn constrained(
    place: usize,
    variable: &DapVariable,
    slabs: &[Hyperslab],
) -> Result<ConstrainedArray, DapError> {
    if slabs.is_empty() {
        let ranges = variable.dimensions.iter().map(|(_, length)| AxisRange::full(*length)).collect();
        return Ok(ConstrainedArray { variable: place, ranges });
    }
    if slabs.len() != variable.dimensions.len() {
        return Err(DapError::Rank {
            name: variable.name.clone(),
            rank: variable.dimensions.len(),
            given: slabs.len(),
        });
    }
    let range = |(slab, (dimension, length)): (&Hyperslab, &(String, u64))| {
        let Hyperslab { start, stride, last } = *slab;
        let step = i64::try_from(stride).ok();
        match step {
            Some(step) if last < *length => {
                Ok(AxisRange { start, count: (last - start) / stride + 1, step, keep: true })
            }
            _ => Err(DapError::OutOfRange {
                name: variable.name.clone(),
                dimension: dimension.clone(),
                start,
                stride,
                last,
                end: length.saturating_sub(1),
            }),
        }
    };
    let ranges = slabs.iter().zip(&variable.dimensions).map(range).collect::<Result<_, _>>()?;
    Ok(ConstrainedArray { variable: place, ranges })
}

fn unknown(dataset: &DapDataset, name: &str) -> DapError {
    let names = dataset.variables.iter().take(MAX_NAMED).map(|variable| variable.name.as_str());
    DapError::UnknownVariable {
        name: name.chars().take(80).collect(),
        known: names.collect::<Vec<_>>().join(", "),
    }
}
