//! [`RootMetadata`]: the metadata of a vector store: its profile, axes and shapes.
//!
//! Three layouts exist. The format's documents describe one ([`Profile::Doc`]): dense arrays, with metadata in
//! `.zattrs`. The library writes two others: the newer has one variable-length array for all chunks ([`Profile::V9`]),
//! the older an array for each chunk ([`Profile::V7`]). Values are not checked here: a member that is missing or of
//! another type is `None`, and `validate` reports it.

use std::sync::Arc;

use serde_json::Value;

use super::VectorError;
use super::json::{JsonObject, finite_numbers, object, string, strings};

/// A storage layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The layout of the format's documents, version 1.0.
    Doc,
    /// Format 0.6 to 0.8: an array for each chunk.
    V7,
    /// Format 0.9: one array with a cell for each chunk.
    V9,
}

impl Profile {
    /// Its stable name: `doc`, `v7` or `v9`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Doc => "doc",
            Self::V7 => "v7",
            Self::V9 => "v9",
        }
    }
}

/// A coordinate axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The name of the axis.
    pub name: String,
    /// The unit of coordinates along the axis.
    pub unit: Option<String>,
}

/// The metadata of a store.
#[derive(Clone, Debug)]
pub struct RootMetadata {
    /// The storage layout.
    pub profile: Profile,
    /// All attributes of the root group.
    pub attributes: Arc<JsonObject>,
    /// In the documents' profile: members that differ between `zarr.json` and `.zattrs`.
    pub conflicting_members: Vec<String>,
}

/// Members that identify a store of the documents' profile, beside `chunk_shape`.
const DOC_MEMBERS: [&str; 3] = ["zarr_vectors_version", "geometry_type", "spatial_dims"];
/// The member that holds the metadata in the other profiles.
pub(super) const LIBRARY_MEMBER: &str = "zarr_vectors";

impl RootMetadata {
    /// Whether attributes are those of a store that the library wrote.
    pub(super) fn has_library_metadata(attributes: &JsonObject) -> bool {
        attributes.get(LIBRARY_MEMBER).is_some_and(Value::is_object)
    }

    /// Whether attributes are those of a store of the documents' profile.
    pub(super) fn has_doc_metadata(attributes: &JsonObject) -> bool {
        let marks = DOC_MEMBERS.iter().filter(|mark| attributes.contains_key(**mark)).count();
        // A store without a chunk shape can still be validated.
        marks >= 2 || (marks == 1 && attributes.contains_key("chunk_shape"))
    }

    /// Whether attributes suggest that the group should be a vector store.
    pub(super) fn hints_at_store(attributes: &JsonObject) -> bool {
        let format = |multiscale: &Value| {
            multiscale.pointer("/metadata/format").is_some_and(|format| format == LIBRARY_MEMBER)
                || multiscale.get("type").is_some_and(|kind| kind == "zarr_vectors_multiscale")
        };
        attributes.contains_key(LIBRARY_MEMBER)
            || DOC_MEMBERS.iter().any(|mark| attributes.contains_key(*mark))
            || attributes
                .get("multiscales")
                .and_then(Value::as_array)
                .is_some_and(|all| all.iter().any(format))
    }

    /// The object whose members describe the store.
    #[must_use]
    pub fn store_metadata(&self) -> &JsonObject {
        match self.profile {
            Profile::Doc => &self.attributes,
            Profile::V7 | Profile::V9 => object(&self.attributes, LIBRARY_MEMBER).unwrap_or(&self.attributes),
        }
    }

    /// The first entry of `multiscales`.
    pub(super) fn multiscale(&self) -> Option<&JsonObject> {
        self.attributes.get("multiscales")?.as_array()?.first()?.as_object()
    }

    /// The entry of a level in `multiscales`.
    pub(super) fn dataset(&self, name: &str) -> Option<&JsonObject> {
        let datasets = self.multiscale()?.get("datasets")?.as_array()?;
        datasets
            .iter()
            .filter_map(Value::as_object)
            .find(|dataset| string(dataset, "path").is_some_and(|path| path == name))
    }

