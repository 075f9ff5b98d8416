//! The query of consolidated metadata: which keys have it, and whether a request or the mount wants it.

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;
use utoipa::IntoParams;

use super::problem::Problem;
use super::switch::is_on;
use crate::key::StoreKey;

/// Whether consolidated metadata is asked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConsolidatedQuery {
    /// Of `.zmetadata` or a group's `zarr.json`: make consolidated metadata of the documents below. No value is needed;
    /// `false` and `0` mean the stored document, whatever the mount's setting.
    pub(crate) consolidated: Option<String>,
    /// With `consolidated`, in views: name the arrays that others declare, too. Strict clients refuse arrays with nodes
    /// below them. No value is needed; `false` and `0` mean no.
    #[serde(rename = "virtual")]
    pub(crate) with_declared: Option<String>,
}

/// The document of a group that may hold copies of those below it.
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

/// Who wants consolidated metadata in place of a stored document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedBy {
    /// Whoever asks.
    Request,
    /// The mount, unless whoever asks says otherwise.
    Mount,
}

/// Who wants it of a key of a mount that has it made or not; `None` if nobody does.
///
/// # Errors
/// 400 if the query cannot be understood.
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

/// The query of a URL.
///
/// # Errors
/// 400 if it cannot be understood.
pub(crate) fn query(uri: &Uri) -> Result<ConsolidatedQuery, Problem> {
    let Query(query) = Query::try_from_uri(uri).map_err(|rejection| Problem::from_query_error(&rejection))?;
    Ok(query)
}
