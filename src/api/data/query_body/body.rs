//! [`SelectionBody`]: the selection that a body has, and the query that it is.

use std::fmt;
use std::sync::Arc;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::named::{Named, value_of};
use super::near::{Near, Tolerance};
use super::values::{ConditionTexts, IndexValue, LabelValue, NUMBER, Word};
use crate::api::data::query::DataQuery;
use crate::api::point_selection::PointSelection;
use crate::api::query_params::{ParamError, is_of_page};
use crate::chunk::SelectionError;
use crate::labels::{Comparison, DimensionQuery, FillMethod};

/// Members that are no query parameters.
const OF_BODY: &[&str] = &["isel", "sel", "points", "where", "tolerance"];
/// The most members that are query parameters.
const MOST_WORDS: usize = 64;
/// The most items of all lists together.
const MOST_ITEMS: usize = 400_000;

/// A selection, and everything else that a query can have.
#[derive(Debug, Default)]
pub(crate) struct SelectionBody {
    /// The members that are query parameters, as text.
    words: Vec<(String, String)>,
    isel: Named<IndexValue>,
    sel: Named<LabelValue>,
    points: Option<PointsValue>,
    conditions: Named<ConditionTexts>,
    /// What to select for labels that no element has.
    method: Option<FillMethod>,
    tolerance: Option<Tolerance>,
}

/// Points by labels and by positions.
#[derive(Debug, Default)]
struct PointsValue {
    isel: Named<IndexValue>,
    sel: Named<LabelValue>,
}

/// The value of a member that is a query parameter, as text: lists have commas.
struct Words(String);

/// The value of a member that is a query parameter, or an object of such values, one for each name after the point: `reduce.time`.
enum Member {
    One(String),
    Each(Named<Words>),
}

impl SelectionBody {
    /// Takes a member out that is not of the selection, as text.
    pub(crate) fn take_word(&mut self, name: &str) -> Option<String> {
        let place = self.words.iter().position(|(known, _)| known == name)?;
        Some(self.words.remove(place).1)
    }

    /// The query of these pairs and of the body.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(crate) fn into_query(self, pairs: &[(String, String)]) -> Result<DataQuery, ParamError> {
        let Self { words, isel, sel, points, conditions, method, tolerance } = self;
        let mut query = DataQuery::default();
        for (name, value) in pairs.iter().chain(&words) {
            if !query.take(name, value)? && !is_of_page(name) {
                return Err(ParamError::unknown(name, &DataQuery::known().and_names(OF_BODY)));
            }
        }
        for (name, value) in isel.0 {
            match value {
                IndexValue::Text(text) => {
                    query.take(&format!("isel.{name}"), &text)?;
                }
                IndexValue::List(list) => query.selection.add_list(name, list),
            }
        }
        let mut near = Near::new(method, tolerance)?;
        let selection = &mut query.selection;
        for (name, value) in sel.0 {
            let labels = near.labels(&name, value)?;
            selection.add_labels(name, labels);
        }
        for (name, value) in conditions.0 {
            let texts = match value {
                ConditionTexts::One(text) => vec![text],
                ConditionTexts::Several(texts) => texts,
            };
            let conditions = Comparison::parse_all(&name, &texts)?;
            selection.add_labels(name, DimensionQuery::Where(conditions));
        }
        if let Some(points) = points {
            let mut selected = PointSelection::default();
            for (name, value) in points.isel.0 {
                let IndexValue::List(list) = value else {
                    return Err(SelectionError::PointsNoList { name }.into());
                };
                selected.isel.push((name, Arc::new(list)));
            }
            for (name, value) in points.sel.0 {
                let labels = near.points(&name, value)?;
                selected.sel.push((name, labels));
            }
            selection.add_points(selected);
        }
        near.check_used()?;
        selection.check()?;
        let items = selection.listed_items();
        if items > MOST_ITEMS {
            return Err(SelectionError::ListTooLong { count: items, limit: MOST_ITEMS }.into());
        }
        query.checked()
    }
}

