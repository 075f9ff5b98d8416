//! [`Authorizer`]: the decision about one request, and its effects on the response.
//!
//! A caller without a credential and without a grant gets 401, whether or not the mount exists; a known caller without
//! a grant gets 403. An address with too many bad credentials gets 429 for the rest of the second. That holds for bad
//! credentials only: a good one from the same address is accepted, unless its verification would take work.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::access::Access;
use super::caller::{Administrator, Caller};
use super::credential::{AwsSignatures, Credential, CredentialError, InQuery, PresentedCredential};
use super::failed_auth::FailedAuthLimiter;
use super::grant::Permission;
use super::issuer::AuthError;
use super::jwt::Unverified;
use super::lookup::MountLookup;
use super::principal::Principal;
use super::rights::Rights;
use super::rules::{AccessRequest, access_request, of_destination};
use super::scope::Scope;
use super::signed_url::SignedUrl;
use super::token::Tokens;
use super::within_array::{is_in_an_array, is_in_an_image};
use crate::array::NodeOpener;
use crate::http::base_path::BasePath;
use crate::http::path::PathError;
use crate::http::problem::{Problem, READ_METHODS};
use crate::http::route::{Resource, RouteSpec};
use crate::http::target::Target;
use crate::http::webdav_headers;
use crate::key::StorePrefix;

/// The effects of a decision on the response.
#[derive(Debug, Default)]
pub(crate) struct ResponsePolicy {
    /// The credential from the query, as it was written.
    in_query: Option<String>,
    /// Whether some callers would not get this response.
    is_private: bool,
    /// Whether the credential is that of the cookie.
    is_cookie: bool,
}

/// The response in place of the handler's.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Response>);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem.into_response()))
    }
}

impl From<PathError> for Refusal {
    fn from(error: PathError) -> Self {
        Problem::from(error).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Decides about requests, by the grants, the failures so far and the mounts.
#[derive(Clone, Copy)]
pub(crate) struct Authorizer<'a> {
    /// The grants.
    pub(crate) access: &'a ArcSwap<Access>,
    /// The failures, by address.
    pub(crate) failures: &'a FailedAuthLimiter,
    /// The mounts.
    pub(crate) mounts: &'a (dyn MountLookup + Sync),
}

impl Authorizer<'_> {
    /// Decides whether a request may go on, takes its credential out of it, and records the caller's rights. `root` is the
    /// name of the mount that is served at the root path.
    ///
    /// # Errors
    /// The response in place of the handler's.
    pub(crate) async fn authorize(
        self,
        spec: Option<&RouteSpec>,
        root: Option<&str>,
        request: &mut Request,
    ) -> Result<ResponsePolicy, Refusal> {
        if self.access.load().is_open() || Administrator::is_asking(request.extensions()) {
            Caller::decide(request.extensions_mut(), Rights::All);
            return Ok(ResponsePolicy::default());
        }
        let Some(spec) = spec.filter(|spec| spec.resource != Resource::Public) else {
            return Ok(ResponsePolicy::default());
        };
        // Boxed: its many steps would make the future of every request as large.
        Box::pin(self.decide(spec, root, request)).await
    }

    async fn decide(
        self,
        spec: &RouteSpec,
        root: Option<&str>,
        request: &mut Request,
    ) -> Result<ResponsePolicy, Refusal> {
        let access = self.access.load_full();
        if *request.method() == Method::OPTIONS {
            return preflight(&access, spec, root, request);
        }
        let allowed = InQuery { tokens: access.query_tokens, signatures: !access.signing_keys.is_empty() };
        let address = Caller::of(request.extensions()).network();
        let signatures = match (spec.speaks_s3, access.has_credentials) {
            (false, _) => AwsSignatures::None,
            (true, false) => AwsSignatures::Ignored,
            (true, true) => AwsSignatures::Checked,
        };
        let presented = PresentedCredential::by(request, allowed, signatures);
        // From here on, the URL is the one that handlers see.
        let target = Target::parse(spec.resource, request.uri(), root.is_some())?.into_owned();
        let needed =
            access_request(self.mounts, spec.resource, &target, root, request.method(), request.uri())?;
        let fails = |problem: Problem| {
            if self.failures.are_too_many(address) {
                return too_many();
            }
            self.failures.count(address);
            problem
        };
        let PresentedCredential { credential, in_query, is_cookie } = match presented {
            Ok(presented) => presented,
            Err(CredentialError::Several) => return Err(several().into()),
            Err(CredentialError::NotOne) => return Err(fails(bad_credential()).into()),
            Err(CredentialError::Aws(error)) => return Err(fails(error.into()).into()),
        };
        let mut chunks = None;
        let principal = match &credential {
            None => Ok(Arc::clone(&access.anonymous_principal)),
            Some(Credential::Aws(signature)) => {
                let checked = access.s3_keys.authenticate(signature, access.now());
                let (holder, signer) = checked.map_err(|error| fails(error.into()))?;
                chunks = Some(signer);
                Ok(holder)
            }
            Some(credential) => {
                let may_work = || !self.failures.are_too_many(address);
                access.authenticate(credential, &needed, may_work).await
            }
        };
        let principal = match principal {
            Ok(principal) => principal,
            Err(AuthError::Bad) => return Err(fails(bad_credential()).into()),
            Err(AuthError::Unverified) => return Err(too_many().into()),
            Err(AuthError::Unknown) => return Err(unknown().into()),
        };
        let rights = Rights::Of { access, principal };
        // Of a refused caller too: the audit log names it.
        Caller::decide(request.extensions_mut(), rights.clone());
        let is_private = if spec.resource == Resource::Mounts {
            credential.is_some()
        } else {
            let refused = |scope: Option<Scope>| match (&credential, scope) {
                (None, _) if spec.speaks_s3 => unsigned(),
                (None, _) => no_credential(),
                // A caller that may do nothing with the mount does not learn more of it.
                (Some(_), Some(scope)) if rights.can_see(&needed.mount) => lacks(scope),
                (Some(_), _) => forbidden(),
            };
            self.check(&rights, &needed, refused).await?;
            self.check_destination(&rights, &needed.mount, &target, request)?;
            let is_for_all = |need| rights.is_for_all(&needed.mount, need);
            needed.needs.is_empty() || !needed.needs.iter().chain(&needed.of_more).all(is_for_all)
        };
        request.extensions_mut().insert(target);
        if let Some(chunks) = chunks {
            request.extensions_mut().insert(chunks);
        }
        if let Some(Credential::Signed(signed)) = &credential
            && let Some(signed) = SignedUrl::of(signed)
        {
            request.extensions_mut().insert(signed);
        }
        Ok(ResponsePolicy { in_query, is_private, is_cookie })
    }

