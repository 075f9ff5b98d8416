//! The origin check: pages that a browser may write for are the server's own and those of origins that the CORS rules
//! list for writing.
//!
//! Browsers name the page that sends a request in `Origin` (Fetch standard, section 3.2), or at least its relation in
//! `Sec-Fetch-Site` (Fetch Metadata); other programs send neither, and pass. A page is the server's own if its origin
//! is the host that the request is sent to. That check is only as strong as the host's name: the owner of a name can
//! point it at this server once a page of it is loaded (DNS rebinding). So for a caller without a credential, which
//! such a page would not have, the host must be one that no one else can own: an address, a loopback name, or a name in
//! the configuration.
//!
//! The administrator's listener holds every request with an `Origin` to that rule, and lists no origins. A page whose
//! name was rebound to it reads without an `Origin`, so each request there must be sent to such a host, whatever its
//! method.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};

use super::caller::{Administrator, Caller};
use crate::http::append_query;
use crate::http::host;
use crate::http::options::HttpOptions;
use crate::http::problem::Problem;
use crate::http::route::RouteSpec;

/// The rules that decide which hosts and origins are the server's own.
pub(crate) struct OriginRules<'a> {
    /// The configuration.
    pub(crate) options: &'a HttpOptions,
    /// Whether a mount is served at a host, by the host's canonical name.
    pub(crate) serves_host: &'a (dyn Fn(&str) -> bool + Sync),
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Checks a request that writes, judged by its method and route, and every request at the administrator's listener. The
/// handlers know which of the other requests write.
///
/// # Errors
/// As [`check_write`]; at the administrator's listener, 421 for a host name that others could point at the server.
pub(crate) fn check(
    rules: &OriginRules<'_>,
    spec: Option<&RouteSpec>,
    request: &Request,
) -> Result<(), Problem> {
    let (uri, headers, extensions) = (request.uri(), request.headers(), request.extensions());
    let is_admins = Administrator::is_asking(extensions);
    // Browsers always send a host.
    let names_host = || uri.authority().is_some() || headers.contains_key(header::HOST);
    if is_admins && names_host() && !is_sent_to_known(rules, uri, headers) {
        return Err(unknown_host_of_admins());
    }
    if is_admins && headers.contains_key(header::ORIGIN) || writes(request.method(), spec, uri) {
        return check_write(rules, uri, headers, extensions);
    }
    Ok(())
}

/// Checks a request that writes.
///
/// # Errors
/// 403 for a page that may not write here, 421 for a host that is not known as the server's own.
pub(crate) fn check_write(
    rules: &OriginRules<'_>,
    uri: &Uri,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<(), Problem> {
    let is_own = match (headers.get(header::ORIGIN), headers.get(SEC_FETCH_SITE)) {
        (None, None) => return Ok(()),
        (None, Some(site)) => site == "same-origin" || site == "none",
        (Some(origin), _) => is_own(origin, uri, headers),
    };
    let is_admins = Administrator::is_asking(extensions);
    if !is_admins && is_listed(rules, headers) {
        return Ok(());
    }
    // A browser sends no second origin.
    if !is_own || headers.get_all(header::ORIGIN).iter().count() > 1 {
        return Err(if is_admins { foreign() } else { foreign_write() });
    }
    if Caller::of(extensions).rights().name().is_none() && !is_sent_to_known(rules, uri, headers) {
        return Err(unknown_host());
    }
    Ok(())
}

/// Whether a request comes from a page of another origin.
pub(crate) fn is_foreign(uri: &Uri, headers: &HeaderMap) -> bool {
    match (headers.get(header::ORIGIN), headers.get(SEC_FETCH_SITE)) {
        (None, None) => false,
        (None, Some(site)) => site != "same-origin" && site != "none",
        (Some(origin), _) => {
            !is_own(origin, uri, headers) || headers.get_all(header::ORIGIN).iter().count() > 1
        }
    }
}

/// Whether a request writes, as far as its method, route and query determine it. A POST is a query on some routes, and on one
/// that depends on the body.
pub(crate) fn writes(method: &Method, spec: Option<&RouteSpec>, uri: &Uri) -> bool {
    match (method.as_str(), spec) {
        ("GET" | "HEAD" | "OPTIONS" | "PROPFIND" | "TRACE" | "CONNECT", _) | (_, None) => false,
        ("POST", Some(spec)) => !spec.post_reads || append_query::appends(uri),
        _ => true,
    }
}

/// Whether the origin is the server's own: the host and the port that the request is sent to.
fn is_own(origin: &HeaderValue, uri: &Uri, headers: &HeaderMap) -> bool {
    let from = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let Some((scheme, from)) = from else { return false };
    let Ok(from) = from.parse::<Authority>() else { return false };
    let usual = if scheme == "https" { 443 } else { 80 };
    let place =
        |authority: &Authority| (host::canonical(authority.host()), authority.port_u16().unwrap_or(usual));
    host::authority(uri, headers).is_some_and(|to| place(&from) == place(&to))
}

fn is_listed(rules: &OriginRules<'_>, headers: &HeaderMap) -> bool {
    let cors = &rules.options.cors;
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let listed = |origin| cors.is_any() || cors.allowed_origins.iter().any(|listed| listed == origin);
    cors.allow_writes && matches!((origins.next(), origins.next()), (Some(origin), None) if listed(origin))
}

/// Whether a request is sent to a host that no one else can point at this server.
fn is_sent_to_known(rules: &OriginRules<'_>, uri: &Uri, headers: &HeaderMap) -> bool {
    host::authority(uri, headers).is_some_and(|authority| is_known(rules, authority.host()))
}

/// Whether no one else can point a host name at this server.
fn is_known(rules: &OriginRules<'_>, host: &str) -> bool {
    let host = host::canonical(host);
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
    // A name below `localhost` is a loopback name too (RFC 6761, section 6.3).
    let is_loopback = host == "localhost" || host.ends_with(".localhost");
    let is_configured = || rules.options.hosts.iter().any(|known| host::canonical(known) == host);
    is_loopback || bare.parse::<std::net::IpAddr>().is_ok() || is_configured() || (rules.serves_host)(&host)
}

fn foreign_write() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "cross-origin-write").detail(
        "a page of this origin may not write here: that takes `http.cors.allow_writes`, and the origin among \
                 `http.cors.allowed_origins`, in the server's configuration",
    )
}

