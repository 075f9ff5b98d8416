//! Constraint expressions of DAP: whatever the text, what is selected lies inside the variables.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrd::render::dap::{ConstrainedDataset, Constraint, DapDataset, DapVariable, dds};
use zarrd::render::dataset::ExternalType;

fn variable(name: &str, dimensions: &[(&str, u64)], maps: Option<Vec<usize>>) -> DapVariable {
    DapVariable {
        name: name.to_owned(),
        external: ExternalType::Int,
        dimensions: dimensions.iter().map(|(name, length)| ((*name).to_owned(), *length)).collect(),
        maps,
        attributes: Vec::new(),
    }
}

fuzz_target!(|input: (u64, u64, &str)| {
    let (rows, columns, text) = input;
    let (rows, columns) = (rows | 1, columns | 1);
    let Ok(constraint) = Constraint::parse(text) else { return };
    let variables = vec![
        variable("y", &[("y", rows)], None),
        variable("x", &[("x", columns)], None),
        variable("a", &[("y", rows), ("x", columns)], Some(vec![0, 1])),
        variable("b", &[], None),
    ];
    let dataset = DapDataset { name: "d".to_owned(), variables, attributes: Vec::new() };
    let Ok(constrained) = ConstrainedDataset::new(&dataset, &constraint) else { return };
    assert!(!dds(&dataset, &constrained).is_empty());
    for array in constrained.arrays() {
        let dimensions = &dataset.variables[array.variable].dimensions;
        assert_eq!(array.ranges.len(), dimensions.len());
        for (range, (_, length)) in array.ranges.iter().zip(dimensions) {
            assert!(range.count > 0 && range.at(range.count - 1) < *length);
        }
    }
});
