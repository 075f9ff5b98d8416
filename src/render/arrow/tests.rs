//! Tests of [`ArrowWriter`]: the Arrow library's reader reads the stream back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Int16Type, Int64Type, TimestampMillisecondType, UInt8Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType as ArrowType, SchemaRef, TimeUnit as ArrowUnit};

use super::writer::ArrowWriter;
use crate::chunk::Elements;
use crate::metadata::{DataType, SmallFloat, TimeUnit};
use crate::render::RenderError;
use crate::render::test_elements::{fixed, schema, step, structure, subarray, variable, write_all};

fn batches(data_type: &DataType, shape: &[u64], parts: &[Elements]) -> (SchemaRef, Vec<RecordBatch>) {
    let writer = ArrowWriter::new(&schema(data_type, shape), 1 << 20).unwrap();
    let stream = write_all(writer, parts).unwrap();
    let reader = StreamReader::try_new(&stream[..], None).unwrap();
    let schema = reader.schema();
    (schema, reader.collect::<Result<_, _>>().unwrap())
}

/// The only column of a one-dimensional array.
fn values(data_type: &DataType, elements: &[&[u8]]) -> ArrayRef {
    let part = if data_type.is_variable() { variable(elements) } else { fixed(elements) };
    let (schema, batches) = batches(data_type, &[elements.len() as u64], &[part]);
    assert_eq!(schema.field(0).name(), "values");
    assert_eq!((batches.len(), batches[0].num_rows()), (1, elements.len()));
    Arc::clone(batches[0].column(0))
}

#[test]
fn the_outermost_dimension_becomes_the_rows_however_the_input_is_split() {
    let parts = [fixed(&[&[1, 0, 2, 0]]), fixed(&[&[3, 0, 4, 0, 5, 0]]), fixed(&[&[6, 0]])];
    let (schema, batches) = batches(&DataType::Int16, &[2, 3], &parts);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [1, 1]);
    let rows: Vec<Vec<i16>> = batches
        .iter()
        .map(|batch| {
            let row = batch.column(0).as_fixed_size_list().value(0);
            row.as_primitive::<Int16Type>().values().to_vec()
        })
        .collect();
    assert_eq!(rows, [[1, 2, 3], [4, 5, 6]]);
    assert_eq!(schema.metadata()["zarr.shape"], "[2, 3]");
    assert_eq!(schema.metadata()["zarr.data_type"], "\"int16\"");
}

