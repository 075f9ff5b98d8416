//! Where a declaration stands, and the names in it (convention "dependent-arrays", "Configuration"; Zarr core 3.1, "Node
//! names").
//!
//! The convention's prose has `dependent-arrays`, its example `dependent_arrays`. The first is the rule.

use serde_json::{Map, Value};

use super::{DependentError, Diagnostic, DiagnosticCode};
use crate::key::MAX_KEY_BYTES;
use crate::metadata::json::parse_declaring;
use crate::metadata::{Attributes, MetadataLimits, shortened};

/// The attribute that declares dependents.
const KEY: &str = "dependent-arrays";
/// Its other spelling.
const ALIAS: &str = "dependent_arrays";

/// How declarations are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// What is meant, where that is plain.
    #[default]
    Lenient,
    /// What is written.
    Strict,
}

/// Whether attributes may declare dependents, in either spelling.
#[must_use]
pub fn is_declared(attributes: &Attributes) -> bool {
    attributes.contains_key(KEY) || attributes.contains_key(ALIAS)
}

/// Parses the document of a primary: a name given twice in a declaration is an error, as it is in any document.
///
/// # Errors
/// [`DependentError::InvalidJson`]; [`DependentError::BadField`] if it is no object.
pub fn parse_primary(document: &[u8], limits: &MetadataLimits) -> Result<Map<String, Value>, DependentError> {
    match parse_declaring(document, limits, is_declaration) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(_) => Err(DependentError::bad_field("document", "must be an object", false)),
        Err(error) => Err(DependentError::InvalidJson(error)),
    }
}

/// Whether an attribute is a declaration, in either spelling.
#[must_use]
pub fn is_declaration(attribute: &str) -> bool {
    attribute == KEY || attribute == ALIAS
}

/// The dependents that attributes declare, by their names.
pub(super) fn declared<'a>(
    attributes: &'a Map<String, Value>,
    reading: Reading,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<&'a Map<String, Value>> {
    let mut remark = |code, detail: String| diagnostics.push(Diagnostic::new(code, detail));
    let alias = attributes.get(ALIAS).filter(|_| reading == Reading::Lenient);
    let declaration = match (attributes.get(KEY), alias) {
        (None, None) => return None,
        (Some(declaration), None) => declaration,
        (Some(declaration), Some(alias)) if declaration == alias => {
            remark(DiagnosticCode::DuplicateDeclaration, format!("`{KEY}` and `{ALIAS}` say the same"));
            declaration
        }
        (Some(_), Some(_)) => {
            remark(DiagnosticCode::AmbiguousDeclaration, format!("`{KEY}` and `{ALIAS}` differ"));
            return None;
        }
        (None, Some(alias)) => {
            remark(
                DiagnosticCode::AliasKey,
                format!("`{ALIAS}` is not what the convention has; use `{KEY}`"),
            );
            alias
        }
    };
    if !declaration.is_object() {
        remark(DiagnosticCode::DeclarationNotObject, format!("`{KEY}` must be an object"));
    }
    declaration.as_object()
}

/// Refuses what is no name of a node, and remarks on what is not advised.
pub(super) fn check_name(name: &str, diagnostics: &mut Vec<Diagnostic>) -> Result<(), DependentError> {
    let reason = match name {
        "" => "it is empty",
        "zarr.json" => "it is the name of documents",
        _ if name.contains('/') => "it holds `/`",
        _ if name.bytes().all(|byte| byte == b'.') => "it is only periods",
        _ if name.starts_with("__") => "names that begin with `__` are reserved",
        _ if name.len() > MAX_KEY_BYTES => "it is longer than a key may be",
        _ if name.chars().any(char::is_control) => "it holds control characters",
        _ => {
            let is_advised = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if !name.chars().all(is_advised) {
                let detail = "characters other than A-Z, a-z, 0-9, `-`, `_` and `.` are not advised";
                diagnostics.push(Diagnostic::new(DiagnosticCode::NonrecommendedName, detail));
            }
            return Ok(());
        }
    };
    Err(DependentError::InvalidName { name: shortened(name.to_owned()), reason })
}
