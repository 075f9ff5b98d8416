//! Level 2: the metadata of the store and of its levels. `shapes` checks the metadata of arrays.

use serde_json::Value;

use super::Report;
use super::shapes;
use super::structure::{CheckedLevel, CheckedLevels};
use crate::vectors::VectorError;
use crate::vectors::json::{JsonObject, finite_numbers, strings};
use crate::vectors::root::{Profile, RootMetadata};
use crate::vectors::shapes::{bin_shape, remainder, transform};
use crate::vectors::store::{VectorStore, is_before_9};

/// Numbers that differ by at most this fraction are equal.
const TOLERANCE: f64 = 1e-6;

const GEOMEMAX_ATTEMPTS: [&str; 7] =
    ["point_cloud", "line", "polyline", "streamline", "skeleton", "graph", "mesh"];
const CAPABILITIES: [&str; 4] =
    ["preserved_object_ids", "shared_fragments", "fragment_index", "multiscale_links"];
/// Members, and the values that each may have.
const TOKENS: [(&str, &[&str]); 4] = [
    ("links_convention", &["explicit", "implicit_sequential", "implicit_sequential_with_branches"]),
    ("object_index_convention", &["standard", "identity"]),
    ("cross_chunk_strategy", &["explicit_links", "boundary_deduplication", "both"]),
    ("cross_level_storage", &["none", "implicit", "explicit"]),
];

pub(super) async fn check(
    store: &VectorStore,
    found: &CheckedLevels,
    report: &mut Report,
) -> Result<(), VectorError> {
    let (root, at) = (&store.root, store.path.as_str());
    if root.profile == Profile::Doc {
        report.pass("attributes_agree", at);
        for name in &root.conflicting_members {
            report.error(
                "attributes_agree",
                at,
                format!("`{name}` differs between `zarr.json` and `.zattrs`"),
            );
        }
    }
    check_version(root, at, report);
    check_shapes(root, at, report);
    check_bounds(root, at, report);
    check_tokens(root, at, report);
    for level in &found.levels {
        check_level(root, level, report);
        shapes::check(store, level, report).await?;
    }
    Ok(())
}

fn check_version(root: &RootMetadata, at: &str, report: &mut Report) {
    report.pass("version_known", at);
    let is_doc = root.profile == Profile::Doc;
    let Some(version) = root.version() else {
        return report.error_or_warn(!is_doc, "version_known", at, "the version is missing");
    };
    let is_number =
        version.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    match root.profile {
        Profile::Doc if version != "1.0" => {
            report.warn("version_known", at, format!("the version is {version}, not 1.0"));
        }
        Profile::Doc => {}
        _ if !is_number => report.error("version_known", at, format!("`{version}` is not a version")),
        Profile::V9 if is_before_9(version) => {
            report.error(
                "version_known",
                at,
                format!("version {version} has a different layout from this store"),
            );
        }
        Profile::V7 if !is_before_9(version) => {
            report.error(
                "version_known",
                at,
                format!("version {version} has a different layout from this store"),
            );
        }
        Profile::V7 | Profile::V9 => {}
    }
}

/// The rank and sign of edge lengths, and whether bins divide chunks.
fn check_shapes(root: &RootMetadata, at: &str, report: &mut Report) {
    let dims = root.dims();
    let chunk = root.chunk_shape();
    if let Some(chunk) = &chunk {
        check_edges(chunk, dims, ("chunk_shape_rank", "chunk_shape_positive"), at, report);
    }
    if let Some(bin) = root.base_bin_shape() {
        check_edges(&bin, dims, ("bin_shape_rank", "bin_shape_positive"), at, report);
        if let Some(chunk) = &chunk {
            check_divisibility(chunk, &bin, at, report);
        }
    } else if root.store_metadata().get("base_bin_shape").is_some_and(|bin| !bin.is_null()) {
        report.error("bin_shape_rank", at, "`base_bin_shape` is not a list of finite numbers");
    }
}

fn check_edges(
    edges: &[f64],
    dims: Option<usize>,
    (rank, positive): (&'static str, &'static str),
    at: &str,
    report: &mut Report,
) {
    report.pass(rank, at);
    if let Some(dims) = dims.filter(|&dims| dims != edges.len()) {
        report.error(rank, at, format!("{} numbers for {dims} axes", edges.len()));
    }
    report.pass(positive, at);
    if let Some(edge) = edges.iter().find(|&&edge| edge <= 0.0) {
        report.error(positive, at, format!("{edge} is not above 0"));
    }
}

