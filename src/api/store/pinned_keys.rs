//! [`pinned`]: keys of one request that name versions of a hierarchy, each version at one snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::try_join_all;

use crate::http::problem::Problem;
use crate::key::StoreKey;
use crate::services::mount::Mount;
use crate::services::pinned::{is_document, no_such_version};
use crate::services::state::AppState;
use crate::store::{ObjectId, PinnedVersion, StoreError};

/// Versions that are resolved at one time.
const CONCURRENCY: usize = 16;

/// The keys, those of branches below the snapshots that these are now: a branch may move on while many values are read. Keys
/// without a version stay: the middleware pinned them.
///
/// # Errors
/// The failure of the repository; the problem of the first part that names a version that is not there, unless it is a document,
/// which is absent.
pub(super) async fn pinned(
    state: &AppState,
    mount: &Mount,
    keys: Vec<StoreKey>,
) -> Result<Vec<StoreKey>, Problem> {
    let Some(mount) = state.mounts.get(&mount.name).filter(|mount| mount.store.served_version().is_some())
    else {
        return Ok(keys);
    };
    let named: Vec<Option<PinnedVersion>> =
        keys.iter().map(|key| PinnedVersion::of_text(key.as_str())).collect();
    let mut versions: Vec<&PinnedVersion> = named.iter().flatten().collect();
    versions.sort_unstable_by_key(ToString::to_string);
    versions.dedup();
    let resolved = resolved(state, mount, versions).await?;
    let keys = keys.into_iter().zip(&named).enumerate().map(|(part, (key, named))| {
        let Some(version) = named else { return Ok(key) };
        match resolved.get(version).copied().flatten() {
            None if is_document(key.name()) => Ok(key),
            None => Err(no_such_version(mount, version, false)
                .extension("part", part)
                .extension("key", key.as_str())),
            Some(_) if version.is_fixed() => Ok(key),
            Some(id) => {
                let rest = key.as_str().split_once('/').map_or("", |(_, rest)| rest);
                let too_long = |_| StoreError::InvalidKey("it is too long for a hierarchy with versions");
                Ok(StoreKey::parse(&format!("@{id}/{rest}")).map_err(too_long)?)
            }
        }
    });
    keys.collect()
}

async fn resolved<'a>(
    state: &AppState,
    mount: &Arc<Mount>,
    versions: Vec<&'a PinnedVersion>,
) -> Result<HashMap<&'a PinnedVersion, Option<ObjectId>>, StoreError> {
    let mut resolved = HashMap::new();
    for some in versions.chunks(CONCURRENCY) {
        let mut lookups = Vec::with_capacity(some.len());
        for version in some {
            lookups.push(state.pins.resolve(mount, version));
        }
        resolved.extend(some.iter().copied().zip(try_join_all(lookups).await?));
    }
    Ok(resolved)
}
