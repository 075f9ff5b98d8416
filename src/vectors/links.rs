//! Links: records that join vertices within a level or to another level (Zarr Vector Format 0.9, "links").
//!
//! A link family holds the links of one level difference. Each of its arrays holds the records whose endpoint chunks
//! have the same offsets from each other. The documents' profile stores edges within chunks and, separately, edges
//! between chunks. Links that follow from the order of rows alone are not stored; callers derive them from objects.

use std::sync::Arc;

use serde_json::Value;

use super::cells::CellArray;
use super::json::{JsonObject, integers, is_true, string};
use super::level::ResolutionLevel;
use super::objects::{json_number, read_integers, unravel_index};
use super::payload::{
    LinkRecord, PayloadError, decode_integers, decode_link_groups, decode_links, number_type,
};
use super::root::Profile;
use super::shapes::integer_ratio;
use super::{Coord, VectorError};
use crate::array::Array;
use crate::metadata::DataType;

/// The largest number of integers in an array of links between chunks.
const MAX_NUMBERS: u64 = 1 << 24;

/// A link: the chunk and row of each endpoint. The first endpoint is of the level itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Chunks and rows, in the order in which the link was written.
    pub endpoints: Vec<(Coord, i64)>,
}

/// The links of a level to another level, or within it.
#[derive(Clone, Debug)]
pub struct LinkFamily {
    /// The attributes of the family's group.
    pub attributes: Arc<JsonObject>,
    /// The number of the other level minus that of this one.
    pub delta: i64,
    /// The number of endpoints of a record.
    pub width: usize,
    /// Whether records are directed.
    pub is_directed: bool,
    /// Its arrays, in the order in which records are counted.
    pub link_arrays: Vec<LinkArray>,
    /// Names of arrays that cannot be parsed as offsets.
    pub invalid_names: Vec<String>,
}

/// The links whose endpoint chunks have the same offsets from each other.
#[derive(Clone, Debug)]
pub struct LinkArray {
    /// Its name: the offsets from the first endpoint's chunk to the others.
    pub name: String,
    /// The records, by the chunk of the first endpoint.
    pub cells: CellArray,
    /// The chunk offsets of the second and further endpoints.
    pub offsets: Vec<Coord>,
    /// The number of endpoints of a record.
    pub width: usize,
    data_type: DataType,
    has_permutation: bool,
    /// Whether records are concatenated, as those within a chunk are, and not grouped.
    pub(super) is_flat: bool,
    /// For each axis, the number of chunks of the other level that a chunk of this one spans, as a fraction.
    chunk_ratios: Vec<(i64, i64)>,
}

impl LinkFamily {
    /// The names of a level's families: level differences such as `0`, `+1`, `-2`.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn names(level: &ResolutionLevel) -> Result<Vec<String>, VectorError> {
        Ok(level.store.context.child_names(&level.path.child("links")?).await?.unwrap_or_default())
    }

    /// Opens the family of a level difference; `None` if it does not exist.
    ///
    /// # Errors
    /// [`VectorError::InvalidMetadata`].
    pub async fn open(level: &ResolutionLevel, delta: i64) -> Result<Option<Self>, VectorError> {
        let context = &level.store.context;
        let folder = if delta > 0 { format!("+{delta}") } else { delta.to_string() };
        let path = level.path.child("links")?.child(&folder)?;
        let Some(group) = context.group(&path).await? else { return Ok(None) };
        let attributes = context.parse_attributes(&group.attributes).await?;
        let width = attributes.get("link_width").and_then(Value::as_u64).unwrap_or(2);
        let width = usize::try_from(width).ok().filter(|width| (1..=64).contains(width));
        let width = width
            .ok_or_else(|| VectorError::invalid_metadata("links_records", "`link_width` is not 1 to 64"))?;
        let is_directed = is_true(&attributes, "directed");
        let chunk_ratios = chunk_ratios(level, delta).await?;
        let (mut link_arrays, mut invalid_names) = (Vec::new(), Vec::new());
        let mut names = context.child_names(&path).await?.unwrap_or_default();
        names.sort_unstable();
        for name in names {
            let Some(cells) = level.store.open_cells(path.child(&name)?, level.dims).await? else { continue };
            match LinkArray::from_cells(
                level,
                name.clone(),
                cells,
                (delta, width, is_directed),
                &attributes,
                &chunk_ratios,
            )? {
                Some(link_array) => link_arrays.push(link_array),
                None => invalid_names.push(name),
            }
        }
        Ok(Some(Self { attributes, delta, width, is_directed, link_arrays, invalid_names }))
    }
}

