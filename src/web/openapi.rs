//! The parts of the `OpenAPI` document that are common to routes: responses of the middleware, and the form of errors.
//!
//! A route's own annotations describe its own responses and take precedence. `router` has the list of routes.

use std::sync::{LazyLock, OnceLock};

use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::Response as HttpResponse;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;
use utoipa_axum::routes;

use crate::api::json_response::text_answer;
use crate::http::base_path::BasePath;
use crate::http::fixed_text::FixedText;
use crate::http::route::{AdmittedBy, MediaTypes, Resource, RouteSpec};
use crate::render::{FORMATS, Format};
use crate::services::route::Route;
use crate::store::Version;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Components, Content, OpenApi, Ref, RefOr, Response};

#[cfg(feature = "vectors")]
use crate::render::VertexFormat;

/// The name of the schema of a problem document.
const PROBLEM: &str = "Problem";
type Answers = &'static [(&'static str, &'static str)];

/// Responses of every route.
const OF_ALL: Answers = &[
    ("400", "The request is not understood; `detail` says what is wrong with it"),
    ("414", "The URL is too long"),
    ("431", "The headers are too long"),
];

/// Responses of every route except health.
const OF_LOAD: Answers = &[
    ("429", "The caller asks too often, or for too much; `Retry-After` says when to ask again"),
    ("503", "Too busy; `Retry-After` says when to ask again"),
];

/// Responses of every route that reads from a mount or writes to it.
const OF_MOUNTS: Answers = &[
    ("401", "No token was sent, or one that is no good here"),
    ("403", "The token or signature does not grant this here"),
    ("404", "There is no such mount, or nothing of this name in it"),
    ("405", "The method is not offered here; `Allow` says which are"),
    ("502", "The backend failed"),
    ("504", "The backend did not answer in time"),
];

/// Responses of every route that writes to a mount, or may.
const OF_WRITES: Answers = &[
    ("403", "The token or signature does not grant this here, or the page that sends it may not write here"),
    ("421", "A page sends it to a host that the server does not know for its own (`http.hosts`)"),
];

/// Responses of every route that the administrator's listener also has.
const OF_ADMINS: Answers = &[(
    "421",
    "At the admin listener: it is sent to a host that is no address, loopback name or name in `http.hosts`",
)];

/// Responses of every route that reads metadata or chunks, whatever they hold.
const OF_CONTENT: Answers = &[
    ("413", "It would cost more than the configuration allows"),
    ("422", "The declaration of a dependent array cannot be used"),
    ("500", "Stored metadata or chunks break the specification; `code` says which"),
    ("501", "Stored metadata or the request name something that is not supported"),
];

/// Media types of stored values: metadata documents, and all others.
const OF_VALUES: &[&str] = &["application/json", "application/octet-stream"];
/// Media types of listings, where the same route returns them.
const OF_LISTINGS: &[&str] = &["text/html"];

/// The document of all routes, which the router sets as it is built.
static DOCUMENT: OnceLock<OpenApi> = OnceLock::new();

/// Sets the document: the annotations of the handlers, completed from the specs of their routes.
pub(super) fn set_document(mut api: OpenApi, spec_of: impl Fn(&str) -> Option<&'static RouteSpec>) {
    complete(&mut api, spec_of);
    // The first call wins: a process has one set of routes.
    let _ = DOCUMENT.set(api);
}

/// Completes the document of the routes.
fn complete(api: &mut OpenApi, spec_of: impl Fn(&str) -> Option<&'static RouteSpec>) {
    api.paths.paths = std::mem::take(&mut api.paths.paths)
        .into_iter()
        .map(|(path, mut item)| {
            // One handler serves GET and HEAD; its two operations need two names.
            if let Some(head) = &mut item.head {
                head.operation_id = head.operation_id.take().map(|id| format!("{id}_head"));
            }
            // The router's syntax for the rest of a path differs from OpenAPI's.
            let path = path.replace("{*", "{");
            if let Some(spec) = spec_of(&path) {
                for operation in writing(spec, &mut item) {
                    add_responses(operation, OF_WRITES);
                }
                for operation in operations(&mut item) {
                    answers(spec, operation);
                }
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

/// The operations that write, which pages of other origins may not call.
fn writing<'a>(spec: &RouteSpec, item: &'a mut PathItem) -> impl Iterator<Item = &'a mut Operation> {
    let PathItem { put, post, delete, patch, .. } = item;
    let post = post.as_mut().filter(|_| !spec.post_reads || spec.body_decides_to_write());
    [put.as_mut(), post, delete.as_mut(), patch.as_mut()].into_iter().flatten()
}

fn add_responses(operation: &mut Operation, answers: &[(&str, &str)]) {
    for (status, description) in answers {
        let response = operation.responses.responses.entry((*status).to_owned());
        response.or_insert_with(|| Response::new(*description).into());
    }
}

/// Adds the responses that an operation does not document itself, and the media types of errors.
fn answers(spec: &RouteSpec, operation: &mut Operation) {
    let of_load = if spec.answers_under_load { &[] } else { OF_LOAD };
    let of_mounts = if spec.names_mount() { OF_MOUNTS } else { &[] };
    let of_admins = if spec.answers_under_load { OF_ADMINS } else { &[] };
    let reads_content = spec.names_mount() && !spec.speaks_s3;
    let of_content = if reads_content { OF_CONTENT } else { &[] };
    add_responses(operation, &[OF_ALL, of_load, of_mounts, of_admins, of_content].concat());
    // A write responds with no elements.
    if spec.media_types == MediaTypes::Elements && operation.responses.responses.contains_key("200") {
        describe_formats(operation);
    }
    let responses = &mut operation.responses.responses;
    for status in ["200", "206"] {
        if let Some(RefOr::T(response)) = responses.get_mut(status) {
            for media_type in media_types(spec, status) {
                response.content.entry(media_type.to_owned()).or_insert_with(|| RefOr::T(Content::default()));
            }
        }
    }
    for (status, response) in responses {
        if let (RefOr::T(response), true) = (response, status.starts_with(['4', '5']))
            && response.content.is_empty()
        {
            let (media_type, content) = if spec.speaks_s3 {
                ("application/xml", Content::default())
            } else if spec.speaks_dap {
                ("text/plain", Content::default())
            } else {
                ("application/problem+json", Content::new(Some(Ref::from_schema_name(PROBLEM))))
            };
            response.content.insert(media_type.to_owned(), RefOr::T(content));
        }
    }
}

/// Adds the formats of responses to the description of the parameter `format`.
fn describe_formats(operation: &mut Operation) {
    let has_body = operation.request_body.is_some();
    let format = operation.parameters.iter_mut().flatten().find_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.name == "format" => Some(parameter),
        _ => None,
    });
    let Some(parameter) = format else { return };
    let item = |(at, format): (usize, &&Format)| {
        let default = if at == 0 { " (default)" } else { "" };
        format!("- `{}`{default}: {}.", format.name, format.description)
    };
    let items: Vec<String> = FORMATS.iter().enumerate().map(item).collect();
    let before = parameter.description.take().unwrap_or_default();
    let of_reads = if has_body { "\n\nWithout `append`, the format of the response:" } else { "" };
    parameter.description = Some(format!("{before}{of_reads}\n\n{}", items.join("\n")));
}

