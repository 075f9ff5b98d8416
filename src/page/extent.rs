//! From where to where the labels of a coordinate reach, in words.

use maud::{Markup, html};
use serde_json::Value;

use super::facts::cut;
use crate::labels::LabelExtent;

/// The ends of times that both ends of an extent may have, and that say nothing then.
const NOTHING: [&str; 2] = ["T00:00:00", ":00"];
/// Longest label that is kept on one line, in characters.
const LONGEST_WHOLE: usize = 32;
/// Longest label that is shown, in characters.
const LONGEST: usize = 100;

/// The ends of an extent, and how far apart its labels are.
struct ExtentText {
    first: String,
    /// `None` for a single label.
    last: Option<String>,
    step: Option<String>,
}

/// The first and the last label, and how far apart they are; `None` if they are not known.
pub(super) fn extent(extent: &LabelExtent) -> Option<Markup> {
    let ExtentText { first, last, step } = ExtentText::new(extent)?;
    let label = |text: &str| {
        let is_short = text.chars().count() <= LONGEST_WHOLE;
        html! { bdi.whole[is_short] { (cut(text, LONGEST)) } }
    };
    Some(html! {
        span.extent {
            (label(&first))
            @if let Some(last) = &last { " to " (label(last)) }
            @if let Some(step) = &step { ", " (label(step)) }
        }
    })
}

impl ExtentText {
    fn new(extent: &LabelExtent) -> Option<Self> {
        let (mut first, mut last) = (label(&extent.first)?, label(&extent.last)?);
        if extent.order.is_none() {
            return Some(Self { first, last: None, step: None });
        }
        if extent.time_range.is_some()
            && let Some(end) = NOTHING.iter().find(|end| first.ends_with(**end) && last.ends_with(**end))
        {
            first.truncate(first.len() - end.len());
            last.truncate(last.len() - end.len());
        }
        let step = match &extent.step {
            Value::String(step) => Some(format!("every {step}")),
            step => label(step).map(|step| format!("step {step}")),
        };
        Some(Self { first, last: Some(last), step })
    }
}

/// A label as a person writes it: a whole number without a fraction.
fn label(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => {
            let text = number.to_string();
            Some(text.strip_suffix(".0").map(str::to_owned).unwrap_or(text))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(first: Value, last: Value, step: Value, order: Option<&'static str>) -> Option<[String; 3]> {
        let is_time = first.as_str().is_some_and(|text| text.contains("T0"));
        let time_range = is_time.then(|| [String::new(), String::new()]);
        let extent = LabelExtent { first, last, step, order, range: None, time_range };
        let ExtentText { first, last, step } = ExtentText::new(&extent)?;
        Some([first, last.unwrap_or_default(), step.unwrap_or_default()])
    }

    #[test]
    fn an_extent_is_said_as_a_person_would() {
        let (up, down) = (Some("ascending"), Some("descending"));
        for (found, expected) in [
            (parts(json!(60.0), json!(50.5), json!(-0.5), down), Some(["60", "50.5", "step -0.5"])),
            (parts(json!(1000), json!(500), Value::Null, down), Some(["1000", "500", ""])),
            (parts(json!(7), json!(7), Value::Null, None), Some(["7", "", ""])),
            (
                parts(json!("2020-01-01T00:00:00"), json!("2020-02-01T00:00:00"), json!("1 day"), up),
                Some(["2020-01-01", "2020-02-01", "every 1 day"]),
            ),
            (
                parts(json!("2020-01-01T00:00:00"), json!("2020-01-02T18:00:00"), json!("6 hours"), up),
                Some(["2020-01-01T00:00", "2020-01-02T18:00", "every 6 hours"]),
            ),
            (
                parts(json!("2020-01-01T00:00:00"), json!("2020-01-01T00:00:01"), json!("1 second"), up),
                Some(["2020-01-01T00:00:00", "2020-01-01T00:00:01", "every 1 second"]),
            ),
            (parts(json!("a:00"), json!("b:00"), Value::Null, up), Some(["a:00", "b:00", ""])),
            (parts(json!(1.0), Value::Null, Value::Null, Some("unsorted")), None),
        ] {
            assert_eq!(found, expected.map(|parts| parts.map(str::to_owned)));
        }
    }
}