/// Whether chunk edges are multiples of bin edges, along axes where bins are no larger than chunks.
fn check_divisibility(chunk: &[f64], bin: &[f64], at: &str, report: &mut Report) {
    if chunk.len() != bin.len() || chunk.iter().chain(bin).any(|&edge| edge <= 0.0) {
        return report.skip("chunk_bin_divisible", at, "the shapes cannot be compared");
    }
    report.pass("chunk_bin_divisible", at);
    for (axis, (&chunk, &bin)) in chunk.iter().zip(bin).enumerate().filter(|(_, (chunk, bin))| bin <= chunk) {
        let ratio = chunk / bin;
        if remainder(chunk, bin) > TOLERANCE * chunk {
            report.error(
                "chunk_bin_divisible",
                at,
                format!("along axis {axis}, {bin} does not divide {chunk}"),
            );
        } else if (ratio - ratio.round()).abs() > 1e-9 {
            let message = format!(
                "along axis {axis}, {chunk} is {ratio} times {bin}: the format tolerates the difference, the library does not"
            );
            report.warn("library_would_reject", at, message);
        }
    }
}

fn check_bounds(root: &RootMetadata, at: &str, report: &mut Report) {
    let is_doc = root.profile == Profile::Doc;
    report.pass("bounds_rank", at);
    let Some((low, high)) = root.bounds() else {
        return report.error_or_warn(
            !is_doc,
            "bounds_rank",
            at,
            "the bounds are missing, or are not two lists of finite numbers",
        );
    };
    if low.len() != high.len() || root.dims().is_some_and(|dims| dims != low.len()) {
        report.error(
            "bounds_rank",
            at,
            format!("{} and {} numbers for {:?} axes", low.len(), high.len(), root.dims()),
        );
    }
    report.pass("bounds_order", at);
    for (axis, (low, high)) in low.iter().zip(&high).enumerate() {
        if low > high {
            report.error("bounds_order", at, format!("along axis {axis}, {low} is more than {high}"));
        }
        if is_doc && *low < 0.0 {
            report.error(
                "bounds_order",
                at,
                format!("along axis {axis}, {low} is below 0, outside of all chunks"),
            );
        }
    }
}

fn check_tokens(root: &RootMetadata, at: &str, report: &mut Report) {
    let metadata = root.store_metadata();
    report.pass("tokens", at);
    for geometry in root.geometry_types() {
        if !GEOMEMAX_ATTEMPTS.contains(&geometry.as_str()) {
            report.error("tokens", at, format!("`{geometry}` is not a geometry type"));
        }
    }
    report.pass("geometry_types_nonempty", at);
    if root.geometry_types().is_empty() {
        report.warn("geometry_types_nonempty", at, "no geometry type is declared");
    }
    for (name, words) in TOKENS {
        if let Some(word) = metadata.get(name).filter(|word| !words.iter().any(|known| *word == known)) {
            report.error("tokens", at, format!("`{name}` is {word}, which is not one of {words:?}"));
        }
    }
    let at_least = |name: &str, least: i64| {
        metadata.get(name).is_some_and(|depth| depth.as_i64().is_none_or(|depth| depth < least))
    };
    if at_least("cross_level_depth", -1) {
        report.error("tokens", at, "`cross_level_depth` is not an integer of at least -1");
    }
    if at_least("reduction_factor", 2) {
        report.error("tokens", at, "`reduction_factor` is not an integer of at least 2");
    }
    if let Some(written) = metadata.get("format_capabilities") {
        match strings(Some(written)) {
            None => report.error("tokens", at, "`format_capabilities` is not a list of strings"),
            Some(capabilities) => {
                for capability in capabilities.iter().filter(|known| !CAPABILITIES.contains(&known.as_str()))
                {
                    report.warn("tokens", at, format!("`{capability}` is not a known capability"));
                }
            }
        }
    }
}

/// The metadata of a level.
fn check_level(root: &RootMetadata, level: &CheckedLevel, report: &mut Report) {
    let at = level.path.as_str();
    let empty = JsonObject::new();
    let metadata = level.metadata.as_ref().unwrap_or(&empty);
    if level.metadata.is_some() {
        report.pass("level_index_matches", at);
        let declared = metadata.get("level").and_then(Value::as_u64);
        if declared != Some(level.name.index) {
            let declared = metadata.get("level").map_or_else(|| "null".to_owned(), Value::to_string);
            report.error(
                "level_index_matches",
                at,
                format!("level {} declares the number {declared}", level.name.index),
            );
        }
    }
    if let Some(written) = metadata.get("chunk_shape").filter(|shape| !shape.is_null()) {
        report.pass("level_chunk_shape", at);
        check_level_chunk_shape(root, written, at, report);
    }
    if let Some(count) = metadata.get("vertex_count").filter(|count| !count.is_null()) {
        report.pass("vertex_count_type", at);
        if count.as_u64().is_none() {
            report.error(
                "vertex_count_type",
                at,
                format!("`vertex_count` is {count}, not an integer of at least 0"),
            );
        }
    }
    let dataset = root.dataset(&level.name.name);
    let sparsities =
        [Some(metadata), dataset].into_iter().flatten().filter_map(|of| of.get("object_sparsity"));
    for sparsity in sparsities {
        report.pass("object_sparsity", at);
        if !sparsity.as_f64().is_some_and(|sparsity| sparsity > 0.0 && sparsity <= 1.0) {
            report.error(
                "object_sparsity",
                at,
                format!("`object_sparsity` is {sparsity}, not above 0 and at most 1"),
            );
        }
    }
    check_bin_ratio(root, level, metadata, report);
    let chunk = finite_numbers(metadata.get("chunk_shape")).or_else(|| root.chunk_shape());
    if let Some(chunk) = chunk
        && let Some(bin) = bin_shape(root, &level.name.name, metadata, &chunk)
    {
        check_edges(&bin, root.dims(), ("bin_shape_rank", "bin_shape_positive"), at, report);
        check_divisibility(&chunk, &bin, at, report);
    }
}

