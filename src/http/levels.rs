//! The levels of a group as nodes (the Zarr convention "multiscales", `layout`).
//!
//! What transforms and derives levels is the attributes' own to tell. Each level is a node below the group; that it may be
//! one that an array declares, the convention does not say.

use serde_json::{Map, Value, json};

use super::problem::Problem;
use crate::array::{ArrayError, Opener};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::HierarchyError;
use crate::key::NodePath;
use crate::metadata::GroupMetadata;
use crate::metadata::dependents::{Diagnostic, DiagnosticCode};

/// Levels that are looked for.
const MOST_LEVELS: usize = 64;

/// Says in a group's document where its levels are. `href` makes links.
pub(super) async fn describe(
    document: &mut Map<String, Value>,
    opener: &Opener,
    group: &NodePath,
    metadata: &GroupMetadata,
    href: impl Fn(&NodePath) -> String,
) -> Result<(), Problem> {
    let layout = metadata.attributes.get("multiscales").and_then(|multiscales| multiscales.get("layout"));
    let Some(layout) = layout.and_then(Value::as_array) else { return Ok(()) };
    let (mut levels, mut remarks) = (Vec::new(), Vec::new());
    let assets = layout.iter().filter_map(|level| level.get("asset")?.as_str());
    for asset in assets.take(MOST_LEVELS) {
        let mut level = json!({ "asset": asset, "href": null });
        if let Ok(path) = NodePath::parse(&format!("{}{asset}", group.prefix())) {
            match opener.open(&path).await {
                Ok(opened) => {
                    level["href"] = json!(href(&path));
                    level["virtual"] = json!(opened.dependent.is_some());
                    if opened.dependent.is_some() {
                        let detail = format!(
                            "`{asset}` is declared by an array, of which `multiscales` knows nothing"
                        );
                        remarks.push(Diagnostic::new(DiagnosticCode::VirtualAsset, detail));
                    }
                }
                // What is wrong with a level is for the level to say.
                Err(error) if is_unusable(&error) => level["href"] = json!(href(&path)),
                Err(error) if error.class() == ErrorClass::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        levels.push(level);
    }
    document.insert("multiscales".to_owned(), Value::Array(levels));
    if !remarks.is_empty() {
        let told = document.entry("diagnostics").or_insert_with(|| json!([]));
        if let (Value::Array(told), Value::Array(remarks)) = (told, super::dependents::remarks(&remarks)) {
            told.extend(remarks);
        }
    }
    Ok(())
}

fn is_unusable(error: &ArrayError) -> bool {
    matches!(error, ArrayError::Hierarchy(HierarchyError::Metadata { .. } | HierarchyError::Dependent { .. }))
}
