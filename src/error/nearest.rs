//! The suggestion for a mistyped word in an error message.

/// Maximum length of a compared word in bytes; the work grows with the product of the lengths.
const MAX_WORD_BYTES: usize = 64;

/// The known word nearest to `word` by Damerau-Levenshtein distance, ignoring case; `None` if none is near. An extension that was left
/// out, such as `.zarr`, counts nothing.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let word = word.to_lowercase();
    // Two edits in a short word, one per three letters in a long one; a suggestion further away would mislead.
    let reach = (word.chars().count() / 3).max(2);
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let rest = candidate.strip_prefix(&word).filter(|_| !word.is_empty());
        let has_extension = rest.is_some_and(|rest| rest.starts_with('.'));
        if has_extension { 0 } else { strsim::damerau_levenshtein(&word, &candidate) }
    };
    let near = known.into_iter().filter(|candidate| candidate.len() <= MAX_WORD_BYTES);
    near.map(|candidate| (distance(candidate), candidate))
        // Words without a common letter are not near, however short both are.
        .filter(|(steps, candidate)| *steps <= reach && *steps < candidate.chars().count().max(word.len()))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Whether at most one letter was added, removed, replaced, or swapped with the next.
#[must_use]
pub fn is_one_edit_from(word: &str, other: &str) -> bool {
    word.len().abs_diff(other.len()) <= 1 && strsim::damerau_levenshtein(word, other) <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_known_word_is_suggested_only_if_it_is_near() {
        let known = ["slice", "format", "t2m", "Precip", "ERA5.zarr"];
        for (word, found) in [
            ("slcie", Some("slice")),
            ("Format", Some("format")),
            ("t2", Some("t2m")),
            ("precip", Some("Precip")),
            ("era5", Some("ERA5.zarr")),
            ("era", None),
            ("temperature", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), found, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(65), [&*"x".repeat(65)]), None);
    }
}
