//! The dataset attribute structure ("DAP 2.0", section 5.3).

use std::fmt::Write;

use super::dataset::DapDataset;
use super::dds::type_name;
use super::name::dap_name;
use crate::render::dataset::{AttributeValue, ExportAttribute, ExternalType};

/// The attributes of a dataset and of its variables.
#[must_use]
pub fn das(dataset: &DapDataset) -> String {
    let mut out = "Attributes {\n".to_owned();
    write_container(&mut out, "NC_GLOBAL", &dataset.attributes);
    for variable in &dataset.variables {
        write_container(&mut out, &dap_name(&variable.name), &variable.attributes);
    }
    out.push_str("}\n");
    out
}

fn write_container(out: &mut String, name: &str, attributes: &[ExportAttribute]) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(out, "    {name} {{");
    for ExportAttribute { name, value } in attributes {
        let (kind, values) = match value {
            AttributeValue::Text(text) => ("String", vec![quoted(text)]),
            AttributeValue::Texts(texts) => ("String", texts.iter().map(|text| quoted(text)).collect()),
            AttributeValue::Numbers(external, bytes) => {
                let values = bytes.chunks_exact(external.bytes()).map(|value| number_text(*external, value));
                (type_name(*external), values.collect())
            }
        };
        if !values.is_empty() {
            let _ = writeln!(out, "        {kind} {} {};", dap_name(name), values.join(", "));
        }
    }
    out.push_str("    }\n");
}

/// The text of a number. That of a `Float32` has the digits of the same `Float64`: clients parse it as one, and compare. Infinity is
/// `Inf`: pydap opens no dataset with another word for it.
fn number_text(external: ExternalType, value: &[u8]) -> String {
    let text = match <[u8; 4]>::try_from(value) {
        Ok(bytes) if external == ExternalType::Float => {
            ExternalType::Double.text_of(&f64::from(f32::from_be_bytes(bytes)).to_be_bytes())
        }
        _ => external.text_of(value),
    };
    match text.as_str() {
        "Infinity" => "Inf".to_owned(),
        "-Infinity" => "-Inf".to_owned(),
        _ => text,
    }
}

/// A text in quotes, with a backslash before quotes and backslashes.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            '\0' => {}
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
