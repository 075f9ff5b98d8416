//! Finding the declaration in attributes, and checking the names in it (convention "dependent-arrays", "Configuration";
//! Zarr core 3.1, "Node names").
//!
//! The convention's text says `dependent-arrays`, its example `dependent_arrays`. The text is normative.

use serde_json::{Map, Value};

use super::{DependentError, Diagnostic, DiagnosticCode};
use crate::key::MAX_KEY_BYTES;
use crate::metadata::json::parse_declaring;
use crate::metadata::{Attributes, MetadataLimits, shortened};

/// The attribute that declares dependents.
const KEY: &str = "dependent-arrays";
/// Its other spelling.
const ALIAS: &str = "dependent_arrays";

/// How strictly declarations are parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Accepts deviations whose meaning is clear, with a diagnostic.
    #[default]
    Lenient,
    /// Rejects deviations.
    Strict,
}

/// Whether attributes may declare dependents, in either spelling.
#[must_use]
pub fn is_declared(attributes: &Attributes) -> bool {
    attributes.contains_key(KEY) || attributes.contains_key(ALIAS)
}

/// Parses the document of a primary. Repeated names in the declaration are errors, as in the rest of
/// the structure of a document.
///
/// # Errors
/// [`DependentError::InvalidJson`]; [`DependentError::BadField`] if it is not an object.
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
    let mut report = |code, detail: String| diagnostics.push(Diagnostic::new(code, detail));
    let alias = attributes.get(ALIAS).filter(|_| reading == Reading::Lenient);
    let declaration = match (attributes.get(KEY), alias) {
        (None, None) => return None,
        (Some(declaration), None) => declaration,
        (Some(declaration), Some(alias)) if declaration == alias => {
            report(DiagnosticCode::DuplicateDeclaration, format!("`{KEY}` and `{ALIAS}` are equal"));
            declaration
        }
        (Some(_), Some(_)) => {
            report(DiagnosticCode::AmbiguousDeclaration, format!("`{KEY}` and `{ALIAS}` differ"));
            return None;
        }
        (None, Some(alias)) => {
            report(
                DiagnosticCode::AliasKey,
                format!("the convention does not define `{ALIAS}`; use `{KEY}`"),
            );
            alias
        }
    };
    if !declaration.is_object() {
        report(DiagnosticCode::DeclarationNotObject, format!("`{KEY}` must be an object"));
    }
    declaration.as_object()
}

/// Rejects invalid node names, and adds a diagnostic for names that the specification advises against.
pub(super) fn check_name(name: &str, diagnostics: &mut Vec<Diagnostic>) -> Result<(), DependentError> {
    let reason = match name {
        "" => "it is empty",
        "zarr.json" => "it is the name of metadata documents",
        _ if name.contains('/') => "it contains `/`",
        _ if name.bytes().all(|byte| byte == b'.') => "it is only periods",
        _ if name.starts_with("__") => "names that begin with `__` are reserved",
        _ if name.len() > MAX_KEY_BYTES => "it is longer than a key may be",
        _ if name.chars().any(char::is_control) => "it contains control characters",
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
