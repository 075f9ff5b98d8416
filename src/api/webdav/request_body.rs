//! The body of a PROPFIND request: read within limits and checked for well-formedness, otherwise ignored.
//!
//! Every PROPFIND response has all supported properties, so the contents of the body do not matter. A body that is not
//! well-formed XML is a 400 (RFC 4918, section 8.2). Document types are rejected, and with them every entity that could
//! expand.

use axum::body::Body;
use axum::http::StatusCode;
use futures::TryStreamExt;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::{NsReader, XmlVersion};
use tokio::time::timeout;

use crate::error::ErrorClass;
use crate::http::options::HttpOptions;
use crate::http::problem::Problem;

/// Maximum length of a body, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Maximum number of attributes of an element.
const MAX_ATTRIBUTES: usize = 64;

/// Reads a body to its end and checks it.
///
/// # Errors
/// 400 for a body that is not well-formed XML, 408 for one that arrives too slowly, 413 for one over the limit.
pub(crate) async fn check(body: Body, options: &HttpOptions) -> Result<(), Problem> {
    let stall_timeout = options.body_stall_timeout;
    let Ok(bytes) = timeout(stall_timeout, collect(body)).await else {
        let problem = Problem::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow");
        return Err(problem.detail("the body came too slowly"));
    };
    let bytes = bytes?;
    let text = bytes.trim_ascii();
    if text.is_empty() || is_well_formed(text) {
        return Ok(());
    }
    Err(Problem::from_class(ErrorClass::InvalidRequest)
        .detail("the body is not well-formed XML without a document type"))
}

async fn collect(body: Body) -> Result<Vec<u8>, Problem> {
    let (mut stream, mut bytes) = (body.into_data_stream(), Vec::new());
    let broken = |_| Problem::from_class(ErrorClass::InvalidRequest).detail("the body ended early");
    while let Some(part) = stream.try_next().await.map_err(broken)? {
        if part.len() > MAX_BYTES - bytes.len() {
            let problem = Problem::from_class(ErrorClass::TooLarge).extension("limit", MAX_BYTES);
            return Err(problem.detail(format!("the body is longer than {MAX_BYTES} bytes")));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Whether a text is one well-formed XML element, with only comments and processing instructions around it.
fn is_well_formed(text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else { return false };
    let mut reader = NsReader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    reader.config_mut().enable_all_checks(true);
    let (mut depth, mut roots) = (0_usize, 0_usize);
    loop {
        let Ok((namespace, event)) = reader.read_resolved_event() else { return false };
        if matches!(namespace, ResolveResult::Unknown(_)) {
            return false;
        }
        match event {
            Event::Start(element) | Event::Empty(element) if has_bad_attributes(&element) => return false,
            Event::Start(_) => {
                roots += usize::from(depth == 0);
                depth += 1;
            }
            Event::Empty(_) => roots += usize::from(depth == 0),
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Text(text) if depth == 0 && !text.trim_ascii().is_empty() => return false,
            Event::CData(_) | Event::GeneralRef(_) if depth == 0 => return false,
            Event::GeneralRef(entity) if !is_known(&entity) => return false,
            Event::DocType(_) => return false,
            Event::Eof => return depth == 0 && roots == 1,
            Event::Text(_)
            | Event::CData(_)
            | Event::GeneralRef(_)
            | Event::Comment(_)
            | Event::PI(_)
            | Event::Decl(_) => {}
        }
    }
}

/// Whether an element has malformed attributes, or more than [`MAX_ATTRIBUTES`].
fn has_bad_attributes(element: &BytesStart<'_>) -> bool {
    element.attributes().enumerate().any(|(index, attribute)| {
        let value = attribute.map(|attribute| attribute.normalized_value(XmlVersion::default()).is_ok());
        index >= MAX_ATTRIBUTES || !matches!(value, Ok(true))
    })
}

/// Whether a reference is defined without a document type.
fn is_known(reference: &BytesRef<'_>) -> bool {
    match reference.resolve_char_ref() {
        Ok(Some(_)) => true,
        Ok(None) => matches!(&**reference, b"lt" | b"gt" | b"amp" | b"apos" | b"quot"),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_common_clients_are_accepted() {
        for text in [
            r#"<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:allprop/></D:propfind>"#,
            "<?xml version='1.0'?>\n<!-- x -->\n<propfind xmlns='DAV:'>\n<prop><getetag/></prop></propfind>\n",
            "<a>&lt;&#233;&#xe9;</a>",
            "<a b='&amp;'/>",
            "<a><![CDATA[<]]></a>",
        ] {
            assert!(is_well_formed(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn malformed_and_expanding_bodies_are_rejected() {
        let wide = format!("<a {}/>", (0..100).map(|n| format!("a{n}=''")).collect::<Vec<_>>().join(" "));
        let bomb = "<!DOCTYPE a [<!ENTITY b 'bb'><!ENTITY c '&b;&b;'>]><a>&c;</a>";
        for text in [
            "x",
            "<a>",
            "<a></b>",
            "</a>",
            "<a/><b/>",
            "<a/>x",
            "x<a/>",
            "<a b=c/>",
            "<a b='1' b='2'/>",
            "<a b='&x;'/>",
            "<a>&x;</a>",
            "<a>&</a>",
            "<a><!-- -- --></a>",
            "<p:a/>",
            "<D:propfind xmlns:D='DAV:'><D:prop><b:c xmlns:b=''/></D:prop></D:propfind>",
            "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
            "<?xml version='1.0'?>",
            bomb,
            &wide,
        ] {
            assert!(!is_well_formed(text.as_bytes()), "{text}");
        }
        assert!(!is_well_formed(b"<a>\xff</a>"));
        // As deep as a body can be.
        assert!(!is_well_formed("<a>".repeat(MAX_BYTES / 3).as_bytes()));
    }
}
