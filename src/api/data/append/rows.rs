//! The shape of the elements in a body, which says how many indices are appended.

use bytes::Bytes;

use crate::api::data::put::BodyFormat;
use crate::metadata::ArrayMetadata;
use crate::parse::{NpyHead, ParseError, json_length, parse_npy_head};

/// The shape of the elements of a body, as an array of the other's number of dimensions.
///
/// # Errors
/// [`ParseError`] if the body is of no such shape.
pub(super) fn shape_of(
    format: BodyFormat,
    body: &Bytes,
    array: &ArrayMetadata,
    axis: usize,
) -> Result<Vec<u64>, ParseError> {
    let rows = match format {
        BodyFormat::Npy => {
            let reason = "it ends in its head".to_owned();
            let cut = || ParseError::Malformed { format: "an npy file", reason };
            rows_of_npy(&parse_npy_head(body)?.ok_or_else(cut)?, array, axis)?
        }
        BodyFormat::Json => json_length(body, axis)?,
        BodyFormat::Bytes if array.data_type.is_variable() => {
            return Err(ParseError::Malformed {
                format: "elements of a known number",
                reason: "send elements of variable length as JSON or npy to append them".to_owned(),
            });
        }
        BodyFormat::Arrow => {
            return Err(ParseError::Malformed {
                format: "one of those that appends take",
                reason: "elements of an Arrow stream are not appended: send npy, plain bytes or JSON"
                    .to_owned(),
            });
        }
        BodyFormat::Bytes => {
            let row = bytes_of_row(array, axis);
            let length = body.len() as u64;
            if row == 0 || !length.is_multiple_of(row) {
                return Err(ParseError::Length { given: format!("{length} bytes"), expected: row });
            }
            length / row
        }
    };
    let mut shape = array.shape.clone();
    if let Some(length) = shape.get_mut(axis) {
        *length = rows;
    }
    Ok(shape)
}

/// Bytes of the elements of one index along a dimension (saturated).
fn bytes_of_row(array: &ArrayMetadata, axis: usize) -> u64 {
    let others = array.shape.iter().enumerate().filter(|(dimension, _)| *dimension != axis);
    let item = array.data_type.element_bytes() as u64;
    others.fold(item, |product, (_, length)| product.saturating_mul(*length))
}

/// How many indices an npy file has. One that lacks the dimension has one.
fn rows_of_npy(head: &NpyHead, array: &ArrayMetadata, axis: usize) -> Result<u64, ParseError> {
    let given = &head.shape;
    let rank = array.shape.len();
    let others = |shape: &[u64]| {
        let others = shape.iter().enumerate().filter(|(dimension, _)| *dimension != axis);
        others.map(|(_, length)| *length).collect::<Vec<_>>()
    };
    let expected = others(&array.shape);
    if given.len() == rank && others(given) == expected {
        return Ok(given.get(axis).copied().unwrap_or(0));
    }
    if given.len().checked_add(1) == Some(rank) && *given == expected {
        return Ok(1);
    }
    let mut expected = array.shape.clone();
    if let Some(length) = expected.get_mut(axis) {
        *length = given.get(axis).copied().filter(|_| given.len() == rank).unwrap_or(1);
    }
    Err(ParseError::Shape { given: given.clone(), expected })
}
