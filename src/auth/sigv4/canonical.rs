//! The canonical request: the text of a request that a signature stands for (Amazon S3 API reference, "Signature calculations
//! for the Authorization header", task 1).
//!
//! The path and the query are decoded and encoded again, in the one way that signers agree on: S3 neither removes dot
//! segments nor merges slashes.

use axum::extract::Request;
use axum::http::header;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use crate::http::base_path::BasePath;

/// Everything but `A-Z a-z 0-9 - . _ ~`.
const NOT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same without the slash.
const NOT_OF_PATH: &AsciiSet = &NOT_UNRESERVED.remove(b'/');

/// The canonical request: with these signed headers, in the order given, and the hash of the payload as the client wrote it.
/// `left_out` is the parameter with the signature itself. `None` if a signed header is missing.
pub(super) fn canonical_request(
    request: &Request,
    signed_headers: &str,
    payload: &str,
    left_out: Option<&str>,
) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(1024);
    let mut line = |bytes: &[u8]| {
        text.extend_from_slice(bytes);
        text.push(b'\n');
    };
    line(request.method().as_str().as_bytes());
    let base = BasePath::of(request.extensions());
    let path = format!("{}{}", base.as_str(), request.uri().path());
    line(encoded(&path, NOT_OF_PATH).as_bytes());
    line(query(request.uri().query().unwrap_or_default(), left_out).as_bytes());
    for name in signed_headers.split(';') {
        let mut header = name.as_bytes().to_vec();
        header.push(b':');
        header.extend_from_slice(&header_value(request, name)?);
        line(&header);
    }
    line(b"");
    line(signed_headers.as_bytes());
    text.extend_from_slice(payload.as_bytes());
    Some(text)
}

/// A text, decoded once and encoded again.
fn encoded(text: &str, set: &'static AsciiSet) -> String {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    percent_encode(&bytes, set).to_string()
}

/// The parameters, sorted by their encoded names and values.
fn query(text: &str, left_out: Option<&str>) -> String {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<(String, String)> = pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // As handlers read it: `+` is a space.
            let again = |text: &str| encoded(&text.replace('+', "%20"), NOT_UNRESERVED);
            (again(name), again(value))
        })
        .filter(|(name, _)| Some(name.as_str()) != left_out)
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// The values of a header, joined with commas, without blanks at their ends and with single blanks inside.
fn header_value(request: &Request, name: &str) -> Option<Vec<u8>> {
    let values = request.headers().get_all(name);
    let mut values = values.iter().map(|value| {
        let words = value.as_bytes().split(|byte| matches!(byte, b' ' | b'\t'));
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(&b' ')
    });
    let Some(first) = values.next() else {
        // HTTP/2 has the host in its URL.
        let is_host = name == header::HOST.as_str();
        let authority = request.uri().authority().filter(|_| is_host)?;
        return Some(authority.as_str().as_bytes().to_vec());
    };
    Some(values.fold(first, |mut joined, value| {
        joined.push(b',');
        joined.extend_from_slice(&value);
        joined
    }))
}
