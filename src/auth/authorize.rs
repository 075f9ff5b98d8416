//! [`authorize`]: the decision about one request, and what follows from it for the answer.
//!
//! Who shows nothing and is granted nothing is told 401, whether or not there is such a mount; who is known and may not,
//! 403. Who fails to show who it is too often is told 429 for the rest of the second. That is said of credentials that fail
//! alone: a good one from the same address is believed, unless telling that it is good would take work.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::credential::{Credential, CredentialError, InQuery, PresentedCredential};
use super::issuer::AuthError;
use super::jwt::Unverified;
use super::principal::{Principal, Rights};
use super::rules::{AccessRequest, ResourceKind};
use super::signed_url::SignedUrl;
use super::token::Tokens;
use super::within_array::is_in_an_array;
use super::{Access, rules};
use crate::api::webdav::destination;
use crate::http::caller::{Administrator, Caller};
use crate::http::problem::{Problem, READ_METHODS};
use crate::services::state::{AppState, Mount};
use crate::web::middleware::Route;

/// What follows from a decision for the answer.
#[derive(Debug, Default)]
pub(crate) struct ResponsePolicy {
    /// The credential that stood in the query, as it was written.
    in_query: Option<String>,
    /// Whether not everybody would have been given the answer.
    is_private: bool,
}

/// The answer in place of the handler's.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Response>);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem.into_response()))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Decides whether a request may go on, and takes its credential out of it; of `rooted` where that is the store at the root
/// path. Says of the caller what it may do.
///
/// # Errors
/// The answer in place of the handler's.
pub(crate) async fn authorize(
    state: &AppState,
    route: &Route,
    rooted: Option<&Arc<Mount>>,
    request: &mut Request,
) -> Result<ResponsePolicy, Refusal> {
    if state.access().is_open() || Administrator::is_asking(request.extensions()) {
        Caller::decide(request.extensions_mut(), Rights::All);
        return Ok(ResponsePolicy::default());
    }
    let Some(template) = route.template() else { return Ok(ResponsePolicy::default()) };
    // Its many steps would make every request's future as large.
    Box::pin(decide(state, template, rooted.map(|mount| &**mount), request)).await
}

async fn decide(
    state: &AppState,
    template: &str,
    rooted: Option<&Mount>,
    request: &mut Request,
) -> Result<ResponsePolicy, Refusal> {
    let access = state.access_now();
    let Some(about) = rules::about(template, rooted.is_some()) else {
        return Err(forbidden().into());
    };
    if about == ResourceKind::Nothing {
        return Ok(ResponsePolicy::default());
    }
    if *request.method() == Method::OPTIONS {
        return preflight(state, &access, about, rooted, request);
    }
    let allowed = InQuery { tokens: access.query_tokens, signatures: !access.signing_keys.is_empty() };
    let speaks_s3 = rooted.is_none() && (template == "/s3" || template.starts_with("/s3/"));
    let address = Caller::of(request.extensions()).address();
    let brought = PresentedCredential::by(request, allowed, speaks_s3);
    // The URL is as handlers see it from here on.
    let asked = rules::asked(state, about, rooted, request)?;
    let fails = || {
        if state.attempts().are_too_many(address) {
            return too_many();
        }
        state.attempts().count(address);
        bad_credential()
    };
    let PresentedCredential { credential, in_query } = match brought {
        Ok(brought) => brought,
        Err(CredentialError::Several) => return Err(several().into()),
        Err(CredentialError::NotOne) => return Err(fails().into()),
    };
    let principal = match &credential {
        None => Ok(Arc::clone(&access.nobody)),
        Some(credential) => {
            let may_work = || !state.attempts().are_too_many(address);
            access.authenticate(credential, &asked, may_work).await
        }
    };
    let principal = match principal {
        Ok(principal) => principal,
        Err(AuthError::Bad) => return Err(fails().into()),
        Err(AuthError::Unverified) => return Err(too_many().into()),
        Err(AuthError::Unknown) => return Err(unknown().into()),
    };
    let rights = Rights::Of { access, principal };
    let is_private = match about {
        ResourceKind::Mounts | ResourceKind::Nothing => credential.is_some(),
        _ => {
            let refused = || if credential.is_some() { forbidden() } else { no_credential() };
            check(state, &rights, &asked, refused).await?;
            transfer(state, &rights, rooted, request)?;
            let is_for_all = |need| rights.is_for_all(&asked.mount, need);
            asked.needs.is_empty() || !asked.needs.iter().chain(&asked.of_more).all(is_for_all)
        }
    };
    Caller::decide(request.extensions_mut(), rights);
    if let (Some(Credential::Signed(signed)), Some(query)) = (&credential, &in_query)
        && let Some(signed) = SignedUrl::of(signed, query)
    {
        request.extensions_mut().insert(signed);
    }
    Ok(ResponsePolicy { in_query, is_private })
}

/// Lets OPTIONS pass where the mount is known to anybody. It brings no credential, as browsers have it, and what it is told
/// of other mounts is the same whether or not there are any.
fn preflight(
    state: &AppState,
    access: &Arc<Access>,
    about: ResourceKind,
    rooted: Option<&Mount>,
    request: &mut Request,
) -> Result<ResponsePolicy, Refusal> {
    let asked = rules::asked(state, about, rooted, request)?;
    let rights = Rights::Of { access: Arc::clone(access), principal: Arc::clone(&access.nobody) };
    if about != ResourceKind::Mounts && !rights.can_see(&asked.mount) {
        let answer = (StatusCode::NO_CONTENT, [(header::ALLOW, READ_METHODS)]).into_response();
        return Err(Refusal(Box::new(answer)));
    }
    Caller::decide(request.extensions_mut(), rights);
    Ok(ResponsePolicy::default())
}

