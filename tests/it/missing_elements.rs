//! Which elements are missing: statistics, reductions, downsampling and decoded values have one rule, here compared with a naive model,
//! and in `tests/clients` with xarray.

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::store::SharedStore;

use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

const ROWS: usize = 6;
const COLUMNS: usize = 8;
const FILL: i16 = -9;

/// The element at a place; those of the last chunk are not stored.
fn element(row: usize, column: usize) -> i16 {
    match (row, column) {
        (3.., 4..) | (0, _) | (1, 0..2) => FILL,
        (2, 1) => 3,
        (4, 0) => 5,
        _ => i16::try_from(row * 7 + column * 11 % 13).unwrap() - 4,
    }
}

/// An array of v2 with attributes.
async fn stored(fill: &Value, attributes: &Value) -> SharedStore {
    let store = memory();
    let document = json!({
        "zarr_format": 2, "shape": [ROWS, COLUMNS], "chunks": [3, 4], "dtype": "<i2", "fill_value": fill, "order": "C",
        "compressor": null, "filters": null,
    });
    put(&store, "a/.zarray", document.to_string()).await;
    put(&store, "a/.zattrs", attributes.to_string()).await;
    for (row, column) in [(0, 0), (0, 4), (3, 0)] {
        let places = (row..row + 3).flat_map(|row| (column..column + 4).map(move |column| (row, column)));
        let chunk: Vec<u8> = places.flat_map(|(row, column)| element(row, column).to_le_bytes()).collect();
        put(&store, &format!("a/{}.{}", row / 3, column / 4), chunk).await;
    }
    store
}

async fn json_of(server: &Server, url: &str) -> Value {
    let answer = server.get(url).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    answer.json()
}

/// The mean of integers, rounded half to even; of none the value that marks missing elements.
fn mean(present: &[i16], marks: &[i16]) -> i16 {
    let count = i32::try_from(present.len()).unwrap();
    if count == 0 {
        return marks[0];
    }
    let sum: i32 = present.iter().map(|&one| i32::from(one)).sum();
    let (quotient, twice) = (sum.div_euclid(count), 2 * sum.rem_euclid(count));
    let is_up = twice > count || (twice == count && quotient % 2 != 0);
    i16::try_from(quotient + i32::from(is_up)).unwrap()
}

