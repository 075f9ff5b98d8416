//! [`Elements`]: decoded elements in memory, of a fixed size or of variable length.
//!
//! Elements of a fixed size are their items: bytes in C order and canonical form. For elements of variable length (text,
//! bytes), an item is a [`VarSlice`] that locates the element's bytes in a heap; so code that moves elements moves items, and
//! leaves the heap as it is. This file does not interpret the bytes.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};

use super::copy::{copy_box, fill_box, locate_box, locate_places, place_box};
use super::strided::{self, Dimension};
use super::{AxisRange, CopyRegion};
use crate::metadata::DataType;

/// Bytes of a [`VarSlice`] among the items.
const VAR_SLICE_BYTES: usize = VarSlice::BYTES;

/// The bytes of an element of variable length in the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VarSlice {
    /// The first byte.
    pub offset: u32,
    /// The number of bytes.
    pub length: u32,
}

impl VarSlice {
    /// Bytes of a slice among the items.
    pub const BYTES: usize = crate::metadata::VARIABLE_ITEM_BYTES;

    /// The slice as an item.
    #[must_use]
    pub fn to_item(self) -> [u8; Self::BYTES] {
        let word = u64::from(self.offset) | u64::from(self.length) << 32;
        word.to_le_bytes()
    }

    /// The slice that an item encodes.
    #[must_use]
    pub fn from_item(item: [u8; Self::BYTES]) -> Self {
        let [o0, o1, o2, o3, l0, l1, l2, l3] = item;
        Self { offset: u32::from_le_bytes([o0, o1, o2, o3]), length: u32::from_le_bytes([l0, l1, l2, l3]) }
    }

    /// The bytes of the slice; empty if they are not all in the heap.
    fn resolve(self, heap: &[u8]) -> &[u8] {
        let start = self.offset as usize;
        heap.get(start..start.saturating_add(self.length as usize)).unwrap_or_default()
    }
}

/// Items of more bytes are many.
const MANY_BYTES: usize = 256 << 10;

/// Decoded elements in C order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    items: Bytes,
    heap: Bytes,
}

impl Elements {
    /// Elements of a fixed size.
    #[must_use]
    pub fn fixed(items: Bytes) -> Self {
        Self { items, heap: Bytes::new() }
    }

    /// Elements of variable length: slices, and the heap that they point into.
    #[must_use]
    pub fn variable(spans: Bytes, heap: Bytes) -> Self {
        Self { items: spans, heap }
    }

    /// One element of this type, by its bytes.
    #[must_use]
    pub fn one(data_type: &DataType, element: &[u8]) -> Self {
        let bytes = Bytes::copy_from_slice(element);
        if !data_type.is_variable() {
            return Self::fixed(bytes);
        }
        let item = VarSlice { offset: 0, length: u32::try_from(element.len()).unwrap_or(0) }.to_item();
        Self::variable(Bytes::copy_from_slice(&item), bytes)
    }

    /// The items: elements of a fixed size, or slices.
    #[must_use]
    pub fn items(&self) -> &Bytes {
        &self.items
    }

    /// The items alone.
    #[must_use]
    pub fn into_items(self) -> Bytes {
        self.items
    }

    /// The bytes that slices point to; empty for elements of a fixed size.
    #[must_use]
    pub fn heap(&self) -> &Bytes {
        &self.heap
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.items.len().saturating_add(self.heap.len())
    }

