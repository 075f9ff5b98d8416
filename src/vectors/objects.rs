//! [`ObjectIndex`]: the objects of a level, the fragments of each, and their attributes.
//!
//! An object is found by its id, which may be any integer and need not equal its row. Manifests are rows of one array.
//! In the documents' profile only the first group of an object is stored.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Number, Value};

use super::VectorError;
use super::json::string;
use super::level::ResolutionLevel;
use super::payload::{FragmentNumbers, FragmentSpan, Manifest, decode_integers, number_type};
use super::root::Profile;
use crate::array::{Array, ArrayError};
use crate::chunk::Subset;
use crate::error::{Classify, ErrorClass};
use crate::metadata::DataType;

/// The largest number of objects read for one response.
const MAX_OBJECTS: u64 = 1 << 22;
/// The largest number of fragments that all manifests of a level may name. A manifest of a few bytes may name many.
const MAX_FRAGMENTS: u64 = 1 << 24;
/// The number of manifests read at a time.
const ROWS_PER_READ: u64 = 1 << 14;

/// An object and its fragments.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorObject {
    /// Its id.
    pub id: i64,
    /// Its row in the manifests and in the object attributes.
    pub row: u64,
    /// Its fragments.
    pub manifest: Manifest,
}

/// The value of an attribute for one object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectValue {
    /// The name of the attribute.
    pub name: String,
    /// The value; null if there is none.
    pub value: Value,
}

/// The objects of a level.
#[derive(Clone, Debug)]
pub struct ObjectIndex {
    level: ResolutionLevel,
    /// The attributes of the index.
    pub attributes: Arc<super::json::JsonObject>,
    manifests: Arc<Array>,
    ids: Option<Arc<Array>>,
    chunk_rank: usize,
}

impl ObjectIndex {
    /// Opens the object index of a level; `None` if it has none.
    ///
    /// # Errors
    /// [`VectorError::InvalidMetadata`].
    pub async fn open(level: &ResolutionLevel) -> Result<Option<Self>, VectorError> {
        let context = &level.store.context;
        let path = level.path.child("object_index")?;
        let wrong =
            |what: &str| VectorError::invalid_metadata("manifests", format!("`{}`: {what}", path.as_str()));
        if level.store.root.profile == Profile::Doc {
            let Some(array) = context.array(&path).await? else { return Ok(None) };
            let metadata = array.metadata();
            if metadata.data_type != DataType::Int64
                || metadata.shape.len() != 2
                || metadata.shape.last() != Some(&2)
            {
                return Err(wrong("it does not hold pairs of int64"));
            }
            let attributes = context.parse_attributes(&metadata.attributes).await?;
            return Ok(Some(Self {
                level: level.clone(),
                attributes,
                manifests: array,
                ids: None,
                chunk_rank: 0,
            }));
        }
        let Some(group) = context.group(&path).await? else { return Ok(None) };
        let attributes = context.parse_attributes(&group.attributes).await?;
        let manifests =
            context.array(&path.child("manifests")?).await?.ok_or_else(|| wrong("it has no `manifests`"))?;
        if manifests.metadata().data_type != DataType::VariableBytes || manifests.metadata().shape.len() != 1
        {
            return Err(wrong("`manifests` is not a list of variable-length bytes"));
        }
        let ids = match string(&attributes, "layout") {
            Some("vlen_manifests_v1") => None,
            None | Some("vlen_manifests_v2") => context.array(&path.child("object_ids")?).await?,
            Some(layout) => {
                let (path, encoding) = (path.as_str().to_owned(), layout.to_owned());
                return Err(VectorError::UnsupportedEncoding { path, encoding });
            }
        };
        if ids.as_ref().is_some_and(|ids| {
            ids.metadata().shape.len() != 1 || number_type(&ids.metadata().data_type.name()).is_none()
        }) {
            return Err(wrong("`object_ids` is not a list of numbers"));
        }
        let written =
            attributes.get("sid_ndim").and_then(Value::as_u64).and_then(|sid| usize::try_from(sid).ok());
        let coordinates = written.unwrap_or(level.vertices.rank());
        if coordinates != level.vertices.rank() {
            return Err(wrong(&format!(
                "`sid_ndim` is {coordinates}; chunks have {} coordinates",
                level.vertices.rank()
            )));
        }
        Ok(Some(Self { level: level.clone(), attributes, manifests, ids, chunk_rank: coordinates }))
    }

