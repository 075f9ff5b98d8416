//! [`Config::differences`]: the settings that differ between two configurations.

use toml::{Table, Value};

use super::options::Config;
use crate::error::{setting_key, toml_key};

impl Config {
    /// The dotted keys of the settings that differ in another configuration. If only secrets of a mount differ, which are not
    /// shown, the key is that of its options as a whole.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let (one, two) = (Table::try_from(self), Table::try_from(other));
        let mut names = Vec::new();
        compare("", &one.unwrap_or_default(), &two.unwrap_or_default(), &mut names);
        for (name, mount) in &self.mounts {
            let key = setting_key(["mounts", name]);
            let is_named = names.iter().any(|named| *named == key || named.starts_with(&format!("{key}.")));
            if !is_named && other.mounts.get(name).is_some_and(|other| other != mount) {
                names.push(format!("{key}.options"));
            }
        }
        names
    }
}

fn compare(above: &str, one: &Table, two: &Table, names: &mut Vec<String>) {
    let keys = one.keys().chain(two.keys().filter(|key| !one.contains_key(*key)));
    for key in keys {
        let key_text = toml_key(key);
        let name = if above.is_empty() { key_text.into_owned() } else { format!("{above}.{key_text}") };
        match (one.get(key), two.get(key)) {
            (Some(Value::Table(one)), Some(Value::Table(two))) => compare(&name, one, two, names),
            (one, two) if one != two => names.push(name),
            _ => {}
        }
    }
}
