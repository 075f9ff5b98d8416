//! [`Family`]: a primary and all its dependents, including nested ones.

use serde_json::{Map, Value};

use super::completed::Completed;
use super::declaration::check_name;
use super::rebased::rebased;
use super::validate::DocumentValidation;
use super::{DependentError, Diagnostic, DiagnosticCode, Reading};
use crate::metadata::{ArrayMetadata, MetadataLimits};

/// Maximum nesting of dependents.
pub const MAX_DEPENDENT_DEPTH: usize = 8;
/// Maximum number of arrays of a family.
const MAX_MEMBERS: usize = 1024;
/// Maximum number of JSON values processed for all arrays of a family. Inherited values count for each array.
const MAX_VALUES: usize = 1 << 20;

/// A primary and its dependents. Siblings are sorted by name; nested dependents follow their parent.
#[derive(Debug)]
pub struct Family<'a> {
    /// The arrays; the first is the primary.
    pub members: Vec<Member<'a>>,
}

/// An array of a family.
#[derive(Debug)]
pub struct Member<'a> {
    /// Its path below the primary: `s1`, or `s1/mask` for a nested dependent. Empty for the primary.
    pub path: String,
    /// Its name, shortened if it is invalid.
    pub name: String,
    /// The array, without its attributes; or why it is invalid.
    pub array: Result<ArrayMetadata, DependentError>,
    /// The diagnostics about it.
    pub diagnostics: Vec<Diagnostic>,
    document: Option<Completed<'a>>,
    partial: Option<&'a Value>,
}

impl<'a> Family<'a> {
    /// The family of the primary with this document.
    #[must_use]
    pub fn from_primary(primary: &'a Map<String, Value>, reading: Reading, limits: &MetadataLimits) -> Self {
        let mut walk = FamilyBuilder {
            members: Vec::new(),
            values_left: MAX_VALUES,
            is_truncated: false,
            reading,
            limits,
        };
        let document = Completed::from_primary(primary);
        walk.add_member(String::new(), String::new(), document, None, Vec::new(), 0);
        if walk.is_truncated {
            let detail = "there are more dependent arrays, or longer ones, than the limits allow";
            let remark = Diagnostic::new(DiagnosticCode::TooMany, detail);
            walk.members.first_mut().into_iter().for_each(|primary| primary.diagnostics.push(remark.clone()));
        }
        Self { members: walk.members }
    }

    /// The array at a path below the primary.
    ///
    /// # Errors
    /// [`DependentError::TooMany`] if the family was truncated and does not have the path.
    pub fn find(&self, path: &str) -> Result<Option<&Member<'a>>, DependentError> {
        let is_named = |member: &&Member| !matches!(member.array, Err(DependentError::InvalidName { .. }));
        let found = self.members.iter().filter(is_named).find(|member| member.path == path);
        let is_whole = !self.members.first().is_some_and(|primary| {
            primary.diagnostics.iter().any(|found| found.code == DiagnosticCode::TooMany)
        });
        if found.is_some() || is_whole { Ok(found) } else { Err(DependentError::TooMany) }
    }
}

impl Member<'_> {
    /// The array with its attributes.
    ///
    /// # Errors
    /// Why the array is invalid.
    pub fn array(&self) -> Result<ArrayMetadata, DependentError> {
        let mut array = self.array.clone()?;
        let attributes = self.document.as_ref().and_then(|document| document.attributes(true));
        array.attributes = attributes.unwrap_or_default().into();
        Ok(array)
    }

    /// The document, completed from the primary's; `None` if the name or the declaration is invalid.
    #[must_use]
    pub fn complete(&self) -> Option<Map<String, Value>> {
        self.document.as_ref().map(Completed::to_document)
    }

    /// The document with default chunk keys, to serve from the array's own path to readers that do not know the convention.
    #[must_use]
    pub fn rebased(&self) -> Option<Map<String, Value>> {
        self.document.as_ref().map(rebased)
    }

    /// The declaration of the dependent; `None` for the primary.
    #[must_use]
    pub fn partial(&self) -> Option<&Value> {
        self.partial
    }

    /// The members inherited from the primary.
    #[must_use]
    pub fn inherited(&self) -> Vec<&str> {
        match (&self.document, self.partial.and_then(Value::as_object)) {
            (Some(document), Some(partial)) => document.inherited(partial),
            _ => Vec::new(),
        }
    }
}

