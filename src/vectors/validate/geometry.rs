//! Levels 4 and 5: the requirements of geometry types, and the relations between the levels of the pyramid.

use serde_json::Value;

use super::Report;
use super::structure::{CheckedLevel, CheckedLevels, NodeState, read_node};
use crate::vectors::VectorError;
use crate::vectors::json::{JsonObject, finite_numbers, is_true, string};
use crate::vectors::root::Profile;
use crate::vectors::shapes::bin_shape;
use crate::vectors::store::VectorStore;

const SEQUENTIAL: &str = "implicit_sequential";
const BRANCHES: &str = "implicit_sequential_with_branches";
const EXPLICIT: &str = "explicit";

pub(super) async fn check_geometry_types(
    store: &VectorStore,
    found: &CheckedLevels,
    report: &mut Report,
) -> Result<(), VectorError> {
    let (root, at) = (&store.root, store.path.as_str());
    let kinds = root.geometry_types();
    if root.profile != Profile::Doc {
        let convention = string(root.store_metadata(), "links_convention").unwrap_or(SEQUENTIAL);
        report.pass("geometry_links", at);
        for kind in &kinds {
            let allowed: &[&str] = match kind.as_str() {
                "line" | "polyline" | "streamline" => &[SEQUENTIAL],
                "graph" | "mesh" => &[EXPLICIT],
                "skeleton" => &[BRANCHES, EXPLICIT],
                _ => continue,
            };
            if !allowed.contains(&convention) {
                report.error(
                    "geometry_links",
                    at,
                    format!("`{kind}` requires links of {allowed:?}, not `{convention}`"),
                );
            }
        }
    }
    for level in &found.levels {
        check_level(store, level, &kinds, report).await?;
    }
    Ok(())
}

async fn check_level(
    store: &VectorStore,
    level: &CheckedLevel,
    kinds: &[String],
    report: &mut Report,
) -> Result<(), VectorError> {
    let at = level.path.as_str();
    let links = level.path.child("links")?;
    let is_doc = store.root.profile == Profile::Doc;
    let is_mesh = kinds.iter().any(|kind| kind == "mesh");
    if is_doc {
        if let (true, NodeState::Array(faces)) = (is_mesh, read_node(store, &links.child("faces")?).await?) {
            report.pass("mesh_link_width", at);
            if faces.shape.last().is_none_or(|&width| width < 3) {
                report.error(
                    "mesh_link_width",
                    at,
                    format!("faces have the shape {:?}: fewer than 3 vertices", faces.shape),
                );
            }
        }
    } else if let NodeState::Group(family) = read_node(store, &links.child("0")?).await? {
        if is_mesh {
            report.pass("mesh_link_width", at);
            let width = family.get("link_width").and_then(Value::as_u64);
            if width.is_none_or(|width| width < 3) {
                report.error("mesh_link_width", at, format!("faces have {width:?} vertices, fewer than 3"));
            }
        }
        if kinds == ["point_cloud"] {
            report.warn("point_cloud_links", at, "a point cloud has links within the level");
        }
    }
    if kinds == ["point_cloud"] {
        report.pass("point_cloud_links", at);
    }
    Ok(())
}

pub(super) async fn check_pyramid(
    store: &VectorStore,
    found: &CheckedLevels,
    report: &mut Report,
) -> Result<(), VectorError> {
    let (root, at) = (&store.root, store.path.as_str());
    report.pass("levels_contiguous", at);
    for (expected, level) in (0_u64..).zip(store.levels.iter()) {
        if level.index != expected {
            report.error(
                "levels_contiguous",
                at,
                format!("there is a level {}, but no level {expected}", level.index),
            );
            break;
        }
    }
    let empty = JsonObject::new();
    let metadata = |level: &CheckedLevel| level.metadata.clone().unwrap_or_else(|| empty.clone());
    report.pass("vertex_count_monotone", at);
    report.pass("bin_ratio_monotone", at);
    for pair in found.levels.windows(2) {
        let [finer, coarser] = pair else { continue };
        let count = |level: &CheckedLevel| metadata(level).get("vertex_count").and_then(Value::as_u64);
        if let (Some(fine), Some(coarse)) = (count(finer), count(coarser))
            && coarse > fine
        {
            let message = format!(
                "level {} has {coarse} vertices, level {} has {fine}",
                coarser.name.index, finer.name.index
            );
            report.error("vertex_count_monotone", at, message);
        }
        let volume = |level: &CheckedLevel| {
            let metadata = metadata(level);
            let chunk = finite_numbers(metadata.get("chunk_shape")).or_else(|| root.chunk_shape())?;
            Some(bin_shape(root, &level.name.name, &metadata, &chunk)?.iter().product::<f64>())
        };
        if let (Some(fine), Some(coarse)) = (volume(finer), volume(coarser))
            && coarse < fine * (1.0 - 1e-9)
        {
            let message = format!(
                "bins of level {} are smaller than those of level {}",
                coarser.name.index, finer.name.index
            );
            report.error("bin_ratio_monotone", at, message);
        }
    }
    for level in &found.levels {
        check_preserved_ids(store, level, &metadata(level), report).await?;
    }
    Ok(())
}

/// A level that preserves the object ids of finer levels has a manifest for each of them.
async fn check_preserved_ids(
    store: &VectorStore,
    level: &CheckedLevel,
    metadata: &JsonObject,
    report: &mut Report,
) -> Result<(), VectorError> {
    if !is_true(metadata, "preserves_object_ids") {
        return Ok(());
    }
    let at = level.path.as_str();
    report.pass("preserved_ids", at);
    let Some(inherited) = metadata.get("inherited_num_objects").and_then(Value::as_u64) else {
        report.error("preserved_ids", at, "`inherited_num_objects` is missing, or is not an integer");
        return Ok(());
    };
    let manifests = level.path.child("object_index")?.child("manifests")?;
    let rows = match read_node(store, &manifests).await? {
        NodeState::Array(array) => array.shape.first().copied().unwrap_or_default(),
        NodeState::Missing | NodeState::Group(_) | NodeState::Unusable(_) => 0,
    };
    if rows != inherited {
        report.error(
            "preserved_ids",
            at,
            format!("{inherited} objects are inherited, but there are {rows} manifests"),
        );
    }
    Ok(())
}
