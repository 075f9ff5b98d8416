//! [`ErrorPage`]: errors as pages, for requests that prefer HTML.
//!
//! The format is selected outside all layers that can reject a request, so that limits, overload and missing rights are
//! pages too.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::Value;

use super::links::session_path;
use super::{headers, session};
use crate::auth::{COOKIE, of_cookies, signature_in, without_credential};
use crate::http::base_path::BasePath;
use crate::http::negotiate::{self, Offer};
use crate::http::path::encode;
use crate::http::problem::{Dialect, Problem};
use crate::http::route::RouteSpec;
use crate::page::{ProblemPage, Site};
use crate::services::state::AppState;

static OFFERS: &[Offer] = &[
    Offer { name: "problem", media_type: "application/problem+json" },
    Offer { name: "json", media_type: "application/json" },
    Offer { name: "html", media_type: "text/html" },
];

/// Errors as pages.
#[derive(Debug)]
pub(crate) struct ErrorPage {
    base: BasePath,
    /// The mount that the path names, if it is that of a page.
    mount: Option<String>,
    /// The path of the page that was asked for, if the request has a query.
    page: Option<String>,
    /// The page to return to after signing in.
    here: String,
    /// The signature in the URL, which links to pages repeat.
    signature: Option<String>,
    has_session: bool,
    has_cookie: bool,
}

impl ErrorPage {
    /// Errors as pages, if a request prefers HTML and its route is for people. A path without a route is, too.
    pub(crate) fn of(state: &AppState, spec: Option<&RouteSpec>, request: &Request) -> Option<Self> {
        let is_for_people = spec.is_none_or(|spec| spec.is_for_people) && state.options.ui;
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::POST);
        if !is_for_people || !reads || !prefers_html(request.headers()) {
            return None;
        }
        Some(Self {
            base: BasePath::of(request.extensions()),
            mount: spec.filter(|spec| spec.names_mount()).and_then(|_| mount_in(request.uri())),
            page: request
                .uri()
                .query()
                .and(spec)
                .filter(|spec| spec.names_mount())
                .map(|_| request.uri().path().to_owned()),
            here: if matches!(*request.method(), Method::GET | Method::HEAD) {
                without_credential(request.uri())
            } else {
                String::new()
            },
            signature: signature_in(request.uri()),
            has_session: !state.access.rules().is_open(),
            has_cookie: of_cookies(request.headers()).is_some(),
        })
    }

    /// Selects the format for a response that is an error.
    pub(crate) fn render(self, answer: &mut Response) {
        let status = answer.status();
        if !status.is_client_error() && !status.is_server_error() {
            return;
        }
        let answer_headers = answer.headers_mut();
        headers::put(answer_headers, self.has_session);
        // A token that is not valid any more would fail each request.
        if status == StatusCode::UNAUTHORIZED && self.has_cookie {
            answer_headers.append(header::SET_COOKIE, session::ended(COOKIE));
        }
        let parts = [
            self.base.as_str(),
            if self.has_session { "1" } else { "" },
            self.mount.as_deref().unwrap_or_default(),
            // Without its query, a page that was refused may be shown.
            self.page.as_deref().filter(|_| status == StatusCode::BAD_REQUEST).unwrap_or_default(),
            &self.here,
            self.signature.as_deref().unwrap_or_default(),
        ];
        let resource = parts.join("\n");
        let dialect = Dialect { resource, content_type: headers::media_type(), write: document };
        answer.extensions_mut().insert(dialect);
    }
}

fn prefers_html(headers: &HeaderMap) -> bool {
    negotiate::choose(headers, None, OFFERS).is_ok_and(|offer| offer.name == "html")
}

/// The second segment of a path, if it is plain.
fn mount_in(uri: &Uri) -> Option<String> {
    let name = uri.path().split('/').filter(|segment| !segment.is_empty()).nth(1)?;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
    is_plain.then(|| name.to_owned())
}

/// The page of a problem. `context` has the base path, whether tokens are known, the mount, the path of a page that may be shown,
/// the page to return to after signing in, and the signature in the URL, on a line each.
fn document(problem: &Problem, context: &str, request_id: &str) -> String {
    let mut lines = context.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (base, has_session, mount, page, here, signature) = (line(), line(), line(), line(), line(), line());
    let site = Site {
        session: (!has_session.is_empty()).then(|| session_path(base)),
        here: here.to_owned(),
        ..super::site::of_base(base)
    };
    let signed = |href: String| if signature.is_empty() { href } else { format!("{href}?{signature}") };
    let ways = ["did_you_mean", "nearest"].into_iter().filter_map(|member| {
        let path = problem.extensions().get(member).and_then(Value::as_str).filter(|_| !mount.is_empty())?;
        let path = path.trim_start_matches('/');
        let names: Vec<String> = path.split('/').map(encode).collect();
        let href = format!("{base}/view/{mount}/{}", names.join("/"));
        let name = if path.is_empty() { mount } else { path };
        Some((signed(href), name.to_owned()))
    });
    let listing = problem.extensions().get("listing").and_then(Value::as_str);
    let listing = listing.map(|path| (signed(format!("{base}{path}")), "List its keys".to_owned()));
    let plain = (!page.is_empty())
        .then(|| (signed(format!("{base}{page}")), "The same page without these words".to_owned()));
    ProblemPage {
        status: problem.status().as_u16(),
        title: problem.status().canonical_reason().unwrap_or("Error"),
        code: problem.code(),
        detail: problem.detail_text(),
        request_id,
        extensions: problem.extensions(),
        ways: listing.into_iter().chain(ways).chain(plain).collect(),
        asks_for_token: matches!(problem.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN),
    }
    .render(&site)
}