#[tokio::test]
async fn statistics_reductions_and_downsampling_skip_the_same_elements_of_v2() {
    let names = json!(["y", "x"]);
    for (fill, attributes, marks) in [
        // The fill value is in place of the attribute, as for xarray.
        (json!(FILL), json!({"_ARRAY_DIMENSIONS": names, "_FillValue": 5}), vec![FILL]),
        (json!(FILL), json!({"_ARRAY_DIMENSIONS": names, "missing_value": [3]}), vec![FILL, 3]),
        (json!(FILL), json!({"scale_factor": 1, "missing_value": 3}), vec![FILL, 3]),
        // xarray reads no array without names, such as an image: its zeros are numbers.
        (json!(FILL), json!({"missing_value": 3}), vec![3]),
        (json!(FILL), json!({"_FillValue": 5}), vec![5]),
        (json!(null), json!({"_ARRAY_DIMENSIONS": names, "_FillValue": 3}), vec![3]),
    ] {
        let what = format!("{fill} {attributes}");
        let server = Server::of(stored(&fill, &attributes).await);
        let absent = if fill.is_null() { 0 } else { FILL };
        let at =
            |row: usize, column: usize| if row >= 3 && column >= 4 { absent } else { element(row, column) };
        let places = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| -> Vec<i16> {
            let all = rows.flat_map(|row| columns.clone().map(move |column| (row, column)));
            all.map(|(row, column)| at(row, column)).filter(|one| !marks.contains(one)).collect()
        };
        let present = places(0..ROWS, 0..COLUMNS);
        let sum: i32 = present.iter().map(|&one| i32::from(one)).sum();
        let statistics = json_of(&server, "/v1/stats/m/a?ops=count,missing,min,max,sum").await;
        let expected = [
            json!(present.len()),
            json!(ROWS * COLUMNS - present.len()),
            json!(present.iter().min()),
            json!(present.iter().max()),
            json!(sum),
        ];
        for (name, expected) in ["count", "missing", "min", "max", "sum"].iter().zip(&expected) {
            assert_eq!(statistics[name].as_f64(), expected.as_f64(), "{name} {what}");
        }
        let stored = json_of(&server, "/v1/stats/m/a?decode=none&ops=count,missing").await;
        assert_eq!((&stored["count"], &stored["missing"]), (&json!(ROWS * COLUMNS), &json!(0)), "{what}");

        let rows: Vec<Vec<i16>> = (0..ROWS).map(|row| places(row..row + 1, 0..COLUMNS)).collect();
        let counts = json_of(&server, "/v1/data/m/a?reduce.1=count&format=json").await;
        assert_eq!(counts, json!(rows.iter().map(Vec::len).collect::<Vec<_>>()), "{what}");
        let missing = json_of(&server, "/v1/data/m/a?reduce.1=missing&format=json").await;
        assert_eq!(missing, json!(rows.iter().map(|row| COLUMNS - row.len()).collect::<Vec<_>>()), "{what}");
        let least = json_of(&server, "/v1/data/m/a?reduce.1=min&format=json").await;
        let expected: Vec<i16> =
            rows.iter().map(|row| row.iter().copied().min().unwrap_or(marks[0])).collect();
        assert_eq!(least, json!(expected), "{what}");

        let windows = |reduce: &dyn Fn(&[i16]) -> i16| -> Vec<Vec<i16>> {
            let window = |row: usize, column: usize| reduce(&places(row..row + 2, column..column + 2));
            let line = |row: usize| (0..COLUMNS).step_by(2).map(|column| window(row, column)).collect();
            (0..ROWS).step_by(2).map(line).collect()
        };
        let means = json_of(&server, "/v1/data/m/a?downsample=2,2&method=mean&format=json").await;
        assert_eq!(means, json!(windows(&|present| mean(present, &marks))), "{what}");
        let largest = json_of(&server, "/v1/data/m/a?downsample=2,2&method=max&format=json").await;
        let most = |present: &[i16]| present.iter().copied().max().unwrap_or(marks[0]);
        assert_eq!(largest, json!(windows(&most)), "{what}");

        let decoded = json_of(&server, "/v1/data/m/a?decode=cf&format=json").await;
        let value = |row, column| {
            if marks.contains(&at(row, column)) { json!("NaN") } else { json!(f64::from(at(row, column))) }
        };
        for row in 0..ROWS {
            let line: Vec<Value> = (0..COLUMNS).map(|column| value(row, column)).collect();
            assert_eq!(decoded[row], json!(line), "{row} {what}");
        }
    }
}

#[tokio::test]
async fn chunks_of_times_that_are_not_stored_are_not_a_time_where_v2_has_no_fill_value() {
    for (fill, expected) in [(json!(null), "NaT"), (json!(0), "1970-01-01T00:00:00")] {
        let store = memory();
        let document = json!({
            "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<M8[s]", "fill_value": fill, "order": "C",
            "compressor": null, "filters": null,
        });
        put(&store, "t/.zarray", document.to_string()).await;
        put(&store, "t/0", [1_i64, 2].map(i64::to_le_bytes).concat()).await;
        let server = Server::of(store);
        let times = json_of(&server, "/v1/data/m/t?format=json").await;
        assert_eq!(
            times,
            json!(["1970-01-01T00:00:01", "1970-01-01T00:00:02", expected, expected]),
            "{fill}"
        );
        let v2 = json_of(&server, "/rechunk/m/4/zstd-1/t/.zarray").await;
        assert_eq!(v2["fill_value"], fill);
        let v3 = json_of(&server, "/rechunk/m/4/zstd-1/t/zarr.json").await;
        assert_eq!(v3["fill_value"], if fill.is_null() { json!("NaT") } else { json!(0) });
    }
}
