//! [`Credential`]: the proof of identity in a request, and the URL without it.
//!
//! A request has one credential, in one place: `Authorization: Bearer` (RFC 6750, section 2.1; the scheme in any case),
//! or, where the configuration allows it, in the query of GET and HEAD: `token=` or the parameters of a signed URL. A
//! credential in the query is removed before a handler or a cache sees the URL. On the routes of S3 the signature of a
//! request is its credential.
//!
//! Where there is none of these, the cookie of the pages counts ([`COOKIE`]), for GET and HEAD alone: no page of others
//! can write with it.

use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use percent_encoding::percent_decode_str;

use super::signed_url::SignedQuery;
use super::sigv4::{AwsError, AwsSignature};

/// Limit of the length of `Authorization`, in bytes; a value of that length is too long.
const MOST_BYTES: usize = 8 << 10;

/// The cookie in which a browser keeps a token (RFC 6265bis, section 4.1.3.2: a cookie of this host alone).
pub(crate) const COOKIE: &str = "__Host-zarrd";

/// A proof of identity.
#[derive(Clone, Debug)]
pub(super) enum Credential {
    /// A token.
    Bearer(String),
    /// The parameters of a signed URL.
    Signed(SignedQuery),
    /// The signature of an S3 client.
    Aws(Box<AwsSignature>),
}

/// The errors in the form of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CredentialError {
    /// More than one credential.
    Several,
    /// A value that cannot be a credential.
    NotOne,
    /// A signature of an S3 client that cannot be checked.
    Aws(AwsError),
}

/// What is done with the signatures of S3 clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwsSignatures {
    /// They have no meaning on this route.
    None,
    /// They are accepted and ignored: no credential is configured.
    Ignored,
    /// They are credentials.
    Checked,
}

/// The kinds of credentials that a query may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InQuery {
    /// `token`.
    pub(super) tokens: bool,
    /// `expires`, `key`, `signature` and `below`.
    pub(super) signatures: bool,
}

/// The credential of a request.
#[derive(Debug, Default)]
pub(super) struct PresentedCredential {
    pub(super) credential: Option<Credential>,
    /// The credential's parameters in the query, as they were written, if there are any.
    pub(super) in_query: Option<String>,
    /// Whether the credential is that of the cookie.
    pub(super) is_cookie: bool,
}

impl PresentedCredential {
    /// Takes the credential out of a request.
    pub(super) fn by(
        request: &mut Request,
        allowed: InQuery,
        signatures: AwsSignatures,
    ) -> Result<Self, CredentialError> {
        let signature = if signatures == AwsSignatures::Checked { of_aws(request)? } else { None };
        let speaks_s3 = signatures != AwsSignatures::None;
        let by_header = of_headers(request.headers(), speaks_s3)?;
        if signature.is_some() && by_header.is_some() {
            return Err(CredentialError::Several);
        }
        let by_header = signature.or(by_header);
        let Some(found) = Found::in_query(request.uri(), allowed)? else {
            let reads = matches!(*request.method(), Method::GET | Method::HEAD);
            let cookie = || of_cookies(request.headers()).map(Credential::Bearer);
            let by_cookie = if by_header.is_none() && reads { cookie() } else { None };
            let is_cookie = by_cookie.is_some();
            return Ok(Self { credential: by_header.or(by_cookie), in_query: None, is_cookie });
        };
        if by_header.is_some() {
            return Err(CredentialError::Several);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(CredentialError::NotOne);
        }
        let Found { credential, text, rest } = found;
        *request.uri_mut() = with_query(request.uri(), &rest).ok_or(CredentialError::NotOne)?;
        Ok(Self { credential: Some(credential), in_query: Some(text), is_cookie: false })
    }
}

/// The token in the cookie of the pages.
pub(crate) fn of_cookies(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter(|line| line.len() < MOST_BYTES);
    let mut cookies = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
    let token = cookies.find_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='))?;
    (!token.is_empty()).then(|| token.to_owned())
}

/// The signature of an S3 client, in `Authorization` or in the query. It stays there: it is not a secret, and valid for this
/// request alone.
fn of_aws(request: &Request) -> Result<Option<Credential>, CredentialError> {
    let in_header = AwsSignature::in_header(request).map_err(CredentialError::Aws)?;
    let in_query = AwsSignature::in_query(request).map_err(CredentialError::Aws)?;
    match (in_header, in_query) {
        (Some(_), Some(_)) => Err(CredentialError::Several),
        (found, other) => Ok(found.or(other).map(|signature| Credential::Aws(Box::new(signature)))),
    }
}

