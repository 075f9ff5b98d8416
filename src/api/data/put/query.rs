//! [`PutQuery`]: the query parameters of a write of elements.

use axum::http::Uri;
use utoipa::IntoParams;

use crate::api::data::query::parse_endian;
use crate::api::query_params::{KnownParams, ParamError, ParseParams, QueryParams, once, pairs};
use crate::api::selection::{ArrayParams, SelectionParams};
use crate::http::switch::is_on;
use crate::metadata::Endianness;

/// The parameters of a body.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct BodyParams {
    /// Format of the body: `npy`, `bytes`, `json` or, except of an append, `arrow`. Takes precedence over `Content-Type`; if neither
    /// names a format, the response is 415. Alias: `f`.
    pub(super) format: Option<String>,
    /// Byte order of a body in the format `bytes`: `little` (default) or `big`.
    #[param(value_type = Option<String>)]
    endian: Option<Endianness>,
    /// `safe`: numbers of another type are cast to the array's, if nothing is lost by it (npy).
    cast: Option<String>,
    /// The npy file of the body becomes a new array. The parameter needs no value; `false` and `0` switch it off.
    create: Option<String>,
}

impl QueryParams for BodyParams {
    const ALIASES: &'static [(&'static str, &'static str)] = &[("f", "format")];
}

impl ParseParams for BodyParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            "format" => once("format", &mut self.format, value.to_owned()),
            "endian" => once("endian", &mut self.endian, parse_endian(value)?),
            "cast" if value == "safe" => once("cast", &mut self.cast, value.to_owned()),
            "cast" => Err(ParamError::value("cast", value, "`safe`")),
            "create" => once("create", &mut self.create, value.to_owned()),
            _ => Ok(false),
        }
    }
}

impl BodyParams {
    /// The byte order of numbers.
    pub(crate) fn endian(&self) -> Endianness {
        self.endian.unwrap_or_default()
    }

    /// Whether the body becomes a new array.
    pub(super) fn creates(&self) -> bool {
        self.create.as_deref().is_some_and(is_on)
    }

    /// Whether numbers may be cast.
    pub(crate) fn may_cast(&self) -> bool {
        self.cast.is_some()
    }
}

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub(super) struct PutQuery {
    pub(super) selection: SelectionParams,
    pub(super) array: ArrayParams,
    pub(super) body: BodyParams,
}

impl PutQuery {
    /// Parses the query of a URL.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(super) fn from_uri(uri: &Uri) -> Result<Self, ParamError> {
        let mut query = Self::default();
        for (name, value) in pairs(uri)? {
            let Self { selection, array, body } = &mut query;
            let is_known =
                selection.take(&name, &value)? || array.take(&name, &value)? || body.take(&name, &value)?;
            if !is_known {
                let known =
                    KnownParams::default().and::<SelectionParams>().and::<ArrayParams>().and::<BodyParams>();
                return Err(ParamError::unknown(&name, &known));
            }
        }
        Ok(query)
    }
}
