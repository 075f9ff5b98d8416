//! [`AppendTarget`]: an array to which elements are appended, and how a body becomes its elements.

use std::sync::Arc;

use bytes::Bytes;

use super::query::AppendQuery;
use super::rows::shape_of;
use crate::api::data::put::{BodyFormat, JSON_RATIO, ParseBody};
use crate::array::{Array, OpenNode};
use crate::chunk::Elements;
use crate::http::problem::Problem;
use crate::metadata::DataType;
use crate::parse::{JsonElements, ParseError, is_bounded_by_type, most_json_bytes, parse_npy_head};
use crate::services::state::AppState;
use crate::write::{Append, WriteError, WriteOptions};

/// How often the elements of a body are in memory, beside the body: parsed, which grows by doubling, and joined with others.
const COPIES: u64 = 3;

/// An array to which elements are appended.
#[derive(Clone)]
pub(super) struct AppendTarget {
    pub(super) node: Arc<OpenNode>,
    array: Arc<Array>,
    pub(super) axis: usize,
}

impl AppendTarget {
    /// The array of a node.
    ///
    /// # Errors
    /// 400 for a group or a dimension that is not there, 501 for an array that another one declares, 409 for another shape than
    /// is expected.
    pub(super) fn new(node: Arc<OpenNode>, query: &AppendQuery) -> Result<Self, Problem> {
        let array = Arc::clone(node.array().map_err(|error| {
            let detail = format!(
                "{error}; to append to several arrays of a group, send a part for each of them (`multipart/form-data`)"
            );
            Problem::from(error).detail(detail)
        })?);
        if node.dependent.is_some() {
            return Err(WriteError::Declared { path: array.path().clone() }.into());
        }
        query.array.check_shape(&array.metadata().shape)?;
        let axis = query.axis(array.metadata()).map_err(|error| {
            let detail = format!("`append`: {error}");
            Problem::from(error).detail(detail)
        })?;
        Ok(Self { node, array, axis })
    }

    fn data_type(&self) -> &DataType {
        &self.array.metadata().data_type
    }

    /// The longest body of a format, which is in memory as a whole, with the setting that says so.
    pub(super) fn limit(&self, format: BodyFormat, options: &WriteOptions) -> (u64, &'static str) {
        if format == BodyFormat::Json || self.data_type().is_variable() {
            (options.max_whole_size, "write.max_whole_size")
        } else {
            longest_body(options)
        }
    }

    /// The most bytes of memory that an append of a body takes.
    pub(super) fn most_bytes(&self, state: &AppState, format: BodyFormat, body: u64) -> u64 {
        self.parsed_bytes(format, body).saturating_add(self.working_bytes(state, u64::MAX))
    }

    /// The most bytes that are stored and encoded at a time where this many indices are appended.
    pub(super) fn working_bytes(&self, state: &AppState, length: u64) -> u64 {
        let grid = self.array.grid();
        let chunk = grid.first_chunk_shape();
        // The first index may be the last one of a chunk.
        let along = length.div_ceil(chunk.get(self.axis).copied().unwrap_or(1).max(1)).saturating_add(1);
        let across = grid.grid_shape().into_iter().enumerate().filter(|(axis, _)| *axis != self.axis);
        let values = across.fold(along, |product, (_, chunks)| product.saturating_mul(chunks));
        state.engine.writer.working_bytes_of(&self.array, values)
    }

    /// The most bytes of a body and its elements.
    pub(super) fn parsed_bytes(&self, format: BodyFormat, body: u64) -> u64 {
        let of_elements = match format {
            BodyFormat::Json if !is_bounded_by_type(self.data_type()) => body.saturating_mul(JSON_RATIO),
            BodyFormat::Json => most_json_bytes(self.data_type(), body),
            BodyFormat::Npy | BodyFormat::Bytes | BodyFormat::Arrow => body,
        };
        body.saturating_add(of_elements.saturating_mul(COPIES))
    }

    /// What a body appends.
    ///
    /// # Errors
    /// [`ParseError`] if it is not the elements of an end of the array.
    pub(super) fn parse(
        &self,
        format: BodyFormat,
        query: &AppendQuery,
        body: &Bytes,
    ) -> Result<Append, ParseError> {
        let metadata = self.array.metadata();
        let shape = shape_of(format, body, metadata, self.axis)?;
        let elements = self.elements(format, query, body, &shape)?;
        Ok(Append { axis: self.axis, shape, elements, at: query.at(), key: None })
    }

    fn elements(
        &self,
        format: BodyFormat,
        query: &AppendQuery,
        body: &Bytes,
        shape: &[u64],
    ) -> Result<Elements, ParseError> {
        let elements = shape.iter().fold(1_u64, |product, length| product.saturating_mul(*length));
        // An npy file may lack the dimension; its shape was compared.
        let head = if format == BodyFormat::Npy { parse_npy_head(body)? } else { None };
        let parse = ParseBody {
            format,
            data_type: self.data_type().clone(),
            endian: query.body.endian(),
            may_cast: query.body.may_cast(),
            shape: head.map_or_else(|| shape.to_vec(), |head| head.shape),
            elements,
        };
        match parse.elements(body)? {
            JsonElements::Each(elements) => Ok(elements),
            JsonElements::One(_) => Err(ParseError::Malformed {
                format: "nested lists",
                reason: "one element for all places says not how many are appended".to_owned(),
            }),
        }
    }
}

/// The longest body of elements that are as long in memory, with the setting that says so: the larger one.
pub(super) fn longest_body(options: &WriteOptions) -> (u64, &'static str) {
    (options.band_size, "write.band_size").max((options.max_whole_size, "write.max_whole_size"))
}
