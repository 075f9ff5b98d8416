//! Constraint expressions of DAP2 and DAP4: whatever the text, what is selected lies inside the variables.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrd::render::dap::{ConstrainedDataset, Constraint, DapDataset, DapVariable, dds};
use zarrd::render::dap4::{Dap4Constraint, Dap4Dataset, Dap4Group, Dap4Selection, Dap4Variable, dmr};
use zarrd::render::dataset::{ExportedDimension, ExternalType};

fn variable(name: &str, dimensions: &[(&str, u64)], maps: Option<Vec<usize>>) -> DapVariable {
    DapVariable {
        name: name.to_owned(),
        external: ExternalType::Int,
        dimensions: dimensions.iter().map(|(name, length)| ((*name).to_owned(), *length)).collect(),
        maps,
        attributes: Vec::new(),
    }
}

/// `y` and `a(y, x)`, and in the group `g` the variable `b(y)`.
fn groups(rows: u64, columns: u64) -> Dap4Dataset {
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
            group("d", None, vec![dimension("y", rows), dimension("x", columns)]),
            group("g", Some(0), Vec::new()),
        ],
        variables: vec![
            variable("y", 0, &[(0, 0)], &[]),
            variable("a", 0, &[(0, 0), (0, 1)], &[0]),
            variable("b", 1, &[(0, 0)], &[0]),
        ],
    }
}

fn of_groups(rows: u64, columns: u64, text: &str) {
    let Ok(constraint) = Dap4Constraint::parse(text) else { return };
    let dataset = groups(rows, columns);
    let Ok(selection) = Dap4Selection::new(&dataset, &constraint) else { return };
    assert!(dmr(&dataset, &selection).is_ascii());
    for array in &selection.arrays {
        let dimensions = &dataset.variables[array.variable].dimensions;
        assert_eq!(array.ranges.len(), dimensions.len());
        for (range, dimension) in array.ranges.iter().zip(dimensions) {
            let length = dataset.dimension(*dimension).unwrap().length;
            assert!(range.count > 0 && range.at(range.count - 1) < length);
        }
    }
}

fuzz_target!(|input: (u64, u64, &str)| {
    let (rows, columns, text) = input;
    let (rows, columns) = (rows | 1, columns | 1);
    of_groups(rows, columns, text);
    of_groups(rows, columns, &format!("dap4.ce={text}"));
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
