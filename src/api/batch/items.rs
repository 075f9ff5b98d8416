//! [`BatchItem`]: a selection in the body of a batch.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::api::data::{DataQuery, SelectionBody, SelectionSchema};
use crate::api::json_body::Limited;
use crate::api::query_params::ParamError;

/// Selections of arrays.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchBody {
    pub(super) items: Limited<BatchItem>,
}

/// A selection of an array: the members of its own request, and where that would go.
#[derive(Debug)]
pub(super) struct BatchItem {
    pub(super) path: String,
    /// `If-None-Match` of its own request.
    pub(super) none_match: Option<String>,
    selection: SelectionBody,
}

impl BatchItem {
    /// The query of the selection.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(super) fn into_query(self) -> Result<DataQuery, ParamError> {
        self.selection.into_query(&[])
    }
}

impl<'de> Deserialize<'de> for BatchItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut selection = SelectionBody::deserialize(deserializer)?;
        let path = selection.take_word("path").ok_or_else(|| D::Error::missing_field("path"))?;
        let none_match = selection.take_word("if_none_match");
        Ok(Self { path, none_match, selection })
    }
}

/// The body of a batch.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request for the API document")]
#[schema(example = json!({"items": [
    {"path": "t2m", "sel": {"lat": "nearest::45.2", "time": "2020-01"}, "format": "npy"},
    {"path": "msl", "slice": "0,:,::2", "format": "json"},
]}))]
pub(super) struct BatchSchema {
    /// The selections.
    #[schema(max_items = 1000)]
    items: Vec<BatchItemSchema>,
}

/// A selection of an array.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request for the API document")]
pub(super) struct BatchItemSchema {
    /// The path of the array in the mount.
    path: String,
    /// An entity tag that the client has. If the selection still has it, its part is a 304 without a body.
    if_none_match: Option<String>,
    /// The members of a `POST` of `/v1/data`.
    #[schema(inline)]
    #[serde(flatten)]
    selection: SelectionSchema,
}