    /// Checks a token that someone signs in with, from an address.
    ///
    /// # Errors
    /// 401 for a token that is not valid here; 429 after too many of them.
    pub(crate) async fn check_token(self, token: &str, address: IpAddr) -> Result<(), Problem> {
        let access = self.access.load_full();
        let asked = AccessRequest::default();
        let may_work = || !self.failures.are_too_many(address);
        match access.authenticate(&Credential::Bearer(token.to_owned()), &asked, may_work).await {
            Ok(_) => Ok(()),
            Err(AuthError::Unverified) => Err(too_many()),
            Err(AuthError::Unknown) => Err(unknown()),
            Err(AuthError::Bad) if self.failures.are_too_many(address) => Err(too_many()),
            Err(AuthError::Bad) => {
                self.failures.count(address);
                Err(bad_credential())
            }
        }
    }

    /// Whether the caller has all permissions that a request needs.
    async fn check(
        self,
        rights: &Rights,
        needed: &AccessRequest,
        refused: impl Fn(Option<Scope>) -> Problem,
    ) -> Result<(), Problem> {
        let AccessRequest { mount, needs, .. } = needed;
        if needs.is_empty() && !rights.can_see(mount) {
            return Err(refused(None));
        }
        for need in needs {
            if !rights.allows(mount, need) {
                return Err(refused(Some(need.scope)));
            }
            if !need.is_derived {
                continue;
            }
            let prefix = rights.covering_grant(mount, need).ok_or_else(|| refused(Some(need.scope)))?;
            if prefix.is_root() {
                continue;
            }
            // A mount that does not exist has nothing to read.
            if let Some(opener) = self.mounts.opener(mount) {
                check_around(opener, &prefix).await?;
            }
            if needed.is_of_images
                && let Some(opener) = self.mounts.opener(mount)
                && is_in_an_image(opener, &prefix).await?
            {
                return Err(forbidden().detail(
                    "the grant lies inside an image, or below a group that says where its arrays are on a map: other \
                     views and `/store` can be read",
                ));
            }
        }
        Ok(())
    }

    /// Whether the caller may do to the destination what COPY and MOVE do to it.
    fn check_destination(
        self,
        rights: &Rights,
        mount: &str,
        target: &Target<'_>,
        request: &Request,
    ) -> Result<(), Problem> {
        if !matches!(request.method().as_str(), "COPY" | "MOVE") {
            return Ok(());
        }
        let destination = webdav_headers::destination(request.uri(), request.headers())?;
        let base = BasePath::of(request.extensions());
        let path = base.strip(destination.path()).ok_or_else(webdav_headers::remote_destination)?;
        let place = target.resolve_destination(path)?.ok_or_else(webdav_headers::remote_destination)?;
        let overwrites = webdav_headers::overwrite(request.headers())?;
        let needs = of_destination(self.mounts.erases_prefixes(mount), &place, overwrites);
        let missing = needs.iter().find(|need| !rights.allows(mount, need));
        missing.map_or(Ok(()), |need| Err(lacks(need.scope)))
    }
}

