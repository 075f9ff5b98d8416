//! What each route needs: the one table from a route, a method and what the path names, to what must be granted.
//!
//! A route that does not stand here is refused to everybody who does not hold every scope of the whole mount; a test goes
//! through the router's list and finds routes and methods without a rule.
//!
//! - Values: GET and HEAD of a key need `read`; listings in any shape, `list`; PUT, PATCH and MKCOL, `write`; DELETE,
//!   `delete`. COPY needs `read` of its source, MOVE `delete` as well; both `write` of the destination, and `delete` of it
//!   where a prefix there may be replaced.
//! - Consolidated metadata is made of all documents below a group and names them, so it needs `read` and `list` of all that.
//!   Where the mount has it made unasked, whoever lacks one of these is given the stored document.
//! - What is made of nodes (views, nodes, elements, vectors) needs `read` of all of the node. It reads other keys on the
//!   way than those that are asked for; `inside` sees to it that they lie within what is granted.
//! - Requests that name keys in their bodies are let through to whoever may do anything with the mount; the handler asks for
//!   each key.

use axum::extract::Request;
use axum::http::Method;

use super::grant::{KeyScope, Permission};
use super::scope::Scope;
use crate::http::extract::{KeyOrPrefix, node_of, place_of, rechunked_place};
use crate::http::problem::Problem;
use crate::http::routes::consolidated::{self, WantedBy};
#[cfg(feature = "vectors")]
use crate::http::routes::vectors;
use crate::http::routes::{data, s3};
use crate::http::state::{AppState, Mount};
use crate::key::StorePrefix;

/// What a route is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceKind {
    /// Nothing that anybody must not know.
    Nothing,
    /// The mounts, of which it tells each caller what that one may know.
    Mounts,
    /// Stored values.
    Values,
    /// Values of a view.
    View,
    /// Values of what is rechunked.
    Rechunked,
    /// A mount as S3 lists it.
    Bucket,
    /// A node.
    Node,
    /// A node, before the coordinates of a chunk.
    Chunk,
    /// A node, before a question.
    Vectors,
    /// Keys that stand in the body.
    Keys,
    /// What is remembered of what is below a prefix.
    Cache,
}

/// What a request asks for.
#[derive(Clone, Debug)]
pub(super) struct AccessRequest {
    /// The mount's name, as it is written.
    pub(super) mount: String,
    /// The place, where a path names one in the store as it is.
    pub(super) place: Option<KeyOrPrefix>,
    /// All that must be met; if that is nothing, the caller must know of the mount.
    pub(super) needs: Vec<Permission>,
    /// Whoever meets these too is told more.
    pub(super) of_more: Vec<Permission>,
}

/// What a route is about, by its template; `None` for a route that has no rule.
pub(super) fn about(template: &str, is_rooted: bool) -> Option<ResourceKind> {
    if is_rooted {
        return matches!(template, "/{*key}" | "/").then_some(ResourceKind::Values);
    }
    Some(match template {
        "/store/{mount}/{*key}" | "/store/{mount}/" | "/store/{mount}" | "/s3/{mount}/{*key}" => {
            ResourceKind::Values
        }
        "/v1/data/{mount}/{*path}"
        | "/v1/data/{mount}/"
        | "/v1/data/{mount}"
        | "/v1/nodes/{mount}/{*path}"
        | "/v1/nodes/{mount}/"
        | "/v1/nodes/{mount}" => ResourceKind::Node,
        "/v1/chunk/{mount}/{*path}" => ResourceKind::Chunk,
        "/v1/vectors/{mount}/{*path}" | "/v1/vectors/{mount}/" | "/v1/vectors/{mount}" => {
            ResourceKind::Vectors
        }
        "/plain/{mount}/{*key}"
        | "/plain/{mount}/"
        | "/plain/{mount}"
        | "/unshard/{mount}/{*key}"
        | "/unshard/{mount}/"
        | "/unshard/{mount}" => ResourceKind::View,
        "/rechunk/{mount}/{chunks}/{codec}/{*key}"
        | "/rechunk/{mount}/{chunks}/{codec}/"
        | "/rechunk/{mount}/{chunks}/{codec}" => ResourceKind::Rechunked,
        "/s3/{mount}" | "/s3/{mount}/" => ResourceKind::Bucket,
        "/v1/partial/{mount}" | "/v1/erase/{mount}" => ResourceKind::Keys,
        "/v1/cache/{mount}" | "/v1/cache/{mount}/" | "/v1/cache/{mount}/{*prefix}" => ResourceKind::Cache,
        "/" | "/v1/mounts" | "/readyz" | "/s3" | "/s3/" => ResourceKind::Mounts,
        "/healthz" | "/metrics" | "/openapi.json" | "/docs" | "/docs/" | "/docs/{*rest}" | "/favicon.ico"
        | "/favicon.svg" => ResourceKind::Nothing,
        _ => return None,
    })
}