/// Whether all that is asked for is granted.
async fn check(
    state: &AppState,
    rights: &Rights,
    asked: &AccessRequest,
    refused: impl Fn() -> Problem,
) -> Result<(), Problem> {
    let AccessRequest { mount, needs, .. } = asked;
    if needs.is_empty() && !rights.can_see(mount) {
        return Err(refused());
    }
    for need in needs {
        let prefix = rights.covering_grant(mount, need).ok_or_else(&refused)?;
        if !need.is_derived || prefix.is_root() {
            continue;
        }
        // Where there is no such mount, there is nothing to be read.
        if let Some((_, opener)) = state.mount_and_opener(mount)
            && is_in_an_array(opener, &prefix).await?
        {
            return Err(forbidden().detail(
                "what is granted lies inside an array, so that only its stored values can be read, by `/store`",
            ));
        }
    }
    Ok(())
}

/// Whether what COPY and MOVE do to their destination is granted.
fn transfer(
    state: &AppState,
    rights: &Rights,
    rooted: Option<&Mount>,
    request: &Request,
) -> Result<(), Problem> {
    if !matches!(request.method().as_str(), "COPY" | "MOVE") {
        return Ok(());
    }
    let rooted = rooted.and_then(|mount| state.mount(&mount.name));
    let (mount, place, overwrites) = destination(state, rooted, request)?;
    let needs = rules::of_destination(&mount, &place, overwrites);
    if needs.iter().all(|need| rights.allows(&mount.name, need)) { Ok(()) } else { Err(forbidden()) }
}

impl Access {
    /// Whoever a credential shows. What takes work is done only where that may be.
    async fn authenticate(
        &self,
        credential: &Credential,
        asked: &AccessRequest,
        may_work: impl Fn() -> bool,
    ) -> Result<Arc<Principal>, AuthError> {
        let now = self.now();
        match credential {
            Credential::Signed(query) => {
                let holder = self.signing_keys.authenticate(query, &asked.mount, asked.place.as_ref(), now);
                holder.map(Arc::new).ok_or(AuthError::Bad)
            }
            Credential::Bearer(token) if Tokens::is_one(token) => {
                self.tokens.authenticate(token, now).map(Arc::clone).ok_or(AuthError::Bad)
            }
            Credential::Bearer(token) => {
                let unverified = Unverified::parse(token).ok_or(AuthError::Bad)?;
                let issuer = self.issuers.iter().find(|issuer| issuer.has_issued(&unverified));
                let issuer = issuer.ok_or(AuthError::Bad)?;
                issuer.authenticate(token, unverified, now, may_work).await
            }
        }
    }
}

impl ResponsePolicy {
    /// Has an answer be for whoever asked alone, where it is not for everybody; and lets a URL with a credential in it be
    /// neither told to other sites nor lost in a redirect to the same place.
    pub(crate) fn apply(&self, answer: &mut Response) {
        let headers = answer.headers_mut();
        if self.is_private {
            let configured = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
            let value = HeaderValue::try_from(private(configured.unwrap_or_default()));
            headers.insert(header::CACHE_CONTROL, value.unwrap_or(HeaderValue::from_static("private")));
            headers.append(header::VARY, HeaderValue::from_static("Authorization"));
        }
        let Some(in_query) = &self.in_query else { return };
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        let location = headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
        // Ours are relative; what leads elsewhere is not told.
        if let Some(location) = location.filter(|location| location.starts_with("./")) {
            let separator = if location.contains('?') { '&' } else { '?' };
            if let Ok(location) = HeaderValue::try_from(format!("{location}{separator}{in_query}")) {
                headers.insert(header::LOCATION, location);
            }
        }
    }
}

/// `Cache-Control` for one caller, of the one that is for all.
fn private(configured: &str) -> String {
    let parts = configured.split(',').map(str::trim);
    let is_for_one = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default().trim();
        !name.is_empty()
            && !["public", "private", "s-maxage"].iter().any(|shared| name.eq_ignore_ascii_case(shared))
    };
    std::iter::once("private").chain(parts.filter(is_for_one)).collect::<Vec<_>>().join(", ")
}

fn no_credential() -> Problem {
    unauthorized("Bearer").detail("this needs a token, in `Authorization: Bearer`")
}

fn bad_credential() -> Problem {
    unauthorized("Bearer error=\"invalid_token\"")
        .detail("the token or signature is no good here: unknown, expired, or for something else")
}

fn unauthorized(challenge: &'static str) -> Problem {
    let challenge = HeaderValue::from_static(challenge);
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized").header(header::WWW_AUTHENTICATE, challenge)
}

/// The caller is known, and may not.
pub(crate) fn forbidden() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden").detail("the token or signature does not grant this here")
}

fn several() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "several-credentials")
        .detail("send one credential: one `Authorization` header, or one token or signature in the URL")
}

fn too_many() -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-attempts")
        .detail("too many bad credentials came from this address, and this is none that is known; ask again in a second")
        .header(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

fn unknown() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "issuer-unavailable")
        .detail("the keys of the token's issuer cannot be had now")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_one_caller_is_kept_by_that_one_alone() {
        for (configured, told) in [
            ("", "private"),
            ("no-cache", "private, no-cache"),
            ("public, max-age=60, immutable", "private, max-age=60, immutable"),
            ("Public,s-maxage=5 , max-age=1", "private, max-age=1"),
            ("no-store", "private, no-store"),
            ("private", "private"),
        ] {
            assert_eq!(private(configured), told);
        }
    }
}
