//! Signing in and out: a token in a cookie of the browser, which counts for reading alone.
//!
//! Navigations and pictures cannot send `Authorization`. The cookie is for this host and for encrypted connections (which
//! browsers take those to this machine for), no script reads it, and no page of another site sends it.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use tokio::time::timeout;

use super::{headers, site};
use crate::auth::caller::Caller;
use crate::auth::{COOKIE, origin};
use crate::error::ErrorClass;
use crate::http::base_path::BasePath;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::page::{SignInPage, Site};
use crate::services::state::AppState;

/// Signing in and out. A POST stores nothing.
pub(crate) const SESSION: RouteSpec = RouteSpec::new("/view/-/session", Resource::Public)
    .admitted_by(AdmittedBy::Exempt)
    .for_people()
    .post_reads();

/// Longest form, in bytes.
const MOST_BYTES: usize = 16 << 10;
/// Longest path that signing in returns to, in bytes.
const MOST_PATH: usize = 4 << 10;
/// The page of all mounts.
const FIRST_PAGE: &str = "/";

pub(super) fn route() -> (&'static RouteSpec, MethodRouter<AppState>) {
    (&SESSION, get(form).post(sign_in))
}

/// The cookie that ends the session.
pub(super) fn ended(name: &str) -> HeaderValue {
    let text = format!("{name}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict");
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

fn check_ui(state: &AppState) -> Result<(), Problem> {
    if state.options.ui { Ok(()) } else { Err(Problem::from_class(ErrorClass::NotFound)) }
}

/// The page for signing in.
async fn form(
    State(state): State<AppState>,
    base: BasePath,
    caller: Caller,
    uri: Uri,
    request: HeaderMap,
) -> Result<Response, Problem> {
    check_ui(&state)?;
    let query = uri.query().unwrap_or_default();
    let site = Site {
        here: field(query.as_bytes(), "next").filter(|next| is_local(next)).unwrap_or_default(),
        ..site::site(&state, &base, &caller, &uri, &request)
    };
    Ok(headers::answer(&request, SignInPage { was_refused: false }.render(&site), site.session.is_some()))
}

/// Sets the cookie for a valid token, or ends the session.
async fn sign_in(
    State(state): State<AppState>,
    base: BasePath,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    check_ui(&state)?;
    let (head, body) = request.into_parts();
    if origin::is_foreign(&head.uri, &head.headers) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "cross-origin-write")
            .detail("only the pages of this server sign in here"));
    }
    // A form is short: all of it must come within the time that a body may send nothing.
    let body = timeout(state.options.body_stall_timeout, axum::body::to_bytes(body, MOST_BYTES)).await;
    let body = body.map_err(|_late| Problem::from_status(StatusCode::REQUEST_TIMEOUT))?;
    let body = body.map_err(|_too_long| Problem::from_class(ErrorClass::TooLarge))?;
    if field(&body, "end").is_some() {
        return Ok(to(FIRST_PAGE, ended(COOKIE)));
    }
    let next = field(&body, "next").filter(|next| is_local(next));
    let token = field(&body, "token").filter(|token| !token.is_empty()).ok_or_else(|| {
        Problem::from_class(ErrorClass::InvalidRequest).detail("the form has no field `token`")
    })?;
    match state.access.authorizer().check_token(&token, caller.network()).await {
        Ok(()) => {
            let cookie = format!("{COOKIE}={token}; Path=/; HttpOnly; Secure; SameSite=Strict");
            let cookie = HeaderValue::try_from(cookie).map_err(|_not_ascii| bad_token())?;
            Ok(to(next.as_deref().unwrap_or(FIRST_PAGE), cookie))
        }
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => {
            let site = Site {
                here: next.unwrap_or_default(),
                ..site::site(&state, &base, &caller, &head.uri, &head.headers)
            };
            let page = SignInPage { was_refused: true }.render(&site);
            let mut answer = headers::answer(&HeaderMap::new(), page, site.session.is_some());
            answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            Ok(answer)
        }
        Err(problem) => Err(problem),
    }
}

fn bad_token() -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail("the token has characters that no token has")
}

/// The first field of a name in a form or a query, without blanks around it.
fn field(form: &[u8], name: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(form);
    pairs.find(|(known, _)| known == name).map(|(_, value)| value.trim().to_owned())
}

/// Whether a text is the path of a page on this server, with or without a query. Browsers take a second slash, or a backslash,
/// for the beginning of a host, and skip line ends and tabs before they read a URL. Signing in does not lead to signing in.
fn is_local(text: &str) -> bool {
    let is_path = text.starts_with('/') && !text.starts_with("//");
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    is_path && is_plain && text.len() <= MOST_PATH && !text.starts_with(SESSION.template)
}

/// A redirect to a page that sets the cookie. The base path is added to it as to every redirect.
fn to(page: &str, cookie: HeaderValue) -> Response {
    let mut answer = StatusCode::SEE_OTHER.into_response();
    let page = HeaderValue::try_from(page).unwrap_or(HeaderValue::from_static(FIRST_PAGE));
    answer.headers_mut().insert(header::LOCATION, page);
    answer.headers_mut().insert(header::SET_COOKIE, cookie);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_returns_to_paths_of_this_server_alone() {
        for text in
            ["/", "/view/m/a?slice=0,:&tab=use", "/view/m/%2F%2Fhost", "/a//b", "/a?next=https://host/"]
        {
            assert!(is_local(text), "{text}");
        }
        for text in [
            "",
            "view/m",
            "//host/a",
            "/\\host/a",
            "\\\\host",
            "/a\\b",
            "/\t/host",
            "/\n/host",
            "/a b",
            "/\u{e9}",
            "https://host/a",
            "javascript:alert(1)",
            "?a",
            "/view/-/session?next=/",
        ] {
            assert!(!is_local(text), "{text:?}");
        }
        assert!(!is_local(&format!("/{}", "a".repeat(MOST_PATH))));
    }
}