impl LinkArray {
    fn from_cells(
        level: &ResolutionLevel,
        name: String,
        cells: CellArray,
        (delta, width, is_directed): (i64, usize, bool),
        family: &JsonObject,
        chunk_ratios: &[(i64, i64)],
    ) -> Result<Option<Self>, VectorError> {
        let attributes = &cells.attributes;
        let own =
            attributes.get("link_width").and_then(Value::as_u64).and_then(|own| usize::try_from(own).ok());
        let width = own.unwrap_or(width);
        let rank = cells.rank();
        let Some(offsets) = parse_offsets(&name, width, rank, cells.leading_axes()) else { return Ok(None) };
        let kind = string(attributes, "dtype").map_or(Some(DataType::Int64), number_type);
        let kind = kind.filter(|kind| {
            !matches!(kind, DataType::Bool | DataType::Float16 | DataType::Float32 | DataType::Float64)
        });
        let kind = kind.ok_or_else(|| {
            VectorError::invalid_metadata(
                "array_attrs",
                format!("`{}`: its data type is not an integer type", cells.path.as_str()),
            )
        })?;
        let is_flat = delta == 0 && offsets.iter().flatten().all(|&offset| offset == 0);
        let is_duplicate = string(family, "store") == Some("duplicate");
        let has_order = attributes
            .get("has_perm")
            .and_then(Value::as_bool)
            .unwrap_or(!is_flat && delta == 0 && (is_duplicate || !is_directed));
        // The leading axis of chunks split by an attribute is not scaled.
        let lead = vec![(1, 1); level.leading_axes()];
        let chunk_ratios = [&lead[..], chunk_ratios].concat();
        Ok(Some(Self {
            name,
            cells,
            offsets,
            width,
            data_type: kind,
            has_permutation: has_order,
            is_flat,
            chunk_ratios,
        }))
    }

    /// The chunks of all endpoints of the records stored in a cell.
    #[must_use]
    pub fn endpoint_chunks(&self, source: &[i64]) -> Vec<Coord> {
        let first_in_other_level: Coord = source
            .iter()
            .zip(&self.chunk_ratios)
            .map(|(&at, &(times, by))| at.saturating_mul(times).div_euclid(by.max(1)))
            .collect();
        let moved = |offset: &Coord| {
            first_in_other_level.iter().zip(offset).map(|(at, by)| at.saturating_add(*by)).collect()
        };
        std::iter::once(source.to_vec()).chain(self.offsets.iter().map(moved)).collect()
    }

    /// The records stored in a cell, in stored order.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`].
    pub async fn read_links(
        &self,
        level: &ResolutionLevel,
        source: &[i64],
    ) -> Result<Vec<Link>, VectorError> {
        let Some(payload) = self.cells.payload(&level.store.context, source).await? else {
            return Ok(Vec::new());
        };
        let (link_array, source) = (self.clone(), source.to_vec());
        let decode = move || {
            let decoded = if link_array.is_flat {
                decode_links(&payload, &link_array.data_type, link_array.width, link_array.has_permutation)
            } else {
                decode_link_groups(
                    &payload,
                    &link_array.data_type,
                    link_array.width,
                    link_array.has_permutation,
                )
            };
            let records = decoded
                .map_err(|reason| VectorError::corrupt_chunk(&link_array.cells.path, &source, &reason))?;
            let chunks = link_array.endpoint_chunks(&source);
            Ok(records.into_iter().map(|record| restore_order(record, &chunks)).collect())
        };
        level.store.context.cpu.run(decode).await?
    }
}

/// A record with the chunks of its endpoints, in the order before it was stored.
fn restore_order(record: LinkRecord, chunks: &[Coord]) -> Link {
    let stored: Vec<(Coord, i64)> = chunks.iter().cloned().zip(record.rows).collect();
    let Some(order) = record.order else { return Link { endpoints: stored } };
    let mut endpoints = stored.clone();
    for (endpoint, place) in stored.into_iter().zip(order) {
        if let Some(slot) = endpoints.get_mut(place) {
            *slot = endpoint;
        }
    }
    Link { endpoints }
}

