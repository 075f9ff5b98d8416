//! The warnings of a node's summary for its page, from what the page has read anyway.

use super::links::PageLinks;
use crate::array::OpenNode;
use crate::conventions::{
    ArrayFacts, LayoutWarning, Neighbour, Neighbours, NodeFacts, WayOut, summarize_array, summarize_group,
};
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::GroupMetadata;
use crate::page::{ChildRow, PageWarning};
use crate::services::state::AppState;

/// The code of the warning about a large array without coarser levels.
const SINGLE_LEVEL: &str = "single-level";

/// The warnings about an array. A level of an image has other levels.
pub(super) async fn of_array(
    state: &AppState,
    links: PageLinks<'_>,
    path: &NodePath,
    node: &OpenNode,
    is_level: bool,
) -> Result<Vec<PageWarning>, Problem> {
    let Node::Array(metadata) = &node.node else { return Ok(Vec::new()) };
    let decoded_chunk_shape = node.array().ok().and_then(|array| array.decoded_chunk_shape());
    let facts = ArrayFacts { metadata: metadata.clone(), decoded_chunk_shape, ends: None };
    let (of, bytes) = (path.clone(), metadata.attributes.text().len() as u64);
    let summarized = move || summarize_array(&of, &facts, &Neighbours::default()).warnings;
    let warnings = state.engine.cpu.run_document(bytes, summarized).await?;
    let warnings = warnings.into_iter().filter(|warning| !is_level || warning.code != SINGLE_LEVEL);
    Ok(warnings.map(|warning| page_warning(links, path, warning)).collect())
}

/// The warnings about a group, given the levels that it has as an image.
pub(super) async fn of_group(
    state: &AppState,
    links: PageLinks<'_>,
    path: &NodePath,
    group: &GroupMetadata,
    is_stale: bool,
    levels: &[ChildRow],
) -> Result<Vec<PageWarning>, Problem> {
    let mut neighbours = Neighbours::default();
    for level in levels {
        let (Some((metadata, array)), Ok(node)) = (&level.array, path.child(&level.item.name)) else {
            continue;
        };
        let decoded_chunk_shape = array.as_ref().ok().and_then(|array| array.decoded_chunk_shape());
        let facts = ArrayFacts { metadata: metadata.clone(), decoded_chunk_shape, ends: None };
        neighbours.0.insert(node, Neighbour::Present(NodeFacts::Array(facts)));
    }
    let (path, group) = (path.clone(), group.clone());
    let bytes = group.attributes.text().len() as u64;
    let (of, summarized) =
        (path.clone(), move || summarize_group(&path, &group, &neighbours, is_stale).warnings);
    let warnings = state.engine.cpu.run_document(bytes, summarized).await?;
    Ok(warnings.into_iter().map(|warning| page_warning(links, &of, warning)).collect())
}

fn page_warning(links: PageLinks<'_>, path: &NodePath, warning: LayoutWarning) -> PageWarning {
    let way_out = warning.way_out.map(|way_out| match way_out {
        WayOut::Pyramid => ("Read it with coarser levels", links.through("pyramid", "auto/auto/raw", path)),
        WayOut::Rechunk => ("Read it in other chunks", links.through("rechunk", "auto/zstd-1", path)),
    });
    PageWarning { detail: warning.detail, way_out }
}
