//! [`LabelExtent`]: from where to where the labels of a coordinate reach.

use serde_json::{Number, Value};

use super::calendar::Calendar;
use super::cf_times::is_utc_date;
use super::instant::{self, Instant, NOT_A_TIME};
use super::label_values::Labels;
use super::places::Order;

/// Most characters of a text that an extent repeats.
const MAX_CHARACTERS: usize = 256;

/// From where to where labels reach. Numbers are numbers, times are texts in ISO 8601 as they can be requested.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelExtent {
    /// The first label in stored order; null without one, or if it is no number and no time.
    pub first: Value,
    /// The last label in stored order.
    pub last: Value,
    /// The distance of labels in a row, if all have the same: a number, or for times a text such as `6 hours`.
    pub step: Value,
    /// `ascending`, `descending` or `unsorted`; `None` for fewer than two labels.
    pub order: Option<&'static str>,
    /// The smallest and the largest number.
    pub range: Option<(f64, f64)>,
    /// The earliest and the latest time in ISO 8601, with a `Z` where they are dates of the Gregorian calendar.
    pub time_range: Option<[String; 2]>,
}

impl LabelExtent {
    /// The extent of labels in this order, and with this step between neighbours. It goes through all of them.
    pub(super) fn new(labels: &Labels, order: Order, step: Option<String>) -> Self {
        let end = |place: Option<usize>| place.map_or(Value::Null, |place| label(labels, place));
        let order = match order {
            _ if labels.len() < 2 => None,
            Order::Ascending => Some("ascending"),
            Order::Descending => Some("descending"),
            Order::Unsorted => Some("unsorted"),
        };
        Self {
            first: end(Some(0)),
            last: end(labels.len().checked_sub(1)),
            step: step.map_or(Value::Null, |text| step_of(labels, text)),
            order,
            range: range(labels),
            time_range: time_range(labels),
        }
    }
}

fn label(labels: &Labels, place: usize) -> Value {
    match labels {
        Labels::Floats { .. } => {
            // It has the digits of its own type.
            let number = labels.text(place).and_then(|text| text.parse().ok());
            number.and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
        Labels::Integers(values) => values.get(place).map_or(Value::Null, |value| integer(*value)),
        Labels::Times { instants, .. } if instants.get(place) == Some(&NOT_A_TIME) => Value::Null,
        Labels::Times { .. } => labels.text(place).map_or(Value::Null, Value::String),
        Labels::Texts(texts) => texts
            .get(place)
            .map_or(Value::Null, |text| Value::String(text.chars().take(MAX_CHARACTERS).collect())),
    }
}

fn integer(value: i128) -> Value {
    Number::from_i128(value).map_or(Value::Null, Value::Number)
}

/// A step in the type of labels.
fn step_of(labels: &Labels, text: String) -> Value {
    match labels {
        Labels::Floats { values, precision } => {
            let [first, .., last] = values[..] else { return Value::Null };
            #[expect(clippy::cast_precision_loss, reason = "a coordinate is shorter than 2^52")]
            let step = (last - first) / (values.len() - 1) as f64;
            precision
                .step_text(step)
                .parse()
                .ok()
                .and_then(Number::from_f64)
                .map_or(Value::Null, Value::Number)
        }
        Labels::Integers(_) => text.parse().map_or(Value::Null, integer),
        Labels::Times { .. } | Labels::Texts(_) => Value::String(text),
    }
}

fn range(labels: &Labels) -> Option<(f64, f64)> {
    let of_floats = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        (low <= high).then_some((low, high))
    };
    match labels {
        Labels::Floats { values, .. } => of_floats(&mut values.iter().copied()),
        #[expect(clippy::cast_precision_loss, reason = "coordinates are compared as floats")]
        Labels::Integers(values) => of_floats(&mut values.iter().map(|value| *value as f64)),
        Labels::Times { .. } | Labels::Texts(_) => None,
    }
}

fn time_range(labels: &Labels) -> Option<[String; 2]> {
    let Labels::Times { instants, calendar } = labels else { return None };
    let times = || instants.iter().copied().filter(|instant| *instant != NOT_A_TIME);
    Some([text(*calendar, times().min()?), text(*calendar, times().max()?)])
}

fn text(calendar: Calendar, instant: Instant) -> String {
    let text = instant::text(calendar, instant);
    if is_utc_date(calendar, instant) { format!("{text}Z") } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::labels::float_precision::FloatPrecision;

    fn extent(labels: &Labels, step: Option<&str>) -> LabelExtent {
        LabelExtent::new(labels, labels.order(), step.map(str::to_owned))
    }

    fn floats(values: &[f64], precision: FloatPrecision, step: Option<&str>) -> LabelExtent {
        extent(&Labels::Floats { values: values.to_vec(), precision }, step)
    }

    #[test]
    fn an_extent_has_the_ends_in_stored_order_and_the_step_if_it_is_regular() {
        let found = floats(&[60.0, 59.75, 59.5], FloatPrecision::Double, Some("-0.25"));
        assert_eq!((found.first, found.last, found.step), (json!(60.0), json!(59.5), json!(-0.25)));
        assert_eq!((found.order, found.range), (Some("descending"), Some((59.5, 60.0))));
        let thin = floats(&[0.1_f32, 0.2, 0.3, 0.4].map(f64::from), FloatPrecision::Single, Some("0.1"));
        assert_eq!((thin.first, thin.last, thin.step), (json!(0.1), json!(0.4), json!(0.1)));
        let odd = floats(&[3.0, 1.0, f64::NAN], FloatPrecision::Double, None);
        assert_eq!((odd.first, odd.last, odd.step), (json!(3.0), Value::Null, Value::Null));
        assert_eq!((odd.order, odd.range), (Some("unsorted"), Some((1.0, 3.0))));
        let integers = extent(&Labels::Integers(vec![1, 3, 5]), Some("2"));
        assert_eq!((integers.first, integers.step), (json!(1), json!(2)));
        let none = extent(&Labels::Integers(Vec::new()), None);
        assert_eq!((none.first, none.last, none.order, none.range), (Value::Null, Value::Null, None, None));
    }

    #[test]
    fn times_are_texts_in_their_calendar() {
        let of = |calendar, days: &[i128]| {
            let instants = days.iter().map(|day| day * instant::DAY).collect();
            extent(&Labels::Times { instants, calendar }, Some("1 day"))
        };
        let found = of(Calendar::ProlepticGregorian, &[2, 1, 0]);
        assert_eq!((found.first, found.last), (json!("1970-01-03T00:00:00"), json!("1970-01-01T00:00:00")));
        assert_eq!(found.step, json!("1 day"));
        assert_eq!(found.time_range.unwrap(), ["1970-01-01T00:00:00Z", "1970-01-03T00:00:00Z"]);
        let thirty = of(Calendar::Day360, &[58, 59]);
        assert_eq!(thirty.time_range.unwrap(), ["1970-02-29T00:00:00", "1970-02-30T00:00:00"]);
    }
}
