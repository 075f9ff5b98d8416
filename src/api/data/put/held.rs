//! Bodies that are in memory as a whole before anything is written: JSON, Arrow, elements of variable length, and bodies with a digest.

use axum::body::Body;
use axum::http::request::Parts;
use bytes::Bytes;

use super::body_format::BodyFormat;
use super::outcome::{WriteProgress, too_long_to_hold, unparsed};
use super::request::PutRequest;
use super::streamed;
use crate::api::held::Held;
use crate::chunk::Elements;
use crate::error::ErrorClass;
use crate::http::body::collect;
use crate::http::digest::Checking;
use crate::http::problem::Problem;
use crate::metadata::{DataType, Endianness};
use crate::parse::{
    JsonElements, NpyContents, ParseError, is_bounded_by_type, most_expanded_bytes, most_json_bytes,
    parse_arrow, parse_json, parse_length_prefixed, parse_npy_head, parse_padded,
};
use crate::render::Conversion;
use crate::services::state::AppState;

/// Bytes of memory for each byte of an element's JSON.
pub(crate) const JSON_RATIO: u64 = 64;

/// The most bytes that the body and its elements take in memory.
pub(super) fn most_bytes(request: &PutRequest, max_whole: u64) -> u64 {
    let body = request.declared.unwrap_or(max_whole).min(max_whole);
    // A value of JSON takes many times its text in memory, and an element of these types has any number of them.
    if request.format == BodyFormat::Json && !is_bounded_by_type(request.data_type()) {
        return body.saturating_mul(JSON_RATIO);
    }
    // Elements grow by doubling while they are parsed.
    let of_body = match request.format {
        BodyFormat::Json => most_json_bytes(request.data_type(), body),
        // The texts of elements of a fixed size are as short in a body as they are.
        BodyFormat::Arrow if !request.data_type().is_variable() => most_expanded_bytes(body),
        BodyFormat::Npy | BodyFormat::Bytes | BodyFormat::Arrow => body.saturating_mul(8),
    };
    let elements = request.element_bytes().min(of_body).saturating_mul(2);
    body.saturating_add(elements)
}

/// Takes the body, and writes its elements.
///
/// # Errors
/// The problem of the body or of the write.
pub(super) async fn run(
    request: &PutRequest,
    state: &AppState,
    head: &Parts,
    body: Body,
    permit: &Held,
    progress: &mut WriteProgress,
) -> Result<(), Problem> {
    let checking = Checking::from_headers(&head.headers, &state.engine.cpu)?;
    let limit = state.engine.writer.options().max_whole_size;
    let too_long = || too_long_to_hold(ErrorClass::TooLarge.as_str(), None, limit);
    let body = collect(&state.options, request.declared, limit, Some(checking), body, too_long).await?;
    let parse = ParseBody {
        format: request.format,
        data_type: request.data_type().clone(),
        endian: request.endian,
        may_cast: request.may_cast,
        shape: request.plan.subset().shape(),
        elements: request.plan.elements(),
    };
    let parsed = state.engine.cpu.run(move || parse.elements(&body)).await?.map_err(unparsed)?;
    let (elements, is_same_everywhere) = match parsed {
        JsonElements::Each(elements) => (elements, false),
        JsonElements::One(element) => (element, true),
    };
    if request.plan.elements() == 0 {
        return Ok(());
    }
    let whole = request.plan.subset().clone();
    request.write(state, whole, elements, is_same_everywhere, permit, progress).await
}

/// How a body becomes elements.
pub(crate) struct ParseBody {
    pub(crate) format: BodyFormat,
    pub(crate) data_type: DataType,
    pub(crate) endian: Endianness,
    pub(crate) may_cast: bool,
    pub(crate) shape: Vec<u64>,
    pub(crate) elements: u64,
}

impl ParseBody {
    /// The elements of a whole body.
    ///
    /// # Errors
    /// [`ParseError`].
    pub(crate) fn elements(&self, body: &Bytes) -> Result<JsonElements, ParseError> {
        match self.format {
            BodyFormat::Json => parse_json(&self.data_type, &self.shape, body),
            BodyFormat::Arrow => parse_arrow(&self.data_type, &self.shape, body).map(JsonElements::Each),
            BodyFormat::Bytes if self.data_type.is_variable() => {
                parse_length_prefixed(&self.data_type, self.elements, body).map(JsonElements::Each)
            }
            BodyFormat::Bytes => {
                self.items(NpyContents::Same(self.endian), body.clone()).map(JsonElements::Each)
            }
            BodyFormat::Npy => {
                let malformed = || ParseError::Malformed {
                    format: "an npy file",
                    reason: "it ends in its head".to_owned(),
                };
                let head = parse_npy_head(body)?.ok_or_else(malformed)?;
                let contents = head.check(&self.data_type, &self.shape, self.may_cast)?;
                self.items(contents, body.slice(head.bytes..)).map(JsonElements::Each)
            }
        }
    }

    /// The elements of a whole body without its head.
    fn items(&self, contents: NpyContents, items: Bytes) -> Result<Elements, ParseError> {
        let from = streamed::source_type(&contents, &self.data_type);
        let expected = self.elements.saturating_mul(from.element_bytes() as u64);
        if items.len() as u64 != expected {
            return Err(ParseError::Length { given: format!("{} bytes", items.len()), expected });
        }
        if let NpyContents::Padded(padded, order) = contents {
            let items = Conversion::whole(&padded, order).convert(items);
            return parse_padded(&self.data_type, &items, padded.element_bytes());
        }
        streamed::canonical(&contents, &self.data_type, items, 0)
    }
}