    /// The number of manifests.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.manifests.metadata().shape.first().copied().unwrap_or_default()
    }

    /// The id of each row.
    ///
    /// # Errors
    /// [`VectorError::TooMany`].
    pub async fn ids(&self) -> Result<Vec<i64>, VectorError> {
        let rows = self.row_count();
        if rows > MAX_OBJECTS {
            return Err(VectorError::TooMany { what: "objects", estimate: rows, limit: MAX_OBJECTS });
        }
        let Some(ids) = &self.ids else {
            return Ok((0..i64::try_from(rows).unwrap_or(i64::MAX)).collect());
        };
        let items = self.level.store.context.read_rows(ids, 0..rows).await?.into_bytes();
        let mut ids = decode_integers(&items, &ids.metadata().data_type);
        ids.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
        Ok(ids)
    }

    /// The row and id of each of the requested ids, and the ids that do not exist.
    ///
    /// # Errors
    /// As [`ObjectIndex::ids`].
    pub async fn find_rows(&self, requested: &[i64]) -> Result<(Vec<(u64, i64)>, Vec<i64>), VectorError> {
        let known = self.ids().await?;
        let mut rows: Vec<(i64, u64)> = known.into_iter().zip(0..).collect();
        rows.sort_unstable();
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for &id in requested {
            let first = rows.partition_point(|&(known, _)| known < id);
            match rows.get(first) {
                Some(&(known, row)) if known == id => found.push((row, id)),
                _ => missing.push(id),
            }
        }
        Ok((found, missing))
    }

    /// The stored manifests of a range of rows.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`] if they do not decode.
    pub async fn manifest_payloads(&self, rows: Range<u64>) -> Result<Vec<Bytes>, VectorError> {
        let path = self.level.path.child("object_index")?;
        let read = self.level.store.context.read_rows(&self.manifests, rows.clone()).await;
        let read = read.map_err(|error| {
            read_error(path.as_str(), &format!("rows {}..{}", rows.start, rows.end), error)
        })?;
        if self.is_doc() {
            let items = read.into_bytes();
            return Ok((0..items.len() / 16).map(|row| items.slice(row * 16..row * 16 + 16)).collect());
        }
        Ok(read.into_elements())
    }

    fn is_doc(&self) -> bool {
        self.level.store.root.profile == Profile::Doc
    }

    /// Decodes the manifest of an object.
    ///
    /// # Errors
    /// [`VectorError::CorruptManifest`].
    pub fn decode_manifest(&self, id: i64, payload: &[u8]) -> Result<Manifest, VectorError> {
        let corrupt = |reason: String| VectorError::CorruptManifest { object: id, reason };
        if payload.is_empty() {
            return Ok(Manifest::default());
        }
        if !self.is_doc() {
            return Manifest::decode(payload, self.chunk_rank).map_err(|reason| corrupt(reason.to_string()));
        }
        let [chunk, bin] = decode_integers(payload, &DataType::Int64)[..] else {
            return Err(corrupt("it is not a pair".to_owned()));
        };
        if chunk < 0 {
            // Never written.
            return Ok(Manifest::default());
        }
        let grid = self.level.vertices.grid().unwrap_or_default();
        let chunk =
            unravel_index(chunk, &grid).ok_or_else(|| corrupt(format!("there is no chunk {chunk}")))?;
        let fragment = u32::try_from(bin).map_err(|_no_bin| corrupt(format!("there is no group {bin}")))?;
        Ok(Manifest { spans: vec![FragmentSpan { chunk, fragments: FragmentNumbers::List(vec![fragment]) }] })
    }

    /// Reads objects by row and id.
    ///
    /// # Errors
    /// [`VectorError::CorruptManifest`].
    pub async fn read_objects(&self, rows: &[(u64, i64)]) -> Result<Vec<VectorObject>, VectorError> {
        let mut objects = Vec::with_capacity(rows.len().min(1 << 16));
        for &(row, id) in rows {
            let payload = self.manifest_payloads(row..row.saturating_add(1)).await?;
            let manifest = self.decode_manifest(id, payload.first().map_or(&[], |payload| payload))?;
            objects.push(VectorObject { id, row, manifest });
        }
        Ok(objects)
    }

    /// Reads all objects, in the order of their rows.
    ///
    /// # Errors
    /// [`VectorError::CorruptManifest`], [`VectorError::TooMany`].
    pub async fn read_all(&self) -> Result<Vec<VectorObject>, VectorError> {
        let ids = self.ids().await?;
        let mut objects = Vec::with_capacity(ids.len().min(1 << 16));
        let mut fragments = 0_u64;
        for start in (0..self.row_count()).step_by(usize::try_from(ROWS_PER_READ).unwrap_or(usize::MAX)) {
            let payloads = self.manifest_payloads(start..start.saturating_add(ROWS_PER_READ)).await?;
            let (index, first) = (self.clone(), usize::try_from(start).unwrap_or(usize::MAX));
            let ids: Vec<i64> = ids.iter().skip(first).take(payloads.len()).copied().collect();
            let decode = move || {
                let decoded = payloads.iter().zip(ids).zip(start..).map(|((payload, id), row)| {
                    index.decode_manifest(id, payload).map(|manifest| VectorObject { id, row, manifest })
                });
                decoded.collect::<Result<Vec<VectorObject>, VectorError>>()
            };
            for object in self.level.store.context.cpu.run(decode).await?? {
                fragments = fragments.saturating_add(object.manifest.len() as u64);
                objects.push(object);
            }
            if fragments > MAX_FRAGMENTS {
                let (estimate, limit) = (fragments, MAX_FRAGMENTS);
                return Err(VectorError::TooMany { what: "fragments of objects", estimate, limit });
            }
        }
        Ok(objects)
    }

    /// The values of all object attributes for one row.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn attribute_values(&self, row: u64) -> Result<Vec<ObjectValue>, VectorError> {
        row_values(&self.level, "object_attributes", row).await
    }

    /// The number of groups of objects.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn group_count(&self) -> Result<u64, VectorError> {
        let array = self.level.store.context.array(&self.level.path.child("groups")?).await?;
        Ok(array.and_then(|array| array.metadata().shape.first().copied()).unwrap_or_default())
    }

    /// The ids of the objects in a group.
    ///
    /// # Errors
    /// [`VectorError::GroupNotFound`].
    pub async fn group_members(&self, group: u64) -> Result<Vec<i64>, VectorError> {
        let context = &self.level.store.context;
        let path = self.level.path.child("groups")?;
        let array = context.array(&path).await?;
        let groups =
            array.as_ref().and_then(|array| array.metadata().shape.first().copied()).unwrap_or_default();
        let array =
            array.filter(|array| group < groups && array.metadata().data_type == DataType::VariableBytes);
        let array = array.ok_or(VectorError::GroupNotFound { group, groups })?;
        let attributes = context.parse_attributes(&array.metadata().attributes).await?;
        let ranges = attributes.get("group_ranges").and_then(|ranges| ranges.get(group.to_string()));
        if let Some([start, stop]) = super::json::integers(ranges).as_deref() {
            let members = stop.saturating_sub(*start);
            if u64::try_from(members).is_ok_and(|members| members > MAX_OBJECTS) {
                let estimate = members.unsigned_abs();
                return Err(VectorError::TooMany { what: "objects", estimate, limit: MAX_OBJECTS });
            }
            return Ok((*start..*stop).collect());
        }
        let read = context.read_rows(&array, group..group + 1).await;
        let read = read.map_err(|error| read_error(path.as_str(), &group.to_string(), error))?;
        let members = read.into_elements().into_iter().next().unwrap_or_default();
        Ok(decode_integers(&members, &DataType::Int64))
    }

    /// The values of all group attributes for one group.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn group_attribute_values(&self, group: u64) -> Result<Vec<ObjectValue>, VectorError> {
        row_values(&self.level, "group_attributes", group).await
    }
}

