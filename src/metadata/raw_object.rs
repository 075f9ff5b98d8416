//! [`RawObject`]: a JSON object whose values keep their text, so that a change of one leaves the others as they are.
//!
//! Stored documents have numbers of any size, and some writers put `NaN` into them. A parsed value would not have their text.

use std::collections::HashMap;

use super::parser::visit_members;
use super::{MetadataError, MetadataLimits};

/// The members of an object, in their order, with the text of each value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawObject(Vec<(String, String)>);

impl RawObject {
    /// Reads an object, whose values are not validated. Of a repeated name, the last value stays.
    ///
    /// # Errors
    /// [`MetadataError::Json`] if the text is not an object or is nested deeper than `limits.depth`.
    pub fn parse(text: &[u8], limits: &MetadataLimits) -> Result<Self, MetadataError> {
        let mut spans = Vec::new();
        visit_members(text, limits.depth, |name, span| {
            spans.push((name, span));
            Ok(())
        })?;
        let not_text = || MetadataError::Json("the text is not UTF-8".to_owned());
        let value = |span| text.get(span).and_then(|value| str::from_utf8(value).ok()).ok_or_else(not_text);
        let members = spans.into_iter().map(|(name, span)| Ok((name, value(span)?.to_owned())));
        let members: Vec<(String, String)> = members.collect::<Result<_, _>>()?;
        let mut last = std::collections::HashSet::new();
        let mut kept: Vec<_> =
            members.into_iter().rev().filter(|(name, _)| last.insert(name.clone())).collect();
        kept.reverse();
        Ok(Self(kept))
    }

    /// The text of a member's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The text of each value, by its name.
    #[must_use]
    pub fn values(&self) -> HashMap<&str, &str> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// Sets a member to a value with this text, at its place or behind all others.
    pub fn set(&mut self, name: &str, text: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, value)) => *value = text,
            None => self.0.push((name.to_owned(), text)),
        }
    }

    /// Sets members as [`RawObject::set`] does, in their order. Returns whether any value has another text now.
    pub fn set_all(&mut self, members: Vec<(String, String)>) -> bool {
        if members.is_empty() {
            return false;
        }
        let places = self.0.iter().enumerate().map(|(place, (name, _))| (name.clone(), place));
        let mut places: HashMap<String, usize> = places.collect();
        let mut is_changed = false;
        for (name, text) in members {
            if let Some((_, value)) = places.get(&name).and_then(|place| self.0.get_mut(*place)) {
                is_changed |= *value != text;
                *value = text;
            } else {
                is_changed = true;
                places.insert(name.clone(), self.0.len());
                self.0.push((name, text));
            }
        }
        is_changed
    }

    /// Removes the members whose names `is_kept` does not keep. Returns whether there were any.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|(name, _)| is_kept(name));
        self.0.len() != before
    }

    /// The object as text: each member on a line of its own.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.0.is_empty() {
            return "{}".to_owned();
        }
        let lines: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("  {}: {value}", serde_json::Value::from(name.as_str())))
            .collect();
        format!("{{\n{}\n}}", lines.join(",\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_changed_keeps_its_text() {
        let limits = MetadataLimits::default();
        let text = br#"{"a": NaN, "b": 1.50, "c": {"x" : [1e400]}, "b": 2.0, "\u0041": "\u00e9"}"#;
        let mut object = RawObject::parse(text, &limits).unwrap();
        assert_eq!(object.get("b"), Some("2.0"));
        object.set("b", "3".to_owned());
        object.set("d", "null".to_owned());
        assert!(object.retain(|name| name != "a") && !object.retain(|_| true));
        let expected = "{\n  \"c\": {\"x\" : [1e400]},\n  \"b\": 3,\n  \"A\": \"\\u00e9\",\n  \"d\": null\n}";
        assert_eq!(object.to_text(), expected);
        let members = |members: &[(&str, &str)]| {
            members.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<Vec<_>>()
        };
        assert!(!object.set_all(members(&[("b", "3"), ("d", "null")])) && !object.set_all(Vec::new()));
        assert_eq!(object.to_text(), expected);
        assert!(object.set_all(members(&[("e", "1"), ("d", "4"), ("e", "2")])));
        assert_eq!((object.get("d"), object.get("e")), (Some("4"), Some("2")));
        assert_eq!(RawObject::default().to_text(), "{}");
        for text in [&b"[]"[..], b"{", b"{\"a\":1} x", b"{\"a\":\"\xff\"}"] {
            assert!(RawObject::parse(text, &limits).is_err(), "{text:?}");
        }
    }
}
