//! Words that are no longer in use, and a test that no file of the project has them.
//!
//! Whole words count, in any case, in identifiers (`wasTold`, `was_told`) and in prose, in names of files too. Words in a
//! row are found across line ends of comments.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use super::sources::{files_below, relative};

/// Words that are out of use, and what to say in their place.
const RETIRED: &[(&[&str], &str)] = &[
    (&["look", "looks", "looked", "looking"], "request, lookup, check, revalidate, resemble"),
    (&["glance", "glances", "glanced", "peep", "peeps", "peeping"], "check, lookup, revalidate"),
    (&["tell", "tells", "told", "telling"], "report, notify, return, say, distinguish"),
    (&["whoever", "whosoever", "somebody", "nobody"], "the client, the caller, a waiter, no one"),
    (&["under way"], "in flight, running"),
    (&["anew"], "again"),
    (&["lest"], "so that … not"),
    (&["remember", "remembers", "remembered", "remembering"], "cache, insert, keep"),
    (&["forget", "forgets", "forgot", "forgotten", "forgetting"], "evict, purge, invalidate"),
    (&["elsewhere"], "remote, in another place"),
    (&["for ever", "forever"], "without limit, indefinitely"),
    (&["so many", "so long"], "a number, a duration"),
    (&["turned away", "turns away", "turn away"], "rejected, shed"),
    (&["left alone", "leaves alone", "leave alone"], "circuit open, unchanged"),
    (&["patience", "patient"], "timeout, maximum wait"),
    (&["hopeless", "hope"], "would exceed the wait"),
    (&["boarding", "board", "boarded"], "join"),
    (&["flights"], "loads in flight"),
    (&["shelf", "shelves"], "cache"),
    (&["house", "room", "rooms", "roof"], "layer, module, top, capacity, budget"),
    (&["defect", "defects"], "bug, internal error"),
    (&["the books", "books"], "overhead"),
    (&["taken back", "take back"], "revoked, cancelled"),
    (&["is meant", "are meant"], "matches"),
    (&["quietness", "is quiet"], "unchanged since"),
];

/// Files that use a retired word in the sense that a standard gives it, each with the word and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("docs/src/operations.md", "forgotten", "a member of a response"),
    ("openapi/openapi.json", "forgotten", "a member of a response"),
    ("src/api/cache/mod.rs", "forgotten", "a member of a response"),
    ("docs/src/http-api/errors.md", "elsewhere", "a problem code"),
    ("src/http/webdav_headers.rs", "elsewhere", "a problem code"),
    ("tests/bench/pictures/paint.py", "forever", "a method of the standard library"),
    ("tests/bench/scale/record.py", "forever", "a method of the standard library"),
    ("tests/clients/conftest.py", "forever", "a method of the standard library"),
    ("tests/clients/emulators.py", "forever", "a method of the standard library"),
    ("tests/it/admin.rs", "forgotten", "a member of a response"),
    ("tests/it/polls/mod.rs", "forget", "a function of the standard library"),
    ("tests/it/support/counting.rs", "forget", "a method of the permits of semaphores"),
    ("tests/it/tidy/words.rs", "", "the list itself"),
    ("tests/reliability/bucket.py", "forever", "a method of the standard library"),
    ("tests/reliability/keys.py", "forever", "a method of the standard library"),
    ("tests/reliability/paths.py", "elsewhere", "a problem code"),
    ("tests/reliability/redirects.py", "forever", "a method of the standard library"),
];

/// Extensions of text that people write.
const EXTENSIONS: [&str; 14] =
    ["rs", "toml", "md", "py", "mjs", "js", "html", "lua", "conf", "yaml", "yml", "json", "txt", "ini"];

/// Scripts and the like, which have no extension.
const NAMES: [&str; 4] = ["run", "overload", "Dockerfile", ".gitignore"];

/// Files of other origin: fixtures, locked versions.
const NOT_OURS: [&str; 3] = ["Cargo.lock", "package-lock.json", "LICENSE"];

/// A word in lower case, with its line, and whether nothing but blanks, `_`, `-` and signs of comments precede it.
struct Word {
    text: String,
    line: usize,
    follows: bool,
}

/// The words of a text: identifiers are split at underscores and at capitals.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let mut follows = true;
        let mut rest = content.trim_start().trim_start_matches(['/', '!', '#', '*']);
        while let Some(start) = rest.find(char::is_alphanumeric) {
            follows &= rest[..start].chars().all(|c| c.is_whitespace() || c == '_' || c == '-');
            rest = &rest[start..];
            let end = word_end(rest);
            words.push(Word { text: rest[..end].to_lowercase(), line, follows });
            rest = &rest[end..];
            follows = true;
        }
        if !rest.trim().is_empty() {
            // A line that ends in a sign ends the row of words.
            words.push(Word { text: String::new(), line, follows: false });
        }
    }
    words
}

