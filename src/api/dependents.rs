//! Dependent arrays in responses: their members in node documents, and their problems (the Zarr convention
//! "dependent-arrays").
//!
//! An invalid declaration has its own problem codes and the status 422: the server and the stored bytes are in order, and
//! the author of the declaration can correct it.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::array::{ArrayError, OpenNode};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{Dependent, DependentEntry, Dependents, HierarchyError};
use crate::http::problem::Problem;
use crate::http::switch::is_on;
use crate::key::NodePath;
use crate::metadata::dependents::{DependentError, Diagnostic, Reading};

/// The representation of a node.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NodeQuery {
    /// Document that a dependent array has as its `metadata`: `complete` (default) includes the members inherited from its
    /// primary array, `rebased` is the document that other readers can open, `partial` is the declaration as written.
    #[param(inline)]
    view: Option<View>,
    /// Whether declarations of dependent arrays are read strictly. The parameter needs no value; `false` and `0` switch it
    /// off.
    strict: Option<String>,
    /// Whether a group, or an array with its coordinates, is described as a dataset. The parameter needs no value; `false` and
    /// `0` switch it off.
    dataset: Option<String>,
    /// With `dataset`, the names of the arrays that the dataset has, such as `t2m,msl`; the default is all of the group.
    vars: Option<String>,
}

/// A document of a dependent array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum View {
    #[default]
    Complete,
    Rebased,
    Partial,
}

impl NodeQuery {
    /// The requested document.
    pub(crate) fn view(&self) -> View {
        self.view.unwrap_or_default()
    }

    /// A cache key for the requested representation, besides the node.
    pub(crate) fn form(&self) -> String {
        format!("{:?} {:?}", self.view(), self.reading())
    }

    /// Whether the document of a dataset is requested.
    pub(crate) fn is_of_dataset(&self) -> bool {
        self.dataset.as_deref().is_some_and(is_on)
    }

    /// The names of the arrays that a dataset has; `None` for all.
    pub(crate) fn variables(&self) -> Option<Vec<String>> {
        let names = self.vars.as_deref()?.split(',').map(str::trim).filter(|name| !name.is_empty());
        Some(names.map(str::to_owned).collect())
    }

    /// The requested strictness.
    pub(crate) fn reading(&self) -> Reading {
        reading(self.strict.as_deref().is_some_and(is_on))
    }
}

/// The strictness with which declarations are read.
pub(crate) fn reading(strict: bool) -> Reading {
    if strict { Reading::Strict } else { Reading::Lenient }
}

/// The problem of a node that cannot be opened. A dependent array has the problem codes of the convention.
pub(crate) fn problem_of(error: ArrayError) -> Problem {
    match &error {
        ArrayError::Hierarchy(HierarchyError::NoSuchDependent { .. }) => {
            Problem::new(StatusCode::NOT_FOUND, "dependent_not_found").detail(error.to_string())
        }
        ArrayError::Hierarchy(HierarchyError::Dependent { source, .. }) => {
            let status = match source.class() {
                ErrorClass::Unsupported => StatusCode::NOT_IMPLEMENTED,
                _ => StatusCode::UNPROCESSABLE_ENTITY,
            };
            let mut problem = Problem::new(status, source.code()).detail(error.to_string());
            if let Some((field, inherited)) = source.field() {
                problem = problem.extension("field", field).extension("inherited", inherited);
            }
            problem
        }
        _ => Problem::from(error),
    }
}

/// Rejects a read of a dependent array whose chunks another array also claims, unless the client allows the collision.
pub(crate) fn check_collision(opened: &OpenNode, allowed: bool) -> Result<(), Problem> {
    let collision = opened.dependent.as_ref().and_then(|dependent| dependent.collision());
    match collision.filter(|_| !allowed) {
        None => Ok(()),
        Some(diagnostic) => {
            let detail = format!("{}; `allow_collision=1` reads them all the same", diagnostic.detail);
            Err(Problem::new(StatusCode::CONFLICT, diagnostic.code.as_str()).detail(detail))
        }
    }
}

/// The document of a dependent array.
///
/// # Errors
/// 404 if it has no document of this kind.
pub(crate) fn metadata(dependent: &Dependent, view: View) -> Result<&str, Problem> {
    match (view, &dependent.rebased) {
        (View::Complete, _) => Ok(&dependent.complete),
        (View::Partial, _) => Ok(&dependent.partial),
        (View::Rebased, Some(rebased)) => Ok(rebased),
        (View::Rebased, None) => Err(hidden(dependent)),
    }
}

/// Adds the members that only the node document of a dependent array has.
pub(crate) fn describe(document: &mut Map<String, Value>, dependent: &Dependent) {
    document.insert("virtual".to_owned(), json!(true));
    document.insert("primary".to_owned(), json!(dependent.primary.as_str()));
    document.insert("inherited".to_owned(), json!(dependent.inherited));
    document.insert("diagnostics".to_owned(), remarks(&dependent.diagnostics));
}

/// The problem of a dependent array without a rebased document.
fn hidden(dependent: &Dependent) -> Problem {
    match dependent.hidden() {
        None => Problem::from_class(ErrorClass::NotFound),
        Some(reason) => {
            let detail = format!("other readers would read other chunks than the array's: {}", reason.detail);
            Problem::new(StatusCode::NOT_FOUND, reason.code.as_str()).detail(detail)
        }
    }
}

/// Adds the dependents of a primary array to its node document. `href` returns the link to a node.
pub(crate) fn list(
    document: &mut Map<String, Value>,
    primary: &NodePath,
    found: &Dependents,
    href: impl Fn(&NodePath) -> String,
) {
    let entries = found.dependents.iter().map(|entry| described(primary, entry, &href)).collect();
    document.insert("dependents".to_owned(), entries);
    document.insert("diagnostics".to_owned(), remarks(&found.diagnostics));
    if let Some(error) = &found.error {
        document.insert("error".to_owned(), failure(error));
    }
}

fn described(primary: &NodePath, entry: &DependentEntry, href: impl Fn(&NodePath) -> String) -> Value {
    let slash = if primary.as_str().is_empty() { "" } else { "/" };
    let path = format!("{}{slash}{}", primary.as_str(), entry.below);
    let node = NodePath::parse(&path).ok();
    let mut document = json!({
        "name": entry.name, "path": path, "node_type": "array", "virtual": true, "primary": primary.as_str(),
    });
    match &entry.array {
        Ok((shape, data_type)) => {
            document["shape"] = json!(shape);
            document["data_type"] = data_type.clone();
            document["href"] = json!(node.map(|node| href(&node)));
        }
        Err(error) => document["error"] = failure(error),
    }
    document["diagnostics"] = remarks(&entry.diagnostics);
    document
}

fn failure(error: &DependentError) -> Value {
    let mut failure = json!({ "code": error.code(), "detail": error.to_string() });
    if let Some((field, inherited)) = error.field() {
        failure["field"] = json!(field);
        failure["inherited"] = json!(inherited);
    }
    failure
}

/// Diagnostics as the JSON list of a node document.
pub(crate) fn remarks(diagnostics: &[Diagnostic]) -> Value {
    let remark = |one: &Diagnostic| json!({ "code": one.code.as_str(), "detail": one.detail });
    diagnostics.iter().map(remark).collect()
}
