//! Forwarding headers of proxies: `Forwarded` (RFC 7239) and the older `X-Forwarded-*`.
//!
//! Only headers from trusted proxies count. Each proxy appends the address of its client, so the last address that is not a
//! trusted proxy is the real client: all addresses before it may be forged. A malformed header is ignored as a whole. Where
//! the two kinds of headers contradict each other both are ignored, as a proxy that sets one may pass the other on.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use super::base_path::BasePath;
use super::host;
use super::network::Network;
use super::peer::Peer;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
/// Maximum number of addresses in a header; a longer list is ignored.
const MOST_HOPS: usize = 64;

/// The trusted information about the client. A missing or untrusted part is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
struct ForwardedInfo {
    address: Option<IpAddr>,
    is_encrypted: Option<bool>,
    host: Option<String>,
}

/// The client of a request, according to trusted proxies. The host and the base path that they report are put into the
/// request.
pub(crate) fn resolve_client(trusted: &[Network], request: &mut Request, from: Peer) -> Peer {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    if trusted.is_empty() || !is_trusted(from.address) {
        return from;
    }
    let headers = request.headers();
    let said = forwarded_info(headers, is_trusted);
    let base =
        sole(headers, &X_FORWARDED_PREFIX).and_then(|text| BasePath::parse(text.trim_end_matches('/')));
    if let Some(host) = said.host.and_then(|host| HeaderValue::try_from(host).ok()) {
        // An HTTP/2 request has the host in its URL.
        if let Some(path) = request.uri().path_and_query().cloned() {
            *request.uri_mut() = Uri::from(path);
        }
        request.headers_mut().insert(header::HOST, host);
    }
    if let Some(base) = base {
        base.put(request.extensions_mut());
    }
    Peer {
        address: said.address.unwrap_or(from.address),
        is_encrypted: said.is_encrypted.unwrap_or(from.is_encrypted),
    }
}

/// The combined information of both kinds of headers.
fn forwarded_info(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> ForwardedInfo {
    let names = [X_FORWARDED_FOR, X_FORWARDED_PROTO, X_FORWARDED_HOST];
    let older = names.iter().any(|name| headers.contains_key(name)).then(|| by_x(headers, &is_trusted));
    let newer = headers.contains_key(header::FORWARDED).then(|| by_forwarded(headers, &is_trusted));
    match (older, newer) {
        (Some(older), Some(newer)) => ForwardedInfo {
            address: agreed(older.address, newer.address.as_ref()),
            is_encrypted: agreed(older.is_encrypted, newer.is_encrypted.as_ref()),
            host: agreed(older.host, newer.host.as_ref()),
        },
        (older, newer) => older.or(newer).unwrap_or_default(),
    }
}

/// A value that both kinds of headers agree on.
fn agreed<T: PartialEq>(one: Option<T>, two: Option<&T>) -> Option<T> {
    one.filter(|one| two == Some(one))
}

/// The last hop whose address is not a trusted proxy; the first hop if all are.
fn clients<T>(hops: &[T], address: impl Fn(&T) -> IpAddr, is_trusted: impl Fn(IpAddr) -> bool) -> Option<&T> {
    hops.iter().rev().find(|hop| !is_trusted(address(hop))).or(hops.first())
}

fn by_x(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> ForwardedInfo {
    let hops = joined(headers, &X_FORWARDED_FOR);
    let hops: Option<Vec<IpAddr>> =
        hops.and_then(|text| text.split(',').take(MOST_HOPS + 1).map(|hop| address(hop.trim())).collect());
    let hops = hops.filter(|hops| hops.len() <= MOST_HOPS);
    ForwardedInfo {
        address: hops.and_then(|hops| clients(&hops, |hop| *hop, is_trusted).copied()),
        is_encrypted: sole(headers, &X_FORWARDED_PROTO).and_then(is_encrypted),
        host: sole(headers, &X_FORWARDED_HOST).and_then(authority),
    }
}

fn by_forwarded(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> ForwardedInfo {
    let hops = joined(headers, &header::FORWARDED).and_then(|text| hops(&text)).unwrap_or_default();
    let Some(hop) = clients(&hops, |hop| hop.0, is_trusted) else { return ForwardedInfo::default() };
    ForwardedInfo { address: Some(hop.0), is_encrypted: hop.1, host: hop.2.clone() }
}

/// One element of `Forwarded`: the address of the client, whether it used TLS, and the requested host.
type ForwardedElement = (IpAddr, Option<bool>, Option<String>);

/// The elements of `Forwarded`; `None` unless each is well-formed and has an address.
fn hops(text: &str) -> Option<Vec<ForwardedElement>> {
    let elements = split(text, ',')?;
    if elements.len() > MOST_HOPS {
        return None;
    }
    elements.into_iter().map(hop).collect()
}

fn hop(element: &str) -> Option<ForwardedElement> {
    let (mut from, mut proto, mut named) = (None, None, None);
    for pair in split(element, ';')? {
        let (name, value) = pair.trim().split_once('=')?;
        let value = unquoted(value)?;
        let place = match name.to_ascii_lowercase().as_str() {
            "for" => &mut from,
            "proto" => &mut proto,
            "host" => &mut named,
            _ => continue,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    let proto = match proto {
        Some(proto) => Some(is_encrypted(&proto)?),
        None => None,
    };
    let named = match named {
        Some(named) => Some(authority(&named)?),
        None => None,
    };
    Some((address(&from?)?, proto, named))
}

/// The parts of a text between separators outside quotes.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(|c: char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => return c == separator && !is_quoted,
        }
        false
    });
    let parts = parts.collect();
    (!is_quoted).then_some(parts)
}

/// The value of a token or of a quoted string.
fn unquoted(value: &str) -> Option<String> {
    let Some(inner) = value.strip_prefix('"') else {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:[]".contains(&byte);
        return (!value.is_empty() && value.bytes().all(token)).then(|| value.to_owned());
    };
    let inner = inner.strip_suffix('"')?;
    // Valid addresses and hosts contain nothing to escape.
    (!inner.contains(['"', '\\'])).then(|| inner.to_owned())
}

/// The address of `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let plain = text.parse::<IpAddr>().ok();
    let address = plain.or_else(|| text.parse::<SocketAddr>().ok().map(|it| it.ip())).or_else(bare)?;
    Some(address.to_canonical())
}

