//! [`Completed`]: a dependent's document with what it does not say taken from its primary (convention
//! "dependent-arrays", "Partial array metadata").
//!
//! Whole members are replaced, never merged. All of it is borrowed from the primary's document: a thousand dependents
//! that say nothing take no more memory than their names.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::declaration::{declared, is_declaration};
use super::{Diagnostic, Reading};

/// The member that is the user's.
const ATTRIBUTES: &str = "attributes";

/// A complete document.
#[derive(Clone, Debug)]
pub(super) struct Completed<'a> {
    /// All members but the attributes.
    members: Vec<(&'a str, &'a Value)>,
    attributes: Attributes<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Attributes<'a> {
    Absent,
    /// As written.
    Own(&'a Value),
    /// The primary's, without its declaration.
    Inherited(&'a Map<String, Value>),
}

impl<'a> Completed<'a> {
    /// The document of the outermost primary, which is complete as it is.
    pub(super) fn from_primary(document: &'a Map<String, Value>) -> Self {
        let others = document.iter().filter(|(name, _)| *name != ATTRIBUTES);
        let members = others.map(|(name, value)| (name.as_str(), value)).collect();
        Self { members, attributes: document.get(ATTRIBUTES).map_or(Attributes::Absent, Attributes::Own) }
    }

    /// What a dependent says, completed from this document.
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

    /// How many members there are.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The members but the attributes.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.members.iter().copied()
    }

    /// A member other than the attributes.
    pub(super) fn get(&self, member: &str) -> Option<&'a Value> {
        self.members().find(|(name, _)| *name == member).map(|(_, value)| value)
    }

    /// Leaves out a member.
    pub(super) fn remove(&mut self, member: &str) {
        self.members.retain(|(name, _)| *name != member);
    }

    /// Whether there are attributes that are no object.
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
            // The declaration is what is not inherited.
            Attributes::Absent | Attributes::Own(_) | Attributes::Inherited(_) => None,
        }
    }

    /// The attributes, with or without what they declare.
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

    /// The members that stand in this document and not in `partial`.
    pub(super) fn inherited(&self, partial: &Map<String, Value>) -> Vec<&'a str> {
        let attributes = matches!(self.attributes, Attributes::Inherited(_)).then_some(ATTRIBUTES);
        let members = self.members().map(|(name, _)| name).filter(|name| !partial.contains_key(*name));
        members.chain(attributes).collect()
    }
}
