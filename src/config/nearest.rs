//! The known word nearest to a mistyped one, for messages.

use crate::error::nearest;

/// A hint that names the known word nearest to `word`; all of them, if none is near.
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
    fn a_mistyped_word_is_answered_with_the_nearest() {
        assert_eq!(hint("listne", &["idle_timeout", "listen"]), "did you mean `listen`?");
        assert_eq!(hint("Listen", &["idle_timeout", "listen"]), "did you mean `listen`?");
    }

    #[test]
    fn a_word_near_nothing_is_answered_with_all_there_are() {
        assert_eq!(hint("port", &["idle_timeout", "listen"]), "known here: idle_timeout, listen");
    }
}