/// The scopes that a method needs of a place, or of all below a node; `None` for a method that has no rule.
pub(super) fn scopes(about: ResourceKind, method: &Method, is_prefix: bool) -> Option<&'static [Scope]> {
    let get: &[Scope] = if is_prefix { &[Scope::List] } else { &[Scope::Read] };
    Some(match (about, method.as_str()) {
        // Of what names keys in its body, the handler asks for each key.
        (ResourceKind::Nothing | ResourceKind::Mounts, _) | (ResourceKind::Keys, "POST") => &[],
        (ResourceKind::Values | ResourceKind::View | ResourceKind::Rechunked, "GET" | "HEAD") => get,
        (ResourceKind::Values | ResourceKind::View | ResourceKind::Rechunked, "PROPFIND")
        | (ResourceKind::Bucket, "GET" | "HEAD") => &[Scope::List],
        (ResourceKind::Values, "PUT" | "PATCH" | "MKCOL") => &[Scope::Write],
        (ResourceKind::Values, "DELETE") => &[Scope::Delete],
        (ResourceKind::Values, "COPY")
        | (ResourceKind::Node | ResourceKind::Chunk, "GET" | "HEAD")
        | (ResourceKind::Vectors, "GET" | "HEAD" | "POST") => &[Scope::Read],
        (ResourceKind::Values, "MOVE") => &[Scope::Read, Scope::Delete],
        (ResourceKind::Cache, "POST" | "DELETE") => &[Scope::Admin],
        _ => return None,
    })
}

/// What is needed for what nobody has a rule for.
const EVERYTHING: &[Scope] = &[Scope::Read, Scope::List, Scope::Write, Scope::Delete, Scope::Admin];

/// What a request asks for; of `rooted` where that is the store at the root path.
///
/// # Errors
/// 400 if its path names nothing, as the handler would say.
pub(super) fn asked(
    state: &AppState,
    about: ResourceKind,
    rooted: Option<&Mount>,
    request: &Request,
) -> Result<AccessRequest, Problem> {
    let (uri, method) = (request.uri(), request.method());
    let raw_path = uri.path();
    let (mount, place, reach) = match about {
        ResourceKind::Nothing | ResourceKind::Mounts => {
            return Ok(AccessRequest {
                mount: String::new(),
                place: None,
                needs: Vec::new(),
                of_more: Vec::new(),
            });
        }
        ResourceKind::Values => {
            let (name, place) = match rooted {
                Some(mount) => (mount.name.clone(), KeyOrPrefix::at_root(raw_path)?),
                None => place_of(raw_path).map(|(name, place)| (name.into_owned(), place))?,
            };
            let reach = reach_of(&place);
            (name, Some(place), reach)
        }
        ResourceKind::View | ResourceKind::Rechunked => {
            let (name, place) = match about {
                ResourceKind::View => place_of(raw_path)?,
                _ => rechunked_place(raw_path).map(|(name, _, _, place)| (name, place))?,
            };
            let reach = reach_of(&place);
            (name.into_owned(), Some(place), reach)
        }
        ResourceKind::Bucket => {
            let (name, _) = place_of(raw_path)?;
            (name.into_owned(), None, KeyScope::StringPrefix(s3::listed(uri)?))
        }
        ResourceKind::Node
        | ResourceKind::Chunk
        | ResourceKind::Vectors
        | ResourceKind::Keys
        | ResourceKind::Cache => {
            let (name, path) = node_of(raw_path)?;
            let node = match about {
                ResourceKind::Chunk => data::node_of_chunk(&path).unwrap_or(path),
                #[cfg(feature = "vectors")]
                ResourceKind::Vectors => vectors::shortest_store(&path),
                _ => path,
            };
            (name.into_owned(), None, KeyScope::Prefix(node.prefix().clone()))
        }
    };
    let is_prefix = matches!(place, Some(KeyOrPrefix::Prefix(_)));
    let is_derived = matches!(
        about,
        ResourceKind::View
            | ResourceKind::Rechunked
            | ResourceKind::Node
            | ResourceKind::Chunk
            | ResourceKind::Vectors
    );
    let need = |scope: &Scope| Permission { scope: *scope, reach: reach.clone(), is_derived };
    let mut needs: Vec<Permission> = if let Some(scopes) = scopes(about, method, is_prefix) {
        scopes.iter().map(need).collect()
    } else {
        let all = KeyScope::Prefix(StorePrefix::root());
        EVERYTHING.iter().map(|scope| Permission::derived(*scope, all.clone())).collect()
    };
    // The children of a node are told to those who may list them.
    let mut of_more = if about == ResourceKind::Node { vec![need(&Scope::List)] } else { Vec::new() };
    if let (Some(KeyOrPrefix::Key(key)), &Method::GET | &Method::HEAD) = (&place, method) {
        let is_made = state.mount(&mount).is_some_and(|mount| mount.consolidated);
        // What cannot be understood, the handler says.
        match consolidated::wanted(is_made, key, uri).unwrap_or_default() {
            Some(WantedBy::Request) => needs = consolidated::needs(key, is_derived).into(),
            Some(WantedBy::Mount) => of_more = consolidated::needs(key, is_derived).into(),
            None => {}
        }
    }
    Ok(AccessRequest { mount, place: place.filter(|_| !is_derived), needs, of_more })
}

