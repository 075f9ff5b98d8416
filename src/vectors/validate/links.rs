//! Level 3, links: the names of arrays are valid, and records name vertices that exist.

use std::collections::HashMap;
use std::time::Instant;

use super::Report;
use super::level_facts::LevelFacts;
use crate::vectors::json::string;
use crate::vectors::level::ResolutionLevel;
use crate::vectors::links::{Link, LinkArray, LinkAttribute, LinkFamily, read_doc_links};
use crate::vectors::payload::FragmentIndex;
use crate::vectors::{CellArray, Coord, Profile, VectorError, format_coord};

pub(super) async fn check(
    level: &ResolutionLevel,
    facts: &HashMap<u64, LevelFacts>,
    report: &mut Report,
    deadline: Instant,
) -> Result<(), VectorError> {
    let at = level.path.as_str();
    if level.store.root.profile == Profile::Doc {
        return check_doc_links(level, facts, report).await;
    }
    for name in LinkFamily::names(level).await? {
        let digits = name.strip_prefix('+').unwrap_or(&name);
        let Some(delta) = digits.parse::<i64>().ok().filter(|delta| (*delta > 0) == name.starts_with('+'))
        else {
            report.error("links_segments", at, format!("`links/{name}` is not a level difference"));
            continue;
        };
        if Instant::now() >= deadline {
            report.is_complete = false;
            report.skip("links_records", at, "the deadline has passed");
            return Ok(());
        }
        let family = match LinkFamily::open(level, delta).await {
            Ok(Some(family)) => family,
            Ok(None) => continue,
            Err(error @ VectorError::InvalidMetadata { .. }) => {
                report.error("links_segments", at, error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        let path = format!("{at}/links/{name}");
        report.pass("links_segments", &path);
        check_array_names(&family, &path, report);
        report.pass("links_records", &path);
        check_records(level, &family, facts, &path, report, deadline).await?;
    }
    Ok(())
}

/// Checks the names of arrays.
fn check_array_names(family: &LinkFamily, path: &str, report: &mut Report) {
    for name in &family.invalid_names {
        report.error(
            "links_segments",
            path,
            format!("`{name}` does not name the offsets of {} endpoints", family.width),
        );
    }
    let is_canonical = string(&family.attributes, "store").is_none_or(|store| store == "canonical");
    if !is_canonical || family.is_directed || family.delta != 0 {
        return;
    }
    for link_array in &family.link_arrays {
        let zero = vec![0; link_array.cells.rank()];
        let ordered = std::iter::once(&zero).chain(&link_array.offsets);
        if ordered.clone().zip(ordered.skip(1)).any(|(one, next)| next < one) {
            let message = format!(
                "`{}`: undirected records must be stored with their endpoints in the order of their chunks",
                link_array.name
            );
            report.error("links_segments", path, message);
        }
    }
}

async fn check_records(
    level: &ResolutionLevel,
    family: &LinkFamily,
    facts: &HashMap<u64, LevelFacts>,
    path: &str,
    report: &mut Report,
    deadline: Instant,
) -> Result<(), VectorError> {
    let own = facts.get(&level.name.index);
    let target = level.name.index.checked_add_signed(family.delta);
    let other = target.and_then(|target| facts.get(&target)).filter(|facts| facts.is_complete);
    if target.is_none_or(|target| !level.store.levels.iter().any(|known| known.index == target)) {
        report.error("links_records", path, "the level of the other endpoints does not exist");
    }
    let attributes = LinkAttribute::open_all(level, family.delta).await?;
    let index = level.path.child("link_fragments")?;
    let index = if family.delta == 0 { level.store.open_cells(index, level.dims).await? } else { None };
    let mut count = 0_u64;
    for link_array in &family.link_arrays {
        let cells = link_array.cells.non_empty_cells(&level.store.context).await?.cells;
        for cell in cells {
            if Instant::now() >= deadline {
                report.is_complete = false;
                report.skip("links_records", path, "the deadline has passed");
                return Ok(());
            }
            let links = match link_array.read_links(level, &cell).await {
                Ok(links) => links,
                Err(error) if error.is_corrupt_chunk() => {
                    report.error("links_records", path, error.to_string());
                    continue;
                }
                Err(error) => return Err(error),
            };
            count += links.len() as u64;
            for attribute in &attributes {
                match attribute.values(level, &link_array.name, &cell, links.len()).await {
                    Ok(_) => {}
                    Err(error @ (VectorError::Corrupt { .. } | VectorError::InvalidMetadata { .. })) => {
                        report.error("attr_aligned", path, error.to_string());
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(index) = index.as_ref().filter(|_| link_array.is_flat) {
                check_groups(level, index, &cell, links.len() as u64, path, report).await?;
            }
            // The stored chunks determine the level of each endpoint.
            let stored = link_array.endpoint_chunks(&cell);
            if let Some(problem) = links
                .iter()
                .find_map(|link| record_problem(link_array, link, &stored, own, other, family.delta))
            {
                report.error(
                    "links_records",
                    path,
                    format!("`{}`, chunk `{}`: {problem}", link_array.name, format_coord(&cell)),
                );
            }
        }
    }
    if let Some(declared) =
        family.attributes.get("num_physical_records").filter(|declared| declared.as_u64() != Some(count))
    {
        report.error(
            "links_records",
            path,
            format!("`num_physical_records` is {declared}, but there are {count}"),
        );
    }
    Ok(())
}

/// Checks that the groups of records within a chunk name records that exist.
async fn check_groups(
    level: &ResolutionLevel,
    index: &CellArray,
    cell: &[i64],
    records: u64,
    path: &str,
    report: &mut Report,
) -> Result<(), VectorError> {
    let at = format_coord(cell);
    match index.payload(&level.store.context, cell).await {
        Ok(Some(payload)) => {
            if let Err(reason) = FragmentIndex::decode(&payload, records) {
                report.error("links_records", path, format!("`link_fragments`, chunk `{at}`: {reason}"));
            }
        }
        Ok(None) => {}
        Err(error) if error.is_corrupt_chunk() => report.error("links_records", path, error.to_string()),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// What is wrong with a record, if anything.
fn record_problem(
    link_array: &LinkArray,
    link: &Link,
    stored: &[Coord],
    own: Option<&LevelFacts>,
    other: Option<&LevelFacts>,
    delta: i64,
) -> Option<String> {
    for (place, (chunk, row)) in link.endpoints.iter().enumerate() {
        // Only records within a level are reordered when they are stored.
        let facts = if delta == 0 || place == 0 { own } else { other };
        let Some(facts) = facts else { continue };
        match facts.chunks.get(chunk) {
            None => {
                return Some(format!(
                    "endpoint {place} is in chunk `{}`, which has no vertices",
                    format_coord(chunk)
                ));
            }
            Some((rows, _)) if u64::try_from(*row).map_or(true, |row| row >= *rows) => {
                return Some(format!(
                    "endpoint {place} is row {row} of {rows} of chunk `{}`",
                    format_coord(chunk)
                ));
            }
            Some(_) => {}
        }
    }
    (stored.len() != link_array.width)
        .then(|| "it has a different number of endpoints from its array".to_owned())
}

/// Checks the edges of a store of the documents' profile.
async fn check_doc_links(
    level: &ResolutionLevel,
    facts: &HashMap<u64, LevelFacts>,
    report: &mut Report,
) -> Result<(), VectorError> {
    let at = level.path.as_str();
    let Some(facts) = facts.get(&level.name.index) else { return Ok(()) };
    let mut chunks: Vec<Coord> = facts.chunks.keys().cloned().collect();
    chunks.sort_unstable();
    let links = match read_doc_links(level, &chunks).await {
        Ok(links) => links,
        Err(error) if error.is_corrupt_chunk() => {
            report.error("links_records", at, error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    report.pass("links_records", at);
    for link in links {
        for (chunk, row) in &link.endpoints {
            let rows = facts.chunks.get(chunk).map_or(0, |(rows, _)| *rows);
            if u64::try_from(*row).map_or(true, |row| row >= rows) {
                report.error(
                    "links_records",
                    at,
                    format!("an edge ends at row {row} of {rows} of chunk `{}`", format_coord(chunk)),
                );
            }
        }
    }
    Ok(())
}
