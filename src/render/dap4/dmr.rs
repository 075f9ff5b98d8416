//! The dataset metadata response ("DAP4", volume 1, section 3), and error documents. They are ASCII: other characters are
//! references, as some clients read no others.

use std::collections::HashSet;
use std::fmt::Write;

use super::dataset::{Dap4Dataset, Dap4Variable};
use super::selection::{Dap4Array, Dap4Selection};
use crate::render::dataset::{AttributeValue, ExportAttribute, ExternalType};
use crate::render::xml::escape;

/// The namespace of documents.
const NAMESPACE: &str = "http://xml.opendap.org/ns/DAP/4.0#";
/// What documents begin with.
const PROLOG: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The metadata of what is selected of a dataset.
#[must_use]
pub fn dmr(dataset: &Dap4Dataset, selection: &Dap4Selection) -> String {
    let writer = DmrWriter::new(dataset, selection);
    let mut out = PROLOG.to_owned();
    let name = dataset.groups.first().map_or("", |group| group.name.as_str());
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        out,
        "<Dataset xmlns=\"{NAMESPACE}\" name=\"{}\" dapVersion=\"4.0\" dmrVersion=\"1.0\">",
        escape(name)
    );
    writer.write_group(&mut out, 0, 1);
    out.push_str("</Dataset>\n");
    out
}

/// An error document.
#[must_use]
pub fn dap4_error(status: u16, message: &str) -> String {
    format!(
        "{PROLOG}<Error xmlns=\"{NAMESPACE}\" httpcode=\"{status}\">\n  <Message>{}</Message>\n</Error>\n",
        escape(message)
    )
}

/// Writes groups.
struct DmrWriter<'a> {
    dataset: &'a Dap4Dataset,
    selection: &'a Dap4Selection,
    /// The variables of each group that are selected.
    arrays: Vec<Vec<&'a Dap4Array>>,
    /// The groups in each group that are written.
    groups: Vec<Vec<usize>>,
    /// The dimensions that variables share.
    dimensions: HashSet<(usize, usize)>,
    /// The selected variables, by their places, that have what is selected of shared dimensions.
    maps: HashSet<usize>,
}

impl<'a> DmrWriter<'a> {
    fn new(dataset: &'a Dap4Dataset, selection: &'a Dap4Selection) -> Self {
        let count = dataset.groups.len();
        let mut writer = Self {
            dataset,
            selection,
            arrays: vec![Vec::new(); count],
            groups: vec![Vec::new(); count],
            dimensions: HashSet::new(),
            maps: HashSet::new(),
        };
        for array in &selection.arrays {
            let Some(variable) = dataset.variables.get(array.variable) else { continue };
            if let Some(arrays) = writer.arrays.get_mut(variable.group) {
                arrays.push(array);
            }
            if array.has_shared {
                writer.dimensions.extend(variable.dimensions.iter().copied());
                writer.maps.insert(array.variable);
            }
        }
        // From the last to the first, so that what is in a group is known before the group.
        for (place, group) in dataset.groups.iter().enumerate().rev() {
            let has_some = |list: Option<bool>| list == Some(false);
            let is_written = selection.is_whole
                || has_some(writer.arrays.get(place).map(Vec::is_empty))
                || has_some(writer.groups.get(place).map(Vec::is_empty))
                || writer.dimensions.iter().any(|(group, _)| *group == place);
            if is_written && let Some(above) = group.parent.and_then(|parent| writer.groups.get_mut(parent)) {
                above.insert(0, place);
            }
        }
        writer
    }

    /// Writes what is in a group. Groups are in each other no deeper than the dataset has them.
    fn write_group(&self, out: &mut String, place: usize, depth: usize) {
        let Some(group) = self.dataset.groups.get(place) else { return };
        let indent = "  ".repeat(depth);
        for (index, dimension) in group.dimensions.iter().enumerate() {
            if !self.dimensions.contains(&(place, index)) {
                continue;
            }
            let selected = self.selection.dimensions.get(&(place, index));
            let size = selected.map_or(dimension.length, |range| range.count);
            let _ =
                writeln!(out, "{indent}<Dimension name=\"{}\" size=\"{size}\"/>", escape(&dimension.name));
        }
        for array in self.arrays.get(place).into_iter().flatten() {
            if let Some(variable) = self.dataset.variables.get(array.variable) {
                self.write_variable(out, variable, array, &indent);
            }
        }
        write_attributes(out, &group.attributes, &indent);
        for &inner in self.groups.get(place).into_iter().flatten() {
            let name = self.dataset.groups.get(inner).map_or("", |group| group.name.as_str());
            let _ = writeln!(out, "{indent}<Group name=\"{}\">", escape(name));
            self.write_group(out, inner, depth + 1);
            let _ = writeln!(out, "{indent}</Group>");
        }
    }

