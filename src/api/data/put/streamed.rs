//! Bodies of known length (npy, plain bytes): taken band by band.
//!
//! The last band is written only after the body has ended where it should, so that a body of one band is written as a whole or not
//! at all.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::stream::TryStreamExt;

use super::body_format::BodyFormat;
use super::outcome::{WriteProgress, unparsed};
use super::request::PutRequest;
use crate::api::held::Held;
use crate::chunk::Elements;
use crate::http::body::upload;
use crate::http::options::HttpOptions;
use crate::http::problem::Problem;
use crate::metadata::DataType;
use crate::parse::{
    MAX_NPY_HEAD_BYTES, NpyContents, NpyHead, ParseError, SafeCast, check_canonical, parse_npy_head,
};
use crate::render::Conversion;
use crate::services::state::AppState;
use crate::store::{StoreError, ValueStream};

/// The most bytes that a body takes in memory: a band as it comes, and in canonical form.
pub(super) fn most_bytes(request: &PutRequest, band_bytes: u64) -> u64 {
    let band = request.element_bytes().min(band_bytes);
    let is_converted =
        request.format == BodyFormat::Npy || request.endian != crate::metadata::Endianness::Little;
    if is_converted { band.saturating_mul(2) } else { band }
}

/// Takes the body, and writes its elements.
///
/// # Errors
/// The problem of the body or of the first write that failed.
pub(super) async fn run(
    request: &PutRequest,
    state: &AppState,
    body: Body,
    permit: &Held,
    progress: &mut WriteProgress,
) -> Result<(), Problem> {
    // No type that numpy casts safely is longer than what it is cast to.
    let limit = request.element_bytes().saturating_add(MAX_NPY_HEAD_BYTES as u64);
    let options = HttpOptions { max_value_size: limit, ..(*state.options).clone() };
    let (upload, stream) = upload(&options, request.declared);
    let (sent, taken) = futures::join!(upload.run(body), take(request, state, stream, permit, progress));
    match (sent, taken) {
        // What the client did wrong says more than that the stream ended.
        (Err(problem), Err(Failure::Body(_))) => Err(problem),
        (_, Err(failure)) => Err(failure.into()),
        (sent, Ok(())) => sent,
    }
}

/// Why a body was not taken to its end.
enum Failure {
    /// The body ended early, or with an error.
    Body(StoreError),
    /// It is not the elements of the selection.
    Parse(ParseError),
    /// They could not be written, or not be prepared.
    Other(Problem),
}

impl From<ParseError> for Failure {
    fn from(error: ParseError) -> Self {
        Self::Parse(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Body(error)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Body(error) => error.into(),
            Failure::Parse(error) => unparsed(error),
            Failure::Other(problem) => problem,
        }
    }
}

async fn take(
    request: &PutRequest,
    state: &AppState,
    stream: ValueStream,
    permit: &Held,
    progress: &mut WriteProgress,
) -> Result<(), Failure> {
    let mut body = BodyReader { stream, piece: Bytes::new(), read: 0 };
    let contents = match request.format {
        BodyFormat::Npy => {
            let head = body.npy_head().await?;
            head.check(request.data_type(), &request.plan.subset().shape(), request.may_cast)?
        }
        BodyFormat::Bytes | BodyFormat::Json | BodyFormat::Arrow => NpyContents::Same(request.endian),
    };
    let from = source_type(&contents, request.data_type());
    let item = from.element_bytes() as u64;
    let total = request.plan.elements().saturating_mul(item);
    let start = body.read;
    let mut first = 0_u64;
    let mut bands = request.plan.bands().peekable();
    while let Some(band) = bands.next() {
        let elements = u64::try_from(band.elements()).unwrap_or(u64::MAX);
        let items = body.take(elements.saturating_mul(item), start, total).await?;
        if bands.peek().is_none() {
            body.expect_end(start, total).await?;
        }
        let (contents, data_type) = (contents.clone(), request.data_type().clone());
        let bytes = items.len() as u64;
        let converted = state
            .engine
            .cpu
            .run_or_inline(bytes, move || canonical(&contents, &data_type, items, first))
            .await;
        let converted = converted.map_err(|error| Failure::Other(error.into()))??;
        request.write(state, band, converted, false, permit, progress).await.map_err(Failure::Other)?;
        first = first.saturating_add(elements);
    }
    if first == 0 {
        body.expect_end(start, total).await?;
    }
    Ok(())
}

