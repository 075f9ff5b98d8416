//! [`StructType`] and [`SubarrayType`]: composite elements (Zarr extensions, "struct"; Zarr v2, "Data type encoding").
//!
//! Fields follow each other without gaps. `v2` and `v3` parse and write them.

use std::sync::Arc;

use super::names::MAX_ITEM_BYTES;
use super::{DataType, Field, StructType, SubarrayType};
use crate::metadata::MetadataError;

/// Maximum number of fields of a struct, including those of nested structs.
const MAX_FIELDS: usize = 1024;
/// Maximum nesting of structs and subarrays.
const MAX_DEPTH: usize = 16;

impl StructType {
    /// A struct of these fields.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] if there are none, two of one name, or one of variable length;
    /// [`MetadataError::Unsupported`] beyond 1024 fields, 16 levels or 1 MiB.
    pub fn new(fields: Vec<Field>) -> Result<Arc<Self>, MetadataError> {
        let invalid = |reason: String| MetadataError::invalid("data type", reason);
        if fields.is_empty() {
            return Err(invalid("a struct has no fields".to_owned()));
        }
        if fields.len() > MAX_FIELDS {
            return Err(too_large());
        }
        let mut names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.array_windows().find(|[one, next]| one == next) {
            return Err(invalid(format!("a struct has two fields `{twice}`")));
        }
        let (mut bytes, mut leaves, mut depth) = (0_usize, 0_usize, 0);
        for field in &fields {
            if field.data_type.is_variable() {
                return Err(invalid(format!("the field `{}` is of variable length", field.name)));
            }
            bytes = bytes.saturating_add(field.data_type.element_bytes());
            leaves = leaves.saturating_add(leaf_count(&field.data_type));
            depth = depth.max(nesting_depth(&field.data_type));
        }
        let element_bytes = check_limits(bytes, leaves, depth + 1)?;
        Ok(Arc::new(Self { fields, element_bytes, leaves, depth: depth + 1 }))
    }

    /// The fields, in the order of their bytes.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The fields, each with the offset of its bytes in the element.
    pub fn fields_at(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().scan(0, |at, field| {
            let start = *at;
            *at += field.data_type.element_bytes();
            Some((start, field))
        })
    }

    /// Size of an element in bytes.
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    pub(super) fn name(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|field| format!("{}: {}", field.name, field.data_type.name())).collect();
        format!("struct{{{}}}", fields.join(", "))
    }
}

impl SubarrayType {
    /// Elements of type `item` with a shape, in C order. The shape needs at least one dimension, and no length of 0.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] for another shape or elements of variable length; [`MetadataError::Unsupported`]
    /// beyond 1024 fields, 16 levels or 1 MiB.
    pub fn new(item: DataType, shape: Vec<u32>) -> Result<Arc<Self>, MetadataError> {
        if item.is_variable() || shape.is_empty() || shape.contains(&0) {
            return Err(MetadataError::invalid("data type", "a subarray must have elements of fixed size"));
        }
        let elements = shape.iter().fold(1_usize, |elements, &edge| elements.saturating_mul(edge as usize));
        // All elements of the subarray count as one field.
        let leaves = leaf_count(&item);
        let depth = nesting_depth(&item) + 1;
        check_limits(elements.saturating_mul(item.element_bytes()), leaves, depth)?;
        Ok(Arc::new(Self { item, shape, elements, leaves, depth }))
    }

    /// The type of its elements.
    #[must_use]
    pub fn item(&self) -> &DataType {
        &self.item
    }

    /// Elements along each dimension.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        &self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Size of the field in bytes.
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        self.elements.saturating_mul(self.item.element_bytes())
    }

    pub(super) fn name(&self) -> String {
        format!("{}{:?}", self.item.name(), self.shape)
    }
}

fn leaf_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(structure) => structure.leaves,
        DataType::Subarray(subarray) => subarray.leaves,
        _ => 1,
    }
}

fn nesting_depth(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(structure) => structure.depth,
        DataType::Subarray(subarray) => subarray.depth,
        _ => 0,
    }
}

/// The size of an element, if type and size are within the limits.
fn check_limits(bytes: usize, leaves: usize, depth: usize) -> Result<usize, MetadataError> {
    if bytes > MAX_ITEM_BYTES as usize || leaves > MAX_FIELDS || depth > MAX_DEPTH {
        return Err(too_large());
    }
    Ok(bytes)
}

fn too_large() -> MetadataError {
    let limits =
        format!("struct of more than {MAX_FIELDS} fields, {MAX_DEPTH} levels or {MAX_ITEM_BYTES} bytes");
    MetadataError::unsupported("data type", limits)
}
