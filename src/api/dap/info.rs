//! The description of a dataset for people: its variables, and those that are left out, with the reason.

use std::fmt::Write;

use crate::api::export::sources::OmittedVariable;
use crate::render::dap::{ConstrainedDataset, Constraint, DapDataset, das, dds};

/// The description.
pub(super) fn info(dataset: &DapDataset, omitted: &[OmittedVariable]) -> String {
    let mut out = format!("Dataset {}\n\n", dataset.name);
    if let Ok(whole) = ConstrainedDataset::new(dataset, &Constraint::default()) {
        out.push_str(&dds(dataset, &whole));
        out.push('\n');
    }
    out.push_str(&das(dataset));
    if !omitted.is_empty() {
        out.push_str("\nLeft out:\n");
        for omitted in omitted {
            // Writing to a `String` cannot fail.
            let _ = writeln!(out, "    {}: {}", omitted.name, omitted.reason);
        }
    }
    out.push_str(
        "\nOpen the URL without its suffix in a client of DAP2. `.dods` and `.ascii` have the values; a constraint selects \
         some of them, with start, stride and last index: `?air[0:1:9][2:4][7]`.\n",
    );
    out
}
