//! [`AppendQuery`]: the query parameters of an append.

use axum::http::Uri;
use utoipa::IntoParams;

use crate::api::data::put::{BodyFormat, BodyParams};
use crate::api::dimension_list::{DimensionError, dimension};
use crate::api::query_params::{KnownParams, ParamError, ParseParams, QueryParams, once, pairs};
use crate::api::selection::ArrayParams;
use crate::http::append_query::APPEND;
use crate::metadata::ArrayMetadata;

/// The parameters of an append.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AppendParams {
    /// The dimension that grows, by its name or number.
    #[param(required = true)]
    append: Option<String>,
    /// The length that the dimension must have before; with another one nothing is written (409 `not-the-end`).
    at: Option<u64>,
}

impl QueryParams for AppendParams {}

impl ParseParams for AppendParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            APPEND => once(APPEND, &mut self.append, value.to_owned()),
            "at" => {
                let at = value.parse().map_err(|_error| ParamError::value("at", value, "a length from 0 on"));
                once("at", &mut self.at, at?)
            }
            _ => Ok(false),
        }
    }
}

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub(super) struct AppendQuery {
    append: AppendParams,
    pub(super) array: ArrayParams,
    pub(super) body: BodyParams,
}

impl AppendQuery {
    /// Parses the query of a URL.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(super) fn from_uri(uri: &Uri) -> Result<Self, ParamError> {
        let mut query = Self::default();
        for (name, value) in pairs(uri)? {
            let Self { append, array, body } = &mut query;
            let is_known =
                append.take(&name, &value)? || array.take(&name, &value)? || body.take(&name, &value)?;
            if !is_known {
                let known =
                    KnownParams::default().and::<AppendParams>().and::<ArrayParams>().and::<BodyParams>();
                return Err(ParamError::unknown(&name, &known));
            }
        }
        Ok(query)
    }

    /// The length that the dimension must have before.
    pub(super) fn at(&self) -> Option<u64> {
        self.append.at
    }

    /// The parameters as a text, as far as they say what a body is and where it goes.
    pub(super) fn meaning(&self, format: Option<BodyFormat>, axis: usize) -> String {
        format!("{:?} {axis} {format:?} {:?}", self.append, self.body)
    }

    /// The dimension of an array.
    ///
    /// # Errors
    /// [`DimensionError`].
    pub(super) fn axis(&self, metadata: &ArrayMetadata) -> Result<usize, DimensionError> {
        let names = metadata.dimension_names.as_deref().unwrap_or_default();
        dimension(self.append.append.as_deref().unwrap_or_default(), names, metadata.shape.len())
    }
}