    /// Bytes of all elements, one after the other. Those that share bytes of the heap count each time. Of many elements of variable
    /// length only the items count.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let items = self.items.len() as u64;
        if self.heap.is_empty() || self.items.len() > MANY_BYTES {
            return items;
        }
        self.variable_elements().map(|element| element.len() as u64).fold(items, u64::saturating_add)
    }

    /// The same elements of `item_bytes` in pieces of up to this many bytes, or of one element that has more.
    pub fn pieces(self, item_bytes: usize, most_bytes: usize) -> impl Iterator<Item = Self> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let bytes = rest.first_bytes(item_bytes.max(1), most_bytes);
            let piece = rest.slice(0..bytes);
            rest = rest.slice(bytes..rest.items.len());
            (bytes > 0).then_some(piece)
        })
    }

    /// Bytes of the items of the first elements that have up to this many bytes, and of one at least.
    fn first_bytes(&self, item_bytes: usize, most_bytes: usize) -> usize {
        let count = if self.heap.is_empty() {
            most_bytes / item_bytes
        } else {
            let mut bytes = 0_usize;
            let fits = |element: &&[u8]| {
                bytes = bytes.saturating_add(element.len()).saturating_add(item_bytes);
                bytes <= most_bytes
            };
            self.variable_elements().take_while(fits).count()
        };
        count.max(1).saturating_mul(item_bytes).min(self.items.len())
    }

    /// The elements of variable length, one after the other.
    pub fn variable_elements(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let (items, _) = self.items.as_chunks();
        items.iter().map(|&item| VarSlice::from_item(item).resolve(&self.heap))
    }

    /// Calls `visit` with the bytes of each element of this type.
    ///
    /// # Errors
    /// The first error of `visit`.
    pub fn try_for_each<E>(
        &self,
        data_type: &DataType,
        visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if data_type.is_variable() {
            self.variable_elements().try_for_each(visit)
        } else {
            self.items.chunks(data_type.element_bytes()).try_for_each(visit)
        }
    }

    /// The same elements with items that `make` derives from theirs.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn map_items<E>(self, make: impl FnOnce(Bytes) -> Result<Bytes, E>) -> Result<Self, E> {
        Ok(Self { items: make(self.items)?, heap: self.heap })
    }

    /// Whether each element of this type is this one, bit for bit (for variable length: its bytes).
    #[must_use]
    pub fn are_all(&self, data_type: &DataType, element: &[u8]) -> bool {
        if data_type.is_variable() {
            return self.variable_elements().all(|other| other == element);
        }
        self.items.chunks(element.len().max(1)).all(|other| other == element)
    }

    /// The part of the elements whose items are these bytes.
    #[must_use]
    pub fn slice(&self, items: std::ops::Range<usize>) -> Self {
        Self { items: self.items.slice(items), heap: self.heap.clone() }
    }

    /// The elements, copied where they are a part of `buffer`, so that they keep no larger buffer in memory.
    #[must_use]
    pub fn detached_from(self, buffer: &std::ops::Range<*const u8>) -> Self {
        let own = |part: Bytes| {
            if buffer.contains(&part.as_ptr()) { Bytes::copy_from_slice(&part) } else { part }
        };
        Self { items: own(self.items), heap: own(self.heap) }
    }
}

/// Why elements cannot be assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssembleError {
    /// A window or shape does not fit the buffers: a bug of the caller.
    Geometry,
    /// The elements of variable length have more bytes than the limit.
    HeapTooLarge,
    /// The system has no memory for them.
    NoMemory,
}

/// Elements that are assembled from parts, each place once.
#[derive(Debug)]
pub struct ElementsMut {
    items: BytesMut,
    /// `None` if elements are of a fixed size.
    heap: Option<Vec<u8>>,
    /// The most bytes of the heap: less than of the elements by what those have that share bytes of it.
    heap_limit: usize,
    item_bytes: usize,
}

impl ElementsMut {
    /// Elements of a fixed size, with these initial items.
    #[must_use]
    pub fn fixed(items: Vec<u8>, item_bytes: usize) -> Self {
        Self { items: Bytes::from(items).into(), heap: None, heap_limit: 0, item_bytes }
    }

    /// No elements yet, and memory for elements of a fixed size of this many bytes in all.
    #[must_use]
    pub fn with_capacity(items_bytes: usize, item_bytes: usize) -> Self {
        Self { items: BytesMut::with_capacity(items_bytes), ..Self::fixed(Vec::new(), item_bytes) }
    }

    /// Elements of variable length, with these initial slices, which must be zeros, and at most `heap_limit` bytes in all.
    #[must_use]
    pub fn variable(spans: Vec<u8>, heap_limit: u64) -> Self {
        let heap_limit = usize::try_from(heap_limit.min(u32::MAX.into())).unwrap_or(usize::MAX);
        Self {
            items: Bytes::from(spans).into(),
            heap: Some(Vec::new()),
            heap_limit,
            item_bytes: VAR_SLICE_BYTES,
        }
    }

    /// Elements of this type that others are to replace. Those of variable length may have `heap_limit` bytes in all, with
    /// those that were replaced.
    #[must_use]
    pub fn of(elements: Elements, data_type: &DataType, heap_limit: u64) -> Self {
        let Elements { items, heap } = elements;
        if data_type.is_variable() {
            return Self { heap: Some(heap.into()), ..Self::variable(items.into(), heap_limit) };
        }
        Self::fixed(items.into(), data_type.element_bytes())
    }

