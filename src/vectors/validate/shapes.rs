//! Level 2, arrays: grids that match the bounds and each other, and the attributes that describe payloads.

use serde_json::Value;

use super::Report;
use super::structure::{CheckedLevel, NodeState, read_node};
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, DataType};
use crate::vectors::json::{JsonObject, integers, string};
use crate::vectors::payload::number_type;
use crate::vectors::root::Profile;
use crate::vectors::shapes::Shapes;
use crate::vectors::store::VectorStore;
use crate::vectors::{VectorError, parse_coord};

/// An array with a cell for each chunk.
struct GriddedArray {
    path: NodePath,
    metadata: std::sync::Arc<ArrayMetadata>,
    attributes: std::sync::Arc<JsonObject>,
    /// What its payloads hold.
    role: PayloadRole,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PayloadRole {
    Vertices,
    Index,
    Values,
    Links,
}

pub(super) async fn check(
    store: &VectorStore,
    level: &CheckedLevel,
    report: &mut Report,
) -> Result<(), VectorError> {
    if store.root.profile == Profile::V7 {
        return Ok(());
    }
    let arrays = find_gridded_arrays(store, level).await?;
    check_grids(store, level, &arrays, report);
    if store.root.profile == Profile::Doc {
        check_doc_array_shapes(store, level, &arrays, report);
    } else {
        for array in &arrays {
            check_array_attributes(store, array, report);
        }
    }
    Ok(())
}

/// The arrays of a level that have a cell for each chunk.
async fn find_gridded_arrays(
    store: &VectorStore,
    level: &CheckedLevel,
) -> Result<Vec<GriddedArray>, VectorError> {
    let mut paths = Vec::new();
    let is_doc = store.root.profile == Profile::Doc;
    let own: &[(&str, PayloadRole)] = if is_doc {
        &[("vertices", PayloadRole::Vertices), ("vertex_group_offsets", PayloadRole::Index)]
    } else {
        &[
            ("vertices", PayloadRole::Vertices),
            ("vertex_fragments", PayloadRole::Index),
            ("link_fragments", PayloadRole::Index),
        ]
    };
    for (name, what) in own {
        paths.push((level.path.child(name)?, *what));
    }
    let folders: &[(&str, PayloadRole)] = if is_doc {
        &[("attributes", PayloadRole::Values), ("links", PayloadRole::Links)]
    } else {
        &[("vertex_attributes", PayloadRole::Values), ("fragment_attributes", PayloadRole::Values)]
    };
    for (folder, what) in folders {
        for path in child_paths(store, &level.path.child(folder)?).await? {
            paths.push((path, *what));
        }
    }
    if !is_doc {
        for family in child_paths(store, &level.path.child("links")?).await? {
            paths.extend(
                child_paths(store, &family).await?.into_iter().map(|path| (path, PayloadRole::Links)),
            );
        }
        for attribute in child_paths(store, &level.path.child("link_attributes")?).await? {
            for family in child_paths(store, &attribute).await? {
                paths.extend(
                    child_paths(store, &family).await?.into_iter().map(|path| (path, PayloadRole::Values)),
                );
            }
        }
    }
    let mut arrays = Vec::new();
    for (path, what) in paths {
        if let NodeState::Array(metadata) = read_node(store, &path).await? {
            let attributes = store.context.parse_attributes(&metadata.attributes).await?;
            arrays.push(GriddedArray { path, metadata, attributes, role: what });
        }
    }
    Ok(arrays)
}

async fn child_paths(store: &VectorStore, path: &NodePath) -> Result<Vec<NodePath>, VectorError> {
    let names = store.context.child_names(path).await?.unwrap_or_default();
    names.iter().map(|name| Ok(path.child(name)?)).collect()
}

/// The first cell and the number of cells along each spatial axis.
fn array_grid(array: &GriddedArray, dims: usize, profile: Profile) -> Option<Vec<(i64, u64)>> {
    let shape = &array.metadata.shape;
    if profile == Profile::Doc {
        return Some(shape.get(..dims)?.iter().map(|&length| (0, length)).collect());
    }
    let lead = shape.len().checked_sub(dims)?;
    let origin = match array.attributes.get("chunk_grid_origin").filter(|origin| !origin.is_null()) {
        None => vec![0; shape.len()],
        written => integers(written)?,
    };
    let origin = origin.get(origin.len().checked_sub(dims)?..)?.to_vec();
    Some(origin.into_iter().zip(shape.get(lead..)?.iter().copied()).collect())
}

fn check_grids(store: &VectorStore, level: &CheckedLevel, arrays: &[GriddedArray], report: &mut Report) {
    let root = &store.root;
    let empty = JsonObject::new();
    let level_metadata = level.metadata.as_ref().unwrap_or(&empty);
    let (Ok(shapes), Some((_, high))) =
        (Shapes::from_metadata(root, &level.name.name, level_metadata), root.bounds())
    else {
        return report.skip("chunk_grid_consistent", level.path.as_str(), "chunks or bounds are unknown");
    };
    let dims = shapes.chunk.len();
    let mut first: Option<(&GriddedArray, Vec<(i64, u64)>)> = None;
    for array in arrays {
        let at = array.path.as_str();
        report.pass("chunk_grid_consistent", at);
        let Some(grid) = array_grid(array, dims, root.profile) else {
            report.error(
                "chunk_grid_consistent",
                at,
                "its grid has a different number of axes from the store",
            );
            continue;
        };
        for (axis, ((&(origin, cells), &chunk), &high)) in
            grid.iter().zip(&shapes.chunk).zip(&high).enumerate()
        {
            #[expect(
                clippy::cast_precision_loss,
                reason = "grids of more than 2^53 cells are wrong in any case"
            )]
            let (origin, cells) = (origin as f64, cells as f64);
            let exclusive = ((high - origin * chunk) / chunk).ceil();
            let inclusive = (high / chunk).floor() - origin + 1.0;
            let is_one_of = |expected: f64| (cells - expected).abs() < 0.5;
            if is_one_of(exclusive) || is_one_of(inclusive) {
                continue;
            }
            let message =
                format!("along axis {axis} it has {cells} cells; the bounds need {exclusive} or {inclusive}");
            report.error_or_warn(
                !is_one_of(exclusive.max(inclusive) + 1.0),
                "chunk_grid_consistent",
                at,
                message,
            );
        }
        match &first {
            Some((other, expected)) if *expected != grid => {
                let message = format!("its grid differs from that of `{}`", other.path.as_str());
                report.error("chunk_grid_consistent", at, message);
            }
            Some(_) => {}
            None => first = Some((array, grid)),
        }
    }
}

