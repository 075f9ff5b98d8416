//! The known word nearest to a mistyped one, for messages.

/// Longer words are not compared: the work grows with the product of the lengths.
const MOST_BYTES: usize = 64;

/// The known word nearest to `word`, if one is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MOST_BYTES {
        return None;
    }
    let word = word.to_lowercase();
    // Two slips in a short word, one in three letters of a long one; further away a guess would mislead.
    let reach = (word.chars().count() / 3).max(2);
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
    let near = known.into_iter().filter(|candidate| candidate.len() <= MOST_BYTES);
    near.map(|candidate| (distance(candidate), candidate))
        // A word that shares no letter with another is not near it, however short both are.
        .filter(|(steps, candidate)| *steps <= reach && *steps < candidate.chars().count().max(word.len()))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_word_is_answered_with_the_nearest_and_others_with_none() {
        let known = ["slice", "format", "t2m", "Precip"];
        for (word, found) in [
            ("slcie", Some("slice")),
            ("Format", Some("format")),
            ("t2", Some("t2m")),
            ("precip", Some("Precip")),
            ("temperature", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), found, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(65), [&*"x".repeat(65)]), None);
    }
}
