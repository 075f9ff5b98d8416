//! [`Rendering`]: how elements are written, and [`contents_of`]: the data type and the shape of what is written.

use axum::http::HeaderValue;

use crate::array::Array;
use crate::chunk::{AxisPositions, AxisRange, Subset};
use crate::render::{Conversion, FormatOptions, Heading, ResultSchema};
use crate::views::rechunk::DataTypeSpec;

/// How elements are written.
#[derive(Clone, Debug)]
pub(crate) struct Rendering {
    pub(crate) style: FormatOptions,
    /// The names of the requested fields; `None` for whole elements.
    pub(crate) fields: Option<String>,
    /// Whether CSV starts with a header line.
    pub(crate) header: bool,
    /// Whether elements are decoded by the CF attributes.
    pub(crate) decodes: bool,
    /// The data type to which numbers are cast at last.
    pub(crate) dtype: Option<DataTypeSpec>,
}

impl Rendering {
    /// The media type of a response. That of CSV says whether there is a header line.
    pub(super) fn media_type(&self) -> HeaderValue {
        HeaderValue::from_static(match (self.style.format.header_line, self.header) {
            (Some(header), true) => header.present,
            (Some(header), false) => header.absent,
            (None, _) => self.style.format.media_type,
        })
    }
}

/// The schema of a response with a subset of an array.
pub(super) fn contents_of(
    array: &Array,
    subset: &Subset,
    rendering: &Rendering,
    conversion: &Conversion,
) -> ResultSchema {
    let inner = conversion.inner_shape();
    let kept = || subset.axes().iter().filter(|axis| axis.keep);
    let dimension_names = array.metadata().dimension_names.as_ref().map(|names| {
        let kept = names.iter().zip(subset.axes()).filter(|(_, axis)| axis.keep);
        kept.map(|(name, _)| name.clone()).chain(inner.iter().map(|_| None)).collect()
    });
    let heading = (rendering.header && rendering.style.format.header_line.is_some()).then(|| {
        let name = rendering.fields.as_deref().unwrap_or_else(|| array.path().name());
        let name = if name.is_empty() { array.mount() } else { name }.to_owned();
        let whole = |length: &u64| AxisRange::full(*length);
        let columns = inner.last().map(whole).or_else(|| kept().next_back().copied());
        Heading { name, columns: AxisPositions::Range(columns.unwrap_or(AxisRange::full(1))) }
    });
    let shape = [&subset.shape(), inner].concat();
    ResultSchema { data_type: conversion.data_type().clone(), shape, dimension_names, heading }
}