/// The offsets in the name of an array; `None` if the name is invalid.
fn parse_offsets(name: &str, width: usize, rank: usize, lead: usize) -> Option<Vec<Coord>> {
    if name == "self" {
        return (width == 1).then(Vec::new);
    }
    let component = |text: &str| {
        let (sign, digits) = match text.split_at_checked(1)? {
            ("+", digits) => (1, digits),
            ("-", digits) => (-1, digits),
            _ => (0, text),
        };
        let number: i64 = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
        // Zero has no sign, every other number has one.
        ((sign == 0) == (number == 0)).then_some(sign * number)
    };
    let offset = |text: &str| {
        let mut offset: Coord = text.split('.').map(component).collect::<Option<_>>()?;
        if offset.len() + lead == rank {
            offset = [vec![0; lead], offset].concat();
        }
        (offset.len() == rank).then_some(offset)
    };
    let offsets: Vec<Coord> = name.split('_').map(offset).collect::<Option<_>>()?;
    (offsets.len() + 1 == width).then_some(offsets)
}

/// For each axis, the chunk edge of this level and of the other, in chunks of the root.
async fn chunk_ratios(level: &ResolutionLevel, delta: i64) -> Result<Vec<(i64, i64)>, VectorError> {
    let same = vec![(1, 1); level.dims];
    let other = i64::try_from(level.name.index).ok().and_then(|index| index.checked_add(delta));
    let Some(other) = other.and_then(|index| u64::try_from(index).ok()).filter(|_| delta != 0) else {
        return Ok(same);
    };
    let target = match level.store.level(other).await {
        Ok(target) => target,
        // Validation reports the missing level; its links can still be read.
        Err(VectorError::LevelNotFound { .. } | VectorError::InvalidMetadata { .. }) => return Ok(same),
        Err(error) => return Err(error),
    };
    let (_, root) = level.store.root.geometry()?;
    let ratio = |chunk: &[f64]| -> Vec<i64> {
        chunk.iter().zip(&root).map(|(&chunk, &root)| integer_ratio(chunk, root).unwrap_or(1)).collect()
    };
    Ok(ratio(&level.shapes.chunk).into_iter().zip(ratio(&target.shapes.chunk)).collect())
}

/// An attribute of the links of a family: one value for each record.
#[derive(Clone, Debug)]
pub struct LinkAttribute {
    /// Its name.
    pub name: String,
    arrays: Vec<(String, CellArray)>,
}

impl LinkAttribute {
    /// Opens all attributes of the links of a family.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn open_all(level: &ResolutionLevel, delta: i64) -> Result<Vec<Self>, VectorError> {
        let context = &level.store.context;
        let below = level.path.child("link_attributes")?;
        let folder = if delta > 0 { format!("+{delta}") } else { delta.to_string() };
        let mut attributes = Vec::new();
        for name in context.child_names(&below).await?.unwrap_or_default() {
            let path = below.child(&name)?.child(&folder)?;
            let mut arrays = Vec::new();
            for link_array in context.child_names(&path).await?.unwrap_or_default() {
                if let Some(cells) = level.store.open_cells(path.child(&link_array)?, level.dims).await? {
                    arrays.push((link_array, cells));
                }
            }
            if !arrays.is_empty() {
                attributes.push(Self { name, arrays });
            }
        }
        Ok(attributes)
    }

    /// The values of the `records` records of a cell; nulls if the attribute is not stored for it.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`] if the stored number differs.
    pub async fn values(
        &self,
        level: &ResolutionLevel,
        link_array: &str,
        source: &[i64],
        records: usize,
    ) -> Result<Vec<Value>, VectorError> {
        let Some((_, cells)) = self.arrays.iter().find(|(name, _)| name == link_array) else {
            return Ok(vec![Value::Null; records]);
        };
        let attributes = &cells.attributes;
        let kind = string(attributes, "dtype").and_then(number_type).ok_or_else(|| {
            VectorError::invalid_metadata(
                "array_attrs",
                format!("`{}`: its data type is not numeric", cells.path.as_str()),
            )
        })?;
        let width = integers(attributes.get("row_shape")).map_or(1, |row| row.iter().product::<i64>().max(1));
        let width = usize::try_from(width).unwrap_or(1);
        let payload = cells.payload(&level.store.context, source).await?.unwrap_or_default();
        let row = kind.element_bytes().saturating_mul(width);
        if payload.len() != records.saturating_mul(row) {
            let reason = PayloadError::PartialRow { bytes: payload.len(), row };
            return Err(VectorError::corrupt_chunk(&cells.path, source, &reason));
        }
        let one = |item: &[u8]| json_number(&kind, item);
        let value = |row: &[u8]| match width {
            1 => one(row),
            _ => row.chunks_exact(kind.element_bytes()).map(one).collect(),
        };
        Ok(payload.chunks_exact(row).map(value).collect())
    }
}

