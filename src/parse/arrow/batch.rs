//! [`ArrowBatch`]: the columns of a record batch, from which elements are taken in the order of the schema (Arrow columnar format,
//! "Physical Memory Layout").

use std::collections::HashMap;

use arrow_ipc::{FieldNode, RecordBatch};
use half::bf16;

use super::malformed::malformed;
use super::time_step::is_day;
use crate::metadata::{DataType, StructType};
use crate::parse::error::ParseError;
use crate::parse::variable::VariableElements;

/// `NaT`, which is null in Arrow.
const NOT_A_TIME: i64 = i64::MIN;

/// The columns of a record batch that are not taken yet.
pub(super) struct ArrowBatch<'a> {
    nodes: std::vec::IntoIter<FieldNode>,
    buffers: std::vec::IntoIter<&'a [u8]>,
    /// Bytes of all buffers: what the items of lists may become in memory is bounded by it.
    bytes: usize,
}

impl<'a> ArrowBatch<'a> {
    /// A record batch with its buffers.
    ///
    /// # Errors
    /// [`ParseError::Malformed`] if a buffer is compressed, or lies outside of them.
    pub(super) fn new(header: &RecordBatch, body: &'a [u8]) -> Result<Self, ParseError> {
        if header.compression().is_some() {
            return Err(malformed("its buffers are compressed; write it without compression"));
        }
        let nodes: Vec<FieldNode> = header.nodes().into_iter().flatten().copied().collect();
        let buffers = header.buffers().into_iter().flatten().map(|buffer| {
            let start = usize::try_from(buffer.offset()).ok()?;
            let end = start.checked_add(usize::try_from(buffer.length()).ok()?)?;
            body.get(start..end)
        });
        let buffers: Option<Vec<&[u8]>> = buffers.collect();
        let buffers = buffers.ok_or_else(|| malformed("a buffer lies outside of its message"))?;
        Ok(Self { nodes: nodes.into_iter(), buffers: buffers.into_iter(), bytes: body.len() })
    }

    /// Checks that all columns were taken.
    ///
    /// # Errors
    /// [`ParseError::Malformed`].
    pub(super) fn expect_end(mut self) -> Result<(), ParseError> {
        if self.nodes.next().is_some() || self.buffers.next().is_some() {
            return Err(malformed("a batch has more columns than its schema"));
        }
        Ok(())
    }

    /// The number of items in lists of these lengths, one in another, in this number of rows.
    ///
    /// # Errors
    /// [`ParseError`] if a list is null, or there is another number of them.
    pub(super) fn lists(&mut self, rows: u64, lengths: &[u64]) -> Result<usize, ParseError> {
        let mut count = rows;
        for length in lengths {
            self.list(count)?;
            count = count.checked_mul(*length).ok_or_else(too_many)?;
        }
        usize::try_from(count).map_err(|_more| too_many())
    }

