//! [`Shapes`]: the chunk and bin shape of a level, from the metadata of the store and of the level.

use super::VectorError;
use super::json::{JsonObject, finite_numbers, object};
use super::root::{Profile, RootMetadata, check_edges};

/// A remainder below this fraction of a chunk edge counts as zero.
const TOLERANCE: f64 = 1e-6;

/// The chunk and bin shape of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Shapes {
    /// The edge lengths of a chunk.
    pub chunk: Vec<f64>,
    /// The edge lengths of a bin.
    pub bin: Vec<f64>,
    /// The number of bins along each axis of a chunk; `None` if bins do not divide chunks.
    pub bins_per_chunk: Option<Vec<i64>>,
}

impl Shapes {
    /// The shapes of the level `name` with the metadata `level`.
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

/// The edge lengths of a level's bins, unchecked.
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

/// The numbers of a level's `scale` or `translation` transformation.
pub(super) fn transform(dataset: &JsonObject, kind: &str) -> Option<Vec<f64>> {
    let transforms = dataset.get("coordinateTransformations")?.as_array()?;
    let found =
        transforms.iter().find(|transform| transform.get("type").is_some_and(|found| found == kind))?;
    finite_numbers(found.get(kind))
}

fn multiply(one: &[f64], other: &[f64]) -> Option<Vec<f64>> {
    (one.len() == other.len()).then(|| one.iter().zip(other).map(|(one, other)| one * other).collect())
}

/// The number of bins along a chunk edge, if it is an integer within the tolerance.
pub(super) fn integer_ratio(chunk: f64, bin: f64) -> Option<i64> {
    let ratio = (chunk / bin).round();
    let fits = remainder(chunk, bin) <= TOLERANCE * chunk && (1.0..1e9).contains(&ratio);
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below a billion")]
    fits.then_some(ratio as i64)
}

/// The distance of an edge from the nearest multiple of another.
pub(super) fn remainder(chunk: f64, bin: f64) -> f64 {
    let rest = chunk % bin;
    rest.min(bin - rest)
}

/// The member of a group's attributes that describes a level.
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
    fn integer_ratios_tolerate_a_millionth_of_a_chunk() {
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