impl<'de> Deserialize<'de> for SelectionBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = SelectionBody;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the parameters of GET, `isel`, `sel`, `points` and `where`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SelectionBody, A::Error> {
                let mut body = SelectionBody::default();
                let mut seen: Vec<String> = Vec::new();
                while let Some(name) = members.next_key::<String>()? {
                    if seen.contains(&name) {
                        return Err(A::Error::custom(format_args!("`{name}` is given twice")));
                    }
                    match name.as_str() {
                        "isel" => body.isel = value_of(&name, &mut members)?,
                        "sel" => body.sel = value_of(&name, &mut members)?,
                        "points" => body.points = Some(value_of(&name, &mut members)?),
                        "where" => body.conditions = value_of(&name, &mut members)?,
                        "tolerance" => body.tolerance = Some(value_of(&name, &mut members)?),
                        _ => body.take(&name, value_of(&name, &mut members)?),
                    }
                    if seen.len() == MOST_WORDS || body.words.len() > MOST_WORDS {
                        return Err(A::Error::custom(format_args!("more than {MOST_WORDS} members")));
                    }
                    seen.push(name);
                }
                Ok(body)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl SelectionBody {
    /// Takes a member that is a query parameter, or the method for labels.
    fn take(&mut self, name: &str, member: Member) {
        match member {
            Member::One(text) => match FillMethod::from_name(&text).filter(|_| name == "method") {
                Some(method) => self.method = Some(method),
                None => self.words.push((name.to_owned(), text)),
            },
            // So that an unknown one is noticed.
            Member::Each(Named(members)) if members.is_empty() => {
                self.words.push((name.to_owned(), String::new()));
            }
            Member::Each(Named(members)) => {
                let words = members.into_iter().map(|(of, Words(text))| (format!("{name}.{of}"), text));
                self.words.extend(words);
            }
        }
    }
}

impl<'de> Deserialize<'de> for PointsValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Dimensions;
        impl<'de> Visitor<'de> for Dimensions {
            type Value = PointsValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a list of labels for each dimension, or with `isel` and `sel`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<PointsValue, A::Error> {
                let mut points = PointsValue::default();
                let mut labels: Vec<(String, LabelValue)> = Vec::new();
                while let Some(name) = members.next_key::<String>()? {
                    match name.as_str() {
                        "isel" if points.isel.0.is_empty() => points.isel = value_of(&name, &mut members)?,
                        "sel" if points.sel.0.is_empty() => points.sel = value_of(&name, &mut members)?,
                        "isel" | "sel" => {
                            return Err(A::Error::custom(format_args!("`{name}` is given twice")));
                        }
                        _ => {
                            let value = value_of(&name, &mut members)?;
                            labels.push((name, value));
                        }
                    }
                    if labels.len() > MOST_WORDS {
                        return Err(A::Error::custom(format_args!("more than {MOST_WORDS} dimensions")));
                    }
                }
                points.sel.0.extend(labels);
                Ok(points)
            }
        }
        deserializer.deserialize_map(Dimensions)
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Member::deserialize(deserializer)? {
            Member::One(text) => Ok(Self(text)),
            Member::Each(_) => Err(D::Error::custom("objects are nested too deep")),
        }
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Member;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, a list of them, or an object of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Member, E> {
                Ok(Member::One(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Member, E> {
                Ok(Member::One(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Member, E> {
                Ok(Member::One(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Member, E> {
                Ok(Member::One(number.to_string()))
            }

            fn visit_bool<E: Error>(self, truth: bool) -> Result<Member, E> {
                Ok(Member::One(truth.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Member, A::Error> {
                let mut words: Vec<String> = Vec::new();
                while let Some(Word(word)) = items.next_element()? {
                    if words.len() == MOST_WORDS {
                        return Err(A::Error::custom(format_args!("more than {MOST_WORDS} items")));
                    }
                    words.push(word);
                }
                Ok(Member::One(words.join(",")))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Member, A::Error> {
                match members.next_key::<String>()? {
                    Some(key) if key == NUMBER => members.next_value().map(Member::One),
                    first => Named::collect(first, members).map(Member::Each),
                }
            }
        }
        deserializer.deserialize_any(Values)
    }
}
