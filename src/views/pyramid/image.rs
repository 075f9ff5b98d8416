//! [`Image`]: an array or an image of the store, as the image with more levels that the view shows.
//!
//! An array is level 0 of its image. Of an image of the store, the coarsest level that is stored is where further levels
//! begin.

use std::sync::Arc;

use super::levels::{ImageAxis, LevelSource, Levels};
use super::spec::PyramidSpec;
use crate::array::{Array, OpenNode};
use crate::conventions::{OmeImage, has_categories};
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, DataType};
use crate::reduce::{Method, Reducer, Reduction};
use crate::store::Version;
use crate::views::error::ViewError;
use crate::views::rechunk::ShownElements;

/// Attributes of an array that are not true of its levels, or that each version of the format has in its own way.
const NOT_OF_LEVELS: [&str; 6] =
    ["_ARRAY_DIMENSIONS", "ome", "multiscales", "spatial:transform", "spatial:shape", "omero"];

/// An image with levels that are not stored.
#[derive(Debug)]
pub(super) struct Image {
    /// The path of its group in the view.
    pub(super) path: NodePath,
    /// The array that the levels are made from.
    pub(super) source: Arc<OpenNode>,
    /// That array, bound.
    pub(super) array: Arc<Array>,
    /// The group of the image, if it is stored as one.
    pub(super) group: Option<Arc<OpenNode>>,
    /// The group above an array.
    pub(super) above: Option<Arc<OpenNode>>,
    /// The group that may list a stored image as one of labels.
    pub(super) labels: Option<Arc<OpenNode>>,
    /// The name of each level, beginning with that of the array.
    pub(super) names: Vec<String>,
    pub(super) levels: Levels,
    pub(super) method: Method,
    /// The stored numbers that viewers draw darkest and brightest, if the URL has them.
    pub(super) range: Option<(f64, f64)>,
}

/// What an image is made from.
pub(super) struct ImageParts<'a> {
    pub(super) path: &'a NodePath,
    pub(super) source: Arc<OpenNode>,
    pub(super) array: Arc<Array>,
    pub(super) group: Option<Arc<OpenNode>>,
    pub(super) above: Option<Arc<OpenNode>>,
    pub(super) labels: Option<Arc<OpenNode>>,
    /// What the attributes of the group say.
    pub(super) ome: Option<&'a OmeImage>,
}

impl Image {
    /// The image.
    ///
    /// # Errors
    /// [`ViewError::Levels`], [`ViewError::Reduce`].
    pub(super) fn new(parts: ImageParts<'_>, spec: &PyramidSpec) -> Result<Self, ViewError> {
        let ImageParts { path, source, array, group, above, labels, ome } = parts;
        let metadata = array.metadata();
        let rank = metadata.shape.len();
        let own = || metadata.dimension_names.clone().filter(|names| names.len() == rank);
        let dimension_names = ome.map(OmeImage::names).filter(|names| names.len() == rank).or_else(own);
        let dimension_names = dimension_names.unwrap_or_else(|| vec![None; rank]);
        let level_source = LevelSource {
            shape: &metadata.shape,
            names: &dimension_names,
            is_bytes: metadata.data_type == DataType::UInt8,
            pixel: None,
        };
        let pixel = ome.and_then(pixel);
        let level_source = LevelSource { pixel: pixel.as_deref(), ..level_source };
        let levels = Levels::new(level_source, spec)
            .map_err(|source| ViewError::Levels { path: path.clone(), source })?;
        let is_categorical = has_categories(&metadata.attributes, ome);
        let method = spec.method.unwrap_or_else(|| Method::auto(&metadata.data_type, is_categorical));
        Reducer::of_array(method, metadata)
            .map_err(|source| ViewError::Reduce { path: path.clone(), source })?;
        let names = names(ome, levels.shapes.len());
        let (path, range) = (path.clone(), spec.range);
        Ok(Self { path, source, array, group, above, labels, names, levels, method, range })
    }

    /// The same image without the levels from this one on.
    pub(super) fn truncated(self, count: usize) -> Self {
        let levels = self.levels.truncated(count);
        let names = self.names.into_iter().take(levels.shapes.len()).collect();
        Self { names, levels, ..self }
    }

    /// Whether it is an array in the store.
    pub(super) fn is_array(&self) -> bool {
        self.group.is_none()
    }

    /// The level of this name that is not stored as a node of that name.
    pub(super) fn level_of(&self, name: &str) -> Option<usize> {
        let first = usize::from(!self.is_array());
        self.names.iter().position(|known| known == name).filter(|&level| level >= first)
    }

