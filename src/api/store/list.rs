//! Listings of the store routes: `list_dir`, `list_prefix` and `list` of Zarr core 3.1, as HTML or JSON.
//!
//! An unknown prefix is an empty JSON listing, as the store interface defines it, and a 404 in HTML, as clients of HTML
//! listings expect. The root always exists. An incomplete listing is never sent as complete: the request fails, or the
//! connection is aborted.

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::TryStreamExt;
use serde::Deserialize;
use utoipa::IntoParams;

use super::listing_page::{HTML_FOOT, Links, ListingPage, foot_with_page};
use super::listing_text;
use super::listing_text::ListingText;
use crate::api::documented::{ListingResponses, MountParam};
use crate::api::view::view_of;
use crate::error::ErrorClass;
use crate::http::base_path::BasePath;
use crate::http::negotiate;
use crate::http::negotiate::Offer;
use crate::http::options::HttpOptions;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::switch::is_on;
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::services::extract::StoreTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::{DirEntry, StoreError};

static OFFERS: &[Offer] = &[
    Offer { name: "html", media_type: "text/html" },
    Offer { name: "json", media_type: "application/json" },
];

/// Parameters of a listing. They are ignored for a key.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of a prefix: whether to list all keys below it instead of one level. The parameter needs no value; `false` and `0`
    /// switch it off.
    recursive: Option<String>,
    /// Of a prefix: `html` or `json`. Takes precedence over `Accept`.
    format: Option<String>,
    /// Alias of `format`.
    f: Option<String>,
    /// Of a JSON listing: maximum number of keys and prefixes on the page, at most `http.max_list_keys`, which is also the default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Of a JSON listing: start after this key or prefix. Send the `next` of the previous page.
    after: Option<String>,
}

impl ListQuery {
    /// Reads the query of a listing. Unknown fields are ignored.
    fn from_uri(uri: &Uri) -> Result<Self, Problem> {
        Query::try_from_uri(uri)
            .map(|Query(query)| query)
            .map_err(|rejection| Problem::from_query_error(&rejection))
    }

    fn is_recursive(&self) -> bool {
        self.recursive.as_deref().is_some_and(is_on)
    }

    /// The page size: the requested one, if it is between 1 and `most`.
    fn page_keys(&self, most: usize) -> Result<usize, Problem> {
        match self.limit.unwrap_or(most) {
            limit if (1..=most).contains(&limit) => Ok(limit),
            _ => Err(Problem::from_class(ErrorClass::InvalidRequest)
                .detail(format!("`limit` is from 1 to {most}"))
                .extension("limit", most)),
        }
    }
}

/// List the root of a mount
///
/// The keys and prefixes directly below the root (`list_dir`), or with `?recursive` all keys. HTML by default, JSON with
/// `?format=json` or `Accept: application/json`.
#[utoipa::path(
    method(get, head),
    path = super::specs::ROOT.template,
    tag = "store",
    params(MountParam, ListQuery),
    responses(
        ListingResponses,
        (status = 400, description = "`format`, `limit` or `after` is invalid"),
        (status = 406, description = "`Accept` allows neither HTML nor JSON"),
    )
)]
pub(crate) async fn list_root(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    let KeyOrPrefix::Prefix(prefix) = &target.place else {
        return Err(Problem::from_class(ErrorClass::NotFound));
    };
    answer(&state, &target, prefix, &request.into_parts().0).await
}

/// Whether a prefix exists, which means that a key is below it. The listing is cancelled after the first key.
pub(crate) async fn exists(mount: &Mount, prefix: &StorePrefix) -> Result<bool, StoreError> {
    Ok(mount.store.list_prefix(prefix, None).try_next().await?.is_some())
}

/// The response with the listing of a prefix.
pub(crate) async fn answer(
    state: &AppState,
    target: &StoreTarget,
    prefix: &StorePrefix,
    head: &Parts,
) -> Result<Response, Problem> {
    let mount = &target.charged_to_request(&state.traffic.admission, &head.extensions).mount;
    let query = ListQuery::from_uri(&head.uri)?;
    let format = query.format.as_deref().or(query.f.as_deref());
    let offer = negotiate::choose(&head.headers, format, OFFERS)?;
    let listed = match offer.name {
        "json" => json(mount, prefix, &query, &state.options).await,
        _ => html(mount, prefix, query.is_recursive(), head, foot(state, target, prefix, head)).await,
    };
    let head = [(header::CACHE_CONTROL, "no-cache"), (header::VARY, "Accept")];
    listed.map(|response| (head, response).into_response()).map_err(|error| match error {
        ListError::Store(error @ StoreError::NotListable) => Problem::from(error).allow("OPTIONS"),
        ListError::Store(error) => error.into(),
        ListError::Problem(problem) => problem,
    })
}

/// A failure to list.
enum ListError {
    Store(StoreError),
    Problem(Problem),
}

impl From<StoreError> for ListError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

async fn json(
    mount: &Mount,
    prefix: &StorePrefix,
    query: &ListQuery,
    options: &HttpOptions,
) -> Result<Response, ListError> {
    let limit = query.page_keys(options.max_list_keys).map_err(ListError::Problem)?;
    let (recursive, after) = (query.is_recursive(), query.after.as_deref().unwrap_or_default());
    if recursive && !after.is_empty() {
        StoreKey::parse(after).map_err(|error| ListError::Problem(error.into()))?;
    }
    let page = ListingText::of(listing_text::entries(&*mount.store, prefix, recursive, after), limit).await?;
    Ok(Json(ListingPage::new(prefix, page)).into_response())
}

async fn html(
    mount: &Mount,
    prefix: &StorePrefix,
    recursive: bool,
    head: &Parts,
    foot: String,
) -> Result<Response, ListError> {
    let entries = listing_text::entries(&*mount.store, prefix, recursive, "");
    let links = Links::new(prefix, head.extensions.get());
    let begin = links.head(&path_of(head));
    let empty = prefix.is_root().then(|| format!("{begin}{foot}"));
    let line = move |page: &mut String, entry: DirEntry| links.push(page, entry.text());
    match (listing_text::text(entries, begin, line, foot).await?, empty) {
        (Some(body), _) => Ok(html_response(body)),
        (None, Some(empty)) => Ok(html_response(Body::from(empty))),
        (None, None) => Err(unknown_prefix()),
    }
}

/// The lines after the last link. For a browser, which names HTML in `Accept`, they lead to the page of the same place.
fn foot(state: &AppState, target: &StoreTarget, prefix: &StorePrefix, head: &Parts) -> String {
    let accepts = head.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let is_browser = accepts.is_some_and(|accept| accept.contains("text/html"));
    match NodePath::parse(prefix.as_str()) {
        Ok(path) if is_browser && state.options.ui && target.has_page() => {
            let page = view_of(BasePath::of(&head.extensions).as_str(), &target.mount.name, &path);
            foot_with_page(&page, head.extensions.get())
        }
        _ => HTML_FOOT.to_owned(),
    }
}

/// The path of a request as its client sees it.
fn path_of(head: &Parts) -> String {
    BasePath::of(&head.extensions).as_str().to_owned() + head.uri.path()
}

fn html_response(body: Body) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], body).into_response()
}

fn unknown_prefix() -> ListError {
    ListError::Problem(Problem::from_class(ErrorClass::NotFound).detail("no key is below this prefix"))
}