fn is_encrypted(proto: &str) -> Option<bool> {
    match proto {
        _ if proto.eq_ignore_ascii_case("https") => Some(true),
        _ if proto.eq_ignore_ascii_case("http") => Some(false),
        _ => None,
    }
}

/// A valid host with an optional port.
fn authority(text: &str) -> Option<String> {
    let authority: Authority = text.parse().ok()?;
    let has_only_digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.strip_prefix(authority.host())?;
    let is_plain = port.is_empty() || port.strip_prefix(':').is_some_and(has_only_digits);
    (is_plain && host::is_host(authority.host())).then(|| text.to_owned())
}

/// All lines of a header joined with commas, if they are text.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Result<Vec<&str>, _> = headers.get_all(name).iter().map(HeaderValue::to_str).collect();
    Some(lines.ok()?.join(","))
}

/// The value of a header that occurs exactly once.
fn sole<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().map(str::trim),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const PROXIES: [&str; 3] = ["127.0.0.1/32", "10.0.0.0/8", "fd00::/8"];

    /// The client address, whether TLS was used, the host and the base path of a request with these headers.
    fn seen(from: &str, headers: &[(&str, &str)]) -> (String, bool, String, String) {
        let trusted: Vec<Network> = PROXIES.iter().map(|text| text.parse().unwrap()).collect();
        let mut request = Request::builder().uri("/a?b").header("host", "own:8000");
        for (name, value) in headers {
            request = request.header(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let mut request = request.body(Body::empty()).unwrap();
        let from = Peer { address: from.parse().unwrap(), is_encrypted: false };
        let peer = resolve_client(&trusted, &mut request, from);
        assert_eq!(*request.uri(), "/a?b");
        let host = request.headers()["host"].to_str().unwrap().to_owned();
        let base = BasePath::of(request.extensions()).as_str().to_owned();
        (peer.address.to_string(), peer.is_encrypted, host, base)
    }

    fn address_by(name: &str, value: &str) -> String {
        seen("127.0.0.1", &[(name, value)]).0
    }

    #[test]
    fn headers_from_untrusted_addresses_are_ignored() {
        let headers = [
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-prefix", "/evil"),
            ("forwarded", "for=192.0.2.1;proto=https;host=evil.example"),
        ];
        for from in ["127.0.0.2", "11.0.0.1", "::1", "192.0.2.9"] {
            let untouched = (from.to_owned(), false, "own:8000".to_owned(), String::new());
            assert_eq!(seen(from, &headers), untouched);
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_proxy() {
        for (value, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1:4711", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("198.51.100.1, 192.0.2.1", "192.0.2.1"),
            ("198.51.100.1,192.0.2.1 , 10.1.2.3,fd00::1", "192.0.2.1"),
            ("10.0.0.9, 10.0.0.1", "10.0.0.9"),
        ] {
            assert_eq!(address_by("x-forwarded-for", value), expected, "{value}");
        }
        let lines = [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", "192.0.2.2")];
        assert_eq!(seen("127.0.0.1", &lines).0, "192.0.2.2");
        assert_eq!(seen("::ffff:127.0.0.1", &lines).0, "192.0.2.2");
    }

    #[test]
    fn a_malformed_list_is_ignored_as_a_whole() {
        let long = vec!["192.0.2.1"; MOST_HOPS + 1].join(",");
        for value in [
            "",
            " ",
            ",",
            "192.0.2.1,",
            ",192.0.2.1",
            "unknown",
            "192.0.2.1, unknown",
            "evil, 192.0.2.1",
            "192.0.2.1;192.0.2.2",
            "192.0.2.256",
            "192.0.2.1 192.0.2.2",
            "\"192.0.2.1\"",
            "é",
            "[192.0.2.1]",
            "192.0.2.1/32",
            "0x7f.1",
            &long,
        ] {
            assert_eq!(address_by("x-forwarded-for", value), "127.0.0.1", "{value}");
        }
    }

    #[test]
    fn the_last_untrusted_element_of_forwarded_counts() {
        let (address, is_encrypted, host, _) = seen(
            "10.0.0.1",
            &[(
                "forwarded",
                "for=198.51.100.1;host=evil.example, For=\"[2001:db8::1]:4711\" ; Proto=HTTPS;host=\"data.example:444\";by=_x, \
             for=10.0.0.7;proto=http;host=inner",
            )],
        );
        assert_eq!((&*address, is_encrypted, &*host), ("2001:db8::1", true, "data.example:444"));
        for value in [
            "for=unknown",
            "for=_hidden",
            "for=192.0.2.1, for=_hidden",
            "for=192.0.2.1;for=192.0.2.2",
            "host=a",
            "for=\"192.0.2.1",
            "for=192.0.2.1;proto",
            "for=192.0.2.1;proto=gopher",
            "for=192.0.2.1;host=\"a/b\"",
            "for =192.0.2.1",
            "for= 192.0.2.1",
            "192.0.2.1",
            "for=192.0.2.1,",
            "for=\"192.0.2.\\1\"",
            "for=\"a,b\"",
        ] {
            let untouched = ("127.0.0.1".to_owned(), false, "own:8000".to_owned(), String::new());
            assert_eq!(seen("127.0.0.1", &[("forwarded", value)]), untouched, "{value}");
        }
    }

    #[test]
    fn contradicting_headers_are_ignored() {
        let of = |older: &'static str, newer: &'static str| {
            seen("127.0.0.1", &[("x-forwarded-for", older), ("forwarded", newer)]).0
        };
        assert_eq!(of("192.0.2.1", "for=192.0.2.1"), "192.0.2.1");
        assert_eq!(of("192.0.2.1", "for=192.0.2.2"), "127.0.0.1");
        assert_eq!(of("192.0.2.1", "for=unknown"), "127.0.0.1");
    }

    #[test]
    fn scheme_host_and_base_are_those_that_clients_see() {
        let of = |name: &str, value: &str| seen("127.0.0.1", &[(name, value)]);
        for (value, expected) in
            [("https", true), ("HTTPS", true), ("http", false), ("https, http", false), ("wss", false)]
        {
            assert_eq!(of("x-forwarded-proto", value).1, expected, "{value}");
        }
        for (value, expected) in [
            ("data.example", "data.example"),
            ("data.example:8443", "data.example:8443"),
            ("[::1]:80", "[::1]:80"),
            ("a, b", "own:8000"),
            ("user@a", "own:8000"),
            ("a/b", "own:8000"),
            ("a:b", "own:8000"),
            ("", "own:8000"),
        ] {
            assert_eq!(of("x-forwarded-host", value).2, expected, "{value}");
        }
        for (value, expected) in [
            ("/zarr", "/zarr"),
            ("/zarr/", "/zarr"),
            ("/", ""),
            ("zarr", ""),
            ("/a\"b", ""),
            ("//evil.example", ""),
        ] {
            assert_eq!(of("x-forwarded-prefix", value).3, expected, "{value}");
        }
        let twice = [("x-forwarded-prefix", "/a"), ("x-forwarded-prefix", "/b")];
        assert_eq!(seen("127.0.0.1", &twice).3, "");
    }

    #[test]
    fn a_forwarded_host_replaces_the_host_of_the_url() {
        let mut request = Request::builder().uri("http://inner:8000/a").body(Body::empty()).unwrap();
        request.headers_mut().insert("x-forwarded-host", HeaderValue::from_static("data.example"));
        resolve_client(&["127.0.0.1".parse().unwrap()], &mut request, Peer::LOOPBACK);
        let found = host::authority(request.uri(), request.headers()).unwrap();
        assert_eq!((found.as_str(), request.uri().path()), ("data.example", "/a"));
    }
}