    /// One level of lists of a fixed size.
    fn list(&mut self, count: u64) -> Result<(), ParseError> {
        let validity = self.validity(count)?;
        expect_none_null(validity, usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// This number of elements of a fixed size, in canonical form.
    ///
    /// # Errors
    /// [`ParseError`].
    pub(super) fn fixed(&mut self, data_type: &DataType, count: usize) -> Result<Vec<u8>, ParseError> {
        match data_type {
            DataType::Bool => {
                let bits = self.of_each(count)?;
                let bits = bits.get(..count.div_ceil(8)).ok_or_else(too_short)?;
                Ok((0..count).map(|at| u8::from(bit(bits, at))).collect())
            }
            DataType::BFloat16 => self.narrowed(count, |number| {
                let narrow = bf16::from_f32(number);
                let is_exact = narrow.to_f32().to_bits() == number.to_bits();
                (is_exact || number.is_nan()).then(|| narrow.to_le_bytes())
            }),
            DataType::SmallFloat(format) => {
                // Of several elements with one value, the first counts.
                let values: HashMap<u32, u8> = (0..=format.mask())
                    .rev()
                    .map(|element| (format.value(element).to_bits(), element))
                    .collect();
                self.narrowed(count, |number| match values.get(&number.to_bits()) {
                    Some(element) => Some([*element]),
                    None => Some([format.nan().filter(|_| number.is_nan())?]),
                })
            }
            DataType::ComplexFloat16
            | DataType::ComplexBFloat16
            | DataType::ComplexSmallFloat(_)
            | DataType::Complex64
            | DataType::Complex128 => {
                let half = data_type.complex_half().ok_or_else(too_many)?;
                self.list(count as u64)?;
                self.fixed(&half, count.checked_mul(2).ok_or_else(too_many)?)
            }
            DataType::DateTime64(step) if is_day(*step) => self.days(count),
            DataType::DateTime64(_) | DataType::TimeDelta64(_) => self.times(count),
            DataType::FixedLengthUtf32 { .. } | DataType::NullTerminatedBytes { .. } => {
                self.padded(data_type, count)
            }
            DataType::Struct(structure) => {
                self.list(count as u64)?;
                self.fields(structure, count)
            }
            DataType::Subarray(subarray) => {
                let lengths: Vec<u64> = subarray.shape().iter().map(|length| (*length).into()).collect();
                let count = self.lists(count as u64, &lengths)?;
                self.fixed(subarray.item(), count)
            }
            DataType::String | DataType::VariableBytes | DataType::VariableArray(_) | DataType::Json => {
                Err(malformed("elements of variable length are nested in others"))
            }
            // Their bytes are those of Arrow.
            _ => {
                let bytes = self.of_each(count)?;
                Ok(taken(bytes, count, data_type.element_bytes())?.to_vec())
            }
        }
    }

    /// The fields of structs, which are a column each.
    ///
    /// # Errors
    /// [`ParseError`].
    pub(super) fn fields(&mut self, structure: &StructType, count: usize) -> Result<Vec<u8>, ParseError> {
        let columns: Vec<(usize, usize, Vec<u8>)> = structure
            .fields_at()
            .map(|(at, field)| {
                Ok((at, field.data_type.element_bytes(), self.fixed(&field.data_type, count)?))
            })
            .collect::<Result<_, ParseError>>()?;
        let bytes = structure.element_bytes();
        let mut items = vec![0; count.checked_mul(bytes).ok_or_else(too_many)?];
        for (at, field_bytes, column) in &columns {
            let fields = items.chunks_exact_mut(bytes.max(1)).zip(column.chunks_exact((*field_bytes).max(1)));
            for (item, field) in fields {
                if let Some(place) = item.get_mut(*at..at.saturating_add(*field_bytes)) {
                    place.copy_from_slice(field);
                }
            }
        }
        Ok(items)
    }

    /// This number of elements of variable length.
    ///
    /// # Errors
    /// [`ParseError`].
    pub(super) fn variable(
        &mut self,
        data_type: &DataType,
        count: usize,
        elements: &mut VariableElements,
    ) -> Result<(), ParseError> {
        let validity = self.validity(count as u64)?;
        expect_none_null(validity, count)?;
        let offsets = Offsets::new(self.buffer()?, count)?;
        let DataType::VariableArray(item) = data_type else {
            let heap = self.buffer()?;
            return (0..count).try_for_each(|at| elements.push(offsets.part(heap, at, 1)?));
        };
        let items = self.nodes.as_slice().first().map_or(0, FieldNode::length);
        let items = usize::try_from(items).map_err(|_negative| too_many())?;
        let bytes = item.element_bytes();
        if items.saturating_mul(bytes) > self.bytes.saturating_mul(8) {
            return Err(malformed("the items of its lists take more than eight times its bytes"));
        }
        let heap = self.fixed(item, items)?;
        (0..count).try_for_each(|at| elements.push(offsets.part(&heap, at, bytes)?))
    }

    /// Texts or bytes that are padded with zeros.
    fn padded(&mut self, data_type: &DataType, count: usize) -> Result<Vec<u8>, ParseError> {
        let validity = self.validity(count as u64)?;
        expect_none_null(validity, count)?;
        let (offsets, size) = (Offsets::new(self.buffer()?, count)?, data_type.element_bytes());
        let heap = self.buffer()?;
        let mut items = Vec::new();
        for at in 0..count {
            let wrong = |reason: String| ParseError::Element { number: at as u64, reason };
            let element = offsets.part(heap, at, 1)?;
            let end = items.len().checked_add(size).ok_or_else(too_many)?;
            if matches!(data_type, DataType::FixedLengthUtf32 { .. }) {
                let text = str::from_utf8(element).map_err(|_error| wrong("is not UTF-8".to_owned()))?;
                items.extend(text.chars().flat_map(|character| u32::from(character).to_le_bytes()));
            } else {
                items.extend_from_slice(element);
            }
            if items.len() > end {
                return Err(wrong(format!("is longer than the {size} bytes of its type")));
            }
            items.resize(end, 0);
        }
        Ok(items)
    }

    /// Numbers of 32 bits that become narrower ones of the same value.
    fn narrowed<const N: usize>(
        &mut self,
        count: usize,
        narrow: impl Fn(f32) -> Option<[u8; N]>,
    ) -> Result<Vec<u8>, ParseError> {
        let (numbers, _) = taken(self.of_each(count)?, count, 4)?.as_chunks();
        let mut items = Vec::with_capacity(count.saturating_mul(N));
        for (at, number) in (0..).zip(numbers) {
            let number = f32::from_le_bytes(*number);
            let reason = || format!("is {number}, which its type does not have");
            let item = narrow(number).ok_or_else(|| ParseError::Element { number: at, reason: reason() })?;
            items.extend_from_slice(&item);
        }
        Ok(items)
    }

    /// Days as steps of 64 bits.
    fn days(&mut self, count: usize) -> Result<Vec<u8>, ParseError> {
        let validity = self.validity(count as u64)?;
        let (days, _) = taken(self.buffer()?, count, 4)?.as_chunks();
        let steps = days.iter().map(|day| i64::from(i32::from_le_bytes(*day)));
        Ok(nullable(validity, steps))
    }

    /// Steps of 64 bits.
    fn times(&mut self, count: usize) -> Result<Vec<u8>, ParseError> {
        let validity = self.validity(count as u64)?;
        let (steps, _) = taken(self.buffer()?, count, 8)?.as_chunks();
        Ok(nullable(validity, steps.iter().map(|step| i64::from_le_bytes(*step))))
    }

    /// The buffer of a column of elements, of which none is null.
    fn of_each(&mut self, count: usize) -> Result<&'a [u8], ParseError> {
        let validity = self.validity(count as u64)?;
        expect_none_null(validity, count)?;
        self.buffer()
    }

    /// Which elements of the next column are not null, a bit for each; `None` if none is.
    fn validity(&mut self, count: u64) -> Result<Option<&'a [u8]>, ParseError> {
        let node = self.nodes.next().ok_or_else(too_short)?;
        if u64::try_from(node.length()) != Ok(count) {
            return Err(malformed(format!("a column has {} items where {count} must be", node.length())));
        }
        let bits = self.buffer()?;
        if node.null_count() == 0 {
            return Ok(None);
        }
        let bytes = usize::try_from(count.div_ceil(8)).map_err(|_more| too_many())?;
        bits.get(..bytes).map(Some).ok_or_else(too_short)
    }