/// Builds a family from a declaration within the limits.
struct FamilyBuilder<'a, 'l> {
    members: Vec<Member<'a>>,
    values_left: usize,
    /// Whether a limit ended the build early.
    is_truncated: bool,
    reading: Reading,
    limits: &'l MetadataLimits,
}

impl<'a> FamilyBuilder<'a, '_> {
    fn is_full(&self) -> bool {
        self.values_left == 0 || self.members.len() >= MAX_MEMBERS
    }

    /// Adds the array of a completed document and then its dependents. Recursive in the nesting of dependents.
    fn add_member(
        &mut self,
        path: String,
        name: String,
        mut document: Completed<'a>,
        partial: Option<&'a Value>,
        mut diagnostics: Vec<Diagnostic>,
        depth: usize,
    ) {
        for (_, value) in document.members() {
            charge_value(value, &mut self.values_left);
        }
        let array = if self.values_left == 0 {
            Err(DependentError::TooMany)
        } else {
            let (reading, limits) = (self.reading, self.limits);
            let partial = partial.and_then(Value::as_object);
            let diagnostics = &mut diagnostics;
            DocumentValidation { document: &mut document, partial, reading, limits, diagnostics }.run()
        };
        // A primary that is not a valid array may have valid dependents.
        let declared = if array.is_ok() || depth == 0 {
            document.declared(self.reading, &mut diagnostics)
        } else {
            None
        };
        let parent = declared.map(|declared| (declared, path.clone(), document.clone()));
        self.members.push(Member { path, name, array, diagnostics, document: Some(document), partial });
        let Some((declared, path, document)) = parent else { return };
        let mut names: Vec<(&String, &Value)> = declared.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        for (name, partial) in names {
            if self.is_full() {
                self.is_truncated = true;
                return;
            }
            self.add_dependent(&path, name, &document, partial, depth + 1);
        }
    }

    fn add_dependent(
        &mut self,
        parent: &str,
        name: &str,
        primary: &Completed<'a>,
        partial: &'a Value,
        depth: usize,
    ) {
        let mut diagnostics = Vec::new();
        let error = match (check_name(name, &mut diagnostics), partial.as_object()) {
            (Err(error), _) => error,
            (Ok(()), _) if depth > MAX_DEPENDENT_DEPTH => {
                DependentError::TooDeep { limit: MAX_DEPENDENT_DEPTH }
            }
            (Ok(()), None) => DependentError::NotObject,
            (Ok(()), Some(members)) => {
                // The cost of completing a document is its number of members.
                let cost = primary.len().saturating_add(members.len());
                self.values_left = self.values_left.saturating_sub(cost);
                if self.values_left == 0 {
                    self.is_truncated = true;
                    return;
                }
                let (path, name) = (join_path(parent, name), name.to_owned());
                let document = primary.complete(members);
                return self.add_member(path, name, document, Some(partial), diagnostics, depth);
            }
        };
        let name = match &error {
            DependentError::InvalidName { name, .. } => name.as_str(),
            _ => name,
        };
        let (path, name) = (join_path(parent, name), name.to_owned());
        let partial = Some(partial);
        self.members.push(Member { path, name, array: Err(error), diagnostics, document: None, partial });
    }
}

fn join_path(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}

/// Subtracts the cost of a value: one for each value in it, and one for each 64 bytes of text.
fn charge_value(value: &Value, left: &mut usize) {
    let own = match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => 1,
    };
    *left = left.saturating_sub(own);
    match value {
        Value::Array(items) => {
            for item in items {
                if *left == 0 {
                    return;
                }
                charge_value(item, left);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                *left = left.saturating_sub(name.len() / 64);
                if *left == 0 {
                    return;
                }
                charge_value(member, left);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
