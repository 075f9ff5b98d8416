//! [`PageState`]: what the query of a page's URL says, in the words of the interface.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters that stay readable in a query.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b',')
    .remove(b':')
    .remove(b'/');

/// The words of a page's URL, in the order in which links have them. Words of the interface come first.
const WORDS: [&str; 22] = [
    "slice", "axes", "fields", "origin", "colormap", "range", "scale", "below", "above", "missing",
    "channels", "rgb", "method", "decode", "labels", "opacity", "tab", "along", "box", "at", "level", "grid",
];
/// The words that only pages know.
const OF_PAGES: [&str; 8] = ["labels", "opacity", "tab", "along", "at", "level", "grid", "load"];
/// Most characters of a value that is repeated in links.
const MOST_VALUE: usize = 400;
/// Most words that are repeated in links.
const MOST_WORDS: usize = 40;

/// The words of a page's URL.
#[derive(Clone, Debug, Default)]
pub struct PageState(Vec<(String, String)>);

impl PageState {
    /// The state of a query, given its decoded names and values. A name that comes twice counts once.
    #[must_use]
    pub fn new(pairs: Vec<(String, String)>) -> Self {
        let mut state = Self::default();
        for (name, value) in pairs {
            let is_first = !state.0.iter().any(|(known, _)| *known == name);
            // A form sends a field that was left empty as an empty word.
            if is_first
                && !value.is_empty()
                && state.0.len() < MOST_WORDS
                && name.len() + value.len() <= MOST_VALUE
            {
                state.0.push((name, value));
            }
        }
        let place = |name: &str| WORDS.iter().position(|word| *word == name).unwrap_or(WORDS.len());
        state.0.sort_by_key(|(name, _)| place(name));
        state
    }

    /// The value of a word.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The selections by name: `isel.NAME`.
    pub(super) fn selections(&self) -> Vec<(String, String)> {
        let named =
            |(name, value): &(String, String)| Some((name.strip_prefix("isel.")?.to_owned(), value.clone()));
        self.0.iter().filter_map(named).collect()
    }

    /// The words that neither the interface nor pages know.
    pub(super) fn unknown(&self) -> Vec<&str> {
        let is_known = |name: &str| {
            WORDS.contains(&name)
                || OF_PAGES.contains(&name)
                || name.starts_with("isel.")
                || name.starts_with("utm_")
        };
        self.0.iter().map(|(name, _)| name.as_str()).filter(|name| !is_known(name)).collect()
    }

    /// The same state with other values: an empty one removes a word.
    #[must_use]
    pub fn with(&self, changes: &[(&str, &str)]) -> Self {
        let mut pairs: Vec<(String, String)> = changes
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let kept = self.0.iter().filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
        pairs.extend(kept.cloned());
        Self::new(pairs)
    }

    /// The same state with another selection by position.
    pub(super) fn with_slice(&self, slice: &str) -> Self {
        let mut state = self.with(&[("slice", slice)]);
        state.0.retain(|(name, _)| !name.starts_with("isel."));
        state
    }

    /// A path with this state as its query.
    pub(super) fn link(&self, path: &str) -> String {
        join(path, self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// The words of the interface, without the selection: those of a picture.
    pub(super) fn of_picture(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_pictures = |name: &str| {
            [
                "fields", "origin", "colormap", "range", "scale", "below", "above", "missing", "channels",
                "method", "decode",
            ]
            .contains(&name)
        };
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(move |(name, _)| is_pictures(name))
    }

    /// All words but those of a form's own fields.
    pub(super) fn besides<'a>(&'a self, own: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| !own.contains(name) && !name.starts_with("isel."))
    }
}

/// A path with a query. A query that it has stays.
pub(super) fn join<'a>(path: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let encoded = |text| utf8_percent_encode(text, ESCAPED);
    let pairs: Vec<String> =
        pairs.map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    if pairs.is_empty() {
        return path.to_owned();
    }
    let sign = if path.contains('?') { '&' } else { '?' };
    format!("{path}{sign}{}", pairs.join("&"))
}

/// A path with names below it, before the query that it may have.
pub(super) fn below(path: &str, names: &str) -> String {
    let (path, query) = split(path);
    format!("{}/{names}{query}", path.trim_end_matches('/'))
}

/// A path, and the query that it may have, with its question mark.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.split_at(path.find('?').unwrap_or(path.len()))
}

/// The words of the query that a path may have: a form by GET sends its fields in their place.
pub(super) fn words_in(path: &str) -> Vec<(String, String)> {
    let (_, query) = split(path);
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = query.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(pairs: &[(&str, &str)]) -> PageState {
        PageState::new(pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn links_have_the_words_in_a_fixed_order_and_escaped() {
        let state = state(&[("tab", "meta"), ("x", "a&b=\"'<"), ("slice", "0,:,1:2"), ("tab", "use")]);
        assert_eq!(state.link("/a"), "/a?slice=0,:,1:2&tab=meta&x=a%26b%3D%22%27%3C");
        assert_eq!(state.with(&[("tab", "")]).link("/a"), "/a?slice=0,:,1:2&x=a%26b%3D%22%27%3C");
        assert_eq!(state.unknown(), ["x"]);
    }

    #[test]
    fn a_query_that_a_path_has_stays_at_its_end() {
        let signed = "/a/?key=k&below=b%20c%2F";
        assert_eq!(join(signed, [("tab", "use")].into_iter()), "/a/?key=k&below=b%20c%2F&tab=use");
        assert_eq!(below(signed, "d/e"), "/a/d/e?key=k&below=b%20c%2F");
        assert_eq!(below("/a", "d"), "/a/d");
        let words =
            [("key", "k"), ("below", "b c/")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(words_in(signed), words);
        assert!(words_in("/a").is_empty());
    }

    #[test]
    fn a_slice_replaces_selections_by_name() {
        let state = state(&[("isel.t", "1"), ("colormap", "magma")]);
        assert_eq!(state.selections(), [("t".to_owned(), "1".to_owned())]);
        assert_eq!(state.with_slice("1,:").link(""), "?slice=1,:&colormap=magma");
    }
}
