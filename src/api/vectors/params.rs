//! [`VectorParams`]: query parameters, each known and given at most once.

use serde_json::{Map, Value};
use utoipa::IntoParams;

use crate::api::query_params::{KnownParams, QueryParams};
use crate::vectors::VectorError;

/// The largest number of boxes in one request.
const MAX_BOXES: usize = 1000;

/// Parameters from a query and from a request body.
#[derive(Clone, Debug, Default)]
pub(crate) struct VectorParams {
    pairs: Vec<(String, String)>,
    /// The numbers of each box in the body.
    boxes: Vec<Vec<f64>>,
}

impl VectorParams {
    pub(crate) fn new(pairs: Vec<(String, String)>) -> Self {
        Self { pairs, boxes: Vec::new() }
    }

    /// Adds the members of a request body; a list is joined with commas.
    pub(crate) fn with_body(mut self, body: Map<String, Value>) -> Result<Self, VectorError> {
        for (name, value) in body {
            if name == "boxes" {
                self.boxes = parse_body_boxes(&value)?;
                continue;
            }
            let text = match value {
                Value::Null => continue,
                Value::Array(items) => {
                    let items = items.iter().map(scalar_text).collect::<Option<Vec<String>>>();
                    items.map(|items| items.join(","))
                }
                value => scalar_text(&value),
            };
            let text =
                text.ok_or_else(|| VectorError::bad_param(&name, "a number, a string, or a list of them"))?;
            self.pairs.push((name, text));
        }
        Ok(self)
    }

    /// Rejects parameters that are not in `known`, and repeated ones.
    pub(crate) fn check(&self, known: &KnownParams) -> Result<(), VectorError> {
        for (place, (name, _)) in self.pairs.iter().enumerate() {
            let short: String = name.chars().take(40).collect();
            if !known.contains(name) {
                return Err(VectorError::bad_param(
                    &short,
                    format!("no value: it is not a parameter here; the parameters are {known}"),
                ));
            }
            let canonical = known.canonical(name);
            if self.pairs.iter().take(place).any(|(other, _)| known.canonical(other) == canonical) {
                return Err(VectorError::bad_param(&short, "one value, but was given twice"));
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn boxes(&self) -> &[Vec<f64>] {
        &self.boxes
    }

    /// A non-negative integer.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, VectorError> {
        let parse = |text: &str| {
            text.parse().map_err(|_no_number| VectorError::bad_param(name, "an integer of at least 0"))
        };
        self.get(name).map(parse).transpose()
    }

    /// Whether a flag is set: present, and neither `false` nor `0`.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(crate::http::switch::is_on)
    }

    /// A comma-separated list without duplicates.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let mut items: Vec<String> = Vec::new();
        for item in self.get(name).into_iter().flat_map(|text| text.split(',')).map(str::trim) {
            if !item.is_empty() && !items.iter().any(|known| known == item) {
                items.push(item.to_owned());
            }
        }
        items
    }
}

/// The path of a store.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path for the API document")]
pub(crate) struct VectorsPath {
    /// Name of a mount
    mount: String,
    /// Path of the store
    path: String,
}

/// The path of a level of a store.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes the path for the API document")]
pub(crate) struct LevelPath {
    /// Name of a mount
    mount: String,
    /// Path of the store
    path: String,
    /// Number of the level. Without `levels/N`, the finest level
    level: u64,
}

/// The level, where it may be in the query.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct LevelParam {
    /// The level, if the path has none.
    level: Option<u64>,
}

impl QueryParams for LevelParam {}

/// The query parameters that select part of a level, which `filter` parses.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct BoxParams {
    /// The lower bound along each axis, then the upper bound along each: `0,0,0,10,10,10`, including `inf` and `-inf`.
    /// All of space if absent. Alternatively: `min` and `max`.
    bbox: Option<String>,
    /// The lower bound along each axis, with `max`.
    min: Option<String>,
    /// The upper bound along each axis, with `min`.
    max: Option<String>,
    /// `closed` (the default: a box contains its upper bound) or `half-open`.
    interval: Option<String>,
    /// The value of the attribute by which chunks are split: `gene:Sst`.
    #[param(rename = "where")]
    only: Option<String>,
    /// The level, if the path has none.
    level: Option<u64>,
}

impl QueryParams for BoxParams {}

/// Comma-separated numbers.
pub(crate) fn parse_floats(name: &str, text: &str) -> Result<Vec<f64>, VectorError> {
    let number = |text: &str| text.trim().parse::<f64>();
    let numbers = text.split(',').map(number).collect::<Result<_, _>>();
    numbers.map_err(|_no_number| {
        VectorError::bad_param(name, "comma-separated numbers, including `inf` and `-inf`")
    })
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn parse_body_boxes(value: &Value) -> Result<Vec<Vec<f64>>, VectorError> {
    let takes = || {
        let each = "lists of numbers, or objects of `min` and `max`";
        VectorError::bad_param("boxes", format!("at most {MAX_BOXES} {each}"))
    };
    let boxes = value.as_array().filter(|boxes| boxes.len() <= MAX_BOXES).ok_or_else(takes)?;
    let number = |value: &Value| scalar_text(value)?.parse::<f64>().ok();
    let numbers = |numbers: &Value| numbers.as_array()?.iter().map(number).collect::<Option<Vec<f64>>>();
    let corners = |corners: &Value| {
        let (min, max) = (numbers(corners.get("min")?)?, numbers(corners.get("max")?)?);
        (min.len() == max.len()).then(|| [min, max].concat())
    };
    let one = |value: &Value| if value.is_object() { corners(value) } else { numbers(value) };
    boxes.iter().map(one).collect::<Option<_>>().ok_or_else(takes)
}
