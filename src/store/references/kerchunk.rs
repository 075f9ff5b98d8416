//! kerchunk's JSON documents of references, versions 0 and 1 (fsspec/kerchunk, "References specification").
//!
//! Version 0 is an object of references; version 1 has them in `refs`, with `templates` for parts of URLs and `gen`,
//! which lists references that follow a rule. The document is parsed from the bytes that hold it: nothing of it is held
//! twice but what the table keeps. Of templates, the part of Jinja's grammar is read that `expression` describes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::expression::TemplateValue;
use super::json::{Text, syntax};
use super::table::{ReferenceTable, TableBuilder, fault};
use super::template::{self, Template, TemplateScope, TemplateSet};
use super::work::TemplateWork;
use super::{ReferenceError, generated};
use crate::store::ContainerBudget;

/// The most templates of a document.
const MAX_TEMPLATES: usize = 1 << 16;

/// Parses a document within a budget. Takes long for a long one.
///
/// # Errors
/// [`ReferenceError`].
pub fn parse_kerchunk(document: &[u8], budget: &ContainerBudget) -> Result<ReferenceTable, ReferenceError> {
    let mut table = TableBuilder::new(budget, document.len() as u64)?;
    let text =
        std::str::from_utf8(document).map_err(|_invalid| ReferenceError::Document("it is not UTF-8"))?;
    let mut work = TemplateWork::new(document.len() as u64);
    let head: Head<'_> = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    match head.version {
        None => each_reference(text, &mut |key, reference| add(&mut table, key, reference, None))?,
        Some(version) if version.get().trim() == "1" => {
            if head.refs.is_none() && head.rules.is_none() {
                return Err(ReferenceError::Document(
                    "its version is 1, but it has neither `refs` nor `gen`",
                ));
            }
            let templates = head.templates.map(|raw| templates_of(raw, &mut table)).transpose()?;
            let templates = templates.filter(|templates| !templates.is_empty());
            if let Some(refs) = head.refs {
                each_reference(refs.get(), &mut |key, reference| {
                    let templates = templates.as_ref().zip(Some(&mut work));
                    add(&mut table, key, reference, templates)
                })?;
            }
            if let Some(rules) = head.rules {
                generated::add_all(&mut table, rules.get(), &templates.unwrap_or_default(), &mut work)?;
            }
        }
        Some(_) => return Err(ReferenceError::Document("its version is neither 0 nor 1")),
    }
    table.finish()
}

/// The members of version 1.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    version: Option<&'a RawValue>,
    #[serde(borrow, default)]
    templates: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "gen")]
    rules: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refs: Option<&'a RawValue>,
}

/// The templates of a document, which `table` charges for.
fn templates_of(raw: &RawValue, table: &mut TableBuilder) -> Result<TemplateSet, ReferenceError> {
    let mut set = TemplateSet::default();
    let mut failure = None;
    let mut insert = |name: &str, value: Cow<'_, str>| {
        if set.names.len() + set.templates.len() >= MAX_TEMPLATES {
            return Err(ReferenceError::Document("it has too many templates"));
        }
        table.hold(template::memory_bytes(&value).saturating_add(name.len() as u64))?;
        if value.contains("{{") {
            let template = Template::parse(&value).map_err(ReferenceError::Document)?;
            set.templates.insert(name.to_owned(), template);
        } else {
            set.names.insert(name.to_owned(), TemplateValue::Text(value.into_owned()));
        }
        Ok(())
    };
    let entries = Entries {
        each: &mut |name: &str, value: Text<'_>| insert(name, value.0),
        failure: &mut failure,
        value: PhantomData,
    };
    let parsed = serde_json::Deserializer::from_str(raw.get()).deserialize_map(entries);
    finished(parsed, failure)?;
    Ok(set)
}

/// Calls `each` for each entry of an object of references.
fn each_reference(
    text: &str,
    each: &mut dyn FnMut(&str, &RawValue) -> Result<(), ReferenceError>,
) -> Result<(), ReferenceError> {
    let mut failure = None;
    let entries = Entries { each, failure: &mut failure, value: PhantomData };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = deserializer.deserialize_map(entries).and_then(|()| deserializer.end());
    finished(parsed, failure)
}

fn finished(parsed: serde_json::Result<()>, failure: Option<ReferenceError>) -> Result<(), ReferenceError> {
    match failure {
        Some(failure) => Err(failure),
        None => parsed.map_err(|error| syntax(&error)),
    }
}

