//! Selections of small coordinates. Those of random ones are compared with xarray in `tests/clients`.

use proptest::prelude::*;

use super::calendar::Calendar;
use super::comparison::Comparison;
use super::dimension_labels::{DimensionLabels, SelectedLabels};
use super::dimension_query::DimensionQuery;
use super::error::LabelError;
use super::float_precision::FloatPrecision;
use super::instant::{NOT_A_TIME, SECOND};
use super::label_list::LabelListQuery;
use super::label_values::Labels;
use super::query::LabelQuery;

/// One day in attoseconds.
const DAY: i128 = 86_400 * SECOND;

fn floats(values: &[f64]) -> DimensionLabels {
    DimensionLabels::of_labels(
        "x",
        Labels::Floats { values: values.to_vec(), precision: FloatPrecision::Double },
    )
}

fn integers(values: &[i128]) -> DimensionLabels {
    DimensionLabels::of_labels("x", Labels::Integers(values.to_vec()))
}

fn times(instants: &[i128]) -> DimensionLabels {
    let calendar = Calendar::ProlepticGregorian;
    DimensionLabels::of_labels("time", Labels::Times { instants: instants.to_vec(), calendar })
}

fn texts(values: &[&str]) -> DimensionLabels {
    DimensionLabels::of_labels("station", Labels::Texts(values.iter().map(|&text| text.into()).collect()))
}

fn wrapped(
    coordinate: &DimensionLabels,
    query: &str,
    wrap: Option<f64>,
) -> Result<SelectedLabels, LabelError> {
    coordinate.select(&LabelQuery::parse("x", query)?, wrap)
}

