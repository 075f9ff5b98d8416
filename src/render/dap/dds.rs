//! The dataset descriptor structure ("DAP 2.0", section 5): what a response has, in its order.

use std::fmt::Write;

use super::dataset::{DapDataset, DapVariable};
use super::name::dap_name;
use super::projection::{ConstrainedArray, ConstrainedDataset, ConstrainedVariable};
use crate::render::dataset::ExternalType;

/// The descriptor of what is selected of a dataset.
#[must_use]
pub fn dds(dataset: &DapDataset, constrained: &ConstrainedDataset) -> String {
    let mut out = "Dataset {\n".to_owned();
    for variable in &constrained.variables {
        write_variable(&mut out, dataset, variable);
    }
    // Writing to a `String` cannot fail.
    let _ = writeln!(out, "}} {};", dap_name(&dataset.name));
    out
}

fn write_variable(out: &mut String, dataset: &DapDataset, selected: &ConstrainedVariable) {
    match selected {
        ConstrainedVariable::Array(array) => write_array(out, dataset, array, "    "),
        ConstrainedVariable::Grid(array, maps) => {
            out.push_str("    Grid {\n     Array:\n");
            write_array(out, dataset, array, "        ");
            out.push_str("     Maps:\n");
            for map in maps {
                write_array(out, dataset, map, "        ");
            }
            write_end(out, dataset, array.variable);
        }
        ConstrainedVariable::Members(place, array, maps) => {
            out.push_str("    Structure {\n");
            for member in array.iter().chain(maps) {
                write_array(out, dataset, member, "        ");
            }
            write_end(out, dataset, *place);
        }
    }
}

fn write_end(out: &mut String, dataset: &DapDataset, place: usize) {
    let name = dataset.variables.get(place).map_or_else(String::new, |variable| dap_name(&variable.name));
    let _ = writeln!(out, "    }} {name};");
}

fn write_array(out: &mut String, dataset: &DapDataset, array: &ConstrainedArray, indent: &str) {
    let Some(variable) = dataset.variables.get(array.variable) else { return };
    let _ = write!(out, "{indent}{} {}", type_name(variable.external), dap_name(&variable.name));
    write_dimensions(out, variable, array);
    out.push_str(";\n");
}

fn write_dimensions(out: &mut String, variable: &DapVariable, array: &ConstrainedArray) {
    for ((name, _), range) in variable.dimensions.iter().zip(&array.ranges) {
        let _ = write!(out, "[{} = {}]", dap_name(name), range.count);
    }
}

/// The name of a type.
pub(super) const fn type_name(external: ExternalType) -> &'static str {
    match external {
        ExternalType::Char => "String",
        // DAP2 has no integer of 8 bits with a sign; a truth value of an attribute has none.
        ExternalType::Byte | ExternalType::UByte => "Byte",
        ExternalType::Short => "Int16",
        ExternalType::UShort => "UInt16",
        ExternalType::Int => "Int32",
        ExternalType::UInt => "UInt32",
        ExternalType::Float => "Float32",
        // Integers of 64 bits are no type of a DAP2 variable (`ElementEncoding::dap2`).
        ExternalType::Double | ExternalType::Int64 | ExternalType::UInt64 => "Float64",
    }
}
