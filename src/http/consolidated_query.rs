//! The query parameters of consolidated metadata: the keys that have it, and whether a request or the mount asks for it.

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;
use utoipa::IntoParams;

use super::problem::Problem;
use super::switch::is_on;
use crate::key::StoreKey;

/// Parameters of consolidated metadata.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConsolidatedQuery {
    /// Of `.zmetadata` or the `zarr.json` of a group: whether to generate consolidated metadata from the documents below the
    /// group. The parameter needs no value; `false` and `0` request the stored document, whatever the setting of the mount.
    pub(crate) consolidated: Option<String>,
    /// With `consolidated` in a view: whether to include dependent arrays. Strict clients reject arrays with nodes below
    /// them. The parameter needs no value; `false` and `0` switch it off.
    #[serde(rename = "virtual")]
    pub(crate) with_declared: Option<String>,
}

/// The document of a group that may contain consolidated metadata.
#[derive(Clone, Copy)]
pub(crate) enum Document {
    /// v2: `.zmetadata`.
    Zmetadata,
    /// v3: `zarr.json`.
    ZarrJson,
}

impl Document {
    pub(crate) fn of(key: &StoreKey) -> Option<Self> {
        match key.name() {
            ".zmetadata" => Some(Self::Zmetadata),
            "zarr.json" => Some(Self::ZarrJson),
            _ => None,
        }
    }
}

/// Whether the request or the mount asks for generated consolidated metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedBy {
    /// The request.
    Request,
    /// The configuration of the mount; the request does not override it.
    Mount,
}

/// Whether consolidated metadata is generated for a key, and on whose account; `is_made` is the setting of the mount.
/// `None` if the stored document is sent.
///
/// # Errors
/// 400 if the query is invalid.
pub(crate) fn wanted(is_made: bool, key: &StoreKey, uri: &Uri) -> Result<Option<WantedBy>, Problem> {
    if Document::of(key).is_none() {
        return Ok(None);
    }
    Ok(match query(uri)?.consolidated.as_deref().map(is_on) {
        Some(true) => Some(WantedBy::Request),
        None if is_made => Some(WantedBy::Mount),
        Some(false) | None => None,
    })
}

/// The parameters of consolidated metadata in a URL.
///
/// # Errors
/// 400 if the query is invalid.
pub(crate) fn query(uri: &Uri) -> Result<ConsolidatedQuery, Problem> {
    let Query(query) = Query::try_from_uri(uri).map_err(|rejection| Problem::from_query_error(&rejection))?;
    Ok(query)
}
