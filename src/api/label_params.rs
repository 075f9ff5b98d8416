//! [`LabelPositions`]: the selection of a request with positions in place of labels.

use std::fmt::{Display, Write};

use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::selection::SelectionParams;
use crate::chunk::SelectionError;
use crate::http::array_headers::put_labels;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::ArrayMetadata;
use crate::services::coordinates::{LabelRequest, LabelSelection, UsedLabels};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// The most items of lists whose positions the answer says.
const MOST_SHOWN: usize = 1000;

/// A selection without labels, and what they were resolved by.
#[derive(Debug, Default)]
pub(crate) struct LabelPositions {
    pub(crate) selection: SelectionParams,
    /// The coordinates that the positions are from.
    pub(crate) used: UsedLabels,
    /// The positions along each dimension that is selected by name, for a header.
    taken: String,
    /// The labels of single positions, for a header.
    labels: String,
}

/// The positions that a request selects in an array by labels; `None` if it selects by none. The array has these names of
/// dimensions.
///
/// # Errors
/// 400 if there is no such dimension, it has no coordinate, or no such label; failures of reading.
pub(crate) async fn positions(
    request: (&AppState, &Parts, &NodeTarget),
    selection: &SelectionParams,
    path: &NodePath,
    metadata: &ArrayMetadata,
    names: Option<&[Option<String>]>,
) -> Result<Option<LabelPositions>, Problem> {
    if !selection.has_labels() {
        return Ok(None);
    }
    let unnamed = vec![None; metadata.shape.len()];
    let names = names.or(metadata.dimension_names.as_deref()).unwrap_or(&unnamed);
    positions_along(request, selection, path, (&metadata.shape, names)).await
}

/// The same along dimensions of these lengths and names, which are of an array at a path, or of several beside it.
///
/// # Errors
/// As [`positions`].
pub(crate) async fn positions_along(
    (state, head, target): (&AppState, &Parts, &NodeTarget),
    selection: &SelectionParams,
    path: &NodePath,
    (shape, names): (&[u64], &[Option<String>]),
) -> Result<Option<LabelPositions>, Problem> {
    if !selection.has_labels() {
        return Ok(None);
    }
    // Boxed, because the rare branch would enlarge the future of every request.
    let resolve = async {
        let requested = selection.labels(shape, names)?;
        let request = LabelRequest { state, head, target };
        let found = request.resolve(path, &requested, selection.wrap()).await?;
        let LabelSelection { dimensions, used } = found;
        let mut labels = Pairs::default();
        for dimension in &dimensions {
            if let Some(label) = &dimension.label {
                labels.add(&dimension.name, &[label]);
            }
        }
        let found = dimensions.into_iter().map(|dimension| (dimension.name, dimension.positions));
        let selection = selection.with_positions(found);
        // Those of long lists do not fit in a header, and the version of the elements identifies them.
        let taken = if selection.listed_items() > MOST_SHOWN {
            String::new()
        } else {
            taken(&selection, shape, names)?
        };
        Ok::<_, Problem>(LabelPositions { selection, used, taken, labels: labels.0 })
    };
    Box::pin(resolve).await.map(Some)
}

/// The positions along each dimension that is selected by name.
fn taken(
    selection: &SelectionParams,
    shape: &[u64],
    names: &[Option<String>],
) -> Result<String, SelectionError> {
    let positions = selection.positions_named(shape, names)?;
    let points = selection.points_named(shape, names)?;
    let mut taken = Pairs::default();
    for (axis, (name, positions)) in names.iter().zip(&positions).enumerate() {
        let Some(name) = name.as_deref() else { continue };
        if let Some(along) = points.as_ref().and_then(|points| points.along(axis)) {
            taken.add(name, along);
        } else if selection.named().any(|named| named == name) {
            taken.add(name, positions.ranges());
        }
    }
    Ok(taken.0)
}

/// Names with values: `time=5, lat=3:9`.
#[derive(Default)]
struct Pairs(String);

impl Pairs {
    /// Adds a name with its values, which stand between commas.
    fn add<T: Display>(&mut self, name: &str, values: &[T]) {
        let Self(text) = self;
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name);
        text.push('=');
        for (at, value) in values.iter().enumerate() {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{}{value}", if at == 0 { "" } else { "," });
        }
    }
}

impl LabelPositions {
    /// Sets the headers with the positions and the labels.
    pub(crate) fn put_headers(&self, headers: &mut HeaderMap) {
        put_labels(headers, &self.taken, &self.labels);
    }

    /// What of a response's bytes follows from the labels, for its version.
    pub(crate) fn identity(&self) -> String {
        format!("labels {} {}", self.taken, self.labels)
    }
}
