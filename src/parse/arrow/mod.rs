//! Elements of a stream of Arrow record batches, as `format=arrow` returns them (Arrow columnar format, "IPC Streaming Format").
//!
//! What the columns must be follows from the array's type and the selection's shape: `schema` compares the stream's schema with
//! that, and `batch` takes the elements from the buffers. Nothing is read by a length or an offset of the stream that was not
//! compared with the bytes that there are, and nothing is allocated because of one. Buffers that are compressed, dictionaries, and
//! columns of other types are errors: a client that sends back what it got has none of them.

mod batch;
mod malformed;
mod schema;
mod stream;
mod time_step;

use bytes::Bytes;

use self::batch::ArrowBatch;
use self::malformed::malformed;
use self::schema::ArrowColumns;
use self::stream::Messages;
use super::canonical::check_canonical;
use super::error::ParseError;
use super::json::most_expanded_bytes;
use super::variable::VariableElements;
use crate::chunk::Elements;
use crate::metadata::DataType;

/// Parses the elements of a selection of this shape.
///
/// # Errors
/// [`ParseError`].
pub fn parse_arrow(data_type: &DataType, shape: &[u64], body: &Bytes) -> Result<Elements, ParseError> {
    let mut messages = Messages::new(body);
    let first = messages.next()?.and_then(|(message, _)| message.header_as_schema());
    let schema = first.ok_or_else(|| malformed("it does not begin with a schema"))?;
    let columns = ArrowColumns::of(data_type, shape, &schema)?;
    check_length(data_type, shape, body.len() as u64)?;
    let (mut items, mut elements) = (Vec::new(), VariableElements::new(data_type));
    let mut left = columns.rows;
    while let Some((message, buffers)) = messages.next()? {
        let Some(header) = message.header_as_record_batch() else {
            let kind = message.header_type().variant_name().unwrap_or("unknown");
            return Err(malformed(format!(
                "it has a message that is no record batch, but of the kind {kind}"
            )));
        };
        let rows = u64::try_from(header.length()).unwrap_or(u64::MAX);
        let first = columns.rows - left;
        left = left.checked_sub(rows).ok_or_else(|| shape_mismatch(shape, first.saturating_add(rows)))?;
        let mut batch = ArrowBatch::new(&header, buffers)?;
        if data_type.is_variable() {
            columns.take_variable(data_type, &mut batch, rows, &mut elements)?;
        } else {
            items.append(&mut columns.take_fixed(data_type, &mut batch, rows)?);
        }
        batch.expect_end()?;
    }
    if left > 0 {
        return Err(shape_mismatch(shape, columns.rows - left));
    }
    if data_type.is_variable() {
        return Ok(elements.finish());
    }
    check_canonical(data_type, &items, 0)?;
    Ok(Elements::fixed(items.into()))
}

/// Checks that elements of fixed size are not far longer than the stream: empty texts may stand for long ones.
fn check_length(data_type: &DataType, shape: &[u64], body: u64) -> Result<(), ParseError> {
    let item = data_type.element_bytes() as u64;
    let bytes = shape.iter().fold(item, |product, &length| product.saturating_mul(length));
    let limit = most_expanded_bytes(body);
    if data_type.is_variable() || bytes <= limit { Ok(()) } else { Err(ParseError::TooLong { limit }) }
}

/// The error of a stream with another number of rows than the shape has: this one, or more.
fn shape_mismatch(shape: &[u64], rows: u64) -> ParseError {
    let mut given = shape.to_vec();
    match given.first_mut() {
        Some(length) => *length = rows,
        None => given.push(rows),
    }
    ParseError::Shape { given, expected: shape.to_vec() }
}