/// The media types of a route's responses, where it has several.
fn media_types(spec: &RouteSpec, status: &str) -> Vec<&'static str> {
    match spec.media_types {
        MediaTypes::Documented => Vec::new(),
        MediaTypes::Elements => FORMATS.iter().map(|format| format.media_type).collect(),
        #[cfg(feature = "vectors")]
        MediaTypes::Vertices => VertexFormat::ALL.map(VertexFormat::media_type).to_vec(),
        MediaTypes::ValuesAndListings if status == "200" => [OF_VALUES, OF_LISTINGS].concat(),
        MediaTypes::Values | MediaTypes::ValuesAndListings => OF_VALUES.to_vec(),
    }
}

/// A problem document.
fn problem() -> Schema {
    let text = |says: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(says));
    let status = ObjectBuilder::new().schema_type(Type::Integer).description(Some("The answer's status"));
    ObjectBuilder::new()
        .description(Some("An error (RFC 9457). Some have members of their own beside these"))
        .property("type", text("`about:blank`: `code` identifies the problem"))
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

/// The `OpenAPI` document.
pub(crate) const OPENAPI: RouteSpec =
    RouteSpec::new("/openapi.json", Resource::Public).admitted_by(AdmittedBy::Exempt);

/// The route of the document.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(&OPENAPI, routes!(openapi_json))]
}

/// The query parameters of the route.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DescriptionQuery {
    /// `no` leaves out the operations of HEAD, which are those of GET without a body.
    head: Option<String>,
}

/// Describe this API to programs
#[utoipa::path(
    method(get, head),
    path = OPENAPI.template,
    tag = "service",
    params(DescriptionQuery),
    responses(
        (status = 200, description = "OpenAPI 3.1", content_type = "application/json"),
        (status = 304, description = "Not modified"),
    )
)]
pub(crate) async fn openapi_json(
    base: BasePath,
    Query(query): Query<DescriptionQuery>,
    headers: HeaderMap,
) -> HttpResponse {
    let operations = match query.head.as_deref() {
        Some("no") => Operations::WithoutHead,
        _ => Operations::All,
    };
    let (text, version) = openapi_below(&base, operations);
    let fixed = FixedText(version.tag().to_owned());
    let mut answer = text_answer(&headers, [text], version);
    answer.extensions_mut().insert(fixed);
    answer
}

/// The `OpenAPI` document of all routes: JSON, indented, the same for the same build, with a newline at its end.
pub(super) fn text(operations: Operations) -> String {
    let mut api = DOCUMENT.get().cloned().unwrap_or_default();
    if operations == Operations::WithoutHead {
        api.paths.paths.values_mut().for_each(|item| item.head = None);
    }
    let mut text = api.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// The operations that a document describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operations {
    /// All.
    All,
    /// All except HEAD, which repeats each GET.
    WithoutHead,
}

/// The `OpenAPI` document for clients that use a base path, and its version. Each document is generated once, because
/// every client may request it at any time.
pub(crate) fn openapi_below(base: &BasePath, operations: Operations) -> (Bytes, Version) {
    static ALL: LazyLock<(Bytes, Version)> = LazyLock::new(|| versioned(text(Operations::All)));
    static WITHOUT_HEAD: LazyLock<(Bytes, Version)> =
        LazyLock::new(|| versioned(text(Operations::WithoutHead)));
    let (text, version) = match operations {
        Operations::All => &*ALL,
        Operations::WithoutHead => &*WITHOUT_HEAD,
    };
    if base.is_empty() {
        return (text.clone(), version.clone());
    }
    let servers = json!({ "servers": [{ "url": base.as_str() }] }).to_string();
    // Joins two JSON objects: the members of the document follow `servers`.
    let text = match (servers.strip_suffix('}'), text.strip_prefix(b"{")) {
        (Some(servers), Some(rest)) => [servers.as_bytes(), b",", rest].concat().into(),
        _ => text.clone(),
    };
    (text, Version::strong(&format!("{}{}", version.tag(), base.as_str())))
}

fn versioned(text: String) -> (Bytes, Version) {
    let version = Version::from_own_text(text.as_bytes());
    (text.into(), version)
}
