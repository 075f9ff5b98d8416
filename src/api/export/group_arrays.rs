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

    /// The dimensions that have names, each of them once: their lengths, and their names.
    pub(crate) fn dimensions(&self) -> (Vec<u64>, Vec<Option<String>>) {
        let arrays = self.arrays.iter().map(|(.., array)| array.metadata());
        let dimensions = arrays.flat_map(|array| names_of(array).into_iter().zip(array.shape.clone()));
        let dimensions: BTreeSet<_> = dimensions.filter(|(name, _)| name.is_some()).collect();
        dimensions.into_iter().map(|(name, length)| (length, name)).unzip()
    }

    /// Refuses a selection along a dimension that none of the arrays has.
    pub(super) fn check_names(&self, selection: &SelectionParams) -> Result<(), SelectionError> {
        let (_, names) = self.dimensions();
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
