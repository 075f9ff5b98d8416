//! [`AsciiTable`]: values as text, a line for each row.

use std::fmt::Write;

use super::name::dap_name;
use crate::render::dataset::ElementEncoding;

/// Writes the values of one array: its name and the indices of a row, then the values of the row.
#[derive(Debug)]
pub struct AsciiTable {
    name: String,
    /// The lengths of the dimensions but the last.
    outer: Vec<u64>,
    /// Values of a row.
    columns: u64,
    written: u64,
}

impl AsciiTable {
    /// For an array of this name and shape.
    #[must_use]
    pub fn new(name: &str, shape: &[u64]) -> Self {
        let (columns, outer) = shape.split_last().map_or((1, [].as_slice()), |(last, outer)| (*last, outer));
        Self { name: dap_name(name), outer: outer.to_vec(), columns, written: 0 }
    }

    /// Appends numbers as they are sent.
    pub fn numbers(&mut self, encoding: &ElementEncoding, values: &[u8], out: &mut String) {
        let external = encoding.external();
        for value in values.chunks_exact(encoding.value_bytes()) {
            // XDR has short values in the last of four bytes.
            let start = value.len().saturating_sub(external.bytes());
            let text = external.text_of(value.get(start..).unwrap_or_default());
            self.value(&text, out);
        }
    }

    /// Appends a text.
    pub fn text(&mut self, text: &[u8], out: &mut String) {
        let text = String::from_utf8_lossy(text);
        self.value(&format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")), out);
    }

    fn value(&mut self, text: &str, out: &mut String) {
        if self.columns > 0 && self.written.is_multiple_of(self.columns) {
            if self.written > 0 {
                out.push('\n');
            }
            out.push_str(&self.name);
            let mut row = self.written / self.columns;
            let mut indices = Vec::with_capacity(self.outer.len());
            for &length in self.outer.iter().rev() {
                indices.push(row % length.max(1));
                row /= length.max(1);
            }
            for index in indices.iter().rev() {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "[{index}]");
            }
        }
        out.push_str(", ");
        out.push_str(text);
        self.written += 1;
    }

    /// Ends the last line.
    pub fn finish(&mut self, out: &mut String) {
        if self.written > 0 {
            out.push('\n');
        }
    }
}
