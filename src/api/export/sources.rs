//! [`ExportSources`]: the arrays of a response, with what is selected of each.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};

use super::decoded_variable::DecodedVariable;
use crate::array::{Array, ArrayError, OpenNode};
use crate::chunk::Subset;
use crate::http::validators::from_text;
use crate::metadata::{ArrayMetadata, Attributes};
use crate::reduce::CfError;
use crate::render::CfDecoding;

/// The variables of the group that a response does not have.
const VARIABLES_OMITTED: HeaderName = HeaderName::from_static("variables-omitted");
/// Maximum length of that header in bytes: clients and proxies reject heads of more than a few kilobytes.
const MAX_HEADER_BYTES: usize = 1 << 10;

/// An array, and what is selected of it.
#[derive(Clone, Debug)]
pub(crate) struct ExportSource {
    /// Its name in the response.
    pub(crate) name: String,
    pub(crate) node: Arc<OpenNode>,
    pub(crate) array: Arc<Array>,
    pub(crate) subset: Subset,
    /// The names of its dimensions, as many as there are.
    pub(crate) dimension_names: Vec<Option<String>>,
    /// Whether it has the labels of the dimension of its name.
    pub(crate) is_coordinate: bool,
    /// How it is decoded, if it is.
    pub(crate) decoded: Option<Arc<DecodedVariable>>,
}

/// A variable that a response does not have, and why.
#[derive(Clone, Debug)]
pub(crate) struct OmittedVariable {
    pub(crate) name: String,
    /// Its data type, or what is wrong with it.
    pub(crate) reason: String,
}

/// The arrays of a response.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportSources {
    /// Coordinates first.
    pub(crate) sources: Vec<ExportSource>,
    /// The group that they are in, if it was requested.
    pub(crate) group: Option<Arc<OpenNode>>,
    /// Variables of the group that are not among them.
    pub(crate) omitted: Vec<OmittedVariable>,
    /// Whether arrays whose document or codecs cannot be used are left out. Else they are errors.
    pub(crate) omits_unusable: bool,
    /// The names of the groups in the group, if its arrays were listed.
    pub(crate) groups: Vec<String>,
}

impl ExportSource {
    /// All of an array of one dimension that has the labels of the dimension with this name.
    pub(crate) fn coordinate(name: &str, node: Arc<OpenNode>, array: Arc<Array>) -> Self {
        let subset = Subset::full(&array.metadata().shape);
        let (name, dimension_names) = (name.to_owned(), vec![Some(name.to_owned())]);
        Self { name, node, array, subset, dimension_names, is_coordinate: true, decoded: None }
    }

    /// The metadata of the array, as decoded.
    pub(crate) fn metadata(&self) -> &Arc<ArrayMetadata> {
        match &self.decoded {
            Some(decoded) => &decoded.metadata,
            None => self.array.shared_metadata(),
        }
    }

    /// The same array, with its elements decoded to the numbers that its attributes describe.
    ///
    /// # Errors
    /// [`CfError::Missing`].
    pub(crate) fn decode(&mut self) -> Result<(), CfError> {
        let decoded = DecodedVariable::new(self.array.metadata(), self.is_coordinate)?;
        self.decoded = decoded.map(Arc::new);
        Ok(())
    }

    /// How the elements are decoded, if they are.
    pub(crate) fn decoding(&self) -> Option<&CfDecoding> {
        self.decoded.as_ref().map(|decoded| &decoded.decoding)
    }
}

impl ExportSources {
    /// The attributes of the group.
    pub(crate) fn attributes(&self) -> Attributes {
        match self.group.as_ref().map(|group| &group.node) {
            Some(crate::hierarchy::Node::Group(group)) => group.attributes.clone(),
            _ => Attributes::default(),
        }
    }

    /// Bytes of all attributes and names, which bound the work on a description.
    pub(crate) fn attribute_bytes(&self) -> u64 {
        let bytes = |source: &ExportSource| {
            let names = source.dimension_names.iter().flatten().chain([&source.name]);
            names.map(String::len).sum::<usize>() as u64 + source.metadata().attributes.text().len() as u64
        };
        let group = self.attributes().text().len() as u64;
        self.sources.iter().map(bytes).fold(group, u64::saturating_add)
    }

    /// Leaves out an array that belongs to others and cannot be used.
    ///
    /// # Errors
    /// `error`, unless such arrays are left out.
    pub(crate) fn omit(&mut self, name: &str, error: ArrayError) -> Result<(), ArrayError> {
        if !self.omits_unusable {
            return Err(error);
        }
        if !self.omitted.iter().any(|known| known.name == name) {
            self.omitted.push(OmittedVariable { name: name.to_owned(), reason: error.to_string() });
        }
        Ok(())
    }

    /// Leaves out what `is_kept` does not hold for, with the reason that it returns.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&ExportSource) -> Result<(), String>) {
        let mut kept = Vec::with_capacity(self.sources.len());
        for source in self.sources.drain(..) {
            match is_kept(&source) {
                Ok(()) => kept.push(source),
                Err(reason) => self.omitted.push(OmittedVariable { name: source.name, reason }),
            }
        }
        self.sources = kept;
    }

    /// Sets the header with the variables that are left out, if there are any.
    pub(crate) fn put_omitted(&self, headers: &mut HeaderMap) {
        let mut text = String::new();
        for OmittedVariable { name, reason } in &self.omitted {
            let comma = if text.is_empty() { "" } else { ", " };
            let one = format!("{comma}{} ({})", ascii(name), ascii(reason));
            if text.len() + one.len() > MAX_HEADER_BYTES {
                text.push_str(", ...");
                break;
            }
            text.push_str(&one);
        }
        if let Some(value) = from_text(text).filter(|_| !self.omitted.is_empty()) {
            headers.insert(VARIABLES_OMITTED, value);
        }
    }
}

/// A text in visible ASCII, the only characters that are safe in a header.
fn ascii(text: &str) -> String {
    text.chars().map(|letter| if matches!(letter, ' '..='~') { letter } else { '?' }).collect()
}

/// The names of the dimensions, as many as there are.
pub(super) fn names_of(metadata: &ArrayMetadata) -> Vec<Option<String>> {
    let rank = metadata.shape.len();
    let named = metadata.dimension_names.clone().filter(|names| names.len() == rank);
    let named = named.unwrap_or_else(|| vec![None; rank]);
    named.into_iter().map(|name| name.filter(|name| !name.is_empty())).collect()
}