fn check_doc_array_shapes(
    store: &VectorStore,
    level: &CheckedLevel,
    arrays: &[GriddedArray],
    report: &mut Report,
) {
    let empty = JsonObject::new();
    let level_metadata = level.metadata.as_ref().unwrap_or(&empty);
    let Some(dims) = store.root.dims() else { return };
    let bins = Shapes::from_metadata(&store.root, &level.name.name, level_metadata)
        .ok()
        .and_then(|shapes| shapes.bins_per_chunk);
    let bins: Option<u64> = bins.map(|bins| bins.iter().map(|bins| bins.unsigned_abs()).product());
    for array in arrays {
        let (at, shape, kind) = (array.path.as_str(), &array.metadata.shape, &array.metadata.data_type);
        report.pass("doc_array_shapes", at);
        let mut wrong = |message: String| report.error("doc_array_shapes", at, message);
        match array.role {
            PayloadRole::Vertices => {
                if shape.len() != dims + 2 || shape.last() != Some(&(dims as u64)) {
                    wrong(format!("the shape {shape:?} does not end in rows of {dims} coordinates"));
                }
                match kind {
                    DataType::Float32 => {}
                    DataType::Float16 | DataType::Float64 => {
                        report.warn(
                            "doc_array_shapes",
                            at,
                            format!("coordinates are {}, not float32", kind.name()),
                        );
                    }
                    _ => wrong(format!("coordinates are {}, not floats", kind.name())),
                }
            }
            PayloadRole::Index => {
                let expected = bins.map(|bins| [bins, 2]);
                let found = shape.get(dims..).unwrap_or_default();
                if shape.len() != dims + 2
                    || expected.is_some_and(|expected| found != expected)
                    || found.last() != Some(&2)
                {
                    wrong(format!("the shape {shape:?} does not end in {expected:?}: a pair for each bin"));
                }
                if *kind != DataType::Int64 {
                    wrong(format!("offsets are {}, not int64", kind.name()));
                }
            }
            PayloadRole::Values | PayloadRole::Links => {
                if shape.len() <= dims {
                    wrong(format!("the shape {shape:?} has no rows in a chunk"));
                }
            }
        }
    }
}

