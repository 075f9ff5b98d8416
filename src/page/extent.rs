//! From where to where the labels of a coordinate reach, in words.

use serde_json::Value;

use crate::labels::LabelExtent;

/// The end of times of day that are all midnight.
const MIDNIGHT: &str = "T00:00:00";

/// The first and the last label, and how far apart they are; `None` if they are not known.
pub(super) fn extent_text(extent: &LabelExtent) -> Option<String> {
    let (first, last) = (label(&extent.first)?, label(&extent.last)?);
    if extent.order.is_none() {
        return Some(first);
    }
    let is_date = |text: &str| text.ends_with(MIDNIGHT);
    let (first, last) = if is_date(&first) && is_date(&last) {
        (first.trim_end_matches(MIDNIGHT), last.trim_end_matches(MIDNIGHT))
    } else {
        (first.as_str(), last.as_str())
    };
    let step = match &extent.step {
        Value::String(step) => format!(", every {step}"),
        step => label(step).map(|step| format!(", step {step}")).unwrap_or_default(),
    };
    Some(format!("{first} to {last}{step}"))
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

    fn text(first: Value, last: Value, step: Value, order: Option<&'static str>) -> Option<String> {
        extent_text(&LabelExtent { first, last, step, order, range: None, time_range: None })
    }

    #[test]
    fn an_extent_is_said_as_a_person_would() {
        let up = Some("ascending");
        for (found, expected) in [
            (text(json!(60.0), json!(50.5), json!(-0.5), Some("descending")), Some("60 to 50.5, step -0.5")),
            (text(json!(1000), json!(500), Value::Null, Some("descending")), Some("1000 to 500")),
            (text(json!(7), json!(7), Value::Null, None), Some("7")),
            (
                text(json!("2020-01-01T00:00:00"), json!("2020-02-01T00:00:00"), json!("1 day"), up),
                Some("2020-01-01 to 2020-02-01, every 1 day"),
            ),
            (
                text(json!("2020-01-01T00:00:00"), json!("2020-01-02T18:00:00"), json!("6 hours"), up),
                Some("2020-01-01T00:00:00 to 2020-01-02T18:00:00, every 6 hours"),
            ),
            (text(json!("north"), json!("south"), Value::Null, Some("unsorted")), Some("north to south")),
            (text(json!(1.0), Value::Null, Value::Null, Some("unsorted")), None),
        ] {
            assert_eq!(found.as_deref(), expected);
        }
    }
}
