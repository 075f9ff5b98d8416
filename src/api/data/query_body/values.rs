//! The values that a body has for one dimension: positions, labels, conditions and tolerances. Lists are bounded while they are parsed.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::chunk::{IndexList, SelectionError};
use crate::labels::{LabelList, ListFull};

/// The key of the only member of what a number is deserialized from, if it is no integer: it has the digits as they were sent.
pub(super) const NUMBER: &str = "$serde_json::private::Number";

/// Positions along a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IndexValue {
    /// As in a query.
    Text(String),
    /// A list, which keeps the dimension.
    List(IndexList),
}

/// Labels along a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LabelValue {
    /// As in a query.
    Text(String),
    /// One label, taken literally.
    Literal(String),
    /// Two ends, taken literally.
    Between(Option<String>, Option<String>),
    /// A list of labels, taken literally. It keeps the dimension.
    List(LabelList),
}

/// A number or a text, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) String);

/// A text, or a list of few.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a condition such as `>= 60`, or a list of them")]
pub(super) enum ConditionTexts {
    One(String),
    Several(Vec<String>),
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text or a truth value")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Word, E> {
                Ok(Word(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }

            fn visit_bool<E: Error>(self, truth: bool) -> Result<Word, E> {
                Ok(Word(truth.to_string()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Word, A::Error> {
                match members.next_key::<String>()? {
                    Some(key) if key == NUMBER => members.next_value().map(Word),
                    _ => Err(A::Error::invalid_type(Unexpected::Map, &self)),
                }
            }
        }
        deserializer.deserialize_any(Words)
    }
}

impl<'de> Deserialize<'de> for IndexValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Indexes;
        impl<'de> Visitor<'de> for Indexes {
            type Value = IndexValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an index, a slice such as \"0:10\", or a list of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<IndexValue, E> {
                Ok(IndexValue::Text(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, index: u64) -> Result<IndexValue, E> {
                Ok(IndexValue::Text(index.to_string()))
            }

            fn visit_i64<E: Error>(self, index: i64) -> Result<IndexValue, E> {
                Ok(IndexValue::Text(index.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<IndexValue, A::Error> {
                let mut list = IndexList::default();
                while let Some(item) = items.next_element::<IndexItem>()? {
                    let added = match item {
                        IndexItem::Index(index) => list.push_index(index),
                        IndexItem::Text(text) => list.push(text.trim()),
                    };
                    added.map_err(|error: SelectionError| A::Error::custom(error))?;
                }
                Ok(IndexValue::List(list))
            }
        }
        deserializer.deserialize_any(Indexes)
    }
}

/// An item of a list of positions.
enum IndexItem {
    Index(i64),
    Text(String),
}

impl<'de> Deserialize<'de> for IndexItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items;
        impl Visitor<'_> for Items {
            type Value = IndexItem;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an index or a slice such as \"0:10\"")
            }

            fn visit_u64<E: Error>(self, index: u64) -> Result<IndexItem, E> {
                // No axis is longer.
                Ok(IndexItem::Index(i64::try_from(index).unwrap_or(i64::MAX)))
            }

            fn visit_i64<E: Error>(self, index: i64) -> Result<IndexItem, E> {
                Ok(IndexItem::Index(index))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<IndexItem, E> {
                Ok(IndexItem::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Items)
    }
}

impl<'de> Deserialize<'de> for LabelValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Labels;
        impl<'de> Visitor<'de> for Labels {
            type Value = LabelValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a label, a list of labels, or an object with `label`, or with `from` and `to`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<LabelValue, E> {
                Ok(LabelValue::Text(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<LabelValue, E> {
                Ok(LabelValue::Literal(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<LabelValue, E> {
                Ok(LabelValue::Literal(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<LabelValue, E> {
                Ok(LabelValue::Literal(number.to_string()))
            }

            fn visit_bool<E: Error>(self, truth: bool) -> Result<LabelValue, E> {
                Ok(LabelValue::Literal(truth.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<LabelValue, A::Error> {
                let mut list = LabelList::default();
                while let Some(Word(label)) = items.next_element()? {
                    list.push(&label).map_err(|error: ListFull| A::Error::custom(error))?;
                }
                Ok(LabelValue::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<LabelValue, A::Error> {
                let (mut label, mut from, mut to) = (None, None, None);
                while let Some(key) = members.next_key::<String>()? {
                    let slot = match key.as_str() {
                        NUMBER => return members.next_value().map(LabelValue::Literal),
                        "label" => &mut label,
                        "from" => &mut from,
                        "to" => &mut to,
                        _ => return Err(A::Error::unknown_field(&key, &["label", "from", "to"])),
                    };
                    if slot.is_some() {
                        return Err(A::Error::custom(format_args!("`{key}` is given twice")));
                    }
                    let Word(text) = members.next_value()?;
                    *slot = Some(text);
                }
                match (label, from, to) {
                    (Some(label), None, None) => Ok(LabelValue::Literal(label)),
                    (None, from, to) if from.is_some() || to.is_some() => Ok(LabelValue::Between(from, to)),
                    _ => Err(A::Error::custom("labels as an object have `label`, or `from` and `to`")),
                }
            }
        }
        deserializer.deserialize_any(Labels)
    }
}
