//! The XML documents in the bodies of S3 requests: lists of records, read within limits.
//!
//! `DeleteObjects` and `CompleteMultipartUpload` send one element with records, whose fields are texts. Namespaces are
//! ignored, as S3 does. Document types are rejected, and with them every entity that could expand.

use axum::extract::Request;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::payload::Payload;
use crate::admission::{AdmissionRequest, Permit, Priority};
use crate::api::store::write::Incoming;
use crate::error::ErrorClass;
use crate::http::body::collect;
use crate::http::problem::Problem;
use crate::services::state::AppState;

/// Longest body, in bytes: 10 000 parts with checksums, or 1000 keys.
const BODY_BYTES: u64 = 2 << 20;
/// The most memory that a body and its records take, for each byte.
const HELD_PER_BYTE: u64 = 16;
/// The most records of a document.
const RECORDS: usize = 10_000;
/// The most fields of a record.
const FIELDS: usize = 16;

/// An element directly below the root: a record with fields, or a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct XmlRecord {
    /// The name of the element.
    pub(super) name: String,
    fields: Vec<(String, String)>,
    /// Its own text.
    pub(super) text: String,
}

impl XmlRecord {
    /// The text of a field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(given, _)| given == name).map(|(_, text)| text.as_str())
    }
}

/// Reads the records of a request with this root element, and returns its head and the permit for their memory.
///
/// # Errors
/// 400 for a body that is not such a document or does not match its digest, 408 for one that arrives too slowly, 413 for one
/// over the limit, 503 if the memory budget is exhausted.
pub(super) async fn records(
    state: &AppState,
    request: Request,
    root: &'static str,
) -> Result<(axum::http::request::Parts, Vec<XmlRecord>, Permit), Problem> {
    let (head, incoming, _) = Payload::new(state, request)?.into_parts();
    let Incoming { body, declared, checking, .. } = incoming;
    let too_long = || {
        let detail = format!("the document is longer than {BODY_BYTES} bytes");
        Problem::from_class(ErrorClass::TooLarge).detail(detail).extension("limit", BODY_BYTES)
    };
    if declared.is_some_and(|declared| declared > BODY_BYTES) {
        return Err(too_long());
    }
    let held = declared.unwrap_or(BODY_BYTES).saturating_mul(HELD_PER_BYTE);
    let entrant = AdmissionRequest::new(Priority::Background, &head.extensions);
    let permit = state.traffic.admission.acquire(entrant, held).await?;
    let text = collect(&state.options, declared, BODY_BYTES, Some(checking), body, too_long).await?;
    let read = state.engine.cpu.run(move || parse(&text, root)).await?;
    let records = read.ok_or_else(|| malformed(root))?;
    Ok((head, records, permit))
}

fn malformed(root: &str) -> Problem {
    Problem::new(axum::http::StatusCode::BAD_REQUEST, "malformed-xml")
        .detail(format!("the body is not a document `{root}` of S3"))
}

/// The records of a document with this root element; `None` if it is not well-formed or too deep.
fn parse(text: &[u8], root: &str) -> Option<Vec<XmlRecord>> {
    let text = str::from_utf8(text).ok()?;
    let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    reader.config_mut().enable_all_checks(true);
    reader.config_mut().expand_empty_elements = true;
    let (mut records, mut path): (Vec<XmlRecord>, Vec<String>) = (Vec::new(), Vec::new());
    let mut has_root = false;
    loop {
        let mut add = |text: &str, depth: usize| match depth {
            2 => {
                records.last_mut()?.text.push_str(text);
                Some(())
            }
            3 => {
                records.last_mut()?.fields.last_mut()?.1.push_str(text);
                Some(())
            }
            _ => text.trim().is_empty().then_some(()),
        };
        match reader.read_event().ok()? {
            Event::Start(element) => {
                let name = str::from_utf8(element.local_name().into_inner()).ok()?.to_owned();
                match path.len() {
                    0 if has_root || name != root => return None,
                    0 => has_root = true,
                    1 if records.len() >= RECORDS => return None,
                    1 => records.push(XmlRecord { name: name.clone(), ..XmlRecord::default() }),
                    2 => {
                        let fields = &mut records.last_mut()?.fields;
                        if fields.len() >= FIELDS {
                            return None;
                        }
                        fields.push((name.clone(), String::new()));
                    }
                    // Fields have texts only.
                    _ => return None,
                }
                path.push(name);
            }
            Event::End(_) => drop(path.pop()),
            Event::Text(text) => add(&text.xml10_content().ok()?, path.len())?,
            Event::CData(text) => add(&text.decode().ok()?, path.len())?,
            Event::GeneralRef(reference) => {
                let known = match &*reference {
                    b"lt" => '<',
                    b"gt" => '>',
                    b"amp" => '&',
                    b"apos" => '\'',
                    b"quot" => '"',
                    _ => reference.resolve_char_ref().ok()??,
                };
                add(known.encode_utf8(&mut [0; 4]), path.len())?;
            }
            Event::DocType(_) | Event::Empty(_) => return None,
            Event::Eof => return (has_root && path.is_empty()).then_some(records),
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_as_s3_reads_it() {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n\
                    <Object><Key>a&amp;b &#233;<![CDATA[<]]></Key><ETag>&quot;v&quot;</ETag></Object>\
                    <Object><Key/></Object><Quiet>true</Quiet></Delete>";
        let records = parse(text.as_bytes(), "Delete").unwrap();
        let keys: Vec<_> = records.iter().map(|record| (record.name.as_str(), record.field("Key"))).collect();
        assert_eq!(keys, [("Object", Some("a&b \u{e9}<")), ("Object", Some("")), ("Quiet", None)]);
        assert_eq!(records[0].field("ETag"), Some("\"v\""));
        assert_eq!(records[2].text, "true");
    }

    #[test]
    fn other_documents_are_refused() {
        let many = format!("<D>{}</D>", "<O/>".repeat(RECORDS + 1));
        let wide = format!("<D><O>{}</O></D>", "<K/>".repeat(FIELDS + 1));
        for text in [
            "",
            "x",
            "<D>",
            "<E/>",
            "<D/><D/>",
            "<D><O><K><L/></K></O></D>",
            "<D>&x;</D>",
            "<D><O>&x;</O></D>",
            "<!DOCTYPE D [<!ENTITY x 'y'>]><D><O>&x;</O></D>",
            "<D></E>",
            "<D><O>\u{0}",
            &many,
            &wide,
        ] {
            assert_eq!(parse(text.as_bytes(), "D"), None, "{text}");
        }
        assert_eq!(parse(b"<D/>", "D"), Some(vec![]));
    }
}
