//! The names in a directory in their order, in little memory however many there are.
//!
//! A file system returns names in no useful order. So a directory is read from end to end in several passes, and each
//! pass keeps only the first names after a given one ([`FirstNames`]). The number that is kept grows from pass to pass
//! up to a limit in bytes: a short page keeps few names, and a complete listing takes few passes. Nothing here touches
//! a file system.

use std::cmp::Ordering;

/// Overhead of a name, in bytes.
const SPAN_BYTES: usize = size_of::<Span>();

/// Offset and length of a name in the text, in bytes.
type Span = (u32, u32);

/// Names in one buffer.
#[derive(Debug, Default)]
struct Text {
    text: String,
    spans: Vec<Span>,
}

impl Text {
    /// Appends a name that consists of two parts.
    fn push(&mut self, name: &str, end: &str) {
        // A name has at most 255 bytes, and all of them together less than 4 GiB.
        let at = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.text.push_str(name);
        self.text.push_str(end);
        let length = name.len().saturating_add(end.len());
        self.spans.push((at, u32::try_from(length).unwrap_or(u32::MAX)));
    }

    fn held_bytes(&self) -> usize {
        self.text.len().saturating_add(self.spans.len().saturating_mul(SPAN_BYTES))
    }
}

fn name(text: &str, (at, length): Span) -> &str {
    let (at, length) = (usize::try_from(at).unwrap_or(usize::MAX), usize::try_from(length).unwrap_or(0));
    text.get(at..at.saturating_add(length)).unwrap_or_default()
}

/// The first names of a directory after a given one, during one pass.
#[derive(Debug)]
pub(super) struct FirstNames<'a> {
    after: &'a str,
    /// The most names that are kept in the end, and the most bytes they take during the pass.
    names: usize,
    bytes: usize,
    selected: Text,
    /// The last name that may still be kept, once others were left out.
    last: Option<String>,
    is_complete: bool,
}

impl<'a> FirstNames<'a> {
    /// The first names after `after`: about `names` of them, or fewer if they take more than `bytes`.
    pub(super) fn new(after: &'a str, names: usize, bytes: usize) -> Self {
        Self { after, names, bytes, selected: Text::default(), last: None, is_complete: true }
    }

    /// Whether a name may be selected, as it is or followed by `/`. Rejects most names of a long directory without a
    /// copy and without a system call.
    pub(super) fn may_take(&mut self, name: &[u8]) -> bool {
        if self.last.as_ref().is_some_and(|last| name > last.as_bytes()) {
            self.is_complete = false;
            return false;
        }
        name.iter().chain(b"/").cmp(self.after.as_bytes()) == Ordering::Greater
    }

    /// Selects a name, followed by `/` if it is a directory's.
    pub(super) fn take(&mut self, name: &str, is_directory: bool) {
        let end = if is_directory { "/" } else { "" };
        let bytes = || name.bytes().chain(end.bytes());
        if bytes().cmp(self.after.bytes()) != Ordering::Greater {
            return;
        }
        if self.last.as_ref().is_some_and(|last| bytes().cmp(last.bytes()) == Ordering::Greater) {
            self.is_complete = false;
            return;
        }
        self.selected.push(name, end);
        let is_full = self.selected.spans.len() >= self.names.saturating_mul(2)
            || self.selected.held_bytes() >= self.bytes;
        if is_full && self.selected.spans.len() > 1 {
            self.drop_half();
        }
    }

    fn drop_half(&mut self) {
        let Text { text, spans } = &mut self.selected;
        let half = spans.len() / 2;
        let (first, last, _) =
            spans.select_nth_unstable_by(half - 1, |one, other| name(text, *one).cmp(name(text, *other)));
        let mut half = Text::default();
        for &mut span in first.iter_mut().chain([&mut *last]) {
            half.push(name(text, span), "");
        }
        self.last = Some(name(text, *last).to_owned());
        self.selected = half;
        self.is_complete = false;
    }

