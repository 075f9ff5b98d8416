//! The memory that a picture takes, known before any element is read.

use super::range::RangeSource;
use super::sample;
use super::scene::{Drawing, Scene};
use crate::array::Plan;
use crate::render::raster::{Outside, Scale, most_file_bytes, waiting_bytes, writing_bytes};
use crate::services::response_cache::MAX_SMALL_RESPONSE_BYTES;

/// A picture with more pixels is drawn and written while it is sent.
const SHORT_PIXELS: u64 = 1 << 20;

impl Scene {
    /// Whether the picture is drawn and written while it is sent, because of its number of pixels.
    pub(crate) fn is_long(&self) -> bool {
        self.square.is_none() && self.pixels() > SHORT_PIXELS
    }

    /// Whether the picture can be drawn as its elements are read: its range is known before, and the elements come in the order
    /// of its rows.
    pub(crate) fn is_drawn_in_bands(&self) -> bool {
        let [plane] = &self.planes[..] else { return false };
        self.conversion.is_none()
            && !self.flips_rows
            && !self.layout.is_transposed()
            && self.drawing != Drawing::Composite
            && matches!(plane.range, RangeSource::Known(..) | RangeSource::Sample)
    }

    /// Whether every pixel stands for a number and is opaque.
    pub(crate) fn is_complete(&self) -> bool {
        let has_outside = [self.below, self.above].iter().any(|outside| *outside != Outside::Extend);
        let is_complete = self.decoding.is_complete() && self.scale == Scale::Linear && self.square.is_none();
        match self.drawing {
            Drawing::Gray16 | Drawing::Composite => is_complete,
            // A place in a palette: there are as many colours as a palette can have.
            Drawing::Mapped(_) => is_complete && !has_outside,
            Drawing::Categories(_) => false,
        }
    }

    /// The memory in bytes that the picture takes at most.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let sample = self.sample_bytes();
        let item = self.decoding.data_type().element_bytes() as u64;
        if self.is_long() && self.is_drawn_in_bands() {
            let read = self.planes.iter().map(|plane| self.banded_bytes(&plane.plan, item, sample));
            return read.max().unwrap_or(0);
        }
        let read = self.planes.iter().map(|plane| {
            let plan = &plane.plan;
            // Elements that are read at once are the plane itself.
            let parts = if plan.is_read_at_once() { plan.reduced_source_bytes() } else { read_bytes(plan) };
            parts.saturating_add(if self.conversion.is_some() { plan.response_bytes() } else { 0 })
        });
        let has_numbers =
            |source: &RangeSource| matches!(source, RangeSource::Slice | RangeSource::Percentiles(..));
        let numbers = if self.planes.iter().any(|plane| has_numbers(&plane.range)) { 8 } else { 0 };
        let per_pixel = item * self.planes.len() as u64 + numbers;
        let drawn = if self.is_long() {
            self.sending_bytes()
        } else {
            // What is drawn, what is written of it, the same compressed, and the file.
            let drawn = if self.has_colors() { 24 } else { 4 + 3 * self.pixel_bytes() };
            self.pixels().saturating_mul(drawn)
        };
        let held = read.max().unwrap_or(0).saturating_add(self.pixels().saturating_mul(per_pixel));
        held.saturating_add(drawn).saturating_add(sample)
    }

    /// The memory in bytes that a long picture takes at most from when its beginning is known: without the elements that its planes
    /// were read from, if all are in memory.
    pub(crate) fn begun_bytes(&self) -> u64 {
        if self.is_drawn_in_bands() {
            return self.memory_bytes();
        }
        let item = self.decoding.data_type().element_bytes() as u64;
        let planes = self.pixels().saturating_mul(item * self.planes.len() as u64);
        planes.saturating_add(self.sending_bytes())
    }

    /// The memory in bytes of a long picture that is drawn as its elements are read.
    fn banded_bytes(&self, plan: &Plan, item: u64, sample: u64) -> u64 {
        let (read, sending, band) = (read_bytes(plan), self.sending_bytes(), plan.segment_bytes());
        if plan.is_read_at_once() {
            // They may be read together with the versions of their chunks, before the sample.
            return read.saturating_add(sample).saturating_add(sending);
        }
        if plan.reduction().is_some() {
            return read.max(sample).saturating_add(sending);
        }
        // While there are two bands, the pixels of one of them do not wait yet.
        let undrawn = if self.is_known() { 0 } else { waiting_bytes(band / item.max(1)) };
        let both = read.saturating_add(sending.saturating_sub(undrawn));
        both.max(band.saturating_add(sending)).max(sample)
    }

    /// Whether it is known before how pixels are written.
    fn is_known(&self) -> bool {
        self.is_complete() || self.drawing == Drawing::Gray16
    }

    /// The memory in bytes that the sample takes from which the range comes, if it does.
    pub(crate) fn sample_bytes(&self) -> u64 {
        let is_sampled = self.planes.iter().any(|plane| plane.range == RangeSource::Sample);
        if is_sampled { sample::memory_bytes(&self.subject.sampled) } else { 0 }
    }

    /// The memory in bytes that a long picture takes once all its elements were drawn: pixels that are not yet written, and pieces
    /// of the file.
    pub(crate) fn sending_bytes(&self) -> u64 {
        let waiting = if self.is_known() { 0 } else { waiting_bytes(self.pixels()) };
        let written = writing_bytes(self.size().0).saturating_add(2 * MAX_SMALL_RESPONSE_BYTES);
        waiting.saturating_add(written)
    }

    /// The bytes of the file, at most: known before anything is drawn.
    pub(crate) fn file_bytes(&self) -> u64 {
        let (width, height) = self.square.map_or_else(|| self.size(), |side| (side.into(), side.into()));
        most_file_bytes(width, height, self.pixel_bytes())
    }

    /// The pixels of the picture.
    fn pixels(&self) -> u64 {
        let (width, height) = self.square.map_or_else(|| self.size(), |side| (side.into(), side.into()));
        width.saturating_mul(height)
    }

    /// The bytes of a pixel in the file, at most.
    fn pixel_bytes(&self) -> u64 {
        match self.drawing {
            Drawing::Gray16 if self.is_complete() => 2,
            Drawing::Mapped(_) if self.is_complete() => 1,
            _ => 4,
        }
    }

    /// Whether pixels are drawn as colours, and not as places in a colormap or shades.
    fn has_colors(&self) -> bool {
        matches!(self.drawing, Drawing::Categories(_) | Drawing::Composite)
    }
}

/// The bytes in memory while the elements of a plan are read: a band that is drawn and the next one, with the stored elements
/// that these are made of.
fn read_bytes(plan: &Plan) -> u64 {
    let bands = plan.response_bytes().min(plan.segment_bytes().saturating_mul(2));
    bands.saturating_add(plan.reduced_source_bytes())
}