/// The edges of a store of the documents' profile: those within the given chunks, then those between chunks.
///
/// # Errors
/// [`VectorError::Corrupt`].
pub async fn read_doc_links(level: &ResolutionLevel, chunks: &[Coord]) -> Result<Vec<Link>, VectorError> {
    let context = &level.store.context;
    let mut links = Vec::new();
    for name in ["edges", "faces"] {
        let path = level.path.child("links")?.child(name)?;
        let Some(cells) = level.store.open_cells(path, level.dims).await? else { continue };
        let Some(array) = cells.array().cloned() else { continue };
        let width = array.metadata().shape.last().copied().unwrap_or(2);
        let width = usize::try_from(width).unwrap_or(2).max(1);
        for chunk in chunks {
            let Some(payload) = cells.payload(context, chunk).await? else { continue };
            for record in decode_integers(&payload, &array.metadata().data_type).chunks_exact(width) {
                if record.iter().all(|&row| row >= 0) {
                    links.push(Link { endpoints: record.iter().map(|&row| (chunk.clone(), row)).collect() });
                }
            }
        }
    }
    if let Some(array) = context.array(&level.path.child("cross_chunk_links")?).await? {
        links.extend(cross_chunk_links(level, &array).await?);
    }
    Ok(links)
}

/// Edges between chunks: pairs of vertex numbers, counted through all chunks with the same number of rows for each.
async fn cross_chunk_links(level: &ResolutionLevel, array: &Arc<Array>) -> Result<Vec<Link>, VectorError> {
    let rows =
        level.vertices.array().and_then(|vertices| vertices.metadata().shape.iter().rev().nth(1).copied());
    let rows = rows.and_then(|rows| i64::try_from(rows).ok()).filter(|&rows| rows > 0);
    let (Some(rows), Some(grid)) = (rows, level.vertices.grid()) else { return Ok(Vec::new()) };
    let numbers = read_integers(level, array, MAX_NUMBERS).await?;
    let mut links = Vec::new();
    for pair in numbers.chunks_exact(2).filter(|pair| pair.iter().all(|&id| id >= 0)) {
        let endpoint = |&id: &i64| Some((unravel_index(id / rows, &grid)?, id % rows));
        let endpoints =
            pair.iter().map(endpoint).collect::<Option<Vec<_>>>().ok_or_else(|| VectorError::Corrupt {
                path: format!("{}/cross_chunk_links", level.path.as_str()),
                chunk: format!("{pair:?}"),
                reason: "it names a vertex outside of all chunks".to_owned(),
            })?;
        links.push(Link { endpoints });
    }
    Ok(links)
}

/// Rejects profiles whose links cannot be read.
///
/// # Errors
/// [`VectorError::UnsupportedInProfile`].
pub fn check_links_supported(level: &ResolutionLevel) -> Result<(), VectorError> {
    match level.store.root.profile {
        Profile::V7 => {
            Err(VectorError::UnsupportedInProfile { what: "links", profile: Profile::V7.as_str() })
        }
        Profile::V9 | Profile::Doc => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_link_arrays_are_parsed_as_offsets() {
        for (name, width, offsets) in [
            ("0.0.+1", 2, Some(vec![vec![0, 0, 1]])),
            ("+1.0.0", 2, Some(vec![vec![1, 0, 0]])),
            ("0.0.0_-1.0.+12", 3, Some(vec![vec![0, 0, 0], vec![-1, 0, 12]])),
            ("self", 1, Some(vec![])),
            ("self", 2, None),
            ("0.0.1", 2, None),
            ("+0.0.0", 2, None),
            ("0.0", 2, None),
            ("0.0.0", 3, None),
            ("0.0.+", 2, None),
            ("", 2, None),
            ("a.0.0", 2, None),
        ] {
            assert_eq!(parse_offsets(name, width, 3, 0), offsets, "{name}");
        }
        assert_eq!(parse_offsets("+1.0", 2, 3, 1), Some(vec![vec![0, 1, 0]]));
    }

    #[test]
    fn endpoints_are_restored_to_their_original_order() {
        let chunks = [vec![0], vec![1]];
        let record = |order| LinkRecord { rows: vec![5, 7], order };
        assert_eq!(restore_order(record(None), &chunks).endpoints, [(vec![0], 5), (vec![1], 7)]);
        assert_eq!(restore_order(record(Some(vec![1, 0])), &chunks).endpoints, [(vec![1], 7), (vec![0], 5)]);
    }
}
