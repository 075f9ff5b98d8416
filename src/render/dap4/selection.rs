//! [`Dap4Selection`]: what a constraint selects of a dataset, in the order of the dataset.

use std::collections::HashMap;

use super::constraint::{Dap4Constraint, Dap4Slab};
use super::dataset::{Dap4Dataset, Dap4Variable};
use super::error::Dap4Error;
use crate::chunk::AxisRange;

/// The most names that an error lists.
const MAX_NAMED: usize = 20;

/// What is selected of one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dap4Array {
    /// The place of the variable in the dataset.
    pub variable: usize,
    /// The selected indices of each dimension.
    pub ranges: Vec<AxisRange>,
    /// Whether what is selected of each dimension is what is selected of the shared one. If it is not of one dimension, none has
    /// its name in the metadata: pydap reads variables with both kinds of dimensions in another order.
    pub has_shared: bool,
}

/// What a constraint selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dap4Selection {
    /// The variables, in the order of the dataset.
    pub arrays: Vec<Dap4Array>,
    /// Whether the constraint selects everything.
    pub(super) is_whole: bool,
    /// What is selected of dimensions, by the place of the group and the place of the dimension in it.
    pub(super) dimensions: HashMap<(usize, usize), AxisRange>,
}

impl Dap4Selection {
    /// Applies a constraint to a dataset.
    ///
    /// # Errors
    /// [`Dap4Error`] with what does not fit.
    pub fn new(dataset: &Dap4Dataset, constraint: &Dap4Constraint) -> Result<Self, Dap4Error> {
        let is_whole = constraint.projections.is_empty() && constraint.dimensions.is_empty();
        let mut selection = Self { arrays: Vec::new(), is_whole, dimensions: HashMap::new() };
        for (names, slab) in &constraint.dimensions {
            selection.add_dimension(dataset, names, slab)?;
        }
        let mut selected: Vec<Option<Dap4Array>> = vec![None; dataset.variables.len()];
        if constraint.projections.is_empty() {
            for (place, (slot, variable)) in selected.iter_mut().zip(&dataset.variables).enumerate() {
                *slot = Some(selection.array(dataset, place, variable, &[])?);
            }
        }
        for (names, slabs) in &constraint.projections {
            let place = variable_at(dataset, names).ok_or_else(|| unknown_variable(dataset, names))?;
            let Some(variable) = dataset.variables.get(place) else { continue };
            let new = selection.array(dataset, place, variable, slabs)?;
            let Some(slot) = selected.get_mut(place) else { continue };
            if slot.as_ref().is_some_and(|known| *known != new) {
                return Err(Dap4Error::Twice { name: dataset.full_name(variable.group, &variable.name) });
            }
            *slot = Some(new);
        }
        selection.arrays = selected.into_iter().flatten().collect();
        Ok(selection)
    }

    fn add_dimension(
        &mut self,
        dataset: &Dap4Dataset,
        names: &[String],
        slab: &Dap4Slab,
    ) -> Result<(), Dap4Error> {
        let found = names.split_last().and_then(|(name, above)| {
            let group = group_at(dataset, above)?;
            let dimensions = &dataset.groups.get(group)?.dimensions;
            Some((group, dimensions.iter().position(|dimension| dimension.name == *name)?))
        });
        let Some((place, dimension)) = found.and_then(|place| Some((place, dataset.dimension(place)?)))
        else {
            return Err(unknown_dimension(dataset, names));
        };
        let name = dataset.full_name(place.0, &dimension.name);
        let range = range(&name, slab, dimension.length)?;
        match self.dimensions.insert(place, range) {
            Some(known) if known != range => Err(Dap4Error::Twice { name }),
            _ => Ok(()),
        }
    }

    /// What hyperslabs select of a variable; without any, all of it, or what is selected of its dimensions.
    fn array(
        &self,
        dataset: &Dap4Dataset,
        place: usize,
        variable: &Dap4Variable,
        slabs: &[Option<Dap4Slab>],
    ) -> Result<Dap4Array, Dap4Error> {
        let name = || dataset.full_name(variable.group, &variable.name);
        let rank = variable.dimensions.len();
        if !slabs.is_empty() && slabs.len() != rank {
            return Err(Dap4Error::Rank { name: name(), rank, given: slabs.len() });
        }
        let (mut ranges, mut has_shared) = (Vec::with_capacity(rank), true);
        for (axis, dimension) in variable.dimensions.iter().enumerate() {
            let length = dataset.dimension(*dimension).map_or(0, |dimension| dimension.length);
            let shared = self.dimensions.get(dimension).copied().unwrap_or(AxisRange::full(length));
            let own = match slabs.get(axis).copied().flatten() {
                Some(slab) => range(&name(), &slab, length)?,
                None => shared,
            };
            ranges.push(own);
            has_shared &= own == shared;
        }
        Ok(Dap4Array { variable: place, ranges, has_shared })
    }
}

/// The indices that a hyperslab selects of a dimension or a variable of some name.
fn range(name: &str, slab: &Dap4Slab, length: u64) -> Result<AxisRange, Dap4Error> {
    let Some(end) = length.checked_sub(1) else { return Ok(AxisRange::full(0)) };
    let last = slab.last.unwrap_or(end);
    match i64::try_from(slab.stride) {
        Ok(step) if last <= end && slab.start <= last => {
            let count = (last - slab.start) / slab.stride + 1;
            // A single index has the same elements whatever the stride.
            let step = if count == 1 { 1 } else { step };
            Ok(AxisRange { start: slab.start, count, step, keep: true })
        }
        _ => Err(Dap4Error::OutOfRange { name: name.to_owned(), slab: slab.to_string(), end }),
    }
}