/// Where the first word of a text ends that begins with one.
fn word_end(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    let mut last: Option<char> = None;
    while let Some((at, c)) = characters.next() {
        let next_is_lower = characters.peek().is_some_and(|(_, next)| next.is_lowercase());
        let starts_word = c.is_uppercase() && last.is_some_and(|last| !last.is_uppercase() || next_is_lower);
        if !c.is_alphanumeric() || starts_word {
            return at;
        }
        last = Some(c);
    }
    text.len()
}

/// A retired word, and what to say in its place.
type Retired = (&'static str, &'static str);

/// The retired words by the first word of each.
static BY_FIRST: LazyLock<HashMap<&str, Vec<Retired>>> = LazyLock::new(|| {
    let mut by_first: HashMap<&str, Vec<Retired>> = HashMap::new();
    for (forms, instead) in RETIRED {
        for form in *forms {
            let first = form.split(' ').next().unwrap_or_default();
            by_first.entry(first).or_default().push((form, instead));
        }
    }
    by_first
});

/// The retired words in a text, with their lines and what to say instead.
fn retired_in(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let words = words(text);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for &(form, instead) in BY_FIRST.get(word.text.as_str()).into_iter().flatten() {
            if starts_with(&words[at..], form) {
                found.push((word.line, form, instead));
            }
        }
    }
    found
}

fn starts_with(words: &[Word], form: &str) -> bool {
    form.split(' ').enumerate().all(|(index, part)| {
        words.get(index).is_some_and(|word| word.text == part && (index == 0 || word.follows))
    })
}

fn breaches(path: &str, text: &str) -> Vec<String> {
    let is_allowed = |form: &str| {
        EXCEPTIONS.iter().any(|(file, word, _)| *file == path && (word.is_empty() || *word == form))
    };
    let in_name = retired_in(path).into_iter().map(|(_, form, instead)| (0, form, instead));
    in_name
        .chain(retired_in(text))
        .filter(|(_, form, _)| !is_allowed(form))
        .map(|(line, form, instead)| format!("{path}:{line}: \"{form}\" is retired; say: {instead}"))
        .collect()
}

/// Whether people write a file's text, by its path.
fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_fixture = path.starts_with("tests/data/") && extension == "json";
    let is_text = EXTENSIONS.contains(&extension) || NAMES.contains(&name);
    is_text && !is_fixture && !NOT_OURS.contains(&name)
}

#[test]
fn no_file_has_a_retired_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut report = Vec::new();
    for file in files_below(root) {
        let path = relative(&file, root);
        if !is_ours(&path) {
            continue;
        }
        report.extend(breaches(&path, &std::fs::read_to_string(&file).unwrap()));
    }
    report.sort();
    assert!(report.is_empty(), "{} uses:\n{}", report.len(), report.join("\n"));
}

#[test]
fn every_exception_is_needed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (path, word, _) in EXCEPTIONS.iter().filter(|(_, word, _)| !word.is_empty()) {
        let found = retired_in(&std::fs::read_to_string(root.join(path)).unwrap());
        assert!(found.iter().any(|(_, form, _)| form == word), "{path} has no \"{word}\"");
    }
}

#[test]
fn every_retired_word_is_reported_at_its_line() {
    for (text, form, line) in [
        ("//! One.\n/// What is told.", "told", 2),
        ("fn was_told() {}", "told", 1),
        ("struct WasTold;", "told", 1),
        ("const WAS_TOLD: u8 = 1;", "told", 1),
        ("let wasTold = 1;", "told", 1),
        ("Nobody asks.", "nobody", 1),
        ("requests under way", "under way", 1),
        ("fn requests_under_way() {}", "under way", 1),
        ("struct UnderWay;", "under way", 1),
        ("// requests under\n// way", "under way", 1),
        ("# requests under\n# way", "under way", 1),
    ] {
        let found = retired_in(text);
        assert!(
            matches!(found[..], [(at, word, _)] if at == line && word == form),
            "{text}\n  gave {found:?}"
        );
    }
    assert_eq!(retired_in("src/telling/mod.rs").len(), 1);
}

#[test]
fn other_words_with_the_same_letters_are_not_reported() {
    for text in [
        "a lookup",
        "LookupError",
        "shelfmark",
        "background",
        "in flight",
        "under. Way",
        "under(way)",
        "latest",
        "lookups_total",
    ] {
        assert!(retired_in(text).is_empty(), "{text}");
    }
}

#[test]
fn files_of_other_origin_are_not_read() {
    for path in ["Cargo.lock", "tests/data/a/zarr.json", "src/http/icon/favicon.ico", "LICENSE"] {
        assert!(!is_ours(path), "{path}");
    }
    for path in ["src/lib.rs", ".ci/run", "openapi/openapi.json", "tests/clients/node/read.mjs", "docs/a.md"]
    {
        assert!(is_ours(path), "{path}");
    }
}
