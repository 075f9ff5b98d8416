//! The shapes of a level: its chunks and bins, as the store and the level say together.

use super::VectorError;
use super::json::{JsonObject, finite_numbers, object};
use super::root::{Profile, RootMetadata, check_edges};

/// A remainder of this part of a chunk is none.
const TOLERANCE: f64 = 1e-6;

/// The chunks and bins of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Shapes {
    /// Edges of a chunk.
    pub chunk: Vec<f64>,
    /// Edges of a bin.
    pub bin: Vec<f64>,
    /// Bins along each axis of a chunk; `None` if bins do not fill chunks.
    pub bins_per_chunk: Option<Vec<i64>>,
}

impl Shapes {
    /// Of level `name`, whose own attributes are these.
    ///
    /// # Errors
    /// [`VectorError::InvalidMetadata`].
    pub fn from_metadata(root: &RootMetadata, name: &str, level: &JsonObject) -> Result<Self, VectorError> {
        let (dims, root_chunk) = root.geometry()?;
        let chunk = finite_numbers(level.get("chunk_shape")).unwrap_or_else(|| root_chunk.clone());
        check_edges(&chunk, dims, "chunk_shape")?;
        let bin =
            bin_shape(root, name, level, &chunk).filter(|bin| check_edges(bin, dims, "bin_shape").is_ok());
        let bin = bin.unwrap_or_else(|| chunk.clone());
        let bins_per_chunk = chunk.iter().zip(&bin).map(|(&chunk, &bin)| integer_ratio(chunk, bin)).collect();
        Ok(Self { chunk, bin, bins_per_chunk })
    }
}

/// The edges of a level's bins, as they are written.
pub(super) fn bin_shape(
    root: &RootMetadata,
    name: &str,
    level: &JsonObject,
    chunk: &[f64],
) -> Option<Vec<f64>> {
    let base = || root.base_bin_shape();
    let dataset = root.dataset(name);
    let own = || finite_numbers(level.get("bin_shape")).or_else(|| finite_numbers(level.get("bin_size")));
    if root.profile == Profile::Doc {
        let listed = || finite_numbers(dataset?.get("bin_shape"));
        let scaled = || {
            let ratio = level.get("bin_ratio").or_else(|| dataset?.get("bin_ratio"));
            multiply(&base()?, &finite_numbers(ratio)?)
        };
        return own().or_else(listed).or_else(scaled).or_else(base);
    }
    if name == "0" {
        return base().or_else(|| Some(chunk.to_vec()));
    }
    let doubled = || Some(transform(dataset?, "translation")?.iter().map(|half| half * 2.0).collect());
    let scaled = || multiply(&base()?, &transform(dataset?, "scale")?);
    doubled().or_else(own).or_else(scaled)
}

/// The numbers of a level's `scale` or `translation`.
pub(super) fn transform(dataset: &JsonObject, kind: &str) -> Option<Vec<f64>> {
    let transforms = dataset.get("coordinateTransformations")?.as_array()?;
    let found =
        transforms.iter().find(|transform| transform.get("type").is_some_and(|found| found == kind))?;
    finite_numbers(found.get(kind))
}

fn multiply(one: &[f64], other: &[f64]) -> Option<Vec<f64>> {
    (one.len() == other.len()).then(|| one.iter().zip(other).map(|(one, other)| one * other).collect())
}

/// How often a bin fits into a chunk, if that is a whole number of times.
pub(super) fn integer_ratio(chunk: f64, bin: f64) -> Option<i64> {
    let ratio = (chunk / bin).round();
    let fits = remainder(chunk, bin) <= TOLERANCE * chunk && (1.0..1e9).contains(&ratio);
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below a billion")]
    fits.then_some(ratio as i64)
}

/// How far an edge is from a multiple of another, on either side.
pub(super) fn remainder(chunk: f64, bin: f64) -> f64 {
    let rest = chunk % bin;
    rest.min(bin - rest)
}

/// What a level says of itself, in attributes of a group.
pub(super) fn level_metadata(profile: Profile, attributes: &JsonObject) -> Option<&JsonObject> {
    match profile {
        Profile::Doc => attributes.contains_key("level").then_some(attributes),
        Profile::V7 | Profile::V9 => object(attributes, "zarr_vectors_level"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_fits_a_chunk_within_a_millionth_of_it() {
        for (chunk, bin, fits) in [
            (200.0, 50.0, Some(4)),
            (200.0, 50.000_000_5, Some(4)),
            (0.3, 0.1, Some(3)),
            (200.0, 60.0, None),
            (100.0, 200.0, None),
            (50.0, 50.0, Some(1)),
        ] {
            assert_eq!(integer_ratio(chunk, bin), fits, "{chunk} {bin}");
        }
    }
}