fn foreign() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "cross-origin")
        .detail("pages of other origins get nothing at this address: it is for the server's administrator")
}

fn unknown_host() -> Problem {
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown-host").detail(
        "pages write here without a credential under loopback names, addresses and the names in `http.hosts` of the server's \
         configuration alone, so that no other site's name can be made to lead here",
    )
}

fn unknown_host_of_admins() -> Problem {
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown-host").detail(
        "this address is for the server's administrator: ask under a loopback name, an address or a name in `http.hosts` of the \
         server's configuration, so that no page of another site can make its own name lead here",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::route::Resource;

    #[test]
    fn an_origin_is_the_servers_own_by_host_and_port() {
        for (origin, host, expected) in [
            ("http://here", "here", true),
            ("https://here", "HERE.", true),
            ("http://here:80", "here", true),
            ("https://here", "here:443", true),
            ("http://here", "here:8000", false),
            ("http://here:8000", "here", false),
            ("http://[::1]:8000", "[::1]:8000", true),
            ("http://[::1]", "[::2]", false),
            ("http://here.evil", "here", false),
            ("http://evil", "here", false),
            ("null", "null", false),
            ("", "", false),
            ("http://", "", false),
            ("file://", "here", false),
        ] {
            let origin = HeaderValue::from_static(origin);
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
            assert_eq!(is_own(&origin, &Uri::from_static("/v1"), &headers), expected, "{origin:?} {host}");
        }
        // HTTP/2 has the host in its URL.
        let origin = HeaderValue::from_static("http://here:80");
        assert!(is_own(&origin, &Uri::from_static("http://here/v1"), &HeaderMap::new()));
    }

    #[test]
    fn every_method_that_does_not_read_writes_except_post_queries() {
        let route = |post_reads| RouteSpec { post_reads, ..RouteSpec::new("", Resource::Stored) };
        for (method, post_reads, expected) in [
            ("GET", false, false),
            ("PROPFIND", false, false),
            ("PUT", false, true),
            ("MOVE", false, true),
            ("ODD", false, true),
            ("POST", false, true),
            ("POST", true, false),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let is_write = writes(&method, Some(&route(post_reads)), &Uri::from_static("/a?format=npy"));
            assert_eq!(is_write, expected, "{method} {post_reads}");
        }
        assert!(writes(&Method::POST, Some(&route(true)), &Uri::from_static("/a?append=time")));
        assert!(!writes(&Method::PUT, None, &Uri::from_static("/a")));
    }
}
