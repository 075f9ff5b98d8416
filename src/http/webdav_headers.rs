//! The request headers of WebDAV: `Depth`, `Overwrite` and `Destination` (RFC 4918, section 10).
//!
//! The methods decide which depths they support and whether a destination lies in the same mount.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};

use super::host;
use super::problem::Problem;
use crate::error::ErrorClass;

const DEPTH: HeaderName = HeaderName::from_static("depth");
const OVERWRITE: HeaderName = HeaderName::from_static("overwrite");
const DESTINATION: HeaderName = HeaderName::from_static("destination");

/// The depth below a prefix to which a request applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The prefix alone.
    Zero,
    /// The prefix and the entries one level below it.
    One,
    /// The prefix and every key below it.
    Infinity,
}

/// The `Depth` header; infinity if it is absent.
pub(crate) fn depth(headers: &HeaderMap) -> Result<Depth, Problem> {
    match sole(headers, &DEPTH)?.map(HeaderValue::as_bytes) {
        None => Ok(Depth::Infinity),
        Some(b"0") => Ok(Depth::Zero),
        Some(b"1") => Ok(Depth::One),
        Some(text) if text.eq_ignore_ascii_case(b"infinity") => Ok(Depth::Infinity),
        Some(_) => Err(bad("`Depth` must be `0`, `1` or `infinity`")),
    }
}

/// The `Overwrite` header: whether the destination may be replaced; true if it is absent.
pub(crate) fn overwrite(headers: &HeaderMap) -> Result<bool, Problem> {
    match sole(headers, &OVERWRITE)?.map(HeaderValue::as_bytes) {
        None | Some(b"T" | b"t") => Ok(true),
        Some(b"F" | b"f") => Ok(false),
        Some(_) => Err(bad("`Overwrite` must be `T` or `F`")),
    }
}

/// The `Destination` header: an absolute path, or a URL with the host of the request.
pub(crate) fn destination(uri: &Uri, headers: &HeaderMap) -> Result<Uri, Problem> {
    let text = sole(headers, &DESTINATION)?.and_then(|value| value.to_str().ok());
    let text = text.ok_or_else(|| bad("send one `Destination` with a URL or an absolute path"))?;
    let there: Option<Uri> = text.parse().ok().filter(|there: &Uri| there.path().starts_with('/'));
    let Some(there) = there.filter(|_| !text.contains('#')) else {
        return Err(bad("`Destination` is not a URL or an absolute path, percent-encoded"));
    };
    let Some(authority) = there.authority() else { return Ok(there) };
    let is_http = matches!(there.scheme_str(), Some("http" | "https"));
    let here = host::authority(uri, headers);
    if is_http && here.is_some_and(|here| is_same_host(&here, authority, there.scheme_str())) {
        return Ok(there);
    }
    Err(remote_destination())
}

/// The 502 of RFC 4918, section 9.8.5: this server copies neither to other servers nor into other mounts.
pub(crate) fn remote_destination() -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, "destination-elsewhere")
        .detail("`Destination` is not in the same mount; copy with GET and PUT instead")
}

/// Whether a destination has the host of the request. Behind a proxy that terminates TLS, the scheme of the request is not
/// that of the client. A request without a port is therefore compared with the default port of the destination's scheme.
fn is_same_host(here: &Authority, there: &Authority, scheme: Option<&str>) -> bool {
    let usual = if scheme == Some("https") { 443 } else { 80 };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(usual);
    host::canonical(here.host()) == host::canonical(there.host()) && port(here) == port(there)
}

/// The value of a header that may occur at most once.
fn sole<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(bad("send `Depth`, `Overwrite` and `Destination` at most once")),
    }
}

fn bad(detail: &'static str) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, text) in lines {
            map.append(HeaderName::from_static(name), HeaderValue::from_bytes(text.as_bytes()).unwrap());
        }
        map
    }

    #[test]
    fn invalid_depths_and_overwrites_are_rejected() {
        for (text, expected) in [
            ("0", Some(Depth::Zero)),
            ("1", Some(Depth::One)),
            ("infinity", Some(Depth::Infinity)),
            ("Infinity", Some(Depth::Infinity)),
            ("2", None),
            ("", None),
            ("1,noroot", None),
            ("-1", None),
        ] {
            assert_eq!(depth(&headers(&[("depth", text)])).ok(), expected, "{text}");
        }
        assert_eq!(depth(&HeaderMap::new()).ok(), Some(Depth::Infinity));
        assert!(depth(&headers(&[("depth", "0"), ("depth", "1")])).is_err());
        for (text, expected) in [("T", Some(true)), ("F", Some(false)), ("f", Some(false)), ("no", None)] {
            assert_eq!(overwrite(&headers(&[("overwrite", text)])).ok(), expected, "{text}");
        }
        assert_eq!(overwrite(&HeaderMap::new()).ok(), Some(true));
    }

    #[test]
    fn a_destination_is_at_the_same_host() {
        for (host, text, path) in [
            ("a.example:8000", "/x%20y", Ok("/x%20y")),
            ("a.example:8000", "http://A.example:8000/x", Ok("/x")),
            ("a.example", "https://a.example/x?y", Ok("/x")),
            ("a.example", "http://a.example:80/x", Ok("/x")),
            ("a.example", "http://a.example", Ok("/")),
            ("a.example:8000", "http://a.example/x", Err(502)),
            ("a.example", "http://b.example/x", Err(502)),
            ("a.example", "http://a.example.evil/x", Err(502)),
            ("a.example", "http://a.example@b.example/x", Err(502)),
            ("a.example", "ftp://a.example/x", Err(502)),
            ("a.example", "//b.example/x", Ok("//b.example/x")),
            ("a.example", "x", Err(400)),
            ("a.example", "", Err(400)),
            ("a.example", "*", Err(400)),
            ("a.example", "/x y", Err(400)),
            ("a.example", "/x#y", Err(400)),
            ("a.example", "/é", Err(400)),
        ] {
            let found =
                destination(&Uri::from_static("/a"), &headers(&[("host", host), ("destination", text)]));
            let found = found
                .map(|uri| uri.path().to_owned())
                .map_err(|problem| axum::response::IntoResponse::into_response(problem).status().as_u16());
            assert_eq!(found, path.map(str::to_owned), "{host} {text}");
        }
        assert!(destination(&Uri::from_static("/a"), &HeaderMap::new()).is_err());
    }
}
