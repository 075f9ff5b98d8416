//! The XML documents of S3 responses (XML 1.0): elements and text, always well-formed.
//!
//! XML can represent most keys. The few characters that it cannot represent even as references (U+FFFE, U+FFFF, control
//! characters in the request) are percent-encoded. A client that expects them sends `encoding-type=url`.

use std::fmt::Write;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The media type of every document.
pub(crate) const XML: HeaderValue = HeaderValue::from_static("application/xml");
/// The namespace of every response document except errors.
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

    /// A document whose root has no namespace, as for errors.
    pub(crate) fn plain(root: &'static str, fill: impl FnOnce(&mut Self)) -> Self {
        let mut xml = Self::declared();
        xml.element(root, fill);
        xml
    }

    fn declared() -> Self {
        Self("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned())
    }

    /// Appends an element with child elements.
    pub(crate) fn element(&mut self, name: &'static str, fill: impl FnOnce(&mut Self)) {
        let _ = write!(self.0, "<{name}>");
        fill(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// Appends an element with text.
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
                // A parser would normalise these to spaces or line feeds.
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

    /// The text of the document.
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
    fn text_is_escaped_and_invalid_characters_are_percent_encoded() {
        let xml =
            Xml::plain("A", |xml| xml.text("B", "a&<>\"' \t\r\n\0\u{1f}\u{fffe}\u{ffff}é\u{10ffff}]]>"));
        assert_eq!(
            xml.into_text(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<A><B>a&amp;&lt;&gt;&quot;' &#9;&#13;&#10;%00%1F\
             %EF%BF%BE%EF%BF%BFé\u{10ffff}]]&gt;</B></A>"
        );
    }
}