/// What is read or written of a place.
fn reach_of(place: &KeyOrPrefix) -> KeyScope {
    match place {
        KeyOrPrefix::Prefix(prefix) => KeyScope::Prefix(prefix.clone()),
        KeyOrPrefix::Key(key) => KeyScope::Key(key.clone()),
    }
}

/// What a COPY or MOVE needs of where it goes.
pub(super) fn of_destination(mount: &Mount, destination: &KeyOrPrefix, overwrites: bool) -> Vec<Permission> {
    let reach = match destination {
        KeyOrPrefix::Key(key) => KeyScope::Key(key.clone()),
        KeyOrPrefix::Prefix(prefix) => KeyScope::Prefix(prefix.clone()),
    };
    let mut needs = vec![Permission::stored(Scope::Write, reach.clone())];
    if overwrites && mount.may_erase_prefixes() {
        needs.push(Permission::stored(Scope::Delete, reach));
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::router;

    /// The methods of WebDAV that the store routes have.
    const OF_WEBDAV: [&str; 4] = ["PROPFIND", "MKCOL", "COPY", "MOVE"];

    fn has_rule(path: &str, method: &str) -> bool {
        // What the router writes as the rest of a path, documents write as a parameter.
        let rest = path.rsplit_once('{').map(|(start, name)| format!("{start}{{*{name}"));
        let found = about(path, false).or_else(|| about(&rest?, false));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        found.is_some_and(|about| {
            [false, true].iter().all(|is_prefix| scopes(about, &method, *is_prefix).is_some())
        })
    }

    #[test]
    fn every_route_and_method_has_a_rule() {
        let api: serde_json::Value = serde_json::from_str(&router::openapi()).unwrap();
        let mut checked = 0;
        for (path, item) in api["paths"].as_object().unwrap() {
            // Documented apart, and served by the route of all questions.
            if path.starts_with("/v1/vectors/{mount}/{path}/") {
                continue;
            }
            let methods = ["get", "head", "put", "post", "patch", "delete"];
            for method in methods.iter().filter(|method| item.get(**method).is_some()) {
                assert!(has_rule(path, &method.to_uppercase()), "{method} {path} has no rule");
                checked += 1;
            }
            if path.starts_with("/store/") && path.ends_with("{key}") {
                assert!(OF_WEBDAV.iter().all(|method| has_rule(path, method)), "{path}");
            }
        }
        assert!(checked > 60, "{checked}");
        assert!(!has_rule("/v1/new/{mount}", "GET") && !has_rule("/v1/nodes/{mount}", "PUT"));
        for path in ["/", "/{*key}"] {
            assert_eq!(about(path, true), Some(ResourceKind::Values));
        }
    }
}