#[test]
fn rows_of_numbers_are_tensors_with_their_shape_and_names() {
    let mut contents = schema(&DataType::Float32, &[2, 3, 4]);
    contents.dimension_names = Some(vec![None, Some("y".to_owned()), Some("x".to_owned())]);
    let writer = ArrowWriter::new(&contents, 1 << 20).unwrap();
    let field = writer.schema.field(0);
    assert_eq!(field.extension_type_name(), Some("arrow.fixed_shape_tensor"));
    assert_eq!(field.extension_type_metadata(), Some(r#"{"shape":[3,4],"dim_names":["y","x"]}"#));
    assert!(matches!(field.data_type(), ArrowType::FixedSizeList(_, 12)));
    assert_eq!(writer.schema.metadata()["zarr.dimension_names"], r#"[null,"y","x"]"#);
}

#[test]
fn rows_of_other_elements_are_nested_lists() {
    let parts = [variable(&[b"a", b"b", b"c"]), variable(&[b"d"])];
    let (_, batches) = batches(&DataType::String, &[2, 1, 2], &parts);
    let column = batches[1].column(0).as_fixed_size_list().value(0);
    let texts = column.as_fixed_size_list().value(0);
    assert_eq!(texts.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["c", "d"]);
}

#[test]
fn rank_0_is_one_row_and_rows_without_elements_are_empty_lists() {
    let (_, one) = batches(&DataType::UInt8, &[], &[fixed(&[&[7]])]);
    assert_eq!(one[0].column(0).as_primitive::<UInt8Type>().values(), &[7]);
    for shape in [&[0_u64] as &[u64], &[0, 0], &[0, 1 << 20]] {
        assert!(batches(&DataType::UInt8, shape, &[]).1.is_empty(), "{shape:?}");
    }
    let complex = DataType::Complex64;
    for data_type in
        [DataType::UInt8, DataType::Bool, DataType::String, complex, structure(&[("a", DataType::Int8)])]
    {
        for shape in [&[3_u64, 0] as &[u64], &[3, 2, 0], &[3, 0, 2], &[1 << 40, 0]] {
            let (_, batches) = batches(&data_type, shape, &[]);
            assert_eq!(
                (batches.len(), batches[0].num_rows() as u64),
                (1, shape[0]),
                "{data_type:?} {shape:?}"
            );
            let inner = usize::try_from(shape[1]).unwrap();
            let is_tensor = data_type == DataType::UInt8;
            let length = if is_tensor { 0 } else { inner };
            assert_eq!(
                batches[0].column(0).as_fixed_size_list().value(0).len(),
                length,
                "{data_type:?} {shape:?}"
            );
        }
    }
}

#[test]
fn a_struct_has_a_column_for_each_field() {
    let point = structure(&[("x", DataType::Int16), ("s", DataType::NullTerminatedBytes { bytes: 2 })]);
    let data_type =
        structure(&[("p", point), ("q", subarray(DataType::UInt8, &[2, 2])), ("b", DataType::Bool)]);
    let items: [&[u8]; 2] = [&[1, 0, b'a', 0, 1, 2, 3, 4, 1], &[2, 0, b'b', b'c', 5, 6, 7, 8, 0]];
    let (schema, batches) = batches(&data_type, &[2], &[fixed(&items)]);
    assert_eq!(schema.fields().iter().map(|field| field.name()).collect::<Vec<_>>(), ["p", "q", "b"]);
    let point = batches[0].column(0).as_struct();
    assert_eq!(point.column(0).as_primitive::<Int16Type>().values(), &[1, 2]);
    assert_eq!(
        point.column(1).as_binary::<i32>().iter().flatten().collect::<Vec<_>>(),
        [b"a" as &[u8], b"bc"]
    );
    let second = batches[0].column(1).as_fixed_size_list().value(1);
    assert_eq!(second.as_fixed_size_list().value(0).as_primitive::<UInt8Type>().values(), &[5, 6]);
    assert!(batches[0].column(2).as_boolean().value(0) && !batches[0].column(2).as_boolean().value(1));
}

#[test]
fn structs_of_more_dimensions_are_lists_of_structs() {
    let data_type = structure(&[("a", DataType::UInt8)]);
    let (schema, batches) = batches(&data_type, &[2, 2], &[fixed(&[&[1, 2, 3, 4]])]);
    assert_eq!(schema.field(0).name(), "values");
    let second = batches[0].column(0).as_fixed_size_list().value(1);
    assert_eq!(second.as_struct().column(0).as_primitive::<UInt8Type>().values(), &[3, 4]);
}

#[test]
fn times_have_arrow_units_and_nat_is_null() {
    let steps = [1, i64::MIN].map(i64::to_le_bytes);
    let steps = [&steps[0][..], &steps[1]];
    let times = values(&DataType::DateTime64(step(TimeUnit::Millisecond)), &steps);
    assert_eq!(times.data_type(), &ArrowType::Timestamp(ArrowUnit::Millisecond, None));
    assert_eq!(times.as_primitive::<TimestampMillisecondType>().iter().collect::<Vec<_>>(), [Some(1), None]);
    let days = values(&DataType::DateTime64(step(TimeUnit::Day)), &steps);
    assert_eq!(days.as_primitive::<Date32Type>().iter().collect::<Vec<_>>(), [Some(1), None]);
    let hours = values(&DataType::DateTime64(step(TimeUnit::Hour)), &steps);
    assert_eq!(hours.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None]);
    let spans = values(&DataType::TimeDelta64(step(TimeUnit::Nanosecond)), &steps);
    assert_eq!(spans.data_type(), &ArrowType::Duration(ArrowUnit::Nanosecond));
    assert!(spans.is_null(1) && !spans.is_null(0));
}

#[test]
fn a_day_outside_the_dates_of_arrow_is_rejected() {
    let data_type = DataType::DateTime64(step(TimeUnit::Day));
    let writer = ArrowWriter::new(&schema(&data_type, &[1]), 1 << 20).unwrap();
    let result = write_all(writer, &[fixed(&[&(1_i64 << 31).to_le_bytes()])]);
    assert_eq!(result, Err(RenderError::DateRange { day: 1 << 31 }));
}

#[test]
fn floats_that_arrow_lacks_are_widened_and_their_type_is_named() {
    let float = DataType::SmallFloat(SmallFloat::from_name("float8_e4m3fn").unwrap());
    assert_eq!(values(&float, &[&[0x38], &[0xb8]]).as_primitive::<Float32Type>().values(), &[1.0, -1.0]);
    let brain = values(&DataType::BFloat16, &[&[0x80, 0x3f]]);
    assert_eq!(brain.as_primitive::<Float32Type>().values(), &[1.0]);
    let writer = ArrowWriter::new(&schema(&float, &[1]), 1 << 20).unwrap();
    assert_eq!(writer.schema.field(0).metadata()["zarr.data_type"], "\"float8_e4m3fn\"");
}

#[test]
fn complex_numbers_are_written_as_pairs() {
    let element = [1.5_f32, -2.0].map(f32::to_le_bytes).concat();
    let pairs = values(&DataType::Complex64, &[&element]);
    assert_eq!(pairs.as_fixed_size_list().value(0).as_primitive::<Float32Type>().values(), &[1.5, -2.0]);
}

#[test]
fn texts_bytes_and_arrays_are_columns_of_their_own_type() {
    let texts = values(&DataType::String, &["\u{e9}".as_bytes(), b""]);
    assert_eq!(texts.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["\u{e9}", ""]);
    let bytes = values(&DataType::VariableBytes, &[b"a\0", b""]);
    assert_eq!(bytes.as_binary::<i32>().iter().flatten().collect::<Vec<_>>(), [b"a\0" as &[u8], b""]);
    let arrays = DataType::VariableArray(Arc::new(DataType::UInt8));
    let arrays = values(&arrays, &[&[1, 2], &[], &[3]]);
    assert_eq!(arrays.as_list::<i32>().value(2).as_primitive::<UInt8Type>().values(), &[3]);
    let raw = values(&DataType::RawBits { bytes: 2 }, &[b"ab", b"cd"]);
    assert_eq!(raw.as_fixed_size_binary().value(1), b"cd");
    let text = DataType::FixedLengthUtf32 { code_points: 2 };
    let text = values(&text, &[&[0x61, 0, 0, 0, 0, 0, 0, 0]]);
    assert_eq!(text.as_string::<i32>().value(0), "a");
    let writer = ArrowWriter::new(&schema(&DataType::Json, &[1]), 1 << 20).unwrap();
    assert_eq!(writer.schema.field(0).extension_type_name(), Some("arrow.json"));
}

#[test]
fn invalid_text_is_rejected() {
    let writer = ArrowWriter::new(&schema(&DataType::String, &[1]), 1 << 20).unwrap();
    assert_eq!(write_all(writer, &[variable(&[b"\xff"])]), Err(RenderError::NotUtf8));
    let text = DataType::FixedLengthUtf32 { code_points: 1 };
    let writer = ArrowWriter::new(&schema(&text, &[1]), 1 << 20).unwrap();
    let result = write_all(writer, &[fixed(&[&[0, 0xd8, 0, 0]])]);
    assert_eq!(result, Err(RenderError::NotText { number: 0xd800 }));
}

#[test]
fn too_few_and_too_many_elements_are_rejected() {
    for elements in [&[0_u8, 0] as &[u8], &[0; 6], &[0; 3]] {
        let writer = ArrowWriter::new(&schema(&DataType::Int16, &[2]), 1 << 20).unwrap();
        assert_eq!(write_all(writer, &[fixed(&[elements])]), Err(RenderError::ElementCount));
    }
}

#[test]
fn responses_over_the_limit_or_beyond_arrow_lists_are_rejected_before_writing() {
    for shape in [&[1_u64 << 40] as &[u64], &[0, 1 << 32], &[u64::MAX, u64::MAX]] {
        let result = ArrowWriter::new(&schema(&DataType::UInt8, shape), 1 << 20);
        assert!(matches!(result, Err(RenderError::TooLarge { .. })), "{shape:?}");
    }
}
