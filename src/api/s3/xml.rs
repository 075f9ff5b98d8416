//! XML as S3 writes it (XML 1.0): elements and text, and always well-formed.
//!
//! Most keys can stand in XML. The few characters that cannot, even as references (U+FFFE, U+FFFF, control
//! characters in what the client sent), are percent-encoded. A client that may meet them asks for
//! `encoding-type=url`.

use std::fmt::Write;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The type of every document.
pub(crate) const XML: HeaderValue = HeaderValue::from_static("application/xml");
/// The namespace of every answer that is no error.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// A document under construction.
#[derive(Debug)]
pub(crate) struct Xml(String);

impl Xml {
    /// A document whose root is in the namespace of S3.
    pub(crate) fn answer(root: &'static str, fill: impl FnOnce(&mut Self)) -> Self {
        let mut xml = Self::declared();
        // Writing to a `String` cannot fail, here and below.
        let _ = write!(xml.0, "<{root} xmlns=\"{NAMESPACE}\">");
        fill(&mut xml);
        let _ = write!(xml.0, "</{root}>");
        xml
    }

    /// A document whose root is in no namespace, as those of errors are.
    pub(crate) fn plain(root: &'static str, fill: impl FnOnce(&mut Self)) -> Self {
        let mut xml = Self::declared();
        xml.element(root, fill);
        xml
    }

    fn declared() -> Self {
        Self("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned())
    }

    /// An element with others in it.
    pub(crate) fn element(&mut self, name: &'static str, fill: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<{name}>");
        fill(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// An element with text in it.
    pub(crate) fn text(&mut self, name: &'static str, text: &str) {
        self.element(name, |xml| xml.escape(text));
    }

    fn escape(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                // A reader would make spaces or line feeds of these.
                '\t' | '\n' | '\r' => {
                    let _ = write!(self.0, "&#{};", u32::from(character));
                }
                '\0'..' ' | '\u{fffe}' | '\u{ffff}' => {
                    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                        let _ = write!(self.0, "%{byte:02X}");
                    }
                }
                other => self.0.push(other),
            }
        }
    }

    /// The document's text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl IntoResponse for Xml {
    fn into_response(self) -> Response {
        let head =
            [(header::CONTENT_TYPE, XML), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
        (head, self.0).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_what_xml_cannot_hold_is_percent_encoded() {
        let xml =
            Xml::plain("A", |xml| xml.text("B", "a&<>\"' \t\r\n\0\u{1f}\u{fffe}\u{ffff}é\u{10ffff}]]>"));
        assert_eq!(
            xml.into_text(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<A><B>a&amp;&lt;&gt;&quot;' &#9;&#13;&#10;%00%1F\
             %EF%BF%BE%EF%BF%BFé\u{10ffff}]]&gt;</B></A>"
        );
    }
}
