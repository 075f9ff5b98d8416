//! Dependent arrays as answers: what is said of them in a node's document, and why one cannot be had (the Zarr convention
//! "dependent-arrays").
//!
//! What is wrong with a declaration has codes of its own, and 422 for a status: the server and the stored bytes are in
//! order, and whoever wrote the declaration can mend it.

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

/// How a node is looked at.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NodeQuery {
    /// Of a dependent array, which document is its `metadata`: as completed from its primary (the default), as other
    /// readers can open it, or as declared.
    #[param(inline)]
    view: Option<View>,
    /// Read declarations of dependent arrays to the letter. No value is needed; `false` and `0` mean no.
    strict: Option<String>,
}

/// A dependent array's document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum View {
    #[default]
    Complete,
    Rebased,
    Partial,
}

impl NodeQuery {
    /// Which document is asked for.
    pub(crate) fn view(&self) -> View {
        self.view.unwrap_or_default()
    }

    /// A word for what is asked for, beside the node.
    pub(crate) fn form(&self) -> String {
        format!("{:?} {:?}", self.view(), self.reading())
    }

    /// How declarations are read.
    pub(crate) fn reading(&self) -> Reading {
        reading(self.strict.as_deref().is_some_and(is_on))
    }
}

/// How declarations are read.
pub(crate) fn reading(strict: bool) -> Reading {
    if strict { Reading::Strict } else { Reading::Lenient }
}

/// Why a node cannot be had, in the convention's terms where it is a dependent.
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

/// Refuses elements of which another array says that they are something else.
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

/// The document of a dependent.
///
/// # Errors
/// 404 if there is none of this kind.
pub(crate) fn metadata(dependent: &Dependent, view: View) -> Result<&str, Problem> {
    match (view, &dependent.rebased) {
        (View::Complete, _) => Ok(&dependent.complete),
        (View::Partial, _) => Ok(&dependent.partial),
        (View::Rebased, Some(rebased)) => Ok(rebased),
        (View::Rebased, None) => Err(hidden(dependent)),
    }
}

/// What the document of a dependent says beside what every array's does.
pub(crate) fn describe(document: &mut Map<String, Value>, dependent: &Dependent) {
    document.insert("virtual".to_owned(), json!(true));
    document.insert("primary".to_owned(), json!(dependent.primary.as_str()));
    document.insert("inherited".to_owned(), json!(dependent.inherited));
    document.insert("diagnostics".to_owned(), remarks(&dependent.diagnostics));
}

/// Why there is no rebased document.
fn hidden(dependent: &Dependent) -> Problem {
    match dependent.hidden() {
        None => Problem::from_class(ErrorClass::NotFound),
        Some(reason) => {
            let detail = format!("other readers would read other chunks than the array's: {}", reason.detail);
            Problem::new(StatusCode::NOT_FOUND, reason.code.as_str()).detail(detail)
        }
    }
}

/// What the document of a primary says of its dependents. `href` makes links.
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

/// Remarks, as documents have them.
pub(crate) fn remarks(diagnostics: &[Diagnostic]) -> Value {
    let remark = |one: &Diagnostic| json!({ "code": one.code.as_str(), "detail": one.detail });
    diagnostics.iter().map(remark).collect()
}