/// The positions that a query selects, and whether the dimension is kept; or an error as text.
fn selected(coordinate: &DimensionLabels, query: &str, wrap: Option<f64>) -> String {
    match wrapped(coordinate, query, wrap) {
        Ok(SelectedLabels { positions, .. }) => {
            let places: Vec<String> = positions.iter().map(|place| place.to_string()).collect();
            let places = places.join(",");
            if positions.is_kept() { format!("[{places}]") } else { places }
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn times_with_one_that_is_none_have_no_step() {
    for instants in [[0, NOT_A_TIME], [NOT_A_TIME, 0], [-1, NOT_A_TIME], [1 << 126, -(1 << 126)]] {
        let coordinate = times(&instants);
        assert_eq!(coordinate.extent().step, serde_json::Value::Null, "{instants:?}");
        assert!(!selected(&coordinate, "1969-05", None).contains(" by "), "{instants:?}");
    }
}

#[test]
fn numbers_are_selected_as_pandas_selects_them() {
    let ascending = floats(&[10.0, 20.0, 30.0, 30.0, 40.0]);
    let descending = floats(&[40.0, 30.0, 20.0, 10.0]);
    let counts = integers(&[0, 5, 10, 15]);
    for (coordinate, query, expected) in [
        (&ascending, "20", "1"),
        (&ascending, "2e1", "1"),
        (&ascending, "30", "[2,3]"),
        (&ascending, "nearest::24", "1"),
        (&ascending, "nearest::25", "[2,3]"),
        (&ascending, "nearest::5", "0"),
        (&ascending, "nearest(inf)::-1000", "0"),
        (&ascending, "nearest(6)::4", "0"),
        (&ascending, "ffill::29", "1"),
        (&ascending, "ffill::1000", "4"),
        (&ascending, "bfill::-1000", "0"),
        (&ascending, "bfill(2)::18", "1"),
        (&ascending, "15..30", "[1,2,3]"),
        (&ascending, "30..15", "[1,2,3]"),
        (&ascending, "..20", "[0,1]"),
        (&ascending, "30..", "[2,3,4]"),
        (&ascending, "21..22", "[]"),
        (&ascending, "100..200", "[]"),
        (&ascending, "latest", "4"),
        (&ascending, " latest ", "4"),
        (&descending, "20", "2"),
        (&descending, "nearest::25", "1"),
        (&descending, "ffill::25", "1"),
        (&descending, "bfill::25", "2"),
        (&descending, "ffill::5", "3"),
        (&descending, "bfill::45", "0"),
        (&descending, "15..35", "[1,2]"),
        (&descending, "35..15", "[1,2]"),
        (&descending, "30..", "[1,2,3]"),
        (&descending, "latest", "0"),
        (&counts, "5", "1"),
        (&counts, "5.0", "1"),
        (&counts, "nearest::7.4", "1"),
        (&counts, "nearest::7.5", "2"),
        (&counts, "4.5..10.5", "[1,2]"),
    ] {
        assert_eq!(selected(coordinate, query, None), expected, "{query}");
    }
}

#[test]
fn a_label_far_outside_is_refused_with_what_is_there() {
    let latitudes = floats(&[60.0, 59.75, 59.5]);
    for (query, says) in [
        (
            "59.6",
            "the nearest are `59.75` and `59.5`; labels go from `60` to `59.5` by -0.25; `nearest::59.6` selects the nearest",
        ),
        ("70", "`nearest(inf)::70` selects the nearest"),
        (
            "nearest::61",
            "no element has this label; the nearest is `60`; labels go from `60` to `59.5` by -0.25; it is not taken",
        ),
        ("nearest(0.1)::59.6", "59.6"),
        ("ffill::61", "no element has this label"),
        ("north", "labels of `x` are numbers, such as `60`"),
        ("nan", "labels of `x` are numbers"),
        ("nearest(-1)::60", "a tolerance is a number from 0 on"),
    ] {
        let error = selected(&latitudes, query, None);
        assert!(error.starts_with("`sel.x=") && error.contains(says), "{query}: {error}");
    }
    assert_eq!(selected(&latitudes, "nearest::60.125", None), "0");
    assert!(selected(&latitudes, "nearest::60.126", None).contains("no element"));
    assert!(selected(&floats(&[]), "1", None).contains("the coordinate is empty"));
    assert!(selected(&floats(&[]), "latest", None).contains("the coordinate is empty"));
    let longitudes = floats(&[0.0, 120.0, 240.0]);
    assert!(selected(&longitudes, "-75", None).contains("add `wrap=360`"));
    assert!(!selected(&longitudes, "75", None).contains("wrap"));
    assert!(!selected(&longitudes, "-75", Some(360.0)).contains("wrap"), "it is there already");
    let pressures = floats(&[280.0, 284.0, 290.0]);
    assert!(!selected(&pressures, "-75", None).contains("wrap"), "it would be refused");
}

#[test]
fn months_and_years_are_ranges_also_among_labels_that_are_as_far_apart() {
    // The first days of January, February and March of 1970.
    let months = times(&[0, 31, 59].map(|day| day * DAY));
    assert_eq!(selected(&months, "1970-02", None), "[1]");
    assert_eq!(selected(&months, "1970-03", None), "[2]");
    assert_eq!(selected(&months, "1970-02-01", None), "1");
    assert_eq!(selected(&times(&[0, 365 * DAY]), "1971", None), "[1]");
}

#[test]
fn a_method_with_one_colon_is_refused_with_two() {
    let error = selected(&floats(&[1.0, 2.0]), "nearest:1.4", None);
    assert!(error.contains("`nearest::1.4`"), "{error}");
}

#[test]
fn nothing_is_near_to_infinity() {
    let (ascending, open) = (floats(&[10.0, 20.0]), floats(&[0.0, f64::INFINITY]));
    let (descending, counts) = (floats(&[270.0, 180.0, 90.0, 0.0]), integers(&[1, 2]));
    for (coordinate, query, wrap) in [
        (&ascending, "nearest::inf", None),
        (&ascending, "nearest::-inf", None),
        (&ascending, "nearest(1e300)::-inf", None),
        (&open, "nearest::-inf", None),
        (&counts, "nearest::inf", None),
        (&counts, "nearest::-inf", None),
        (&descending, "nearest::-inf", Some(360.0)),
        (&descending, "bfill::inf", Some(360.0)),
        (&descending, "inf", Some(360.0)),
        (&descending, "0..inf", Some(360.0)),
    ] {
        let error = selected(coordinate, query, wrap);
        assert!(error.contains("no element has this label"), "{query} {wrap:?}: {error}");
    }
    assert_eq!(selected(&open, "nearest::inf", None), "1");
    assert_eq!(selected(&ascending, "ffill::inf", None), "1");
    assert_eq!(selected(&counts, "-inf..1", None), "[0]");
}

#[test]
fn floats_are_compared_with_integers_exactly() {
    const LARGE: i128 = 1 << 53;
    let coordinate = integers(&[LARGE, LARGE + 1, LARGE + 2]);
    for (query, expected) in [
        ("9007199254740992.0", "0"),
        ("9007199254740993", "1"),
        ("9.007199254740994e15", "2"),
        ("0.5..9007199254740992", "[0]"),
        ("9007199254740993..inf", "[1,2]"),
        ("..9007199254740992.0", "[0]"),
        ("nearest(inf)::0.5", "0"),
        ("bfill::0.5", "0"),
        ("nearest::9007199254740993", "1"),
    ] {
        assert_eq!(selected(&coordinate, query, None), expected, "{query}");
    }
    for condition in [&["== 9007199254740992.0"][..], &["< 9007199254740993", "> 0.5"]] {
        let conditions = condition.iter().map(|text| Comparison::parse("x", text).unwrap());
        let query = DimensionQuery::Where(conditions.collect());
        let found = coordinate.select_by(&query, None).unwrap();
        assert_eq!(found.positions.iter().collect::<Vec<_>>(), [0], "{condition:?}");
    }
    assert_eq!(selected(&integers(&[1, 2, 3]), "0.5..2.5", None), "[0,1]");
}

#[test]
fn an_empty_text_is_a_label_of_texts_alone() {
    assert_eq!(selected(&texts(&["b", "", "a"]), "", None), "1");
    assert!(selected(&texts(&["b", "a"]), "", None).contains("no element has this label"));
    for coordinate in [floats(&[1.0]), integers(&[1]), times(&[0])] {
        assert!(selected(&coordinate, "", None).contains("it takes a label"), "{coordinate:?}");
    }
    let mut list = LabelListQuery::default();
    list.labels.push("").unwrap();
    let found = texts(&["b", ""]).select_by(&DimensionQuery::List(list.into()), None).unwrap();
    assert_eq!(found.positions.iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn unsorted_labels_are_selected_exactly_or_not_at_all() {
    let unsorted = floats(&[3.0, 1.0, 2.0, 1.0, f64::NAN]);
    assert_eq!(selected(&unsorted, "2", None), "2");
    assert_eq!(selected(&unsorted, "1", None), "[1,3]");
    assert_eq!(selected(&unsorted, "latest", None), "0");
    for query in ["nearest::2", "1..2", "ffill::2"] {
        assert!(selected(&unsorted, query, None).contains("not sorted"), "{query}");
    }
    assert!(selected(&unsorted, "1.6", None).contains("the nearest are `1` and `2`"));
    let scattered = integers(&[7, 1, 7, 7, 2]);
    assert_eq!(selected(&scattered, "7", None), "[0,2,3]");
}

#[test]
fn a_date_is_one_label_or_a_range_by_its_precision() {
    let days = times(&(0..40).map(|day| day * DAY).collect::<Vec<_>>());
    let hours = times(&(0..72).map(|hour| hour * DAY / 24).collect::<Vec<_>>());
    let back = times(&(0..4).map(|day| (3 - day) * DAY).collect::<Vec<_>>());
    let fine = times(&(0..8).map(|quarter| quarter * SECOND / 4).collect::<Vec<_>>());
    for (coordinate, query, expected) in [
        (&days, "1970-01-02", "1"),
        (&days, "1970-01-02T00:00", "1"),
        (&days, "1970-02", "[31,32,33,34,35,36,37,38,39]"),
        (&days, "1970-02-05..1970-02-07", "[35,36,37]"),
        (&days, "1970-02-07..1970-02-05", "[35,36,37]"),
        (&days, "1970-02-08..1970-03", "[38,39]"),
        (&days, "1970-02-09..", "[39]"),
        (&days, "..1970-01-02", "[0,1]"),
        (
            &days,
            "1970..1970-01",
            "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30]",
        ),
        (&days, "1980..1990", "[]"),
        (&back, "1970-01-02..", "[2,3]"),
        (&back, "..1970-01-03", "[0,1]"),
        (&back, "1970-01-02..1970-01-03", "[1,2]"),
        (&back, "latest", "0"),
        (&days, "nearest::1970-01-02T11:59", "1"),
        (&days, "nearest::1970-01-02T12:00", "2"),
        (&days, "nearest(1h)::1970-01-02T00:59", "1"),
        (&days, "ffill::1970-01-02T23:59", "1"),
        (&days, "latest", "39"),
        (&hours, "1970-01-01T05", "5"),
        (&hours, "1970-01-03", "[48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,66,67,68,69,70,71]"),
        (&fine, "1970-01-01T00:00:01", "[4,5,6,7]"),
        (&fine, "1970-01-01T00:00:01.25", "5"),
    ] {
        assert_eq!(selected(coordinate, query, None), expected, "{query}");
    }
    for (query, says) in [
        ("1970-03", "no element has this label; the nearest is `1970-02-09T00:00:00`"),
        ("1970-01-02T06", "the nearest are `1970-01-02T00:00:00` and `1970-01-03T00:00:00`; labels go from"),
        ("1970-02-30", "the calendar of `time`, `proleptic_gregorian`, has no such date"),
        ("nearest(1h)::1970-01-02T12:00", "no element has this label"),
        ("nearest(3)::1970-01-02", "is a duration"),
        ("31", "labels of `time` are dates in ISO 8601, such as `1970-01-01T00:00:00`"),
        ("nearest::1980-01-01", "not taken from so far away"),
    ] {
        let error = selected(&days, query, None);
        assert!(error.contains(says), "{query}: {error}");
    }
    assert!(selected(&days, "1970-03", None).contains("by 1 day"));
    // A day without data amid others is an empty range, not an error.
    let gap = times(&[0, DAY / 2, 3 * DAY]);
    assert_eq!(selected(&gap, "1970-01-02", None), "[]");
}

#[test]
fn texts_are_selected_exactly_or_by_range() {
    let stations = texts(&["KBOS", "KJFK", "KSEA"]);
    assert_eq!(selected(&stations, "KJFK", None), "1");
    assert_eq!(selected(&stations, "KB..KK", None), "[0,1]");
    assert_eq!(selected(&stations, "latest", None), "2");
    assert_eq!(selected(&texts(&["latest", "x"]), "latest", None), "0");
    assert_eq!(selected(&texts(&[" latest", "x"]), " latest", None), "0");
    assert!(selected(&stations, "KSAE", None).contains("the nearest is `KSEA`"));
    assert!(selected(&stations, "nearest::KS", None).contains("only exact labels and ranges"));
    assert!(selected(&texts(&["b", "a", "c"]), "a..b", None).contains("not sorted"));
}

#[test]
fn texts_that_differ_in_blanks_are_different_labels() {
    let padded = ["a", "a ", " a", "\n", "\u{a0}b"];
    let labels = texts(&padded);
    let mut list = LabelListQuery::default();
    for (place, label) in padded.iter().enumerate() {
        assert_eq!(selected(&labels, label, None), place.to_string(), "{label:?}");
        list.labels.push(label).unwrap();
    }
    let found = labels.select_by(&DimensionQuery::List(list.into()), None).unwrap();
    assert_eq!(found.positions.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(selected(&labels, "b", None).contains("no element has this label"));
    assert_eq!(selected(&integers(&[1, 2]), " 2 ", None), "1");
    assert_eq!(selected(&times(&[0]), " 1970-01-01 ", None), selected(&times(&[0]), "1970-01-01", None));
}

#[test]
fn labels_of_float32_are_compared_after_rounding() {
    let values = [45.1_f32, 45.2].map(f64::from).to_vec();
    let precision = FloatPrecision::Single;
    let single = DimensionLabels::of_labels("lat", Labels::Floats { values, precision });
    assert_eq!(selected(&single, "45.1", None), "0");
    assert_eq!(selected(&single, "45.1..45.2", None), "[0,1]");
    assert_eq!(single.text(0).as_deref(), Some("45.1"));
    let double = floats(&[f64::from(45.1_f32)]);
    assert!(selected(&double, "45.1", None).contains("no element"));
}

#[test]
fn labels_of_short_floats_are_the_texts_that_tables_have() {
    let third = [f64::from(half::f16::from_f64(1.0 / 3.0)), f64::from(half::bf16::from_f64(1.0 / 3.0))];
    for (precision, value, text) in
        [(FloatPrecision::Half, third[0], "0.3333"), (FloatPrecision::Brain, third[1], "0.334")]
    {
        let labels = DimensionLabels::of_labels("c", Labels::Floats { values: vec![0.0, value], precision });
        assert_eq!(labels.text(1).as_deref(), Some(text));
        assert_eq!(selected(&labels, text, None), "1");
        assert_eq!(selected(&labels, &format!("{text}..1"), None), "[1]");
    }
}

#[test]
fn longitudes_are_found_in_either_convention() {
    let east: Vec<f64> = (0..8).map(|step| f64::from(step) * 45.0).collect();
    let (ascending, mut reversed) = (floats(&east), east.clone());
    reversed.reverse();
    let descending = floats(&reversed);
    for (coordinate, query, expected) in [
        (&ascending, "-45", "7"),
        (&ascending, "315", "7"),
        (&ascending, "675", "7"),
        (&ascending, "nearest::-10", "0"),
        (&ascending, "nearest::-30", "7"),
        (&ascending, "nearest::359", "0"),
        (&ascending, "-100..-80", "[6]"),
        (&ascending, "45..-45", "[1,2,3,4,5,6,7]"),
        (&ascending, "-180..179", "[4,5,6,7,0,1,2,3]"),
        (&ascending, "300..50", "[7,0,1]"),
        (&ascending, "-180..180", "[0,1,2,3,4,5,6,7]"),
        (&ascending, "-30..10", "[0]"),
        (&descending, "-45", "0"),
        (&descending, "-100..-80", "[1]"),
        (&descending, "nearest::-10", "7"),
        (&integers(&[0, 90, 180, 270]), "-90", "3"),
        (&floats(&[90.0, 0.0, 180.0]), "-180", "2"),
    ] {
        assert_eq!(selected(coordinate, query, Some(360.0)), expected, "{query}");
    }
    assert!(selected(&ascending, "-44", Some(360.0)).contains("the nearest is `315`"));
    assert!(selected(&ascending, "10..", Some(360.0)).contains("two ends"));
    let decimals = floats(&[0.0, 284.9, 300.0]);
    assert_eq!(selected(&decimals, "-75.1", Some(360.0)), "1");
}

proptest! {
    /// What binary search selects is what a comparison with every label selects.
    #[test]
    fn sorted_labels_are_found_as_by_comparing_all(
        mut values in prop::collection::vec(-20_i32..20, 1..12), descends: bool, label in -25_i32..25, other in -25_i32..25,
    ) {
        values.sort_unstable();
        if descends {
            values.reverse();
        }
        let coordinate = integers(&values.iter().copied().map(i128::from).collect::<Vec<_>>());
        let all = |is: &dyn Fn(i32) -> bool| -> Vec<u64> {
            (0_u64..).zip(&values).filter(|(_, value)| is(**value)).map(|(place, _)| place).collect()
        };
        let places = |query: String| {
            Some(wrapped(&coordinate, &query, None).ok()?.positions.iter().collect::<Vec<_>>())
        };
        let (low, high) = (label.min(other), label.max(other));
        prop_assert_eq!(places(format!("{label}..{other}")), Some(all(&|value| (low..=high).contains(&value))));
        let exact = all(&|value| value == label);
        prop_assert_eq!(places(label.to_string()), (!exact.is_empty()).then_some(exact));
        let distance = values.iter().map(|value| value.abs_diff(label)).min().unwrap_or_default();
        let nearest = values.iter().filter(|value| value.abs_diff(label) == distance).max().copied();
        let nearest = all(&|value| Some(value) == nearest);
        prop_assert_eq!(places(format!("nearest(inf)::{label}")), Some(nearest));
    }

    #[test]
    fn no_query_of_any_coordinate_panics(text in "[-0-9a-z.:() ]{0,24}", values in prop::collection::vec(any::<f64>(), 0..6)) {
        for wrap in [None, Some(360.0), Some(1e-300)] {
            let _ = wrapped(&floats(&values), &text, wrap);
            let _ = wrapped(&texts(&["a", "b"]), &text, wrap);
            let _ = wrapped(&times(&[0, i128::MAX, i128::MIN]), &text, wrap);
        }
    }
}

#[test]
fn longitudes_and_numbers_that_are_once_around_go_around() {
    for (values, around) in [
        (&[0.0, 90.0, 180.0, 270.0][..], true),
        (&[180.0, 90.0, 0.0, -90.0, -180.0], true),
        (&[88.75, 0.0, -88.75], false),
        (&[1000.0, 850.0, 500.0, 200.0], false),
        (&[0.0, 10.0], false),
        (&[0.0], false),
        (&[], false),
        (&[180.0, 0.0, 270.0, 90.0], false),
    ] {
        assert_eq!(floats(values).goes_around(360.0), around, "{values:?}");
        let mut longitudes = floats(values);
        longitudes.is_longitude = true;
        assert!(longitudes.goes_around(360.0));
    }
    let days: Vec<i128> = (1..=365).collect();
    assert!(integers(&days).goes_around(365.0) && !integers(&days).goes_around(360.0));
}