/// The group at a path.
fn group_at(dataset: &Dap4Dataset, names: &[String]) -> Option<usize> {
    names.iter().try_fold(0, |above, name| {
        dataset.groups.iter().position(|group| group.parent == Some(above) && group.name == *name)
    })
}

fn variable_at(dataset: &Dap4Dataset, names: &[String]) -> Option<usize> {
    let (name, above) = names.split_last()?;
    let group = group_at(dataset, above)?;
    dataset.variables.iter().position(|variable| variable.group == group && variable.name == *name)
}

fn unknown_variable(dataset: &Dap4Dataset, names: &[String]) -> Dap4Error {
    let known = dataset.variables.iter().take(MAX_NAMED);
    let known: Vec<String> =
        known.map(|variable| dataset.full_name(variable.group, &variable.name)).collect();
    Dap4Error::UnknownVariable { name: shown(names), known: known.join(", ") }
}

fn unknown_dimension(dataset: &Dap4Dataset, names: &[String]) -> Dap4Error {
    let all = dataset.groups.iter().enumerate().flat_map(|(place, group)| {
        group.dimensions.iter().map(move |dimension| dataset.full_name(place, &dimension.name))
    });
    let known: Vec<String> = all.take(MAX_NAMED).collect();
    Dap4Error::UnknownDimension { name: shown(names), known: known.join(", ") }
}

fn shown(names: &[String]) -> String {
    format!("/{}", names.join("/")).chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::dap4::{Dap4Group, dmr};
    use crate::render::dataset::{ExportedDimension, ExternalType};

    /// `time` and `air(time, x)`, and in the group `g` the variable `b(time)`.
    fn dataset() -> Dap4Dataset {
        let dimension = |name: &str, length| ExportedDimension { name: name.to_owned(), length };
        let group = |name: &str, parent, dimensions| Dap4Group {
            name: name.to_owned(),
            parent,
            dimensions,
            attributes: Vec::new(),
        };
        let variable = |name: &str, group, dimensions: &[(usize, usize)], maps: &[usize]| Dap4Variable {
            name: name.to_owned(),
            group,
            external: ExternalType::Int64,
            dimensions: dimensions.to_vec(),
            maps: maps.to_vec(),
            attributes: Vec::new(),
        };
        Dap4Dataset {
            groups: vec![
                group("d", None, vec![dimension("time", 6), dimension("x", 5)]),
                group("g", Some(0), vec![]),
            ],
            variables: vec![
                variable("time", 0, &[(0, 0)], &[]),
                variable("air", 0, &[(0, 0), (0, 1)], &[0]),
                variable("b", 1, &[(0, 0)], &[0]),
            ],
        }
    }

    fn selected(ce: &str) -> Result<Dap4Selection, Dap4Error> {
        Dap4Selection::new(&dataset(), &Dap4Constraint::parse(&format!("dap4.ce={ce}"))?)
    }

    /// A first index, a count and a step.
    type Places = Vec<(u64, u64, i64)>;

    /// The places along each dimension of each variable.
    fn places(ce: &str) -> Vec<(usize, Places)> {
        let arrays = selected(ce).unwrap().arrays.into_iter();
        let ranges = |ranges: Vec<AxisRange>| {
            ranges.into_iter().map(|range| (range.start, range.count, range.step)).collect()
        };
        arrays.map(|array| (array.variable, ranges(array.ranges))).collect()
    }

    #[test]
    fn selections_are_in_the_order_of_the_dataset() {
        let whole = vec![(0, vec![(0, 6, 1)]), (1, vec![(0, 6, 1), (0, 5, 1)]), (2, vec![(0, 6, 1)])];
        assert_eq!(places(""), whole);
        assert_eq!(places("/g/b;/time[1:2:5]"), [(0, vec![(1, 3, 2)]), (2, vec![(0, 6, 1)])]);
        let shared = vec![(1, vec![(2, 2, 1), (4, 1, 1)]), (2, vec![(2, 2, 1)])];
        assert_eq!(places("/time=[2:3];/g/b[];/air[][4]"), shared);
        assert_eq!(places("/air[5][1:3:*]"), [(1, vec![(5, 1, 1), (1, 2, 3)])]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (ce, expected) in [
            ("/b", "there is no variable `/b`; there is: /time, /air, /g/b"),
            ("/g", "there is no variable `/g`"),
            ("/y=[1]", "there is no dimension `/y`; there is: /time, /x"),
            ("/air[1]", "2 dimensions, and 1 are"),
            ("/time[6]", "`[6:1:6]` of `/time`: there are the indices 0 to 5"),
            ("/time=[0:6]", "the indices 0 to 5"),
            ("/time[9:*]", "`[9:1:*]`"),
            ("/time[1];/time[2]", "twice"),
        ] {
            let error = selected(ce).unwrap_err().to_string();
            assert!(error.contains(expected), "{ce}: {error}");
        }
    }

    #[test]
    fn a_metadata_response_has_what_is_selected() {
        let dataset = dataset();
        let text = |ce: &str| dmr(&dataset, &selected(ce).unwrap());
        let part = text("/time=[2:3];/g/b;/air[][4]");
        assert!(part.contains(r#"<Dimension name="time" size="2"/>"#), "{part}");
        assert!(part.contains(r#"<Dim size="2"/><Dim size="1"/>"#), "{part}");
        assert!(part.contains(r#"<Dim name="/time"/>"#), "{part}");
        assert!(!part.contains("<Map") && !part.contains(r#"name="x""#), "{part}");
        let whole = text("");
        assert!(whole.contains(r#"<Map name="/time"/>"#), "{whole}");
        assert!(whole.contains(r#"<Group name="g">"#), "{whole}");
        assert!(!text("/time").contains("Group"));
    }
}
