//! The permissions of routes: the one table from a route, a method and the place in the path to the permissions that a
//! request needs.
//!
//! A route without a rule is refused to every caller that does not hold every scope of the whole mount; a test goes
//! through the router's list and reports routes and methods without a rule.
//!
//! - Values: GET and HEAD of a key need `read`; listings in any shape, `list`; PUT, PATCH and MKCOL, `write`; DELETE,
//!   `delete`. COPY needs `read` of its source, MOVE `delete` as well; both `write` of the destination, and `delete` of it
//!   where a prefix there may be replaced.
//! - Consolidated metadata is derived from all documents below a group and names them, so it needs `read` and `list` of
//!   all that. Where the mount derives it unasked, a caller without one of these gets the stored document.
//! - PUT of elements, POST of elements to append, and PUT and PATCH of nodes, need `write` of the whole node, and DELETE of a node `delete`.
//!   PUT of a node with `copy` or `move` needs `read` of its source, with `move` `delete` as well; the handler checks them.
//! - What is derived from nodes (views, nodes, elements, vectors) needs `read` of the whole node. It reads other keys
//!   on the way than the requested ones; `within_array` ensures that they lie within the grant.
//! - An upload in parts to a key of S3 needs `write` of the key, whatever the method.
//! - Requests that name keys in their bodies pass for a caller that may do anything with the mount; the handler checks
//!   each key.

use axum::http::{Method, Uri};

use super::grant::{KeyScope, Permission};
use super::lookup::MountLookup;
use super::scope::Scope;
use crate::http::append_query;
use crate::http::consolidated_query::{self, WantedBy};
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::route::Resource;
use crate::http::s3_query;
use crate::http::target::Target;
use crate::key::{StoreKey, StorePrefix};

/// The permissions that a request needs.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessRequest {
    /// The mount's name.
    pub(super) mount: String,
    /// The key or prefix of a mount's store, where the URL names one; `None` for what is derived from the store.
    pub(super) place: Option<KeyOrPrefix>,
    /// The permissions that the request needs. Where there are none, the caller must be able to see the mount.
    pub(super) needs: Vec<Permission>,
    /// Permissions with which the response has more in it.
    pub(super) of_more: Vec<Permission>,
    /// Whether the response is made of images, whose levels are made from each other.
    pub(super) is_of_images: bool,
}

/// The scopes that a method needs of a place, or of everything below a node; `None` for a method without a rule.
pub(crate) fn scopes(resource: Resource, method: &Method, is_prefix: bool) -> Option<&'static [Scope]> {
    let get: &[Scope] = if is_prefix { &[Scope::List] } else { &[Scope::Read] };
    Some(match (resource, method.as_str()) {
        // The handler checks each key or node that the body names.
        // A bucket is never created: the response to PUT says that it is there.
        (Resource::Public | Resource::Mounts, _)
        | (Resource::Keys | Resource::Nodes, "POST")
        | (Resource::Bucket, "POST" | "PUT") => &[],
        (
            Resource::Stored | Resource::Object | Resource::View | Resource::Rechunked | Resource::Pyramid,
            "GET" | "HEAD",
        ) => get,
        (Resource::Stored | Resource::View | Resource::Rechunked | Resource::Pyramid, "PROPFIND")
        | (Resource::Bucket, "GET" | "HEAD") => &[Scope::List],
        (Resource::Stored, "PUT" | "PATCH" | "MKCOL")
        | (Resource::Object, "PUT" | "POST")
        | (Resource::Node, "PUT" | "PATCH")
        | (Resource::Chunk, "PUT") => &[Scope::Write],
        (Resource::Stored | Resource::Object | Resource::Node, "DELETE") => &[Scope::Delete],
        (Resource::Stored, "COPY")
        | (
            Resource::Node | Resource::Tile | Resource::Page | Resource::Dap | Resource::Chunk,
            "GET" | "HEAD",
        )
        | (Resource::Vectors, "GET" | "HEAD" | "POST")
        // A selection of elements that does not fit in a URL.
        | (Resource::Node, "POST") => &[Scope::Read],
        (Resource::Stored, "MOVE") => &[Scope::Read, Scope::Delete],
        (Resource::Cache, "POST" | "DELETE") => &[Scope::Admin],
        _ => return None,
    })
}

/// The scopes that a method without a rule needs.
const EVERYTHING: &[Scope] = &[Scope::Read, Scope::List, Scope::Write, Scope::Delete, Scope::Admin];

/// The permissions of a request. `root` is the name of the mount that is served at the root path.
///
/// # Errors
/// 400 if the query is invalid.
pub(super) fn access_request(
    mounts: &dyn MountLookup,
    resource: Resource,
    target: &Target<'_>,
    root: Option<&str>,
    method: &Method,
    uri: &Uri,
) -> Result<AccessRequest, Problem> {
    let Some(mount) = target.mount().or(root) else {
        return Ok(AccessRequest::default());
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
        Resource::View
            | Resource::Rechunked
            | Resource::Pyramid
            | Resource::Node
            | Resource::Tile
            | Resource::Page
            | Resource::Dap
            | Resource::Chunk
            | Resource::Vectors
    );
    let need = |scope: &Scope| Permission { scope: *scope, reach: reach.clone(), is_derived };
    let mut needs: Vec<Permission> = if resource == Resource::Object && s3_query::names_upload(uri) {
        // Who may write a value may also list the parts of an upload to it, and abort it.
        vec![need(&Scope::Write)]
    } else if resource == Resource::Node && method == Method::POST && append_query::appends(uri) {
        vec![need(&Scope::Write)]
    } else if let Some(scopes) = scopes(resource, method, is_prefix) {
        scopes.iter().map(need).collect()
    } else {
        let all = KeyScope::Prefix(StorePrefix::root());
        EVERYTHING.iter().map(|scope| Permission::derived(*scope, all.clone())).collect()
    };
    // The children of a node are listed for callers that may list them.
    let mut of_more = if matches!(resource, Resource::Node | Resource::Tile | Resource::Page | Resource::Dap)
    {
        vec![need(&Scope::List)]
    } else {
        Vec::new()
    };
    if let (Some(KeyOrPrefix::Key(key)), &Method::GET | &Method::HEAD) = (place, method) {
        // The handler refuses an invalid query.
        match consolidated_query::wanted(mounts.is_consolidated(mount), key, uri).unwrap_or_default() {
            Some(WantedBy::Request) => needs = consolidated_permissions(key, is_derived).into(),
            Some(WantedBy::Mount) => of_more = consolidated_permissions(key, is_derived).into(),
            None => {}
        }
    }
    let place = place.filter(|_| !is_derived).cloned();
    let is_of_images = resource == Resource::Pyramid;
    Ok(AccessRequest { mount: mount.to_owned(), place, needs, of_more, is_of_images })
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
