//! `/v1/versions/{mount}`: the branches, tags and snapshots of a mount with versions.

use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::documented::MountParam;
use crate::error::ErrorClass;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::http::route::{Resource, RouteSpec};
use crate::http::validators::rfc3339;
use crate::labels::{Calendar, DateLabel};
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use crate::store::{NamedSnapshot, ObjectId, PinnedVersion, RepositoryVersions, SnapshotInfo};

/// The versions of a mount.
pub(crate) const VERSIONS: RouteSpec =
    RouteSpec::new("/v1/versions/{mount}", Resource::Node).with_slash("/v1/versions/{mount}/");

/// The routes of versions.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(&VERSIONS, routes!(list_versions))]
}

/// The most snapshots of a response, and how many there are without `limit`.
const MAX_LISTED: usize = 10_000;
const LISTED: usize = 1000;

/// Which versions, and where to go.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionsQuery {
    /// A time, such as `2026-05-01T12:00Z`, or as `time` of a snapshot has it: redirects (307) to the store at the last snapshot of
    /// the branch that was committed until then. A date alone is the beginning of its day, in UTC.
    at: Option<String>,
    /// The branch of `at`; without it, what the mount serves.
    branch: Option<String>,
    /// The most snapshots that are listed, at most 10,000. The default is 1000.
    #[param(maximum = 10000)]
    limit: Option<usize>,
}

/// The versions of a mount.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionList {
    /// The version of paths without one: `branch.NAME`, `tag.NAME` or the id of a snapshot.
    served: String,
    branches: Vec<NamedVersion>,
    tags: Vec<NamedVersion>,
    /// The snapshots, the last one first.
    snapshots: Vec<SnapshotVersion>,
    /// How many snapshots there are.
    total: usize,
}

/// A branch or a tag.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NamedVersion {
    name: String,
    /// The id of its snapshot.
    snapshot: String,
}

/// A snapshot.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SnapshotVersion {
    /// Its id.
    id: String,
    /// The id of the snapshot that it was made from.
    parent: Option<String>,
    /// When it was committed, as RFC 3339.
    time: Option<String>,
    /// The text of its author.
    message: String,
}

/// List the versions of a mount
///
/// For mounts of Icechunk repositories: branches, tags and snapshots. What they have is below `@branch.NAME/`, `@tag.NAME/` and `@ID/`
/// in the paths of the mount.
#[utoipa::path(
    method(get, head),
    path = VERSIONS.template,
    tag = "service",
    params(MountParam, VersionsQuery),
    responses(
        (status = 200, description = "The versions", body = VersionList),
        (status = 307, description = "The store at the snapshot of `at`"),
        (status = 400, description = "A parameter is invalid"),
        (status = 404, description = "The mount does not exist, or has no versions (`no-versions`); or nothing was committed until `at`"),
        (status = 502, description = "The repository is refused, or the backend failed"),
    )
)]
pub(crate) async fn list_versions(
    State(state): State<AppState>,
    request: Request,
) -> Result<Response, Problem> {
    let Query(query) = Query::<VersionsQuery>::try_from_uri(request.uri())
        .map_err(|refused| Problem::from_query_error(&refused))?;
    let target = NodeTarget::new(&state.mounts, &VERSIONS, request.uri(), request.extensions())?;
    let Some(versions) = target.mount.store.versions() else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "no-versions")
            .detail("this mount has no versions: only those whose URL begins with `icechunk+` have"));
    };
    let bad = |detail: &'static str| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
    let limit = query.limit.unwrap_or(LISTED);
    if limit > MAX_LISTED {
        return Err(bad("`limit`: at most 10000"));
    }
    if query.branch.is_some() && query.at.is_none() {
        return Err(bad("`branch`: only together with `at`"));
    }
    let until = query.at.as_deref().map(|text| {
        microseconds(text).ok_or_else(|| {
            bad("`at`: expected a date, or a date and time, in ISO 8601, as in `2026-05-01` or `2026-05-01T12:00:30.5Z`")
        })
    });
    let until = until.transpose()?;
    let versions = versions.await.map_err(Problem::from)?;
    if let Some(until) = until {
        let id = at_time(&versions, query.branch.as_deref(), until).ok_or_else(|| {
            Problem::from_class(ErrorClass::NotFound)
                .detail("there is no such branch, or nothing was committed to it until `at`")
        })?;
        let location = format!("/store/{}/@{id}/", encode(&target.mount.name));
        let location = HeaderValue::try_from(location).unwrap_or(HeaderValue::from_static("./"));
        let headers =
            [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
        return Ok((StatusCode::TEMPORARY_REDIRECT, headers).into_response());
    }
    let list = state.engine.cpu.run(move || Json(VersionList::of(versions, limit)).into_response());
    let mut answer = list.await?;
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(answer)
}

