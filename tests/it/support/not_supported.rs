//! Features that are refused on purpose: `tests/data/not-supported.toml`.

use std::path::Path;

/// The entries of one list.
pub struct NotSupported(Vec<String>);

impl NotSupported {
    /// The list of this name. Every entry has a reason.
    pub fn read(list: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/not-supported.toml");
        let table: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let entry = |entry: &toml::Value| {
            assert!(entry["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{entry}: no reason");
            entry["path"].as_str().unwrap().to_owned()
        };
        Self(table[list].as_array().unwrap().iter().map(entry).collect())
    }

    /// Whether a fixture is in the list, itself or a folder above it.
    pub fn holds(&self, path: &str) -> bool {
        self.0.iter().any(|entry| is_below(path, entry))
    }

    /// The entries that none of the fixtures is below.
    pub fn without<'a>(&'a self, fixtures: &[String]) -> Vec<&'a str> {
        let unused = |entry: &&str| !fixtures.iter().any(|path| is_below(path, entry));
        self.0.iter().map(String::as_str).filter(unused).collect()
    }
}

fn is_below(path: &str, entry: &str) -> bool {
    path.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
