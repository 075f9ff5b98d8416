//! The mark of a document: white space at its end, which says how often its array was taken over.
//!
//! A change that a former owner of the array has sent may still arrive. It is conditional on the version that the owner has read, and
//! where versions are digests, a document with the same bytes would let it pass. So who takes an array over gives its document a mark, and
//! every document that is made of a marked one has that mark too.

/// The same document with other bytes: white space at its end spells the number of the takeover in two characters. Where a
/// version is a digest of the bytes, no document with another number has the same one.
pub(super) fn marked(text: &[u8], epoch: u64) -> String {
    let text = String::from_utf8_lossy(text.trim_ascii_end());
    let digits = (0..u64::BITS - epoch.leading_zeros()).rev();
    let spelled: String = digits.map(|bit| if epoch >> bit & 1 == 1 { '\t' } else { ' ' }).collect();
    format!("{text}\n{spelled}")
}

/// The longest mark: a line feed, and as many characters as a number has bits.
const MAX_MARK: usize = 1 + u64::BITS as usize;

/// A document that is made of a stored one, with the mark that this has at its end, if it has one. So no document is stored again with
/// the bytes that it had before a takeover.
pub(super) fn marked_as(text: String, stored: &[u8]) -> String {
    let mark = stored.get(stored.trim_ascii_end().len()..).unwrap_or_default();
    let is_mark = mark.len() <= MAX_MARK
        && mark.strip_prefix(b"\n").is_some_and(|spelled| {
            !spelled.is_empty() && spelled.iter().all(|byte| matches!(byte, b' ' | b'\t'))
        });
    if is_mark { format!("{}{}", text.trim_ascii_end(), String::from_utf8_lossy(mark)) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_is_made_of_a_marked_one_has_its_mark() {
        let stored = marked(br#"{"shape": [1]}"#, 5);
        let made = marked_as("{\"shape\": [2]}\n".to_owned(), stored.as_bytes());
        assert_eq!(made, marked(br#"{"shape": [2]}"#, 5));
        assert_eq!(marked_as("{}".to_owned(), made.as_bytes()), marked(b"{}", 5));
        let long = format!("{{}}\n{}", " ".repeat(100));
        for unmarked in ["{}", "{}\n", "{} ", "{}\n\n", &long] {
            assert_eq!(marked_as("{}\n".to_owned(), unmarked.as_bytes()), "{}\n", "{unmarked:?}");
        }
    }

    #[test]
    fn each_takeover_has_another_mark_and_the_same_document() {
        let document = br#"{"zarr_format": 3, "shape": [1]}"#;
        let mut text = String::from_utf8(document.to_vec()).unwrap();
        let mut seen = std::collections::HashSet::from([text.clone()]);
        for epoch in (1..200).chain([u64::MAX]) {
            text = marked(text.as_bytes(), epoch);
            assert!(seen.insert(text.clone()), "{epoch}");
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value, serde_json::from_slice::<serde_json::Value>(document).unwrap());
        }
    }
}
