//! [`counted`]: a count with its noun.

use std::fmt::Display;

/// A count with its noun, in the plural unless it is one: `1 dimension`, `2 dimensions`.
pub(crate) fn counted<T: Copy + Display + PartialEq + From<u8>>(count: T, noun: &str) -> String {
    let ending = if count == T::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_has_no_plural() {
        assert_eq!(counted(1_usize, "dimension"), "1 dimension");
        assert_eq!(counted(0_u64, "item"), "0 items");
        assert_eq!(counted(2_u64, "item"), "2 items");
    }
}
