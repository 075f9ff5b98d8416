//! [`PageMemory`]: the memory for the pages of a file of references while it is read.
//!
//! Texts are slices of their pages, so a page stays in memory until all rows are in the table. A page says how long it is
//! before it is decompressed.

use super::fault::ParquetFault;
use crate::store::ContainerBudget;
use crate::store::container::{ContainerReservation, OverBudget};

/// The most bytes of the pages of a file, decompressed.
const MAX_FILE_BYTES: u64 = 512 << 20;
/// The most bytes of memory for a value beside its page: in the page, in the column, and its level and index.
const VALUE_BYTES: u64 = 96;

/// Memory for pages, released on drop.
pub(super) struct PageMemory {
    reserved: ContainerReservation,
    /// Bytes of pages.
    pages: u64,
    /// Why the last charge failed, if that was for the budget.
    over: Option<OverBudget>,
}

impl PageMemory {
    pub(super) fn new(budget: &ContainerBudget) -> Self {
        Self { reserved: budget.empty(), pages: 0, over: None }
    }

    /// Charges a page of this many bytes, decompressed, with this many values.
    pub(super) fn charge(&mut self, bytes: usize, values: usize) -> Result<(), ParquetFault> {
        self.pages = self.pages.saturating_add(bytes as u64);
        if self.pages > MAX_FILE_BYTES {
            return Err("its pages are too long");
        }
        let more = (bytes as u64).saturating_add((values as u64).saturating_mul(VALUE_BYTES));
        self.reserved.grow(more).map_err(|over| {
            self.over = Some(over);
            "its pages do not fit into the budget"
        })
    }

    /// Why the last charge failed, if that was for the budget.
    pub(super) fn over(&self) -> Option<OverBudget> {
        self.over
    }
}
