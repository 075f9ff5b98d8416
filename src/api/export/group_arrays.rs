//! [`GroupArrays`]: the arrays of a group, before a selection is made along their dimensions.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::sources::{ExportSources, names_of};
use crate::api::selection::SelectionParams;
use crate::array::{Array, OpenNode};
use crate::chunk::SelectionError;
use crate::key::NodePath;

/// An array that was opened: its name, and the node.
pub(super) type GroupArray = (String, Arc<OpenNode>, Arc<Array>);

/// The arrays of a group that a selection is to be made of.
pub(crate) struct GroupArrays {
    /// The group.
    pub(super) path: NodePath,
    pub(super) arrays: Vec<GroupArray>,
    /// What was left out meanwhile.
    pub(super) found: ExportSources,
}

impl GroupArrays {
    /// The path of the first array, beside which coordinates are; that of the group if it has none.
    pub(crate) fn first_path(&self) -> &NodePath {
        self.arrays.first().map_or(&self.path, |(.., array)| array.path())
    }

    /// The dimensions that have names: their lengths, and their names. Of a name with several lengths, it is the longest one where a
    /// position is selected, which each array has for itself, and all of them where a label is.
    pub(crate) fn dimensions(&self, selection: &SelectionParams) -> (Vec<u64>, Vec<Option<String>>) {
        let arrays = self.arrays.iter().map(|(.., array)| array.metadata());
        let dimensions = arrays.flat_map(|array| names_of(array).into_iter().zip(array.shape.clone()));
        let dimensions = dimensions.filter_map(|(name, length)| Some((name?, length)));
        let mut dimensions: Vec<_> = dimensions.collect::<BTreeSet<_>>().into_iter().rev().collect();
        dimensions.dedup_by(|other, longest| other.0 == longest.0 && !selection.is_by_label(&other.0));
        dimensions.into_iter().rev().map(|(name, length)| (length, Some(name))).unzip()
    }

    /// Refuses a selection along a dimension that none of the arrays has.
    pub(super) fn check_names(&self, selection: &SelectionParams) -> Result<(), SelectionError> {
        let (_, names) = self.dimensions(selection);
        match selection.named().find(|name| !names.iter().flatten().any(|known| known == name)) {
            None => Ok(()),
            Some(name) => {
                let mut known: Vec<String> = names.into_iter().flatten().collect();
                known.dedup();
                Err(SelectionError::UnknownDimension { name: name.to_owned(), known: known.join(", ") })
            }
        }
    }
}
