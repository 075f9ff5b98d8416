//! What the `OpenAPI` document says of all routes alike: the answers that come from what stands around them, and how errors
//! are written.
//!
//! A route's own annotations tell of its own answers and go before what is told here. Which routes there are is for
//! `router`.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Components, Content, OpenApi, Ref, RefOr, Response};

use super::elements::OFFERS;
#[cfg(feature = "vectors")]
use super::routes::vectors::vertices::OFFERS as VERTICES;

/// The name of the schema of a problem document.
const PROBLEM: &str = "Problem";
/// What precedes the paths that speak S3, whose errors are XML.
const S3: &str = "/s3/";

/// The routes that answer whatever the load.
const HEALTH: [&str; 2] = ["/healthz", "/readyz"];
const METRICS: &str = "/metrics";

type Answers = &'static [(&'static str, &'static str)];

/// Answers of every route.
const OF_ALL: Answers = &[
    ("400", "The request is not understood; `detail` says what is wrong with it"),
    ("414", "The URL is too long"),
    ("431", "The headers are too long"),
];

/// Answers of every route but those of health.
const OF_LOAD: Answers = &[
    ("429", "The caller asks too often, or for too much; `Retry-After` says when to ask again"),
    ("503", "Too busy; `Retry-After` says when to ask again"),
];

/// Answers of every route that reads from a mount or writes to it.
const OF_MOUNTS: Answers = &[
    ("401", "No token was sent, or one that is no good here"),
    ("403", "The token or signature does not grant this here"),
    ("404", "There is no such mount, or nothing of this name in it"),
    ("405", "The method is not offered here; `Allow` says which are"),
    ("502", "The backend failed"),
    ("504", "The backend did not answer in time"),
];

/// Answers of every route that writes to a mount, or may.
const OF_WRITES: Answers = &[
    ("403", "The token or signature does not grant this here, or the page that sends it may not write here"),
    ("421", "A page sends it to a host that the server does not know for its own (`http.hosts`)"),
];

/// Answers of every route that whoever runs the server has at a listener of its own too.
const OF_ADMINS: Answers = &[(
    "421",
    "At the admin listener: it is sent to a host that is no address, loopback name or name in `http.hosts`",
)];

/// Answers of every route that reads metadata or chunks, whatever they hold.
const OF_CONTENT: Answers = &[
    ("413", "It would cost more than the configuration allows"),
    ("422", "The declaration of a dependent array cannot be used"),
    ("500", "Stored metadata or chunks break the specification; `code` says which"),
    ("501", "Stored metadata or the request name something that is not supported"),
];

/// What stored values are sent as: metadata documents, and all others.
const OF_VALUES: &[&str] = &["application/json", "application/octet-stream"];
/// What listings are sent as, where the same route gives them.
const OF_LISTINGS: &[&str] = &["text/html"];

/// Completes the document of the routes.
pub(super) fn complete(api: &mut OpenApi) {
    api.paths.paths = std::mem::take(&mut api.paths.paths)
        .into_iter()
        .map(|(path, mut item)| {
            // One handler serves GET and HEAD; its two operations need two names.
            if let Some(head) = &mut item.head {
                head.operation_id = head.operation_id.take().map(|id| format!("{id}_head"));
            }
            // The router's mark for "the rest of the path" is no OpenAPI.
            let path = path.replace("{*", "{");
            for operation in writing(&path, &mut item) {
                tell(operation, OF_WRITES);
            }
            for operation in operations(&mut item) {
                answers(&path, operation);
            }
            (path, item)
        })
        .collect();
    let components = api.components.get_or_insert_with(Components::new);
    components.schemas.insert(PROBLEM.to_owned(), RefOr::T(problem()));
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, head, patch, .. } = item;
    [get, put, post, delete, head, patch].into_iter().flatten()
}

/// Those that a page in a browser is kept from.
fn writing<'a>(path: &str, item: &'a mut PathItem) -> impl Iterator<Item = &'a mut Operation> {
    let PathItem { put, post, delete, patch, .. } = item;
    // There questions are posted.
    let is_asked = path.starts_with("/v1/vectors/");
    [put, post, delete, patch].into_iter().flatten().filter(move |_| !is_asked)
}

fn tell(operation: &mut Operation, answers: &[(&str, &str)]) {
    for (status, description) in answers {
        let told = operation.responses.responses.entry((*status).to_owned());
        told.or_insert_with(|| Response::new(*description).into());
    }
}

/// Adds the answers that an operation does not tell of itself, and says of all errors how they are written.
fn answers(path: &str, operation: &mut Operation) {
    let of_load = if HEALTH.contains(&path) { &[] } else { OF_LOAD };
    let of_mounts = if path.contains("{mount}") { OF_MOUNTS } else { &[] };
    let of_admins = if path == METRICS || HEALTH.contains(&path) { OF_ADMINS } else { &[] };
    let reads_content = of_mounts == OF_MOUNTS && !path.starts_with(S3);
    let of_content = if reads_content { OF_CONTENT } else { &[] };
    tell(operation, &[OF_ALL, of_load, of_mounts, of_admins, of_content].concat());
    let responses = &mut operation.responses.responses;
    for status in ["200", "206"] {
        if let Some(RefOr::T(response)) = responses.get_mut(status) {
            for media_type in forms(path, status) {
                response.content.entry(media_type.to_owned()).or_insert_with(|| RefOr::T(Content::default()));
            }
        }
    }
    for (status, response) in responses {
        if let (RefOr::T(response), true) = (response, status.starts_with(['4', '5']))
            && response.content.is_empty()
        {
            let (media_type, content) = if path.starts_with(S3) {
                ("application/xml", Content::default())
            } else {
                ("application/problem+json", Content::new(Some(Ref::from_schema_name(PROBLEM))))
            };
            response.content.insert(media_type.to_owned(), RefOr::T(content));
        }
    }
}

/// What the answers of one route are sent as, of the routes that have several forms of the same.
fn forms(path: &str, status: &str) -> Vec<&'static str> {
    #[cfg(feature = "vectors")]
    if path.starts_with("/v1/vectors/") && path.ends_with("/vertices") && !path.contains("{id}") {
        return VERTICES.iter().map(|offer| offer.media_type).collect();
    }
    if path.starts_with("/v1/data/") || path.starts_with("/v1/chunk/") {
        OFFERS.iter().map(|offer| offer.media_type).collect()
    } else if !path.ends_with("/{key}") {
        Vec::new()
    } else if status == "206" || path.starts_with(S3) {
        OF_VALUES.to_vec()
    } else {
        [OF_VALUES, OF_LISTINGS].concat()
    }
}

/// A problem document.
fn problem() -> Schema {
    let text = |says: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(says));
    let status = ObjectBuilder::new().schema_type(Type::Integer).description(Some("The answer's status"));
    ObjectBuilder::new()
        .description(Some("An error (RFC 9457). Some have members of their own beside these"))
        .property("type", text("`about:blank`: it is told apart by its code"))
        .property("title", text("What the status says"))
        .property("status", status)
        .property("code", text("What is wrong, in a word that does not change"))
        .property("detail", text("What is wrong, for people"))
        .property("request_id", text("The name of the request in the log"))
        .required("type")
        .required("title")
        .required("status")
        .required("code")
        .required("request_id")
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
        .into()
}
