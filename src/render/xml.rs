//! Texts in XML documents (XML 1.0, section 2.2).

use std::fmt::Write;

/// A text as ASCII, for content and for attribute values in quotes. Characters that no document can have are left out.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            ' '..='~' => out.push(character),
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            _ => {
                let _ = write!(out, "&#{};", u32::from(character));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_ascii_without_meaning_in_xml() {
        assert_eq!(escape("a<b> & \"c\"\n\u{1}\u{e9}"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;&#233;");
    }
}