/// The values of one row of every array in a folder.
async fn row_values(
    level: &ResolutionLevel,
    folder: &str,
    row: u64,
) -> Result<Vec<ObjectValue>, VectorError> {
    let context = &level.store.context;
    let below = level.path.child(folder)?;
    let mut values = Vec::new();
    for name in context.child_names(&below).await?.unwrap_or_default() {
        let Some(array) = context.array(&below.child(&name)?).await? else { continue };
        let metadata = array.metadata();
        if metadata.shape.first().is_none_or(|&rows| row >= rows) {
            values.push(ObjectValue { name, value: Value::Null });
            continue;
        }
        let cells = context.read_rows(&array, row..row + 1).await;
        let cells = cells.map_err(|error| read_error(below.as_str(), &name, error))?;
        let meaning = metadata.attributes.member_text("fill_sentinel_meaning");
        let is_absence = meaning == Some("\"absent\"");
        let fill = metadata.fill_value.as_bytes();
        let one = |item: &[u8]| {
            if is_absence && item == fill { Value::Null } else { json_number(&metadata.data_type, item) }
        };
        let mut items: Vec<Value> = if metadata.data_type.is_variable() {
            let texts = cells.into_elements();
            texts.iter().map(|text| String::from_utf8_lossy(text).into_owned().into()).collect()
        } else {
            cells.into_bytes().chunks_exact(metadata.data_type.element_bytes()).map(one).collect()
        };
        let value = if metadata.shape.len() == 1 { items.pop().unwrap_or_default() } else { items.into() };
        values.push(ObjectValue { name, value });
    }
    Ok(values)
}

