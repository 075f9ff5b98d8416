//! [`Completed`]: a dependent's document, completed with members of its primary (convention "dependent-arrays", "Partial
//! array metadata").
//!
//! Members are replaced as a whole, never merged. All values are borrowed from the primary's document, so a thousand empty
//! dependents need little more memory than their names.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::declaration::{declared, is_declaration};
use super::{Diagnostic, Reading};

/// The member with user data.
const ATTRIBUTES: &str = "attributes";

/// A complete document.
#[derive(Clone, Debug)]
pub(super) struct Completed<'a> {
    /// All members except the attributes.
    members: Vec<(&'a str, &'a Value)>,
    attributes: Attributes<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Attributes<'a> {
    Absent,
    /// The array's own, as written.
    Own(&'a Value),
    /// The primary's, without its declaration.
    Inherited(&'a Map<String, Value>),
}

impl<'a> Completed<'a> {
    /// The document of the outermost primary, which is complete already.
    pub(super) fn from_primary(document: &'a Map<String, Value>) -> Self {
        let others = document.iter().filter(|(name, _)| *name != ATTRIBUTES);
        let members = others.map(|(name, value)| (name.as_str(), value)).collect();
        Self { members, attributes: document.get(ATTRIBUTES).map_or(Attributes::Absent, Attributes::Own) }
    }

    /// The document of a dependent of this array, completed from this document.
    pub(super) fn complete(&self, partial: &'a Map<String, Value>) -> Self {
        let mut members: Vec<(&str, &Value)> = self
            .members
            .iter()
            .map(|&(name, inherited)| (name, partial.get(name).unwrap_or(inherited)))
            .collect();
        let known: HashSet<&str> = self.members().map(|(name, _)| name).collect();
        let new = partial.iter().filter(|(name, _)| *name != ATTRIBUTES && !known.contains(name.as_str()));
        members.extend(new.map(|(name, value)| (name.as_str(), value)));
        let attributes = match (partial.get(ATTRIBUTES), self.attributes) {
            (Some(own), _) => Attributes::Own(own),
            (None, Attributes::Own(Value::Object(attributes)) | Attributes::Inherited(attributes)) => {
                Attributes::Inherited(attributes)
            }
            (None, other) => other,
        };
        Self { members, attributes }
    }

    /// The number of members, without the attributes.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The members except the attributes.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.members.iter().copied()
    }

    /// A member other than the attributes.
    pub(super) fn get(&self, member: &str) -> Option<&'a Value> {
        self.members().find(|(name, _)| *name == member).map(|(_, value)| value)
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, member: &str) {
        self.members.retain(|(name, _)| *name != member);
    }

    /// Whether the attributes are not an object.
    pub(super) fn has_bad_attributes(&self) -> bool {
        matches!(self.attributes, Attributes::Own(attributes) if !attributes.is_object())
    }

    /// The dependents that this document declares.
    pub(super) fn declared(
        &self,
        reading: Reading,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<&'a Map<String, Value>> {
        match self.attributes {
            Attributes::Own(Value::Object(attributes)) => declared(attributes, reading, diagnostics),
            // Declarations are not inherited.
            Attributes::Absent | Attributes::Own(_) | Attributes::Inherited(_) => None,
        }
    }

    /// The attributes, with or without the declaration.
    pub(super) fn attributes(&self, with_declaration: bool) -> Option<Map<String, Value>> {
        let without = |attributes: &Map<String, Value>| {
            let others = attributes.iter().filter(|(name, _)| !is_declaration(name));
            others.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        match self.attributes {
            Attributes::Own(Value::Object(attributes)) if with_declaration => Some(attributes.clone()),
            Attributes::Own(Value::Object(attributes)) | Attributes::Inherited(attributes) => {
                Some(without(attributes))
            }
            Attributes::Absent | Attributes::Own(_) => None,
        }
    }

    /// The whole document.
    pub(super) fn to_document(&self) -> Map<String, Value> {
        let mut document: Map<String, Value> =
            self.members().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        if let Some(attributes) = self.attributes(true) {
            document.insert(ATTRIBUTES.to_owned(), Value::Object(attributes));
        }
        document
    }

    /// The members of this document that `partial` does not have.
    pub(super) fn inherited(&self, partial: &Map<String, Value>) -> Vec<&'a str> {
        let attributes = matches!(self.attributes, Attributes::Inherited(_)).then_some(ATTRIBUTES);
        let members = self.members().map(|(name, _)| name).filter(|name| !partial.contains_key(*name));
        members.chain(attributes).collect()
    }
}