/// The attributes of an array of profile 0.9.
fn check_array_attributes(store: &VectorStore, array: &GriddedArray, report: &mut Report) {
    let (at, attributes) = (array.path.as_str(), &array.attributes);
    report.pass("array_attrs", at);
    let mut wrong = |message: String| report.error("array_attrs", at, message);
    let kind = string(attributes, "dtype");
    let number = kind.and_then(number_type);
    match array.role {
        PayloadRole::Vertices => {
            if !matches!(number, Some(DataType::Float16 | DataType::Float32 | DataType::Float64)) {
                wrong(format!("coordinates are of type {kind:?}, not float16, float32 or float64"));
            }
        }
        PayloadRole::Values if number.is_none() => {
            wrong(format!("values are of type {kind:?}, which is unknown"));
        }
        PayloadRole::Links
            if attributes.contains_key("dtype")
                && !matches!(number, Some(DataType::Int64 | DataType::Int32)) =>
        {
            wrong(format!("records are of type {kind:?}, not int64 or int32"));
        }
        PayloadRole::Values | PayloadRole::Index | PayloadRole::Links => {}
    }
    let known: &[&str] = match array.role {
        PayloadRole::Vertices => &["raw", "draco"],
        PayloadRole::Index => &["fragment_index_v1"],
        PayloadRole::Values => &["raw", "dictionary"],
        PayloadRole::Links => &["raw", "ragged", "ragged_v1", "links_v1"],
    };
    if let Some(encoding) = string(attributes, "encoding").filter(|encoding| !known.contains(encoding)) {
        wrong(format!("the encoding `{encoding}` is not one of {known:?}"));
    }
    if string(attributes, "encoding") == Some("dictionary")
        && attributes.get("categories").is_none_or(|all| !all.is_array())
    {
        wrong("there are no `categories` for its codes".to_owned());
    }
    let rank = array.metadata.shape.len();
    let dims = store.root.dims().unwrap_or(rank);
    let origin = match attributes.get("chunk_grid_origin").filter(|origin| !origin.is_null()) {
        None => Some(vec![0; rank]),
        written => integers(written).and_then(|mut origin| {
            if origin.len() == dims && rank == dims + 1 {
                origin.insert(0, 0);
            }
            (origin.len() == rank).then_some(origin)
        }),
    };
    let Some(origin) = origin else {
        return wrong("`chunk_grid_origin` is not the coordinates of a chunk".to_owned());
    };
    let named = match attributes.get("nonempty_chunks") {
        None | Some(Value::Null) => return,
        Some(Value::Array(named)) => named,
        Some(_) => return wrong("`nonempty_chunks` is not a list".to_owned()),
    };
    let is_inside = |coord: &Vec<i64>| {
        coord.len() == rank
            && coord.iter().zip(&origin).zip(&array.metadata.shape).all(|((at, origin), &length)| {
                at.checked_sub(*origin)
                    .and_then(|cell| u64::try_from(cell).ok())
                    .is_some_and(|cell| cell < length)
            })
    };
    for name in named {
        let coord = name.as_str().and_then(parse_coord);
        if !coord.as_ref().is_some_and(is_inside) {
            wrong(format!("`nonempty_chunks` has {name}, which is not a cell of the grid"));
        }
    }
}