/// Attoseconds in a microsecond, and in a second.
const MICROSECOND: i128 = 1_000_000_000_000;
const SECOND: i128 = 1_000_000 * MICROSECOND;

/// The microseconds from 1970 to a time: to the end of what it is written to, if that is a second or a part of one, as the times
/// that a list of versions has are cut; to the beginning of a longer period.
fn microseconds(text: &str) -> Option<u64> {
    // A plus in a query is a space: that of a zone comes after the time of day.
    let text = match text.split_once(['T', 't']) {
        Some((date, time)) => format!("{date}T{}", time.trim_end().replace(' ', "+")),
        None => text.to_owned(),
    };
    let (start, end) = DateLabel::parse(&text)?.period(Calendar::ProlepticGregorian)?;
    let until = if end - start <= SECOND { end - 1 } else { start };
    // Nothing was committed before 1970.
    Some(u64::try_from(until.div_euclid(MICROSECOND).max(0)).unwrap_or(u64::MAX))
}

/// The last snapshot of a branch, or of what the mount serves, that was committed until a time.
fn at_time(versions: &RepositoryVersions, branch: Option<&str>, until: u64) -> Option<ObjectId> {
    let named = |all: &[NamedSnapshot], name: &str| {
        all.iter().find(|known| *known.name == *name).map(|known| known.snapshot)
    };
    let mut next = match (branch, &versions.served) {
        (Some(name), _) => named(&versions.branches, name),
        (None, PinnedVersion::Branch(name)) => named(&versions.branches, name),
        (None, PinnedVersion::Tag(name)) => named(&versions.tags, name),
        (None, PinnedVersion::Snapshot(id)) => Some(*id),
    };
    let by_id: std::collections::HashMap<ObjectId, &SnapshotInfo> =
        versions.snapshots.iter().map(|snapshot| (snapshot.id, snapshot)).collect();
    // As many steps as there are snapshots, at most.
    for _ in 0..=versions.snapshots.len() {
        let snapshot = by_id.get(&next?)?;
        if snapshot.time <= until {
            return Some(snapshot.id);
        }
        next = snapshot.parent;
    }
    None
}

impl VersionList {
    fn of(versions: RepositoryVersions, limit: usize) -> Self {
        let named = |all: Vec<NamedSnapshot>| {
            let one = |named: NamedSnapshot| NamedVersion {
                name: named.name.into(),
                snapshot: named.snapshot.to_string(),
            };
            all.into_iter().map(one).collect()
        };
        let total = versions.snapshots.len();
        let snapshot = |snapshot: SnapshotInfo| SnapshotVersion {
            id: snapshot.id.to_string(),
            parent: snapshot.parent.map(|parent| parent.to_string()),
            time: SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(snapshot.time)).and_then(rfc3339),
            message: snapshot.message.into(),
        };
        Self {
            served: versions.served.to_string(),
            branches: named(versions.branches),
            tags: named(versions.tags),
            snapshots: versions.snapshots.into_iter().take(limit).map(snapshot).collect(),
            total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_printed_and_with_zones() {
        let noon = 1_777_636_800_000_000;
        for (text, expected) in [
            ("2026-05-01", noon - 43_200_000_000),
            ("2026-05-01T12:00Z", noon),
            ("2026-05-01T12:00:00Z", noon + 999_999),
            ("2026-05-01T12:00:00.396Z", noon + 396_999),
            ("2026-05-01T12:00:00.396412Z", noon + 396_412),
            ("2026-05-01T14:00:00.396+02:00", noon + 396_999),
            ("2026-05-01T14:00+02:00", noon),
            // As a plus in a query is decoded.
            ("2026-05-01T14:00:00 02:00", noon + 999_999),
            ("2026-05-01T08:30-03:30", noon),
            ("1969-12-31", 0),
        ] {
            assert_eq!(microseconds(text), Some(expected), "{text}");
        }
        for text in ["", "yesterday", "2026-02-30", "2026-05-01T25:00Z", "2026-05-01T12:00:00.x"] {
            assert_eq!(microseconds(text), None, "{text}");
        }
        let printed = SystemTime::UNIX_EPOCH + Duration::from_micros(noon + 396_412);
        let printed = rfc3339(printed).unwrap();
        assert!(microseconds(&printed).unwrap() >= noon + 396_412, "{printed}: the snapshot of that time");
    }
}