    /// The selected names, sorted.
    pub(super) fn into_names(self) -> Names {
        let Text { mut text, mut spans } = self.selected;
        text.shrink_to_fit();
        spans.shrink_to_fit();
        spans.sort_unstable_by(|one, other| name(&text, *one).cmp(name(&text, *other)));
        Names { selected: Text { text, spans }, next: 0, is_complete: self.is_complete }
    }
}

/// Names in their order. Those of directories end in `/`.
#[derive(Debug)]
pub(super) struct Names {
    selected: Text,
    next: usize,
    is_complete: bool,
}

impl Names {
    pub(super) fn next(&mut self) -> Option<&str> {
        let span = *self.selected.spans.get(self.next)?;
        self.next += 1;
        Some(name(&self.selected.text, span))
    }

    /// The last of them; `None` if there are none.
    pub(super) fn last(&self) -> Option<&str> {
        self.selected.spans.last().map(|span| name(&self.selected.text, *span))
    }

    /// Whether all names were taken.
    pub(super) fn is_exhausted(&self) -> bool {
        self.next >= self.selected.spans.len()
    }

    /// Whether the directory has no names after these.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.selected.held_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All names behind `after`, in readings; each ends within the bytes.
    fn read(directory: &[(String, bool)], after: &str, names: usize, bytes: usize) -> Vec<String> {
        let (mut seen, mut after) = (Vec::new(), after.to_owned());
        loop {
            let mut selection = FirstNames::new(&after, names, bytes);
            for (name, is_directory) in directory {
                if selection.may_take(name.as_bytes()) {
                    selection.take(name, *is_directory);
                }
                assert!(
                    selection.selected.spans.len() < 2 * names.max(1)
                        && selection.selected.held_bytes() < bytes.max(600)
                );
            }
            let mut names = selection.into_names();
            while let Some(name) = names.next() {
                seen.push(name.to_owned());
            }
            if names.is_complete() {
                return seen;
            }
            after = names.last().expect("some are kept if others are left out").to_owned();
        }
    }

    proptest! {
        #[test]
        fn every_name_is_read_once_and_in_order_for_any_limit(
            directory in proptest::collection::btree_map("[!./0a]{1,4}", any::<bool>(), 0..80),
            after in "[!./0a]{0,4}",
            names in 1_usize..50,
            bytes in 16_usize..2000,
            seed in any::<u64>(),
        ) {
            let mut directory: Vec<(String, bool)> =
                directory.into_iter().filter(|(name, _)| !name.contains('/')).collect();
            let mut expected: Vec<String> = directory
                .iter()
                .map(|(name, is_directory)| format!("{name}{}", if *is_directory { "/" } else { "" }))
                .filter(|name| *name > after)
                .collect();
            expected.sort_unstable();
            // The order of a file system is none.
            directory.sort_by_key(|(name, _)| name.bytes().fold(seed, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            }));
            prop_assert_eq!(read(&directory, &after, names, bytes), expected);
        }
    }

    #[test]
    fn few_more_names_of_a_long_directory_are_kept_than_requested() {
        let directory: Vec<(String, bool)> = (0..20_000).map(|number| (number.to_string(), false)).collect();
        let mut selection = FirstNames::new("5", 100, 1 << 20);
        let mut taken = 0;
        for (name, is_directory) in &directory {
            if selection.may_take(name.as_bytes()) {
                taken += 1;
                selection.take(name, *is_directory);
            }
        }
        let mut names = selection.into_names();
        assert!(!names.is_complete());
        assert_eq!(names.next(), Some("50"));
        assert_eq!(names.next(), Some("500"));
        assert!((100..200).contains(&names.selected.spans.len()), "{}", names.selected.spans.len());
        assert!(taken < 3_000, "{taken} names were more than compared");
        assert!(names.held_bytes() < 4_096);
    }
}