    /// The same with every element set to this one (for variable length: its bytes).
    ///
    /// # Errors
    /// [`AssembleError::HeapTooLarge`], [`AssembleError::NoMemory`].
    pub fn filled_with(mut self, element: &[u8]) -> Result<Self, AssembleError> {
        let item = self.item(element)?;
        strided::repeat(&mut self.items, &item);
        Ok(self)
    }

    /// Copies the elements of `window` from a chunk of this shape to their places.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn copy_from(
        &mut self,
        chunk: &Elements,
        shape: &[u64],
        window: &CopyRegion,
    ) -> Result<(), AssembleError> {
        if self.heap.is_none() {
            let fits = copy_box(&chunk.items, shape, window, self.item_bytes, &mut self.items);
            return if fits { Ok(()) } else { Err(AssembleError::Geometry) };
        }
        let (from_at, dimensions) =
            locate_box(window, self.item_bytes, Some((shape, chunk.items.len())), self.items.len())
                .ok_or(AssembleError::Geometry)?;
        self.copy(dimensions, window.out_offset(), chunk, from_at)
    }

    /// Copies `elements` to the places of `window` in these elements, which are a chunk of this shape: the inverse of
    /// [`ElementsMut::copy_from`].
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn place(
        &mut self,
        elements: &Elements,
        shape: &[u64],
        window: &CopyRegion,
    ) -> Result<(), AssembleError> {
        if self.heap.is_none() {
            let fits = place_box(&elements.items, window, self.item_bytes, &mut self.items, shape);
            return if fits { Ok(()) } else { Err(AssembleError::Geometry) };
        }
        let (to_at, dimensions) =
            locate_places(window, self.item_bytes, (shape, self.items.len()), elements.items.len())
                .ok_or(AssembleError::Geometry)?;
        self.copy(dimensions, to_at, elements, window.out_offset())
    }

    /// As [`ElementsMut::fill`], where the limit of elements of variable length counts the bytes for each place.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn fill_each(&mut self, element: &[u8], window: &CopyRegion) -> Result<(), AssembleError> {
        if self.heap.is_some() {
            let count = |range: &AxisRange| usize::try_from(range.count).unwrap_or(usize::MAX);
            let places = window.ranges().map(count).fold(1, usize::saturating_mul);
            let shared = element.len().saturating_mul(places.saturating_sub(1));
            self.heap_limit = self.heap_limit.checked_sub(shared).ok_or(AssembleError::HeapTooLarge)?;
        }
        self.fill(element, window)
    }

    /// Fills the places of `window` with one element (for variable length: its bytes). All places share its bytes.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn fill(&mut self, element: &[u8], window: &CopyRegion) -> Result<(), AssembleError> {
        let item = self.item(element)?;
        if fill_box(&item, window, &mut self.items) { Ok(()) } else { Err(AssembleError::Geometry) }
    }

    /// The item of an element; the bytes of one of variable length are appended to the heap.
    fn item<'a>(&mut self, element: &'a [u8]) -> Result<Cow<'a, [u8]>, AssembleError> {
        Ok(match &mut self.heap {
            None => Cow::Borrowed(element),
            Some(heap) => Cow::Owned(push(heap, element, self.heap_limit)?.to_item().to_vec()),
        })
    }

    /// Copies a box of elements, given as in [`strided::copy`]. The box must lie inside both buffers.
    ///
    /// # Errors
    /// [`AssembleError::HeapTooLarge`], [`AssembleError::NoMemory`].
    pub fn copy(
        &mut self,
        dimensions: Vec<Dimension>,
        to_at: usize,
        from: &Elements,
        from_at: usize,
    ) -> Result<(), AssembleError> {
        let Some(heap) = &mut self.heap else {
            strided::copy(dimensions, self.item_bytes, (&mut self.items, to_at), (&from.items, from_at));
            return Ok(());
        };
        let (items, limit) = (&mut self.items, self.heap_limit);
        let mut outcome = Ok(());
        strided::for_each_pair(dimensions, (to_at, from_at), |to, from_at| {
            if outcome.is_err() {
                return;
            }
            let item = from.items.get(from_at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            match push(heap, VarSlice::from_item(item).resolve(&from.heap), limit) {
                Ok(span) => {
                    if let Some(place) = items.get_mut(to..).and_then(<[u8]>::first_chunk_mut) {
                        *place = span.to_item();
                    }
                }
                Err(error) => outcome = Err(error),
            }
        });
        outcome
    }

    /// Adds zeros until the items are this many bytes.
    pub fn extend_with_zeros(&mut self, items_bytes: usize) {
        if self.items.len() < items_bytes {
            self.items.resize(items_bytes, 0);
        }
    }

    /// Splits elements of a fixed size, and their memory, before this byte of the items, so that two threads can write them.
    /// Returns the second part.
    ///
    /// # Panics
    /// If their memory ends before that byte.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Self {
        Self { items: self.items.split_off(at), ..Self::fixed(Vec::new(), self.item_bytes) }
    }

    /// Appends elements of a fixed size. Parts of one buffer ([`ElementsMut::split_off`]) that are filled are joined without a copy.
    pub fn append(&mut self, next: Self) {
        self.items.unsplit(next.items);
    }

    /// Whether elements are of variable length.
    #[must_use]
    pub fn is_variable(&self) -> bool {
        self.heap.is_some()
    }

    /// The elements.
    #[must_use]
    pub fn freeze(self) -> Elements {
        let mut heap = self.heap.unwrap_or_default();
        // The heap grew by doubling; it may be cached for long, where only its length counts.
        heap.shrink_to_fit();
        Elements { items: self.items.freeze(), heap: heap.into() }
    }
}

