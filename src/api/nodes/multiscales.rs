//! The levels of a group as nodes (the Zarr convention "multiscales", `layout`).
//!
//! The transforms and derivations of the levels stay in the attributes. Each level is a node below the group. It may be a
//! dependent array, which the convention does not mention.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::array::{ArrayError, NodeOpener};
use crate::cpu::ComputePool;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::HierarchyError;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::GroupMetadata;
use crate::metadata::dependents::{Diagnostic, DiagnosticCode};

/// Maximum number of levels that are opened.
const MOST_LEVELS: usize = 64;

/// A level of a group.
#[derive(Debug)]
pub(crate) struct MultiscaleLevel {
    /// The name of the level in the attributes of the group.
    asset: String,
    /// The path of its node; `None` if there is no node.
    node: Option<NodePath>,
    /// Whether it is a dependent array; `None` if it cannot be opened.
    is_virtual: Option<bool>,
}

/// The levels in the attributes of a group; `None` if the group has no `multiscales` layout.
pub(crate) async fn multiscale_levels(
    opener: &NodeOpener,
    cpu: &ComputePool,
    group: &NodePath,
    metadata: &Arc<GroupMetadata>,
) -> Result<Option<Vec<MultiscaleLevel>>, Problem> {
    let Some(text) = metadata.attributes.member_text("multiscales") else { return Ok(None) };
    let (bytes, metadata) = (text.len() as u64, Arc::clone(metadata));
    let Some(assets) = cpu.run_document(bytes, move || assets(&metadata)).await? else { return Ok(None) };
    let mut levels = Vec::with_capacity(assets.len());
    for asset in assets {
        let mut level = MultiscaleLevel { node: None, is_virtual: None, asset };
        if let Ok(path) = NodePath::parse(&format!("{}{}", group.prefix(), level.asset)) {
            match opener.open(&path).await {
                Ok(opened) => {
                    level.is_virtual = Some(opened.dependent.is_some());
                    level.node = Some(path);
                }
                // The level exists; a request for its node reports the error.
                Err(error) if is_unusable(&error) => level.node = Some(path),
                Err(error) if error.class() == ErrorClass::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        levels.push(level);
    }
    Ok(Some(levels))
}

/// The names of the levels in the attributes of a group.
fn assets(metadata: &GroupMetadata) -> Option<Vec<String>> {
    let multiscales = metadata.attributes.get("multiscales")?;
    let layout = multiscales.get("layout")?.as_array()?;
    let assets = layout.iter().filter_map(|level| level.get("asset")?.as_str());
    Some(assets.take(MOST_LEVELS).map(str::to_owned).collect())
}

/// Adds the levels to the node document of a group. `href` returns the link to a node.
pub(crate) fn describe(
    document: &mut Map<String, Value>,
    levels: &[MultiscaleLevel],
    href: impl Fn(&NodePath) -> String,
) {
    let mut remarks = Vec::new();
    let levels = levels.iter().map(|MultiscaleLevel { asset, node, is_virtual }| {
        let mut level = json!({ "asset": asset, "href": node.as_ref().map(&href) });
        if let Some(is_virtual) = is_virtual {
            level["virtual"] = json!(is_virtual);
        }
        if *is_virtual == Some(true) {
            let detail = format!("`{asset}` is declared by an array, of which `multiscales` knows nothing");
            remarks.push(Diagnostic::new(DiagnosticCode::VirtualAsset, detail));
        }
        level
    });
    let levels = levels.collect();
    document.insert("multiscales".to_owned(), Value::Array(levels));
    if !remarks.is_empty() {
        let list = document.entry("diagnostics").or_insert_with(|| json!([]));
        if let (Value::Array(list), Value::Array(remarks)) = (list, crate::api::dependents::remarks(&remarks))
        {
            list.extend(remarks);
        }
    }
}

fn is_unusable(error: &ArrayError) -> bool {
    let ArrayError::Hierarchy(error) = error else { return false };
    matches!(error, HierarchyError::Dependent { .. }) || error.is_of_stored_node()
}