/// Checks that a caller has a permission for what is derived from a node that no URL names.
///
/// # Errors
/// 403; a failure of the backend.
pub(crate) async fn check_derived(
    rights: &Rights,
    mount: &str,
    opener: &NodeOpener,
    need: &Permission,
) -> Result<(), Problem> {
    let prefix = rights.covering_grant(mount, need).ok_or_else(|| lacks(need.scope))?;
    if prefix.is_root() { Ok(()) } else { check_around(opener, &prefix).await }
}

/// Refuses a granted prefix inside an array for what is derived from its nodes.
async fn check_around(opener: &NodeOpener, prefix: &StorePrefix) -> Result<(), Problem> {
    if !is_in_an_array(opener, prefix).await? {
        return Ok(());
    }
    Err(forbidden()
        .detail("the grant lies inside an array, so that only its stored values can be read, by `/store`"))
}

/// Lets OPTIONS pass where every caller may see the mount. Browsers send no credential with it; for other mounts the
/// response is the same whether or not they exist.
fn preflight(
    access: &Arc<Access>,
    spec: &RouteSpec,
    root: Option<&str>,
    request: &mut Request,
) -> Result<ResponsePolicy, Refusal> {
    let rights =
        Rights::Of { access: Arc::clone(access), principal: Arc::clone(&access.anonymous_principal) };
    let target = Target::parse(spec.resource, request.uri(), root.is_some())?;
    let mount = target.mount().or(root).unwrap_or_default();
    if spec.resource != Resource::Mounts && !rights.can_see(mount) {
        let answer = (StatusCode::NO_CONTENT, [(header::ALLOW, READ_METHODS)]).into_response();
        return Err(Refusal(Box::new(answer)));
    }
    Caller::decide(request.extensions_mut(), rights);
    Ok(ResponsePolicy::default())
}

impl Access {
    /// The principal of a credential. Verification that takes work runs only if `may_work` allows it.
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
            // The signatures of S3 clients are checked with what checks the chunks of their bodies.
            Credential::Aws(_) => Err(AuthError::Bad),
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
    /// Marks a response that some callers would not get as private. A URL with a credential in it is not sent to other
    /// sites as a referrer, and a redirect to the same place keeps the credential.
    pub(crate) fn apply(&self, answer: &mut Response) {
        let headers = answer.headers_mut();
        if self.is_private {
            let configured = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
            let value = HeaderValue::try_from(private(configured.unwrap_or_default()));
            headers.insert(header::CACHE_CONTROL, value.unwrap_or(HeaderValue::from_static("private")));
            headers.append(header::VARY, HeaderValue::from_static("Authorization"));
            if self.is_cookie {
                headers.append(header::VARY, HeaderValue::from_static("Cookie"));
            }
        }
        let Some(in_query) = &self.in_query else { return };
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        let location = headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
        // The server's own redirects are relative; others do not get the credential.
        if let Some(location) = location.filter(|location| location.starts_with("./")) {
            let separator = if location.contains('?') { '&' } else { '?' };
            if let Ok(location) = HeaderValue::try_from(format!("{location}{separator}{in_query}")) {
                headers.insert(header::LOCATION, location);
            }
        }
    }
}

/// `Cache-Control` for one caller, derived from the one for all.
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

/// The problem of a request without a credential to a route that S3 clients use.
fn unsigned() -> Problem {
    no_credential().detail(
        "this needs a signature with a key of `access.s3_keys`, as S3 clients make it, or a token in `Authorization: Bearer`",
    )
}

fn bad_credential() -> Problem {
    unauthorized("Bearer error=\"invalid_token\"")
        .detail("the token or signature is not valid here: it is unknown, expired, or for something else")
}

fn unauthorized(challenge: &'static str) -> Problem {
    let challenge = HeaderValue::from_static(challenge);
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized").header(header::WWW_AUTHENTICATE, challenge)
}

/// The problem for a known caller of a mount without the scope that the request takes.
pub(crate) fn lacks(scope: Scope) -> Problem {
    let scope = scope.as_str();
    forbidden()
        .detail(format!("the token or signature does not grant this here: it takes the scope `{scope}`"))
}

/// The problem for a known caller without the needed grant.
fn forbidden() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden").detail("the token or signature does not grant this here")
}

fn several() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "several-credentials")
        .detail("send one credential: one `Authorization` header, or one token or signature in the URL")
}

fn too_many() -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-attempts")
        .detail("too many bad credentials came from this address, and this one is not known; ask again in a second")
        .header(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

fn unknown() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "issuer-unavailable")
        .detail("the keys of the token's issuer are not available now; ask again later")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_for_one_caller_is_not_kept_by_shared_caches() {
        for (configured, expected) in [
            ("", "private"),
            ("no-cache", "private, no-cache"),
            ("public, max-age=60, immutable", "private, max-age=60, immutable"),
            ("Public,s-maxage=5 , max-age=1", "private, max-age=1"),
            ("no-store", "private, no-store"),
            ("private", "private"),
        ] {
            assert_eq!(private(configured), expected);
        }
    }
}
