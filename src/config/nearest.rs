//! [`hint`]: the known word nearest to a misspelt one, for messages.

use crate::error::nearest;

/// A hint with the known word nearest to `word`, or with all of them if none is near.
pub(super) fn hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if !known.is_empty() => format!("known here: {}", known.join(", ")),
        None => "no key is known here".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn the_hint_suggests_the_nearest_word() {
        assert_eq!(hint("listne", &["idle_timeout", "listen"]), "did you mean `listen`?");
        assert_eq!(hint("Listen", &["idle_timeout", "listen"]), "did you mean `listen`?");
    }

    #[test]
    fn the_hint_lists_all_words_if_none_is_near() {
        assert_eq!(hint("port", &["idle_timeout", "listen"]), "known here: idle_timeout, listen");
    }
}