    fn buffer(&mut self) -> Result<&'a [u8], ParseError> {
        self.buffers.next().ok_or_else(too_short)
    }
}

/// Where elements of variable length lie.
struct Offsets<'a>(&'a [[u8; 4]]);

impl<'a> Offsets<'a> {
    fn new(buffer: &'a [u8], count: usize) -> Result<Self, ParseError> {
        let (offsets, _) = buffer.as_chunks();
        // A column without elements may have none.
        if count > 0 && offsets.len() <= count {
            return Err(too_short());
        }
        Ok(Self(offsets))
    }

    /// The bytes of an element, of items of this size.
    fn part<'h>(&self, heap: &'h [u8], at: usize, item_bytes: usize) -> Result<&'h [u8], ParseError> {
        let offset = |at: usize| {
            let offset = usize::try_from(i32::from_le_bytes(*self.0.get(at)?)).ok()?;
            offset.checked_mul(item_bytes)
        };
        let bounds = offset(at).zip(at.checked_add(1).and_then(offset));
        bounds.and_then(|(start, end)| heap.get(start..end)).ok_or_else(|| {
            malformed(format!("element {at} of a batch, counted from 0, lies outside of its buffer"))
        })
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

fn expect_none_null(validity: Option<&[u8]>, count: usize) -> Result<(), ParseError> {
    let null = validity.and_then(|bits| (0..count).find(|at| !bit(bits, *at)));
    null.map_or(Ok(()), |at| {
        Err(ParseError::Element {
            number: at as u64,
            reason: "is null, which its type does not have".to_owned(),
        })
    })
}

/// Steps, of which those that are null are `NaT`.
fn nullable(validity: Option<&[u8]>, steps: impl Iterator<Item = i64>) -> Vec<u8> {
    let is_null = |at: usize| validity.is_some_and(|bits| !bit(bits, at));
    let steps = steps.enumerate().map(|(at, step)| if is_null(at) { NOT_A_TIME } else { step });
    steps.flat_map(i64::to_le_bytes).collect()
}

/// The bytes of this number of items of this size.
fn taken(buffer: &[u8], count: usize, item_bytes: usize) -> Result<&[u8], ParseError> {
    let bytes = count.checked_mul(item_bytes).ok_or_else(too_many)?;
    buffer.get(..bytes).ok_or_else(too_short)
}

fn too_short() -> ParseError {
    malformed("a column or a buffer is too short")
}

fn too_many() -> ParseError {
    malformed("it has more elements than fit in memory")
}
