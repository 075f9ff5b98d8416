//! Link records: rows of the chunks of their endpoints (Zarr Vector Format 0.9, "links").
//!
//! Records within a chunk are concatenated. Records between chunks are grouped behind a table of offsets. The name of
//! the array gives the chunk of each endpoint; records hold rows alone.

use super::PayloadError;
use super::cursor::PayloadReader;
use super::rows::decode_integers;
use crate::metadata::DataType;

/// One record: the row of each endpoint, and the permutation that was applied before it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    /// The rows, in the order of the endpoints' chunks.
    pub rows: Vec<i64>,
    /// Endpoint `k` of the stored record was at `order[k]` of the original one.
    pub order: Option<Vec<usize>>,
}

/// Decodes concatenated records.
///
/// # Errors
/// [`PayloadError`].
pub fn decode_links(
    bytes: &[u8],
    kind: &DataType,
    width: usize,
    has_order: bool,
) -> Result<Vec<LinkRecord>, PayloadError> {
    let columns = width.saturating_add(usize::from(has_order));
    if columns == 0 {
        return if bytes.is_empty() { Ok(Vec::new()) } else { Err(PayloadError::Trailing(bytes.len())) };
    }
    let row_bytes = columns.saturating_mul(kind.element_bytes());
    if !bytes.len().is_multiple_of(row_bytes) {
        return Err(PayloadError::PartialRow { bytes: bytes.len(), row: row_bytes });
    }
    let numbers = decode_integers(bytes, kind);
    let record = |row: &[i64]| {
        // The permutation precedes the rows.
        let (order, rows) =
            row.split_at_checked(usize::from(has_order)).ok_or(PayloadError::Short("records"))?;
        let order = order.first().map(|&order| decode_lehmer_code(order, width)).transpose()?;
        Ok(LinkRecord { rows: rows.to_vec(), order })
    };
    numbers.chunks(columns).map(record).collect()
}

/// Decodes grouped records: the number of groups, the byte offset of each, then the records.
///
/// # Errors
/// [`PayloadError`].
pub fn decode_link_groups(
    bytes: &[u8],
    kind: &DataType,
    width: usize,
    has_order: bool,
) -> Result<Vec<LinkRecord>, PayloadError> {
    let mut cursor = PayloadReader::new(bytes);
    let groups = cursor.i64("number of groups")?;
    let groups = u64::try_from(groups).map_err(|_negative| PayloadError::Count(groups))?;
    let offsets = cursor.i64s(groups, "offsets")?;
    let data = cursor.rest();
    if offsets.is_empty() {
        cursor.end()?;
    }
    let mut records = Vec::new();
    for (place, &start) in offsets.iter().enumerate() {
        let end = offsets.get(place + 1).map_or(Ok(data.len()), |&end| usize::try_from(end));
        let (Ok(start), Ok(end)) = (usize::try_from(start), end) else { return Err(PayloadError::Offsets) };
        if place == 0 && start != 0 {
            return Err(PayloadError::Offsets);
        }
        let group = data.get(start..end).ok_or(PayloadError::Offsets)?;
        records.extend(decode_links(group, kind, width, has_order)?);
    }
    Ok(records)
}

/// The permutation that a Lehmer code encodes.
fn decode_lehmer_code(code: i64, width: usize) -> Result<Vec<usize>, PayloadError> {
    let refused = || PayloadError::Permutation(code);
    let mut left = u64::try_from(code).map_err(|_negative| refused())?;
    // From the last digit to the first; the base is the number of remaining positions.
    let mut digits = Vec::with_capacity(width);
    for base in 1..=width as u64 {
        digits.push(usize::try_from(left % base).unwrap_or_default());
        left /= base;
    }
    if left != 0 {
        return Err(refused());
    }
    let mut places: Vec<usize> = (0..width).collect();
    digits
        .into_iter()
        .rev()
        .map(|digit| if digit < places.len() { Ok(places.remove(digit)) } else { Err(refused()) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[i64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn concatenated_records_are_decoded() {
        let records = decode_links(&bytes(&[0, 1, 2, 1, 3, 4]), &DataType::Int64, 2, true).unwrap();
        assert_eq!(records[0], LinkRecord { rows: vec![1, 2], order: Some(vec![0, 1]) });
        assert_eq!(records[1], LinkRecord { rows: vec![3, 4], order: Some(vec![1, 0]) });
        assert!(matches!(
            decode_links(&[0; 9], &DataType::Int64, 1, false),
            Err(PayloadError::PartialRow { .. })
        ));
        assert_eq!(
            decode_links(&bytes(&[2, 1, 2]), &DataType::Int64, 2, true),
            Err(PayloadError::Permutation(2))
        );
    }

    #[test]
    fn grouped_records_are_decoded_by_their_offsets() {
        let good = bytes(&[2, 0, 16, 1, 2, 3, 4, 5, 6]);
        let records = decode_link_groups(&good, &DataType::Int64, 2, false).unwrap();
        assert_eq!(
            records.iter().map(|record| record.rows.clone()).collect::<Vec<_>>(),
            [[1, 2], [3, 4], [5, 6]]
        );
        for damaged in
            [&[2, 8, 16, 1, 2][..], &[2, 0, 99, 1, 2], &[-1], &[i64::MAX], &[0, 1], &[2, 0, -8, 1, 2]]
        {
            assert!(decode_link_groups(&bytes(damaged), &DataType::Int64, 2, false).is_err(), "{damaged:?}");
        }
        assert_eq!(decode_link_groups(&bytes(&[0]), &DataType::Int64, 2, false), Ok(vec![]));
    }

    #[test]
    fn lehmer_codes_are_decoded() {
        let orders: Vec<_> = (0..6).map(|code| decode_lehmer_code(code, 3).unwrap()).collect();
        assert_eq!(orders, [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]);
        assert!(decode_lehmer_code(6, 3).is_err() && decode_lehmer_code(-1, 3).is_err());
    }

    proptest::proptest! {
        #[test]
        fn links_of_any_bytes_decode_without_panic(bytes: Vec<u8>, width in 0..5_usize, has_order: bool) {
            let _ = decode_links(&bytes, &DataType::Int32, width, has_order);
            let _ = decode_link_groups(&bytes, &DataType::Int64, width, has_order);
        }
    }
}