/// A number as JSON; null for a value that JSON cannot represent.
pub(super) fn json_number(kind: &DataType, item: &[u8]) -> Value {
    let float = |written: String, is_finite: bool| {
        let number = is_finite.then(|| written.parse::<Number>().ok()).flatten();
        number.map_or(Value::Null, Value::Number)
    };
    match kind {
        DataType::Bool => Value::Bool(item != [0]),
        DataType::Float32 => match item.first_chunk().map(|&bytes| f32::from_le_bytes(bytes)) {
            Some(number) => float(format!("{number:?}"), number.is_finite()),
            None => Value::Null,
        },
        DataType::Float64 => match item.first_chunk().map(|&bytes| f64::from_le_bytes(bytes)) {
            Some(number) => float(format!("{number:?}"), number.is_finite()),
            None => Value::Null,
        },
        DataType::Float16 => {
            match item.first_chunk().map(|&bytes| half::f16::from_le_bytes(bytes).to_f32()) {
                Some(number) => float(format!("{number:?}"), number.is_finite()),
                None => Value::Null,
            }
        }
        DataType::UInt64 => item.first_chunk().map_or(Value::Null, |&bytes| u64::from_le_bytes(bytes).into()),
        kind if number_type(&kind.name()).is_some() => {
            decode_integers(item, kind).first().map_or(Value::Null, |&number| number.into())
        }
        _ => Value::Null,
    }
}

/// The coordinates of the chunk with this flat index, in C order.
pub(super) fn unravel_index(number: i64, grid: &[u64]) -> Option<Vec<i64>> {
    let mut rest = u64::try_from(number).ok()?;
    let mut coord = vec![0; grid.len()];
    for (at, &length) in coord.iter_mut().zip(grid).rev() {
        *at = i64::try_from(rest.checked_rem(length)?).ok()?;
        rest /= length;
    }
    (rest == 0).then_some(coord)
}

/// Maps a decoding error to an error of the array part that `what` names.
pub(super) fn read_error(path: &str, what: &str, error: ArrayError) -> VectorError {
    if error.class() == ErrorClass::CorruptData {
        let reason = error.to_string();
        return VectorError::Corrupt { path: path.to_owned(), chunk: what.to_owned(), reason };
    }
    error.into()
}

/// All integers of an array; an error if there are more than `most`.
pub(super) async fn read_integers(
    level: &ResolutionLevel,
    array: &Arc<Array>,
    most: u64,
) -> Result<Vec<i64>, VectorError> {
    let subset = Subset::full(&array.metadata().shape);
    let count = u64::try_from(subset.elements()).unwrap_or(u64::MAX);
    if count > most {
        return Err(VectorError::TooMany { what: "numbers", estimate: count, limit: most });
    }
    let items = level.store.context.read_elements(array, subset).await;
    let items = items.map_err(|error| read_error(level.path.as_str(), "all", error))?.into_bytes();
    Ok(decode_integers(&items, &array.metadata().data_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_indices_are_unraveled_in_c_order() {
        assert_eq!(unravel_index(0, &[2, 3]), Some(vec![0, 0]));
        assert_eq!(unravel_index(5, &[2, 3]), Some(vec![1, 2]));
        for none in [6, -1, i64::MAX] {
            assert_eq!(unravel_index(none, &[2, 3]), None, "{none}");
        }
        assert_eq!(unravel_index(0, &[0]), None);
    }

    #[test]
    fn a_number_is_written_as_the_shortest_text_that_parses_back() {
        let text = |kind: &DataType, item: &[u8]| json_number(kind, item).to_string();
        assert_eq!(text(&DataType::Float32, &0.1_f32.to_le_bytes()), "0.1");
        assert_eq!(text(&DataType::Float64, &f64::NAN.to_le_bytes()), "null");
        assert_eq!(text(&DataType::UInt64, &u64::MAX.to_le_bytes()), u64::MAX.to_string());
        assert_eq!(text(&DataType::Int8, &[0xff]), "-1");
        assert_eq!(text(&DataType::Bool, &[1]), "true");
    }
}