/// Adds the entries of an object of documents, and calls `each` with those that are objects.
pub(super) fn add_documents(
    table: &mut TableBuilder,
    documents: &RawValue,
    each: &mut dyn FnMut(&str, &RawValue) -> Result<(), ReferenceError>,
) -> Result<(), ReferenceError> {
    each_reference(documents.get(), &mut |key, document| {
        if !document.get().starts_with('{') {
            return Err(fault(key, "it is no document"));
        }
        add(table, key, document, None)?;
        each(key, document)
    })
}

/// Adds an entry. With templates, those in its URL are filled in.
fn add(
    table: &mut TableBuilder,
    key: &str,
    reference: &RawValue,
    templates: Option<(&TemplateSet, &mut TemplateWork)>,
) -> Result<(), ReferenceError> {
    let text = reference.get();
    match text.as_bytes().first() {
        // An object is the document that it spells.
        Some(b'{') => table.push_inline(key, text.as_bytes()),
        Some(b'"') => {
            // The text without its escapes, and what its base64 stands for, are copies until they are in the table.
            let is_copied = |sign: bool, bytes: usize| if sign { bytes as u64 } else { 0 };
            let copies = is_copied(text.contains('\\'), text.len())
                + is_copied(text.starts_with("\"base64:"), text.len() / 4 * 3 + 3);
            table.hold(copies)?;
            let Text(value) = serde_json::from_str(text).map_err(|error| syntax(&error))?;
            match value.strip_prefix("base64:") {
                Some(encoded) => {
                    let bytes =
                        STANDARD.decode(encoded).map_err(|_invalid| fault(key, "its base64 is not valid"))?;
                    table.push_inline(key, &bytes)?;
                }
                None => table.push_inline(key, value.as_bytes())?,
            }
            table.release(copies);
            Ok(())
        }
        Some(b'[') => {
            let Range { url, range } = serde_json::from_str(text)
                .map_err(|_other| fault(key, "it is neither [url] nor [url, offset, length]"))?;
            let url = match templates.filter(|_| url.contains("{{")) {
                Some((set, work)) => Template::parse(&url)
                    .and_then(|template| {
                        let scope = TemplateScope { own: &set.names, outer: None };
                        template.render(scope, &set.templates, work)
                    })
                    .map(Cow::Owned)
                    .map_err(|reason| fault(key, reason))?,
                None => url,
            };
            table.push_url(key, &url, range)
        }
        Some(_) | None => Err(fault(key, "it is neither a text, an object nor a list")),
    }
}

/// `[url]` or `[url, offset, length]`. `null` in place of the numbers is as if they were not there.
struct Range<'a> {
    url: Cow<'a, str>,
    range: Option<(u64, u64)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Range<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RangeVisitor;

        impl<'de> Visitor<'de> for RangeVisitor {
            type Value = Range<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("[url] or [url, offset, length]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Range<'de>, A::Error> {
                let missing = || A::Error::custom("an item is missing");
                let Text(url) = items.next_element()?.ok_or_else(missing)?;
                let Some(offset) = items.next_element::<Option<u64>>()? else {
                    return Ok(Range { url, range: None });
                };
                let length = items.next_element::<Option<u64>>()?.ok_or_else(missing)?;
                if items.next_element::<IgnoredAny>()?.is_some() || offset.is_some() != length.is_some() {
                    return Err(A::Error::custom("it has other items"));
                }
                Ok(Range { url, range: offset.zip(length) })
            }
        }

        deserializer.deserialize_seq(RangeVisitor)
    }
}

/// Visits the entries of an object one by one. A failure of `each` ends the parsing, and is kept in `failure`.
struct Entries<'f, F: ?Sized, V> {
    each: &'f mut F,
    failure: &'f mut Option<ReferenceError>,
    value: PhantomData<V>,
}

impl<'de, F, V> Visitor<'de> for Entries<'_, F, V>
where
    F: FnMut(&str, V) -> Result<(), ReferenceError> + ?Sized,
    V: Deserialize<'de>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(Text(key)) = map.next_key_seed(PhantomData::<Text<'de>>)? {
            let value = map.next_value()?;
            if let Err(failure) = (self.each)(&key, value) {
                *self.failure = Some(failure);
                return Err(M::Error::custom("refused"));
            }
        }
        Ok(())
    }
}