/// Appends the bytes of an element to a heap.
fn push(heap: &mut Vec<u8>, element: &[u8], limit: usize) -> Result<VarSlice, AssembleError> {
    if element.len() > limit.saturating_sub(heap.len()) {
        return Err(AssembleError::HeapTooLarge);
    }
    heap.try_reserve(element.len()).map_err(|_refused| AssembleError::NoMemory)?;
    // The limit is within 32 bits.
    let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let span = VarSlice { offset: number(heap.len()), length: number(element.len()) };
    heap.extend_from_slice(element);
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::AxisRange;

    fn texts(texts: &[&str]) -> Elements {
        let mut heap = Vec::new();
        let spans: Vec<u8> = texts
            .iter()
            .flat_map(|text| push(&mut heap, text.as_bytes(), 1 << 20).unwrap().to_item())
            .collect();
        Elements::variable(spans.into(), heap.into())
    }

    fn window(start: u64, count: u64, step: i64) -> CopyRegion {
        CopyRegion::packed(&[AxisRange { start, count, step, keep: true }], VAR_SLICE_BYTES)
    }

    #[test]
    fn texts_are_copied_and_filled_with_their_bytes() {
        let chunk = texts(&["a", "", "ccc", "dé"]);
        let mut response = ElementsMut::variable(vec![0; 3 * VAR_SLICE_BYTES], 100);
        response.fill(b"fill", &window(0, 3, 1)).unwrap();
        response.copy_from(&chunk, &[4], &window(3, 2, -1)).unwrap();
        let response = response.freeze();
        assert_eq!(response.variable_elements().collect::<Vec<_>>(), ["dé".as_bytes(), b"ccc", b"fill"]);
    }

    #[test]
    fn pieces_have_all_elements_in_their_order_and_are_short() {
        let lengths = |elements: Elements, item: usize, most: usize| {
            let pieces: Vec<Elements> = elements.clone().pieces(item, most).collect();
            let items: Vec<u8> = pieces.iter().flat_map(|piece| piece.items().to_vec()).collect();
            assert_eq!(items, elements.items()[..]);
            pieces.iter().map(|piece| piece.items().len() / item).collect::<Vec<_>>()
        };
        let numbers = || Elements::fixed(vec![7; 10].into());
        assert_eq!(lengths(numbers(), 2, 6), [3, 2]);
        assert_eq!(lengths(numbers(), 2, 1), [1; 5]);
        assert_eq!(lengths(numbers(), 2, usize::MAX), [5]);
        let some = || texts(&["a", "bbbbbbbb", "", "cc", "d"]);
        assert_eq!(lengths(some(), VAR_SLICE_BYTES, 2 * VAR_SLICE_BYTES + 2), [1, 1, 2, 1]);
        assert_eq!(lengths(some(), VAR_SLICE_BYTES, usize::MAX), [5]);
        assert_eq!(lengths(Elements::default(), 2, 6), [0; 0]);
    }

    #[test]
    fn the_limit_counts_a_text_for_each_of_the_places_that_it_fills() {
        let filled = |bytes: usize, limit: u64| {
            let mut out = ElementsMut::variable(vec![0; 3 * VAR_SLICE_BYTES], limit);
            out.fill_each(&vec![b'x'; bytes], &window(0, 3, 1))?;
            out.copy_from(&texts(&["ab"]), &[1], &window(0, 1, 1))?;
            Ok(out.freeze().heap().len())
        };
        assert_eq!(filled(10, 32), Ok(12));
        assert_eq!(filled(10, 31), Err(AssembleError::HeapTooLarge));
        assert_eq!(filled(usize::from(u16::MAX), 1 << 17), Err(AssembleError::HeapTooLarge));
        assert_eq!(filled(0, 2), Ok(2));
    }

    #[test]
    fn texts_are_placed_among_others_and_one_text_in_many_places() {
        let text = DataType::String;
        let mut chunk = ElementsMut::of(texts(&["a", "b", "c", "d", "e"]), &text, 100);
        chunk.place(&texts(&["x", "yy"]), &[5], &window(1, 2, 2)).unwrap();
        let all_to_one = CopyRegion::packed(&[AxisRange { start: 4, count: 1, step: 1, keep: true }], 0);
        chunk.place(&texts(&["z"]), &[5], &all_to_one).unwrap();
        let chunk = chunk.freeze();
        assert_eq!(chunk.variable_elements().collect::<Vec<_>>(), [&b"a"[..], b"x", b"c", b"yy", b"z"]);
        let mut bytes = ElementsMut::of(Elements::fixed(Bytes::from_static(&[1; 6])), &DataType::UInt16, 0);
        let everywhere = CopyRegion::packed(&[AxisRange::full(3)], 0);
        bytes.place(&Elements::fixed(Bytes::from_static(&[7, 8])), &[3], &everywhere).unwrap();
        assert_eq!(bytes.freeze().items().as_ref(), [7, 8, 7, 8, 7, 8]);
    }

    #[test]
    fn elements_of_a_fixed_size_have_no_heap() {
        let mut response = ElementsMut::fixed(vec![0; 4], 2);
        let ranges = [AxisRange { start: 1, count: 2, step: 1, keep: true }];
        let chunk = Elements::fixed(Bytes::from_static(&[1, 2, 3, 4, 5, 6]));
        response.copy_from(&chunk, &[3], &CopyRegion::packed(&ranges, 2)).unwrap();
        assert_eq!(response.freeze(), Elements::fixed(Bytes::from_static(&[3, 4, 5, 6])));
    }

    #[test]
    fn filled_parts_of_one_buffer_are_joined_without_a_copy() {
        let mut elements = ElementsMut::with_capacity(6, 2);
        let mut second = elements.split_off(4);
        elements.extend_with_zeros(4);
        second.extend_with_zeros(2);
        second.fill(&[7, 8], &CopyRegion::packed(&[AxisRange::full(1)], 2)).unwrap();
        let (first_at, second_at) = (elements.items.as_ptr(), second.items.as_ptr());
        elements.append(second);
        let joined = elements.freeze();
        assert_eq!(joined.items().as_ref(), [0, 0, 0, 0, 7, 8]);
        assert_eq!([joined.items().as_ptr(), joined.items()[4..].as_ptr()], [first_at, second_at]);
    }

    #[test]
    fn text_over_the_limit_is_rejected() {
        let chunk = texts(&["aaaa", "bbbb"]);
        let mut response = ElementsMut::variable(vec![0; 2 * VAR_SLICE_BYTES], 7);
        assert_eq!(response.copy_from(&chunk, &[2], &window(0, 2, 1)), Err(AssembleError::HeapTooLarge));
        assert_eq!(response.fill(b"12345678", &window(0, 1, 1)), Err(AssembleError::HeapTooLarge));
    }

    #[test]
    fn a_slice_outside_the_heap_is_empty() {
        let spans = [VarSlice { offset: 1, length: 5 }, VarSlice { offset: u32::MAX, length: u32::MAX }];
        let items: Vec<u8> = spans.iter().flat_map(|span| span.to_item()).collect();
        let elements = Elements::variable(items.into(), Bytes::from_static(b"abc"));
        assert!(elements.variable_elements().all(<[u8]>::is_empty));
    }

    #[test]
    fn a_window_that_does_not_fit_is_rejected() {
        let mut response = ElementsMut::variable(vec![0; VAR_SLICE_BYTES], 100);
        assert_eq!(response.copy_from(&texts(&["a"]), &[1], &window(0, 2, 1)), Err(AssembleError::Geometry));
        assert_eq!(response.fill(b"a", &window(0, 2, 1)), Err(AssembleError::Geometry));
    }
}
