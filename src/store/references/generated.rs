//! `gen`: references that follow a rule, one for each combination of the values of its dimensions.
//!
//! The first dimension varies slowest. The references count against the budget as if they were written out.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::ReferenceError;
use super::expression::{TemplateFault, TemplateValue};
use super::json::{Text, syntax};
use super::table::TableBuilder;
use super::template::{self, Template, TemplateNames, TemplateScope, TemplateSet};
use super::work::TemplateWork;

/// The most rules, and the most values that a dimension lists.
const MAX_ITEMS: usize = 1 << 16;
/// The most dimensions of a rule.
const MAX_DIMENSIONS: usize = 16;
/// The most references of a rule.
const MAX_COMBINATIONS: u64 = 1 << 26;

#[derive(Deserialize)]
struct Rule<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(borrow)]
    url: Text<'a>,
    #[serde(borrow, default)]
    offset: Option<&'a RawValue>,
    #[serde(borrow, default)]
    length: Option<&'a RawValue>,
    #[serde(borrow)]
    dimensions: Dimensions<'a>,
}

/// The members of an object, in their order.
struct Dimensions<'a>(Vec<(String, &'a RawValue)>);

/// A list of at most [`MAX_ITEMS`].
struct Items<'a>(Vec<&'a RawValue>);

/// The values of a dimension.
enum Axis {
    List(Vec<TemplateValue>),
    Steps { start: i64, step: i64, count: u64 },
}

#[derive(Deserialize)]
struct Steps {
    #[serde(default)]
    start: i64,
    stop: i64,
    #[serde(default = "one")]
    step: i64,
}

fn one() -> i64 {
    1
}

/// The most bytes of memory for a byte of a rule: of a list of numbers with a digit each.
const LISTED_BYTES: u64 = 32;

/// Adds the references of all rules.
pub(super) fn add_all(
    table: &mut TableBuilder,
    rules: &str,
    templates: &TemplateSet,
    work: &mut TemplateWork,
) -> Result<(), ReferenceError> {
    let Items(rules) = serde_json::from_str(rules).map_err(|error| syntax(&error))?;
    rules.into_iter().try_for_each(|rule| {
        // The values of dimensions take some times as much as their text.
        let held = (rule.get().len() as u64).saturating_mul(LISTED_BYTES);
        table.hold(held)?;
        let rule: Rule<'_> = serde_json::from_str(rule.get()).map_err(|error| syntax(&error))?;
        add(table, &rule, templates, work)?;
        table.release(held);
        Ok(())
    })
}

fn add(
    table: &mut TableBuilder,
    rule: &Rule<'_>,
    set: &TemplateSet,
    work: &mut TemplateWork,
) -> Result<(), ReferenceError> {
    let refused = ReferenceError::Document;
    let parse = |text: &str| Template::parse(text).map_err(refused);
    let held = [&rule.key.0, &rule.url.0].map(|text| template::memory_bytes(text)).iter().sum();
    table.hold(held)?;
    let (key, url) = (parse(&rule.key.0)?, parse(&rule.url.0)?);
    let range = match (rule.offset, rule.length) {
        (None, None) => None,
        (Some(offset), Some(length)) => Some((number(offset)?, number(length)?)),
        _ => return Err(refused("a rule of `gen` has only one of `offset` and `length`")),
    };
    let axes: Vec<(String, Axis)> = rule
        .dimensions
        .0
        .iter()
        .map(|(name, raw)| Ok((name.clone(), Axis::parse(raw)?)))
        .collect::<Result<_, ReferenceError>>()?;
    let count = axes.iter().try_fold(1_u64, |count, (_, axis)| count.checked_mul(axis.count()));
    let count = count.filter(|count| *count <= MAX_COMBINATIONS);
    let count = count.ok_or(refused("a rule of `gen` has too many combinations"))?;
    let mut names = TemplateNames::new();
    for index in 0..count {
        // What a reference costs beside its templates.
        work.spend(16, 0).map_err(refused)?;
        let mut rest = index;
        for (name, axis) in axes.iter().rev() {
            let value = axis.value(rest % axis.count(), work).map_err(refused)?;
            work.spend(2, name.len()).map_err(refused)?;
            names.insert(name.clone(), value);
            rest /= axis.count();
        }
        let scope = TemplateScope { own: &names, outer: Some(&set.names) };
        let render = |template: &Template, work: &mut TemplateWork| {
            template.render(scope, &set.templates, work).map_err(refused)
        };
        let number = |template: &Template, work: &mut TemplateWork| {
            let text = render(template, work)?;
            text.trim()
                .parse()
                .map_err(|_invalid| refused("an offset or a length of `gen` is not a whole number"))
        };
        let range = match &range {
            None => None,
            Some((offset, length)) => Some((number(offset, work)?, number(length, work)?)),
        };
        let (key, url) = (render(&key, work)?, render(&url, work)?);
        table.push_url(&key, &url, range)?;
    }
    table.release(held);
    Ok(())
}

