//! The known word nearest to a mistyped one, for messages.

/// A hint that names the known word nearest to `word`; all of them, if none is near.
pub(super) fn hint(word: &str, known: &[&str]) -> String {
    // Two slips in a short word, one in three letters of a long one; further away a guess would mislead.
    let reach = (word.chars().count() / 3).max(2);
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word.to_lowercase(), candidate);
    match known.iter().map(|candidate| (distance(candidate), candidate)).min() {
        Some((steps, candidate)) if steps <= reach => format!("did you mean `{candidate}`?"),
        Some(_) => format!("known here: {}", known.join(", ")),
        None => "no key is known here".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn a_mistyped_word_is_answered_with_the_nearest() {
        assert_eq!(hint("listne", &["idle_seconds", "listen"]), "did you mean `listen`?");
        assert_eq!(hint("Listen", &["idle_seconds", "listen"]), "did you mean `listen`?");
    }

    #[test]
    fn a_word_near_nothing_is_answered_with_all_there_are() {
        assert_eq!(hint("port", &["idle_seconds", "listen"]), "known here: idle_seconds, listen");
    }
}
