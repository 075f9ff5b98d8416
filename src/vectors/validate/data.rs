//! Level 3: the data. Every chunk is read, several concurrently, until the deadline.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::stream::{self, StreamExt};

use super::chunks::{CheckInputs, ChunkFacts, Finding, check_chunk};
use super::level_facts::LevelFacts;
use super::structure::{CheckedLevel, CheckedLevels};
use super::{Report, links, manifests};
use crate::vectors::level::ResolutionLevel;
use crate::vectors::store::VectorStore;
use crate::vectors::{CellArray, Profile, VectorError, VertexAttribute, format_coord};

/// The number of chunks checked concurrently.
const CONCURRENCY: usize = 4;

/// The checks that run for each level of the pyramid.
const DATA_CHECKS: [&str; 13] = [
    "chunk_decodes",
    "fragment_index",
    "vertex_in_chunk",
    "finite",
    "vertex_count",
    "presence",
    "attr_aligned",
    "fragments_tile_claim",
    "bins_in_order",
    "manifests",
    "fragment_owner",
    "links_segments",
    "links_records",
];

pub(super) async fn check(
    store: &VectorStore,
    found: &CheckedLevels,
    report: &mut Report,
    deadline: Instant,
) -> Result<(), VectorError> {
    let mut facts: HashMap<u64, LevelFacts> = HashMap::new();
    let mut levels = Vec::new();
    for level in &found.levels {
        let opened = match ResolutionLevel::open(store, &level.name).await {
            Ok(opened) => opened,
            Err(error @ (VectorError::Store { .. } | VectorError::Cpu(_))) => return Err(error),
            Err(error) => {
                for id in DATA_CHECKS {
                    report.skip(id, level.path.as_str(), error.to_string());
                }
                continue;
            }
        };
        let of_level = check_chunks(&opened, level, report, deadline).await?;
        facts.insert(level.name.index, of_level);
        levels.push(opened);
    }
    for level in &levels {
        let at = level.path.as_str();
        if Instant::now() >= deadline || !facts.get(&level.name.index).is_some_and(|facts| facts.is_complete)
        {
            report.is_complete = false;
            for id in ["manifests", "fragment_owner", "links_segments", "links_records"] {
                report.skip(id, at, "the deadline has passed");
            }
            continue;
        }
        manifests::check(level, &facts, report, deadline).await?;
        if level.store.root.profile == Profile::V7 {
            report.skip("links_records", at, "links are not supported in this profile");
        } else {
            links::check(level, &facts, report, deadline).await?;
        }
    }
    Ok(())
}

/// Checks every chunk of a level.
async fn check_chunks(
    level: &ResolutionLevel,
    found: &CheckedLevel,
    report: &mut Report,
    deadline: Instant,
) -> Result<LevelFacts, VectorError> {
    let at = found.path.as_str();
    for id in DATA_CHECKS
        .iter()
        .filter(|id| !["manifests", "fragment_owner", "links_segments", "links_records"].contains(id))
    {
        report.pass(id, at);
    }
    if level.store.root.profile == Profile::Doc {
        report.pass("vgo_arithmetic", at);
    }
    let occupied = level.non_empty_chunks().await?.cells;
    check_presence(level, report).await?;
    let inputs = Arc::new(check_inputs(level, report).await?);
    let mut facts = LevelFacts { is_complete: true, ..LevelFacts::default() };
    let (mut rows, mut vertex_rows) = (0_u64, 0_u64);
    let mut checking = stream::iter(occupied)
        .map(|coord| {
            let inputs = Arc::clone(&inputs);
            async move {
                if Instant::now() >= deadline {
                    return (coord, None);
                }
                let outcome = check_chunk(&inputs, &coord).await;
                (coord, Some(outcome))
            }
        })
        .buffered(CONCURRENCY);
    while let Some((coord, outcome)) = checking.next().await {
        let Some(outcome) = outcome else {
            facts.is_complete = false;
            continue;
        };
        let ChunkFacts { rows: own, vertex_rows: counted, fragments, findings } = outcome?;
        rows = rows.saturating_add(own);
        vertex_rows = vertex_rows.saturating_add(counted);
        for Finding { id, is_error, path, message } in findings {
            let message = format!("chunk `{}`: {message}", format_coord(&coord));
            report.error_or_warn(is_error, id, &path, message);
        }
        facts.chunks.insert(coord, (own, fragments));
    }
    drop(checking);
    if !facts.is_complete {
        report.is_complete = false;
        report.skip("chunk_decodes", at, "the deadline passed before every chunk was checked");
        report.skip("vertex_count", at, "the deadline passed before every chunk was checked");
    } else if let Some(count) = level.vertex_count()
        && count != rows
        && count != vertex_rows
    {
        report.error("vertex_count", at, format!("the level declares {count}; its chunks have {rows}"));
    }
    Ok(facts)
}

/// Opens what the checks of each chunk of a level need.
async fn check_inputs(level: &ResolutionLevel, report: &mut Report) -> Result<CheckInputs, VectorError> {
    let mut attributes = Vec::new();
    for name in VertexAttribute::names(level).await? {
        match VertexAttribute::open(level, &name).await {
            Ok(attribute) => attributes.push(attribute),
            Err(error @ (VectorError::Store { .. } | VectorError::Cpu(_))) => return Err(error),
            Err(error) => report.skip("attr_aligned", level.path.as_str(), format!("`{name}`: {error}")),
        }
    }
    let mut of_fragments = Vec::new();
    let below = level.path.child("fragment_attributes")?;
    for name in level.store.context.child_names(&below).await?.unwrap_or_default() {
        if let Ok(Some(cells)) = level.store.open_cells(below.child(&name)?, level.dims).await {
            of_fragments.push(cells);
        }
    }
    let has_objects = level.store.context.node(&level.path.child("object_index")?).await?.is_some();
    Ok(CheckInputs { level: level.clone(), attributes, fragment_attributes: of_fragments, has_objects })
}

/// Compares the cells that arrays declare as non-empty with those that are stored.
async fn check_presence(level: &ResolutionLevel, report: &mut Report) -> Result<(), VectorError> {
    let mut arrays: Vec<CellArray> = vec![level.vertices.clone()];
    arrays.extend(level.fragments.clone());
    for name in VertexAttribute::names(level).await? {
        if let Ok(attribute) = VertexAttribute::open(level, &name).await {
            arrays.extend(attribute.cells().cloned());
        }
    }
    for cells in arrays {
        let at = cells.path.as_str();
        if !cells.attributes.contains_key("nonempty_chunks") || level.store.root.profile != Profile::V9 {
            continue;
        }
        if cells.is_sharded() {
            report.skip("presence", at, "cells in shards are not compared");
            continue;
        }
        report.pass("presence", at);
        let context = &level.store.context;
        let (named, stored) = match (cells.non_empty_cells(context).await, cells.stored_cells(context).await)
        {
            (Ok(named), Ok(stored)) => (named.cells, stored.cells),
            (Err(error), _) | (_, Err(error)) => {
                report.skip("presence", at, error.to_string());
                continue;
            }
        };
        for coord in named.iter().filter(|coord| stored.binary_search(coord).is_err()) {
            report.error(
                "presence",
                at,
                format!("chunk `{}` is declared, but not stored", format_coord(coord)),
            );
        }
        for coord in stored.iter().filter(|coord| named.binary_search(coord).is_err()) {
            // A stored cell may be empty.
            if !matches!(cells.payload(context, coord).await, Ok(None)) {
                report.error(
                    "presence",
                    at,
                    format!("chunk `{}` is stored, but not declared", format_coord(coord)),
                );
            }
        }
    }
    Ok(())
}
