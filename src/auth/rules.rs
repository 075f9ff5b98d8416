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

use axum::http::{Method, Uri};

use super::grant::{KeyScope, Permission};
use super::lookup::MountLookup;
use super::scope::Scope;
use crate::http::consolidated_query::{self, WantedBy};
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::route::Resource;
use crate::http::s3_query;
use crate::http::target::Target;
use crate::key::{StoreKey, StorePrefix};

/// What a request needs.
#[derive(Clone, Debug)]
pub(super) struct AccessRequest {
    /// The mount's name.
    pub(super) mount: String,
    /// The key or prefix of a mount's store, where the URL names one; not of what is derived from it.
    pub(super) place: Option<KeyOrPrefix>,
    /// The permissions that the request needs. Where there are none, the caller must be able to see the mount.
    pub(super) needs: Vec<Permission>,
    /// Permissions by which the response says more.
    pub(super) of_more: Vec<Permission>,
}

/// The scopes that a method needs of a place, or of all below a node; `None` for a method that has no rule.
pub(crate) fn scopes(resource: Resource, method: &Method, is_prefix: bool) -> Option<&'static [Scope]> {
    let get: &[Scope] = if is_prefix { &[Scope::List] } else { &[Scope::Read] };
    Some(match (resource, method.as_str()) {
        // Of what names keys in its body, the handler asks for each key.
        (Resource::Public | Resource::Mounts, _) | (Resource::Keys, "POST") => &[],
        (Resource::Stored | Resource::View | Resource::Rechunked, "GET" | "HEAD") => get,
        (Resource::Stored | Resource::View | Resource::Rechunked, "PROPFIND")
        | (Resource::Bucket, "GET" | "HEAD") => &[Scope::List],
        (Resource::Stored, "PUT" | "PATCH" | "MKCOL") => &[Scope::Write],
        (Resource::Stored, "DELETE") => &[Scope::Delete],
        (Resource::Stored, "COPY")
        | (Resource::Node | Resource::Chunk, "GET" | "HEAD")
        | (Resource::Vectors, "GET" | "HEAD" | "POST") => &[Scope::Read],
        (Resource::Stored, "MOVE") => &[Scope::Read, Scope::Delete],
        (Resource::Cache, "POST" | "DELETE") => &[Scope::Admin],
        _ => return None,
    })
}

/// The scopes that a method without a rule needs.
const EVERYTHING: &[Scope] = &[Scope::Read, Scope::List, Scope::Write, Scope::Delete, Scope::Admin];

/// What a request needs. `root` is the name of the mount that is served at the root path.
///
/// # Errors
/// 400 if the query cannot be understood.
pub(super) fn access_request(
    mounts: &dyn MountLookup,
    resource: Resource,
    target: &Target<'_>,
    root: Option<&str>,
    method: &Method,
    uri: &Uri,
) -> Result<AccessRequest, Problem> {
    let Some(mount) = target.mount().or(root) else {
        return Ok(AccessRequest {
            mount: String::new(),
            place: None,
            needs: Vec::new(),
            of_more: Vec::new(),
        });
    };
    let reach = match target {
        Target::Bucket { .. } => KeyScope::StringPrefix(s3_query::listed(uri)?),
        Target::Node { node, .. } => KeyScope::Prefix(node.prefix().clone()),
        _ => target.place().map_or_else(|| KeyScope::Prefix(StorePrefix::root()), key_scope),
    };
    let place = target.place();
    let is_prefix = matches!(place, Some(KeyOrPrefix::Prefix(_)));
    let is_derived = matches!(
        resource,
        Resource::View | Resource::Rechunked | Resource::Node | Resource::Chunk | Resource::Vectors
    );
    let need = |scope: &Scope| Permission { scope: *scope, reach: reach.clone(), is_derived };
    let mut needs: Vec<Permission> = if let Some(scopes) = scopes(resource, method, is_prefix) {
        scopes.iter().map(need).collect()
    } else {
        let all = KeyScope::Prefix(StorePrefix::root());
        EVERYTHING.iter().map(|scope| Permission::derived(*scope, all.clone())).collect()
    };
    // The children of a node are listed for callers that may list them.
    let mut of_more = if resource == Resource::Node { vec![need(&Scope::List)] } else { Vec::new() };
    if let (Some(KeyOrPrefix::Key(key)), &Method::GET | &Method::HEAD) = (place, method) {
        // A query that cannot be understood is refused by the handler.
        match consolidated_query::wanted(mounts.is_consolidated(mount), key, uri).unwrap_or_default() {
            Some(WantedBy::Request) => needs = consolidated_permissions(key, is_derived).into(),
            Some(WantedBy::Mount) => of_more = consolidated_permissions(key, is_derived).into(),
            None => {}
        }
    }
    let place = place.filter(|_| !is_derived).cloned();
    Ok(AccessRequest { mount: mount.to_owned(), place, needs, of_more })
}

/// The permissions that consolidated metadata of a key needs: it names all nodes below the group.
pub(crate) fn consolidated_permissions(key: &StoreKey, is_derived: bool) -> [Permission; 2] {
    let reach = KeyScope::Prefix(key.parent());
    [Scope::Read, Scope::List].map(|scope| Permission { scope, reach: reach.clone(), is_derived })
}

/// The keys that a key or prefix stands for.
fn key_scope(place: &KeyOrPrefix) -> KeyScope {
    match place {
        KeyOrPrefix::Prefix(prefix) => KeyScope::Prefix(prefix.clone()),
        KeyOrPrefix::Key(key) => KeyScope::Key(key.clone()),
    }
}

/// The permissions that a COPY or MOVE needs at its destination.
pub(super) fn of_destination(
    erases_prefixes: bool,
    destination: &KeyOrPrefix,
    overwrites: bool,
) -> Vec<Permission> {
    let reach = key_scope(destination);
    let mut needs = vec![Permission::stored(Scope::Write, reach.clone())];
    if overwrites && erases_prefixes {
        needs.push(Permission::stored(Scope::Delete, reach));
    }
    needs
}