/// The template of an offset or a length, which may be a number too.
fn number(raw: &RawValue) -> Result<Template, ReferenceError> {
    let text = match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Text<'_>>(raw.get()).map_err(|error| syntax(&error))?.0,
        _ => raw.get().into(),
    };
    Template::parse(&text).map_err(ReferenceError::Document)
}

impl Axis {
    fn parse(raw: &RawValue) -> Result<Self, ReferenceError> {
        let text = raw.get();
        if text.starts_with('[') {
            let Items(items) = serde_json::from_str(text).map_err(|error| syntax(&error))?;
            let value = |item: &RawValue| match item.get().as_bytes().first() {
                Some(b'"') => {
                    let Text(text) = serde_json::from_str(item.get()).map_err(|error| syntax(&error))?;
                    Ok(TemplateValue::Text(text.into_owned()))
                }
                _ => serde_json::from_str(item.get())
                    .map(TemplateValue::Integer)
                    .map_err(|error| syntax(&error)),
            };
            return items.into_iter().map(value).collect::<Result<_, _>>().map(Self::List);
        }
        let Steps { start, stop, step } = serde_json::from_str(text).map_err(|error| syntax(&error))?;
        let (distance, width) = match step {
            0 => return Err(ReferenceError::Document("a dimension of `gen` has steps of 0")),
            1.. => (i128::from(stop) - i128::from(start), i128::from(step)),
            ..0 => (i128::from(start) - i128::from(stop), -i128::from(step)),
        };
        let count = u64::try_from((distance.max(0) + width - 1) / width).unwrap_or(u64::MAX);
        Ok(Self::Steps { start, step, count })
    }

    fn count(&self) -> u64 {
        match self {
            Self::List(values) => values.len() as u64,
            Self::Steps { count, .. } => *count,
        }
    }

    fn value(&self, index: u64, work: &mut TemplateWork) -> Result<TemplateValue, TemplateFault> {
        let value = match self {
            Self::List(values) => {
                let value = usize::try_from(index).ok().and_then(|index| values.get(index));
                work.spend(1, value.map_or(0, TemplateValue::bytes))?;
                value.cloned()
            }
            Self::Steps { start, step, .. } => i64::try_from(index)
                .ok()
                .and_then(|index| index.checked_mul(*step)?.checked_add(*start))
                .map(TemplateValue::Integer),
        };
        value.ok_or("a dimension of `gen` has a value that is too large")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemsVisitor<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for ItemsVisitor<'a> {
            type Value = Items<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items<'a>, A::Error> {
                let mut found = Vec::new();
                while let Some(item) = items.next_element()? {
                    if found.len() >= MAX_ITEMS {
                        return Err(A::Error::custom("too many items"));
                    }
                    found.push(item);
                }
                Ok(Items(found))
            }
        }

        deserializer.deserialize_seq(ItemsVisitor(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Dimensions<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DimensionsVisitor<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for DimensionsVisitor<'a> {
            type Value = Dimensions<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Dimensions<'a>, M::Error> {
                let mut found = Vec::new();
                while let Some((Text(name), values)) = map.next_entry()? {
                    if found.len() >= MAX_DIMENSIONS {
                        return Err(M::Error::custom("too many dimensions"));
                    }
                    found.push((name.into_owned(), values));
                }
                Ok(Dimensions(found))
            }
        }

        deserializer.deserialize_map(DimensionsVisitor(PhantomData))
    }
}
