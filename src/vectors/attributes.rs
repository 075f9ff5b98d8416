//! [`VertexAttribute`]: values that are stored for each vertex beside its position.

use bytes::Bytes;
use serde_json::Value;

use super::cells::CellArray;
use super::chunk::ChunkVertices;
use super::json::{JsonObject, integers, string, strings};
use super::level::ResolutionLevel;
use super::payload::{PayloadError, number_type};
use super::root::Profile;
use super::{VectorError, format_coord};
use crate::metadata::DataType;

/// The largest number of values for one vertex.
const MAX_WIDTH: u64 = 1 << 16;

/// An attribute of vertices.
#[derive(Clone, Debug)]
pub struct VertexAttribute {
    /// Its name.
    pub name: String,
    /// The data type of its values.
    pub data_type: DataType,
    /// The number of values for one vertex.
    pub width: usize,
    /// The names of these values, if the store has any.
    pub channels: Option<Vec<String>>,
    /// The category of each code, if values are codes.
    pub categories: Option<Vec<String>>,
    /// Whether the categories are ordered.
    pub is_ordered: bool,
    values: ValueSource,
}

/// Where the values of an attribute come from.
#[derive(Clone, Debug)]
enum ValueSource {
    /// Stored payloads, one for each chunk.
    Cells(CellArray),
    /// The chunk's coordinate along the leading axis.
    ChunkCoord,
}

/// The values of an attribute for all vertices of a chunk: `width` little-endian numbers for each.
pub type Values = Bytes;

impl VertexAttribute {
    /// The names of the attributes of a level's vertices.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn names(level: &ResolutionLevel) -> Result<Vec<String>, VectorError> {
        let below = level.path.child(attribute_folder(level))?;
        let mut names = level.store.context.child_names(&below).await?.unwrap_or_default();
        if let Some((name, _)) = level.chunk_attribute()
            && !names.contains(&name)
        {
            names.push(name);
        }
        Ok(names)
    }

    /// Opens an attribute by its name.
    ///
    /// # Errors
    /// [`VectorError::AttributeNotFound`], [`VectorError::InvalidMetadata`].
    pub async fn open(level: &ResolutionLevel, name: &str) -> Result<Self, VectorError> {
        let path = level.path.child(attribute_folder(level))?.child(name);
        let path = path.map_err(|_no_name| VectorError::bad_param("attributes", "names of attributes"))?;
        if let Some(cells) = level.store.open_cells(path, level.dims).await? {
            return Self::from_cells(level, name, cells);
        }
        match level.chunk_attribute() {
            Some((found, values)) if found == name => Ok(Self {
                name: found,
                data_type: DataType::Int32,
                width: 1,
                channels: None,
                categories: Some(values),
                is_ordered: false,
                values: ValueSource::ChunkCoord,
            }),
            _ => Err(VectorError::AttributeNotFound {
                name: name.to_owned(),
                known: Self::names(level).await?,
            }),
        }
    }

    fn from_cells(level: &ResolutionLevel, name: &str, cells: CellArray) -> Result<Self, VectorError> {
        let attributes = &cells.attributes;
        let path = cells.path.as_str().to_owned();
        let unusable =
            |detail: &str| VectorError::invalid_metadata("array_attrs", format!("`{path}`: {detail}"));
        let (kind, width) = if let (Profile::Doc, Some(array)) = (level.store.root.profile, cells.array()) {
            let metadata = array.metadata();
            let width = metadata.shape.iter().skip(level.dims + 1).product();
            (number_type(&metadata.data_type.name()), width)
        } else {
            (string(attributes, "dtype").and_then(number_type), declared_width(attributes).unwrap_or(1))
        };
        let kind = kind.ok_or_else(|| unusable("its data type is not numeric"))?;
        if !(1..=MAX_WIDTH).contains(&width) {
            return Err(unusable("a row has no values, or too many"));
        }
        let categories = match string(attributes, "encoding") {
            None | Some("raw") => None,
            Some("dictionary") => Some(
                categories(attributes.get("categories"))
                    .ok_or_else(|| unusable("there are no `categories`"))?,
            ),
            Some(encoding) => {
                return Err(VectorError::UnsupportedEncoding { path, encoding: encoding.to_owned() });
            }
        };
        Ok(Self {
            name: name.to_owned(),
            data_type: kind,
            width: usize::try_from(width).unwrap_or(usize::MAX),
            channels: strings(attributes.get("channel_names")),
            categories,
            is_ordered: super::json::is_true(attributes, "ordered"),
            values: ValueSource::Cells(cells),
        })
    }

    /// The size of one vertex's values in bytes.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.data_type.element_bytes().saturating_mul(self.width)
    }

    /// The stored payloads; `None` for the attribute by which chunks are split.
    #[must_use]
    pub fn cells(&self) -> Option<&CellArray> {
        match &self.values {
            ValueSource::Cells(cells) => Some(cells),
            ValueSource::ChunkCoord => None,
        }
    }

    /// The values of a chunk's vertices.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`] if their number differs from that of the vertices.
    pub async fn values(
        &self,
        level: &ResolutionLevel,
        chunk: &ChunkVertices,
    ) -> Result<Values, VectorError> {
        let rows = chunk.positions.rows();
        let cells = match &self.values {
            ValueSource::Cells(cells) => cells,
            ValueSource::ChunkCoord => {
                let code = chunk.coord.first().and_then(|&at| i32::try_from(at).ok()).unwrap_or(-1);
                return Ok(code.to_le_bytes().repeat(rows).into());
            }
        };
        let payload = cells.payload(&level.store.context, &chunk.coord).await?.unwrap_or_default();
        let expected = rows.saturating_mul(self.row_bytes());
        // A dense array has rows for more vertices than exist.
        let is_dense = level.store.root.profile == Profile::Doc;
        match payload.len() {
            found if found == expected => Ok(payload),
            found if found > expected && is_dense => Ok(payload.slice(..expected)),
            found => Err(self.misaligned(cells, &chunk.coord, found, expected)),
        }
    }

    fn misaligned(&self, cells: &CellArray, coord: &[i64], found: usize, expected: usize) -> VectorError {
        if !found.is_multiple_of(self.row_bytes().max(1)) {
            let reason = PayloadError::PartialRow { bytes: found, row: self.row_bytes() };
            return VectorError::corrupt_chunk(&cells.path, coord, &reason);
        }
        let row = self.row_bytes().max(1);
        VectorError::Corrupt {
            path: cells.path.as_str().to_owned(),
            chunk: format_coord(coord),
            reason: format!("it has {} rows for {} vertices", found / row, expected / row),
        }
    }
}

/// The number of values in a row, as the attributes declare it.
fn declared_width(attributes: &JsonObject) -> Option<u64> {
    let row = integers(attributes.get("row_shape")).filter(|row| !row.is_empty());
    let product = |row: Vec<i64>| {
        row.iter().try_fold(1_u64, |width, &length| width.checked_mul(u64::try_from(length).ok()?))
    };
    let channels = || Some(attributes.get("channel_names")?.as_array()?.len() as u64);
    row.and_then(product).or_else(channels)
}

/// Categories as strings.
fn categories(value: Option<&Value>) -> Option<Vec<String>> {
    let category = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(value?.as_array()?.iter().map(category).collect())
}

/// The group that holds the attributes of vertices.
pub(super) fn attribute_folder(level: &ResolutionLevel) -> &'static str {
    match level.store.root.profile {
        Profile::Doc => "attributes",
        Profile::V7 | Profile::V9 => "vertex_attributes",
    }
}