    /// The axes.
    pub(super) fn axes(&self) -> &[ImageAxis] {
        &self.levels.axes
    }

    /// The names of the axes.
    pub(super) fn axis_names(&self) -> Vec<Option<String>> {
        self.axes().iter().map(|axis| Some(axis.name.clone())).collect()
    }

    /// The path of a level.
    pub(super) fn level_path(&self, level: usize) -> Option<NodePath> {
        NodePath::parse(&format!("{}{}", self.path.prefix(), self.names.get(level)?)).ok()
    }

    /// What is shown as a level.
    ///
    /// # Errors
    /// [`ViewError::Reduce`].
    pub(super) fn shown(&self, level: usize) -> Result<ShownElements, ViewError> {
        let steps = self.levels.steps.iter().take(level).cloned().collect();
        let reduction = self.reduction(steps)?;
        let source = self.array.metadata();
        let metadata = ArrayMetadata {
            shape: self.levels.shapes.get(level).unwrap_or(&source.shape).clone(),
            attributes: source.attributes.without(&NOT_OF_LEVELS),
            dimension_names: Some(self.axis_names()),
            ..source.clone()
        };
        Ok(ShownElements { metadata: Arc::new(metadata), reduction })
    }

    /// These steps of halving.
    ///
    /// # Errors
    /// [`ViewError::Reduce`].
    pub(super) fn reduction(&self, steps: Vec<Vec<u64>>) -> Result<Arc<Reduction>, ViewError> {
        let reducer = Reducer::of_array(self.method, self.array.metadata())
            .map_err(|source| ViewError::Reduce { path: self.path.clone(), source })?;
        Ok(Arc::new(Reduction::cascade(reducer, steps)))
    }

    /// The versions of all documents that its own depend on.
    pub(super) fn versions(&self) -> Vec<Option<Version>> {
        let nodes = std::iter::once(&self.source).chain(&self.group).chain(&self.above).chain(&self.labels);
        nodes.flat_map(|node| node.located.versions().map(Option::<&Version>::cloned)).collect()
    }

    /// Bytes of these documents.
    pub(super) fn document_bytes(&self) -> u64 {
        let nodes = std::iter::once(&self.source).chain(&self.group).chain(&self.above).chain(&self.labels);
        nodes.map(|node| node.located.document_bytes()).fold(0, u64::saturating_add)
    }
}

/// The sizes of a pixel of the coarsest stored level along the axes, if those of space have one unit.
fn pixel(image: &OmeImage) -> Option<Vec<f64>> {
    let (_, scale) = image.levels.last()?;
    let scale = scale.clone().filter(|scale| scale.len() == image.axes.len())?;
    let mut space = image.axes.iter().filter(|axis| axis.kind.as_deref() == Some("space"));
    let first = space.next()?;
    space.all(|axis| axis.unit == first.unit).then_some(scale)
}

/// The names of levels: numbers, or those that follow the name of the coarsest stored level.
fn names(ome: Option<&OmeImage>, count: usize) -> Vec<String> {
    let Some(image) = ome else { return (0..count).map(|level| level.to_string()).collect() };
    let stored = image.levels.len();
    let last = image.levels.last().map(|(path, _)| path.clone()).unwrap_or_default();
    let stem = last.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = last.strip_prefix(stem).and_then(|digits| digits.parse::<u64>().ok());
    let is_taken = |name: &String| image.levels.iter().any(|(path, _)| path == name);
    let mut next = number.unwrap_or(stored as u64 - u64::from(stored > 0));
    let stem = if stem.contains('/') || number.is_none() { "" } else { stem };
    let mut names = vec![last.clone()];
    while names.len() < count {
        next = next.saturating_add(1);
        let name = format!("{stem}{next}");
        if !is_taken(&name) || next == u64::MAX {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_levels_are_named_after_the_stored_ones() {
        for (stored, expected) in [
            (&["0"][..], &["0", "1", "2"][..]),
            (&["0", "1"], &["1", "2", "3"]),
            (&["s0", "s1"], &["s1", "s2", "s3"]),
            (&["a/0"], &["a/0", "1", "2"]),
            (&["full", "half"], &["half", "2", "3"]),
            (&["2", "1"], &["1", "3", "4"]),
        ] {
            let levels = stored.iter().map(|path| ((*path).to_owned(), None)).collect();
            let image = OmeImage { levels, ..OmeImage::default() };
            assert_eq!(names(Some(&image), 3), expected);
        }
        assert_eq!(names(None, 2), ["0", "1"]);
    }
}