    /// The format version that the store declares.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        let name = if self.profile == Profile::Doc { "zarr_vectors_version" } else { "zv_version" };
        string(self.store_metadata(), name)
    }

    /// The axes; one without a name is called `axisN`.
    #[must_use]
    pub fn axes(&self) -> Vec<Axis> {
        let named = self.multiscale().and_then(|multiscale| multiscale.get("axes")?.as_array());
        let units = strings(self.store_metadata().get("axis_units"));
        let unit = |place: usize| match units.as_deref() {
            Some([one]) => Some(one.clone()),
            Some(units) => units.get(place).cloned(),
            None => None,
        };
        let listed = named.map_or(0, Vec::len);
        let count = self.declared_dims().unwrap_or(listed).min(MAX_DIMS);
        (0..count)
            .map(|place| {
                let axis = named.and_then(|axes| axes.get(place));
                let member = |name| axis.and_then(|axis| axis.get(name)?.as_str()).map(str::to_owned);
                Axis {
                    name: member("name").unwrap_or_else(|| format!("axis{place}")),
                    unit: member("unit").or_else(|| unit(place)),
                }
            })
            .collect()
    }

    /// The number of axes that a store of the documents' profile declares.
    fn declared_dims(&self) -> Option<usize> {
        if self.profile != Profile::Doc {
            return None;
        }
        self.store_metadata().get("spatial_dims")?.as_u64().and_then(|dims| usize::try_from(dims).ok())
    }

    /// The number of spatial axes, with which every other shape is compared.
    #[must_use]
    pub fn dims(&self) -> Option<usize> {
        let axes = || {
            let axes = self.multiscale()?.get("axes")?.as_array()?.len();
            (axes > 0).then_some(axes)
        };
        let dims =
            self.declared_dims().or_else(axes).or_else(|| self.chunk_shape().map(|shape| shape.len()))?;
        (1..=MAX_DIMS).contains(&dims).then_some(dims)
    }

    /// The edge lengths of a chunk, unchecked.
    #[must_use]
    pub fn chunk_shape(&self) -> Option<Vec<f64>> {
        finite_numbers(self.store_metadata().get("chunk_shape"))
    }

    /// The edge lengths of a bin at the finest level, unchecked.
    #[must_use]
    pub fn base_bin_shape(&self) -> Option<Vec<f64>> {
        let metadata = self.store_metadata();
        let seed = || metadata.get("bin_shape").filter(|_| self.profile == Profile::Doc);
        finite_numbers(metadata.get("base_bin_shape").or_else(seed))
    }

    /// The smallest and largest coordinate along each axis.
    #[must_use]
    pub fn bounds(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let metadata = self.store_metadata();
        if self.profile == Profile::Doc {
            let bounds = object(metadata, "bounding_box")?;
            return Some((finite_numbers(bounds.get("min"))?, finite_numbers(bounds.get("max"))?));
        }
        match metadata.get("bounds")?.as_array()?.as_slice() {
            [low, high] => Some((finite_numbers(Some(low))?, finite_numbers(Some(high))?)),
            _ => None,
        }
    }

    /// The types of geometry in the store: `point_cloud`, `streamline` and so on.
    #[must_use]
    pub fn geometry_types(&self) -> Vec<String> {
        let name = if self.profile == Profile::Doc { "geometry_type" } else { "geometry_types" };
        strings(self.store_metadata().get(name)).unwrap_or_default()
    }

    /// The number of axes and the edge lengths of a chunk, checked.
    ///
    /// # Errors
    /// [`VectorError::InvalidMetadata`].
    pub fn geometry(&self) -> Result<(usize, Vec<f64>), VectorError> {
        let dims = self
            .dims()
            .ok_or_else(|| VectorError::invalid_metadata("root_metadata", "the number of axes is unknown"))?;
        let shape = self.chunk_shape().ok_or_else(|| {
            VectorError::invalid_metadata("chunk_shape_present", "there is no `chunk_shape`")
        })?;
        check_edges(&shape, dims, "chunk_shape")?;
        Ok((dims, shape))
    }
}

/// The largest number of axes: that of an array, less those for rows and coordinates.
pub(super) const MAX_DIMS: usize = 29;

/// Rejects edge lengths of the wrong number, or not above 0.
pub(super) fn check_edges(edges: &[f64], dims: usize, name: &str) -> Result<(), VectorError> {
    let is_bin = name.contains("bin");
    if edges.len() != dims {
        let check = if is_bin { "bin_shape_rank" } else { "chunk_shape_rank" };
        return Err(VectorError::invalid_metadata(
            check,
            format!("`{name}` has {} numbers for {dims} axes", edges.len()),
        ));
    }
    if edges.iter().any(|&edge| edge <= 0.0) {
        let check = if is_bin { "bin_shape_positive" } else { "chunk_shape_positive" };
        return Err(VectorError::invalid_metadata(
            check,
            format!("`{name}` has an edge that is not above 0"),
        ));
    }
    Ok(())
}