fn check_level_chunk_shape(root: &RootMetadata, written: &Value, at: &str, report: &mut Report) {
    let (Some(own), Some(base)) = (finite_numbers(Some(written)), root.chunk_shape()) else {
        return report.error("level_chunk_shape", at, "`chunk_shape` is not a list of finite numbers");
    };
    if own.len() != base.len() {
        return report.error(
            "level_chunk_shape",
            at,
            format!("{} numbers for {} axes", own.len(), base.len()),
        );
    }
    for (axis, (own, base)) in own.iter().zip(&base).enumerate() {
        let ratio = own / base;
        if !ratio.is_finite() || ratio < 1.0 - TOLERANCE || (ratio - ratio.round()).abs() > TOLERANCE {
            report.error(
                "level_chunk_shape",
                at,
                format!("along axis {axis}, {own} is not a multiple of {base}"),
            );
        }
    }
}

/// The ratio of a level's bins to those of the finest level, which several members declare.
fn check_bin_ratio(root: &RootMetadata, level: &CheckedLevel, metadata: &JsonObject, report: &mut Report) {
    let at = level.path.as_str();
    let dataset = root.dataset(&level.name.name);
    let (Some(dims), Some(base)) = (root.dims(), root.base_bin_shape().or_else(|| root.chunk_shape())) else {
        return;
    };
    let mut ratios = Vec::new();
    for (name, written) in [
        ("bin_ratio", metadata.get("bin_ratio")),
        ("bin_ratio of the multiscales", dataset.and_then(|dataset| dataset.get("bin_ratio"))),
    ] {
        match (written, finite_numbers(written)) {
            (None, _) => {}
            (Some(_), Some(ratio)) => ratios.push((name, ratio)),
            (Some(written), None) => {
                report.error("bin_ratio", at, format!("`{name}` is {written}, not a list of numbers"));
            }
        }
    }
    if let Some(scale) = dataset.and_then(|dataset| transform(dataset, "scale")) {
        ratios.push(("scale", scale));
    }
    let mut bins = Vec::new();
    for written in [metadata.get("bin_shape"), dataset.and_then(|dataset| dataset.get("bin_shape"))] {
        bins.extend(finite_numbers(written).map(|bin| ("bin_shape", bin)));
    }
    if let Some(half) = dataset.and_then(|dataset| transform(dataset, "translation")) {
        bins.push(("twice the translation", half.iter().map(|half| half * 2.0).collect()));
    }
    if ratios.is_empty() && bins.is_empty() {
        return;
    }
    report.pass("bin_ratio", at);
    for (name, ratio) in &ratios {
        if ratio.len() != dims {
            report.error("bin_ratio", at, format!("{name} has {} numbers for {dims} axes", ratio.len()));
        } else if let Some(one) = ratio.iter().find(|&&one| one < 1.0) {
            report.error("bin_ratio", at, format!("{name} has {one}, which is below 1"));
        }
    }
    let is_same = |one: &[f64], other: &[f64]| {
        one.len() == other.len()
            && one.iter().zip(other).all(|(one, other)| (one - other).abs() <= TOLERANCE * other.abs())
    };
    let Some((name, ratio)) = ratios.first() else { return };
    for (other, found) in ratios.iter().skip(1) {
        if !is_same(found, ratio) {
            report.error("bin_ratio", at, format!("{other} is {found:?}, but {name} is {ratio:?}"));
        }
    }
    if ratio.len() != base.len() {
        return;
    }
    let expected: Vec<f64> = base.iter().zip(ratio).map(|(base, ratio)| base * ratio).collect();
    for (other, found) in &bins {
        if !is_same(found, &expected) {
            report.error("bin_ratio", at, format!("{other} is {found:?}, but {name} gives {expected:?}"));
        }
    }
}
