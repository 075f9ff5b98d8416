//! [`TableSources`]: the variables of a table, which have the same dimensions.

use std::sync::Arc;

use crate::api::export::source_finder::SourceFinder;
use crate::api::export::sources::{ExportSource, ExportSources};
use crate::array::OpenNode;
use crate::error::ErrorClass;
use crate::hierarchy::Node;
use crate::http::problem::Problem;

/// The most names that a problem lists.
const MAX_NAMED: usize = 8;

/// The variables of a table.
pub(super) struct TableSources {
    /// The group that was requested, if it was one.
    pub(super) group: Option<Arc<OpenNode>>,
    /// The variables, at least one. All have the dimensions of the first.
    pub(super) variables: Vec<ExportSource>,
}

impl TableSources {
    /// The variables that a node is, or has: those of some names, else all that are no coordinates.
    ///
    /// # Errors
    /// 400 if they have different dimensions, or there are none; 404 for a name that no array has.
    pub(super) async fn find(
        finder: &SourceFinder<'_>,
        node: Arc<OpenNode>,
        names: Option<&[String]>,
    ) -> Result<Self, Problem> {
        let invalid = |detail: String| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
        if matches!(node.node, Node::Array(_)) {
            if names.is_some() {
                return Err(invalid("`vars` names variables of a group, and this is an array".to_owned()));
            }
            let variable = finder.itself(node)?;
            return Ok(Self { group: None, variables: vec![variable] });
        }
        let ExportSources { group, sources, .. } = finder.arrays_of_group(node, names).await?;
        let is_chosen = |source: &ExportSource| names.is_some() || !source.is_coordinate;
        let variables: Vec<ExportSource> = sources.into_iter().filter(is_chosen).collect();
        let Some(first) = variables.first() else {
            return Err(invalid("the group has no array but coordinates; name some with `vars`".to_owned()));
        };
        if let Some(other) = variables.iter().find(|other| !has_same_dimensions(first, other)) {
            let mut all: Vec<String> = variables.iter().take(MAX_NAMED).map(described).collect();
            if variables.len() > MAX_NAMED {
                all.push("…".to_owned());
            }
            let (first, other) = (&first.name, &other.name);
            return Err(invalid(format!(
                "a table has variables of the same dimensions, and those of `{first}` and `{other}` differ; name some with \
                 `vars`, of: {}",
                all.join(", ")
            )));
        }
        Ok(Self { group, variables })
    }
}

fn has_same_dimensions(one: &ExportSource, other: &ExportSource) -> bool {
    one.dimension_names == other.dimension_names && one.metadata().shape == other.metadata().shape
}

/// A variable with its dimensions: `t2m (time: 10, lat: 3)`.
fn described(source: &ExportSource) -> String {
    let lengths = source.metadata().shape.iter();
    let dimensions: Vec<String> = (0..)
        .zip(&source.dimension_names)
        .zip(lengths)
        .map(|((axis, name), length): ((usize, _), _)| {
            name.as_ref().map_or_else(|| format!("dim_{axis}: {length}"), |name| format!("{name}: {length}"))
        })
        .collect();
    format!("{} ({})", source.name, dimensions.join(", "))
}
