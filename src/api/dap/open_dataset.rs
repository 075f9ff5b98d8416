//! [`OpenDataset`]: the arrays of a node as a dataset of DAP2.

use std::sync::Arc;
use std::time::Instant;

use axum::http::request::Parts;

use super::wide_integers::{encoding_of, is_wide, read_bytes};
use crate::admission::Permit;
use crate::api::export::limits::check_attributes;
use crate::api::export::respond::described_bytes;
use crate::api::export::source_finder::SourceFinder;
use crate::api::export::sources::{ExportSource, ExportSources, OmittedVariable};
use crate::api::selection::SelectionParams;
use crate::array::OpenNode;
use crate::auth::caller::Caller;
use crate::chunk::Subset;
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::render::dap::DapDataset;
use crate::render::dataset::{ElementEncoding, ExportedDataset, VariableEncoding, VariableSource, is_text};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// A dataset whose variables have their types.
pub(super) struct OpenDataset {
    /// The arrays, in the order of the dataset.
    pub(super) sources: ExportSources,
    /// How the elements of each are sent; `None` for texts.
    pub(super) encodings: Vec<Option<ElementEncoding>>,
    pub(super) dataset: Arc<DapDataset>,
}

impl OpenDataset {
    /// The dataset of a group or an array, and the memory that its description takes, which the permit is charged with.
    ///
    /// # Errors
    /// Failures of the store; 413 if there are too many attributes.
    pub(super) async fn new(
        state: &AppState,
        head: &Parts,
        target: &NodeTarget,
        node: Arc<OpenNode>,
        began: Instant,
        permit: &mut Permit,
    ) -> Result<(Self, u64), Problem> {
        let rights = Caller::of(&head.extensions).rights();
        let finder = SourceFinder { target, rights, began };
        let mut sources = match &node.node {
            Node::Group(_) => finder.of_group(node, None, &SelectionParams::default()).await?,
            Node::Array(metadata) => {
                let subset = Subset::full(&metadata.shape);
                finder.of_array(node, subset).await?
            }
        };
        check_attributes(&sources)?;
        sources.keep(can_have);
        let held = described_bytes(&sources).saturating_mul(2);
        let wide = sources.sources.iter().filter(|source| is_wide(&source.metadata().data_type));
        let read_bytes = wide.map(|source| read_bytes(state, source)).max().unwrap_or(0);
        permit.resize(held.saturating_add(read_bytes))?;
        let mut kept = Vec::with_capacity(sources.sources.len());
        let mut encodings = Vec::with_capacity(sources.sources.len());
        for source in std::mem::take(&mut sources.sources) {
            let data_type = &source.metadata().data_type;
            let encoding = match data_type {
                text if is_text(text) => None,
                wide if is_wide(wide) => {
                    let Some(encoding) = encoding_of(state, &source).await? else {
                        let reason = format!("{}, of which DAP2 has not all numbers", data_type.name());
                        sources.omitted.push(OmittedVariable { name: source.name, reason });
                        continue;
                    };
                    Some(encoding)
                }
                other => ElementEncoding::dap2(other, false),
            };
            encodings.push(encoding);
            kept.push(source);
        }
        sources.sources = kept;
        let name = if target.path.name().is_empty() { &target.mount.name } else { target.path.name() };
        let (name, described) = (name.to_owned(), described(&sources, &encodings));
        let attributes = sources.attributes();
        let bytes = sources.attribute_bytes();
        let make = move || Arc::new(DapDataset::new(&name, ExportedDataset::new(&described, &attributes)));
        let dataset = state.engine.cpu.run_document(bytes, make).await?;
        permit.release(read_bytes);
        Ok((Self { sources, encodings, dataset }, held))
    }
}

fn described(sources: &ExportSources, encodings: &[Option<ElementEncoding>]) -> Vec<VariableSource> {
    let source = |(source, encoding): (&ExportSource, &Option<ElementEncoding>)| VariableSource {
        name: source.name.clone(),
        metadata: Arc::clone(source.metadata()),
        dimension_names: source.dimension_names.clone(),
        subset: source.subset.clone(),
        is_coordinate: source.is_coordinate,
        encoding: match encoding {
            Some(encoding) => VariableEncoding::Numbers(encoding.clone()),
            None => VariableEncoding::Texts { longest_bytes: 0 },
        },
    };
    sources.sources.iter().zip(encodings).map(source).collect()
}

/// Whether DAP2 can have a variable: of its types, and with elements, as some clients fail on dimensions without one.
fn can_have(source: &ExportSource) -> Result<(), String> {
    let metadata = source.metadata();
    let data_type = &metadata.data_type;
    if !is_text(data_type) && ElementEncoding::dap2(data_type, false).is_none() {
        return Err(format!("{}, which DAP2 has no type for", data_type.name()));
    }
    has_elements(source)
}

/// Whether an array has elements: some clients fail on dimensions without one.
pub(super) fn has_elements(source: &ExportSource) -> Result<(), String> {
    if source.metadata().shape.contains(&0) {
        return Err("a dimension without elements".to_owned());
    }
    Ok(())
}