/// The credential in `Authorization`.
fn of_headers(headers: &HeaderMap, speaks_s3: bool) -> Result<Option<Credential>, CredentialError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(CredentialError::Several);
    }
    let is_plain = |value: &&HeaderValue| value.len() < MOST_BYTES && value.as_bytes().is_ascii();
    let text =
        Some(value).filter(is_plain).and_then(|value| value.to_str().ok()).ok_or(CredentialError::NotOne)?;
    if speaks_s3 && text.starts_with("AWS") {
        return Ok(None);
    }
    let (scheme, token) = text.trim().split_once(' ').ok_or(CredentialError::NotOne)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(CredentialError::NotOne);
    }
    Ok(Some(Credential::Bearer(token.trim_start_matches(' ').to_owned())))
}

/// A credential in a query.
struct Found {
    credential: Credential,
    /// Its parameters, as they are written.
    text: String,
    /// The other parameters.
    rest: String,
}

impl Found {
    fn in_query(uri: &Uri, allowed: InQuery) -> Result<Option<Self>, CredentialError> {
        let Some(query) = uri.query().filter(|_| allowed.tokens || allowed.signatures) else {
            return Ok(None);
        };
        let pairs = || query.split('&').map(|pair| (pair, pair.split_once('=').unwrap_or((pair, ""))));
        // Without a signature these names are ordinary parameters.
        let is_signed = allowed.signatures && pairs().any(|(_, (name, _))| name == "signature");
        let (mut token, mut signed) = (None, SignedQuery::default());
        let (mut text, mut rest) = (String::new(), String::new());
        for (pair, (name, value)) in pairs() {
            let place = match name {
                "token" if allowed.tokens => &mut token,
                "expires" if is_signed => &mut signed.expires,
                "key" if is_signed => &mut signed.key,
                "signature" if is_signed => &mut signed.signature,
                "below" if is_signed && is_prefix(value) => &mut signed.below,
                _ => {
                    push(&mut rest, pair);
                    continue;
                }
            };
            // Forms of browsers write a space in a prefix as `+`.
            let value = if name == "below" { value.replace('+', " ") } else { value.to_owned() };
            let value =
                percent_decode_str(&value).decode_utf8().map_err(|_not_utf8| CredentialError::NotOne)?;
            if place.replace(value.into_owned()).is_some() {
                return Err(CredentialError::Several);
            }
            push(&mut text, pair);
        }
        let credential = match (token, is_signed) {
            (None, false) => return Ok(None),
            (Some(_), true) => return Err(CredentialError::Several),
            (Some(token), false) => Credential::Bearer(token),
            (None, true) => Credential::Signed(signed),
        };
        Ok(Some(Self { credential, text, rest }))
    }
}

/// Whether the value of `below` is the prefix of a signature, as it is written: that of a picture is a colour.
fn is_prefix(value: &str) -> bool {
    value.is_empty() || value.ends_with('/') || value.ends_with("%2F") || value.ends_with("%2f")
}

/// The path and query of a URL without a credential in it: what the same page is for another caller.
pub(crate) fn without_credential(uri: &Uri) -> String {
    let rest = match Found::in_query(uri, InQuery { tokens: true, signatures: true }) {
        Ok(Some(found)) => found.rest,
        Ok(None) => uri.query().unwrap_or_default().to_owned(),
        Err(_) => String::new(),
    };
    if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) }
}

/// The signature in a URL, valid or not, as it is written.
pub(crate) fn signature_in(uri: &Uri) -> Option<String> {
    let found = Found::in_query(uri, InQuery { tokens: false, signatures: true });
    found.ok().flatten().map(|found| found.text)
}

fn push(query: &mut String, pair: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(pair);
}