/// The type of the elements in a body.
pub(super) fn source_type<'a>(contents: &'a NpyContents, data_type: &'a DataType) -> &'a DataType {
    match contents {
        NpyContents::Same(_) => data_type,
        NpyContents::Numbers(other, _) | NpyContents::Padded(other, _) => other,
    }
}

/// Elements of a body in canonical form, of which the first has this number.
///
/// # Errors
/// [`ParseError`] if one of them is no element of the array's type.
pub(super) fn canonical(
    contents: &NpyContents,
    data_type: &DataType,
    items: Bytes,
    first: u64,
) -> Result<Elements, ParseError> {
    let (NpyContents::Same(order) | NpyContents::Numbers(_, order) | NpyContents::Padded(_, order)) =
        contents;
    let from = source_type(contents, data_type);
    // Reversing units twice changes nothing: this is the inverse of what responses do.
    let items = Conversion::whole(from, *order).convert(items);
    let items = match contents {
        NpyContents::Same(_) => items,
        NpyContents::Numbers(..) | NpyContents::Padded(..) => {
            let cast = SafeCast::new(from, data_type).ok_or_else(|| ParseError::DataType {
                given: from.name(),
                expected: data_type.name(),
                advice: "cast the elements before sending",
            })?;
            cast.cast(&items)?
        }
    };
    check_canonical(data_type, &items, first)?;
    Ok(Elements::fixed(items))
}

/// A body that is read in parts of chosen lengths.
struct BodyReader {
    stream: ValueStream,
    /// Bytes that have come and are not taken.
    piece: Bytes,
    /// Bytes that were taken.
    read: u64,
}

impl BodyReader {
    /// The next bytes of the elements, which are `total` and began at `start`.
    async fn take(&mut self, bytes: u64, start: u64, total: u64) -> Result<Bytes, Failure> {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut taken = BytesMut::new();
        loop {
            let missing = length - taken.len();
            if taken.is_empty() && self.piece.len() >= missing {
                self.read = self.read.saturating_add(bytes);
                return Ok(self.piece.split_to(missing));
            }
            if taken.is_empty() {
                // The band is charged by its length.
                taken.reserve(length);
            }
            let piece = self.piece.split_to(missing.min(self.piece.len()));
            taken.extend_from_slice(&piece);
            if taken.len() == length {
                self.read = self.read.saturating_add(bytes);
                return Ok(taken.freeze());
            }
            let Some(piece) = self.stream.try_next().await? else {
                let given = self.read.saturating_sub(start).saturating_add(taken.len() as u64);
                return Err(ParseError::Length { given: format!("{given} bytes"), expected: total }.into());
            };
            self.piece = piece;
        }
    }

    /// Waits for the end of the body.
    async fn expect_end(&mut self, start: u64, total: u64) -> Result<(), Failure> {
        while self.piece.is_empty() {
            match self.stream.try_next().await? {
                Some(piece) => self.piece = piece,
                None => return Ok(()),
            }
        }
        let at_least = self.read.saturating_sub(start).saturating_add(self.piece.len() as u64);
        Err(ParseError::Length { given: format!("{at_least} bytes or more"), expected: total }.into())
    }

    /// The head of an npy file.
    async fn npy_head(&mut self) -> Result<NpyHead, Failure> {
        let mut start = BytesMut::new();
        loop {
            start.extend_from_slice(&self.piece);
            if let Some(head) = parse_npy_head(&start)? {
                self.piece = start.freeze().split_off(head.bytes);
                self.read = head.bytes as u64;
                return Ok(head);
            }
            let Some(piece) = self.stream.try_next().await? else {
                let reason = "it ends in its head".to_owned();
                return Err(ParseError::Malformed { format: "an npy file", reason }.into());
            };
            self.piece = piece;
        }
    }
}