    fn write_variable(&self, out: &mut String, variable: &Dap4Variable, array: &Dap4Array, indent: &str) {
        let kind = type_name(variable.external);
        let _ = write!(out, "{indent}<{kind} name=\"{}\">\n{indent}  ", escape(&variable.name));
        for (dimension, range) in variable.dimensions.iter().zip(&array.ranges) {
            match self.dataset.dimension(*dimension).filter(|_| array.has_shared) {
                Some(found) => {
                    let name = self.dataset.full_name(dimension.0, &found.name);
                    let _ = write!(out, "<Dim name=\"{}\"/>", escape(&name));
                }
                None => {
                    let _ = write!(out, "<Dim size=\"{}\"/>", range.count);
                }
            }
        }
        out.push('\n');
        write_attributes(out, &variable.attributes, &format!("{indent}  "));
        let selected = variable.maps.iter().filter(|map| array.has_shared && self.maps.contains(map));
        for map in selected.filter_map(|map| self.dataset.variables.get(*map)) {
            let name = self.dataset.full_name(map.group, &map.name);
            let _ = writeln!(out, "{indent}  <Map name=\"{}\"/>", escape(&name));
        }
        let _ = writeln!(out, "{indent}</{kind}>");
    }
}

fn write_attributes(out: &mut String, attributes: &[ExportAttribute], indent: &str) {
    for ExportAttribute { name, value } in attributes {
        let (kind, values) = match value {
            AttributeValue::Text(text) => ("String", vec![escape(text)]),
            AttributeValue::Texts(texts) => ("String", texts.iter().map(|text| escape(text)).collect()),
            AttributeValue::Numbers(external, bytes) => {
                let numbers =
                    bytes.chunks_exact(external.bytes()).map(|value| number(name, *external, value));
                let (kinds, values): (Vec<_>, Vec<_>) = numbers.unzip();
                (kinds.first().copied().unwrap_or_default(), values)
            }
        };
        if values.is_empty() {
            continue;
        }
        let _ = write!(out, "{indent}<Attribute name=\"{}\" type=\"{kind}\">", escape(name));
        for value in values {
            let _ = write!(out, "<Value>{value}</Value>");
        }
        out.push_str("</Attribute>\n");
    }
}

/// The type and the text of a number. A `Float32` is sent as the same `Float64`, because netCDF-C reads attributes of 32 bits with
/// an error in the last digits; but `_FillValue` has the type of its variable, as clients insist.
fn number(name: &str, external: ExternalType, value: &[u8]) -> (&'static str, String) {
    match <[u8; 4]>::try_from(value) {
        Ok(bytes) if external == ExternalType::Float => {
            let double = ExternalType::Double;
            let kind = type_name(if name == "_FillValue" { external } else { double });
            (kind, double.text_of(&f64::from(f32::from_be_bytes(bytes)).to_be_bytes()))
        }
        _ => (type_name(external), external.text_of(value)),
    }
}

/// The name of a type.
const fn type_name(external: ExternalType) -> &'static str {
    match external {
        ExternalType::Char => "String",
        ExternalType::Byte => "Int8",
        ExternalType::UByte => "UInt8",
        ExternalType::Short => "Int16",
        ExternalType::UShort => "UInt16",
        ExternalType::Int => "Int32",
        ExternalType::UInt => "UInt32",
        ExternalType::Int64 => "Int64",
        ExternalType::UInt64 => "UInt64",
        ExternalType::Float => "Float32",
        ExternalType::Double => "Float64",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_errors_have_no_meaning_in_xml() {
        let error = dap4_error(404, "no <mount>");
        assert!(error.contains("httpcode=\"404\"") && error.contains("no &lt;mount&gt;"), "{error}");
    }
}