/// The URL with another query; an empty query is left out.
fn with_query(uri: &Uri, query: &str) -> Option<Uri> {
    let path = uri.path();
    let text = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const BOTH: InQuery = InQuery { tokens: true, signatures: true };

    fn presented_credential(
        method: &str,
        url: &str,
        headers: &[&str],
        allowed: InQuery,
    ) -> Result<(String, String), CredentialError> {
        let mut request = Request::builder().method(method).uri(url).body(Body::empty()).unwrap();
        for value in headers {
            request
                .headers_mut()
                .append(header::AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let brought = PresentedCredential::by(&mut request, allowed, AwsSignatures::None)?;
        let credential = match brought.credential {
            None => "none".to_owned(),
            Some(Credential::Bearer(token)) => format!("bearer {token}"),
            Some(Credential::Aws(signature)) => format!("aws {}", signature.access_key_id),
            Some(Credential::Signed(SignedQuery { expires, key, signature, below })) => {
                let part = |part: Option<String>| part.unwrap_or_default();
                format!("signed {} {} {} {}", part(expires), part(key), part(signature), part(below))
            }
        };
        Ok((credential, request.uri().to_string()))
    }

    #[test]
    fn the_authorization_header_holds_one_bearer_token_of_bounded_length() {
        let of = |headers: &[&str]| {
            presented_credential("PUT", "/a", headers, BOTH).map(|(credential, _)| credential)
        };
        for (headers, expected) in [
            (&[][..], Ok("none")),
            (&["Bearer x"], Ok("bearer x")),
            (&["bearer  x"], Ok("bearer x")),
            (&["BEARER x y"], Ok("bearer x y")),
            (&["Bearer x", "Bearer x"], Err(CredentialError::Several)),
            (&[""], Err(CredentialError::NotOne)),
            (&["Bearer"], Err(CredentialError::NotOne)),
            (&["Bearer "], Err(CredentialError::NotOne)),
            (&["Basic eDp5"], Err(CredentialError::NotOne)),
            (&["Bearer \u{e9}"], Err(CredentialError::NotOne)),
            (&["AWS4-HMAC-SHA256 Credential=x"], Err(CredentialError::NotOne)),
        ] {
            assert_eq!(of(headers), expected.map(str::to_owned), "{headers:?}");
        }
        let long = |bytes: usize| of(&[&format!("Bearer {}", "x".repeat(bytes - 7))]).is_ok();
        assert!(long(MOST_BYTES - 1) && !long(MOST_BYTES) && !long(MOST_BYTES + 1));
    }

    #[test]
    fn a_credential_in_the_query_is_removed_from_it_and_must_be_the_only_one() {
        let of = |url: &str, allowed| presented_credential("GET", url, &[], allowed);
        let none = InQuery { tokens: false, signatures: false };
        for (url, allowed, credential, left) in [
            ("/a?token=x", BOTH, "bearer x", "/a"),
            ("/a?slice=0&token=x%5Fy&f=json", BOTH, "bearer x_y", "/a?slice=0&f=json"),
            ("/a?token=x", none, "none", "/a?token=x"),
            ("/a?Token=x&tokens=y", BOTH, "none", "/a?Token=x&tokens=y"),
            ("/a?key=1&expires=2&below=3", BOTH, "none", "/a?key=1&expires=2&below=3"),
            ("/a?key=1&expires=2&signature=3&x=y", BOTH, "signed 2 1 3 ", "/a?x=y"),
            ("/a?below=a%2Fb%2F&signature=", BOTH, "signed    a/b/", "/a"),
            ("/a?below=a+b%2Bc%2F&signature=", BOTH, "signed    a b+c/", "/a"),
            ("/a?below=&signature=3&below=ff0000", BOTH, "signed   3 ", "/a?below=ff0000"),
            ("/a?below=extend&below=b%2f&signature=3", BOTH, "signed   3 b/", "/a?below=extend"),
            ("http://host/a?token=x", BOTH, "bearer x", "http://host/a"),
        ] {
            assert_eq!(of(url, allowed), Ok((credential.to_owned(), left.to_owned())), "{url}");
        }
        for (url, error) in [
            ("/a?token=x&token=x", CredentialError::Several),
            ("/a?token=x&signature=y", CredentialError::Several),
            ("/a?signature=x&signature=y", CredentialError::Several),
            ("/a?below=b%2F&below=&signature=x", CredentialError::Several),
            ("/a?token=%ff", CredentialError::NotOne),
        ] {
            assert_eq!(of(url, BOTH), Err(error), "{url}");
        }
        for (url, without, signature) in [
            ("/a?slice=0&token=x", "/a?slice=0", None),
            ("/a?below=b%2F&signature=x&tab=use&key=k", "/a?tab=use", Some("below=b%2F&signature=x&key=k")),
            ("/a?below=0&key=1", "/a?below=0&key=1", None),
            ("/a?token=x&token=y&tab=use", "/a", None),
        ] {
            let uri: Uri = url.parse().unwrap();
            assert_eq!(
                (&*without_credential(&uri), signature_in(&uri).as_deref()),
                (without, signature),
                "{url}"
            );
        }
        for method in ["PUT", "POST", "DELETE", "PROPFIND", "MOVE"] {
            assert_eq!(
                presented_credential(method, "/a?token=x", &[], BOTH),
                Err(CredentialError::NotOne),
                "{method}"
            );
        }
        assert_eq!(
            presented_credential("GET", "/a?token=x", &["Bearer x"], BOTH),
            Err(CredentialError::Several)
        );
    }
}
