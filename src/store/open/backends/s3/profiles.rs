//! [`AwsProfile`]: a profile of the files that the tools of AWS share, `~/.aws/config` and `~/.aws/credentials`.
//!
//! The format is that of the "AWS SDKs and Tools Reference Guide": sections, keys with values, comments, and indented lines that
//! belong to the key above them. In the file `config` the section of a profile is `[profile NAME]`, in `credentials` it is
//! `[NAME]`, and in the first it may be in quotes; what both have is taken from `credentials`. An access key, its secret and its token are always of one file.

use std::collections::BTreeMap;

use super::variables::AwsVariables;
use crate::store::open::error::OpenError;

/// Keys and values. A nested key is `above.below`.
type Entries = BTreeMap<String, String>;

/// The entries that belong together, the identifier first.
const KEYS: [&str; 3] = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];

/// Both files.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    profiles: BTreeMap<String, Entries>,
    services: BTreeMap<String, Entries>,
}

/// One profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwsProfile<'a>(&'a Entries);

impl<'a> AwsProfile<'a> {
    /// The value of a key, if it has one.
    pub(super) fn get(self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl Profiles {
    /// Reads the files of an environment. A file that is missing has no profiles.
    ///
    /// # Errors
    /// [`OpenError::Credentials`] if a file cannot be read.
    pub(super) fn read(environment: &AwsVariables) -> Result<Self, OpenError> {
        let mut all = Self::default();
        let file = |variable: &str, name: &str| {
            let home = || Some(format!("{}/.aws/{name}", environment.home()?));
            environment.get(variable).or_else(home)
        };
        for (path, is_config) in [
            (file("AWS_CONFIG_FILE", "config"), true),
            (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), false),
        ] {
            let Some(path) = path else { continue };
            match std::fs::read_to_string(&path) {
                Ok(text) => all.add(&text, is_config),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(OpenError::Credentials(format!("`{path}` cannot be read: {}", error.kind())));
                }
            }
        }
        Ok(all)
    }

    /// A profile by its name.
    pub(super) fn get(&self, name: &str) -> Option<AwsProfile<'_>> {
        self.profiles.get(name).map(AwsProfile)
    }

    /// The endpoint of a service for a profile: of its section `services`, or of the profile.
    pub(super) fn endpoint<'a>(&'a self, profile: AwsProfile<'a>, service: &str) -> Option<&'a str> {
        let of_service =
            || self.services.get(profile.get("services")?)?.get(&format!("{service}.endpoint_url"));
        of_service().map(String::as_str).or_else(|| profile.get("endpoint_url"))
    }

    fn add(&mut self, text: &str, is_config: bool) {
        let mut profiles = BTreeMap::<String, Entries>::new();
        // `[profile default]` comes before `[default]`, wherever it is.
        let mut plain_default = Entries::new();
        let mut section: Option<&mut Entries> = None;
        let mut above = String::new();
        for line in text.lines() {
            let is_nested = line.starts_with([' ', '\t']);
            let line = without_comment(line).trim();
            if line.is_empty() {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                let unquoted = words(name).unwrap_or_default();
                let parts: Vec<&str> = unquoted.iter().map(String::as_str).collect();
                section = match (is_config, parts.as_slice()) {
                    // There, the whole text is the name.
                    (false, _) => Some(profiles.entry(name.trim().to_owned()).or_default()),
                    (true, ["profile", name]) => Some(profiles.entry((*name).to_owned()).or_default()),
                    (true, ["default"]) => Some(&mut plain_default),
                    (true, ["services", name]) => Some(self.services.entry((*name).to_owned()).or_default()),
                    (true, _) => None,
                };
                above.clear();
                continue;
            }
            let (Some(entries), Some((key, value))) = (section.as_deref_mut(), line.split_once('=')) else {
                continue;
            };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().to_owned());
            if is_nested && !above.is_empty() {
                entries.insert(format!("{above}.{key}"), value);
            } else {
                above = if value.is_empty() { key.clone() } else { String::new() };
                entries.insert(key, value);
            }
        }
        if !plain_default.is_empty() {
            profiles.entry("default".to_owned()).or_insert(plain_default);
        }
        for (name, entries) in profiles {
            merge(self.profiles.entry(name).or_default(), entries);
        }
    }
}

/// Adds the entries of another file to a profile. Keys are those of the file that was added last and has an identifier.
fn merge(known: &mut Entries, mut added: Entries) {
    let has_identifier = added.get(KEYS[0]).is_some_and(|value| !value.is_empty());
    let without_keys = if has_identifier { &mut *known } else { &mut added };
    for key in KEYS {
        without_keys.remove(key);
    }
    known.extend(added);
}

/// The words of a section's title, separated by white space as in a shell: quotes and backslashes keep it. `None` if a quote
/// does not end.
fn words(title: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = title.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        end if end == character => break,
                        '\\' if character == '"' => {
                            let next = characters.next()?;
                            if !matches!(next, '\\' | '"') {
                                quoted.push('\\');
                            }
                            quoted.push(next);
                        }
                        inner => quoted.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// A line without a comment: from `#` or `;` on, at its beginning or after a space.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, character) in line.char_indices() {
        if matches!(character, '#' | ';') && before.is_whitespace() {
            return line.get(..at).unwrap_or_default();
        }
        before = character;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_as_the_tools_of_aws_read_them() {
        let mut profiles = Profiles::default();
        profiles.add(
            "# a comment\n[default]\nregion = us-west-2 ; another\n[profile default]\nregion=eu-central-1\n\
             [profile data]\nREGION = eu-west-1\nservices = local\ns3 =\n  max_concurrent_requests = 20\n\
             endpoint_url = https://all.example\n[services local]\ns3 =\n\tendpoint_url = http://s3.example\n\
             [data]\nregion = wrong\n[sso-session x]\nregion = wrong\nnonsense\n",
            true,
        );
        profiles.add(
            "[data]\naws_access_key_id = A\naws_secret_access_key = a#b=c\n[profile x]\nregion = r\n",
            false,
        );
        let default = profiles.get("default").unwrap();
        assert_eq!((default.get("region"), default.get("none")), (Some("eu-central-1"), None));
        let data = profiles.get("data").unwrap();
        assert_eq!(data.get("region"), Some("eu-west-1"));
        assert_eq!(data.get("aws_secret_access_key"), Some("a#b=c"));
        assert_eq!(data.get("s3.max_concurrent_requests"), Some("20"));
        assert_eq!(profiles.endpoint(data, "s3"), Some("http://s3.example"));
        assert_eq!(profiles.endpoint(data, "sts"), Some("https://all.example"));
        assert_eq!(profiles.endpoint(default, "s3"), None);
        assert!(profiles.get("x").is_none());
    }

    #[test]
    fn the_name_of_a_profile_may_be_quoted() {
        let mut profiles = Profiles::default();
        profiles.add(
            "[profile \"two words\"]\nregion = r1\n[profile 'a \"b\"']\nregion = r2\n[profile \"a\\\"b\"]\nregion = r3\n\
             [profile x\\ y]\nregion = r4\n[profile \"open]\nregion = r5\n[profile a b]\nregion = r6\n",
            true,
        );
        profiles.add("[two words]\naws_access_key_id = A\n", false);
        let region = |name: &str| profiles.get(name).and_then(|profile| profile.get("region"));
        assert_eq!(region("two words"), Some("r1"));
        assert_eq!(region("a \"b\""), Some("r2"));
        assert_eq!(region("a\"b"), Some("r3"));
        assert_eq!(region("x y"), Some("r4"));
        assert_eq!((region("open"), region("a b"), region("a"), region("b")), (None, None, None, None));
        assert_eq!(profiles.get("two words").unwrap().get("aws_access_key_id"), Some("A"));
    }

    #[test]
    fn an_access_key_its_secret_and_its_token_are_of_one_file() {
        let of = |config: &str, credentials: &str| {
            let mut profiles = Profiles::default();
            profiles.add(&format!("[profile a]\nregion = r\n{config}"), true);
            profiles.add(&format!("[a]\nother = o\n{credentials}"), false);
            let a = profiles.get("a").unwrap();
            assert_eq!((a.get("region"), a.get("other")), (Some("r"), Some("o")));
            KEYS.map(|key| a.get(key).unwrap_or("-").to_owned()).join(" ")
        };
        let id = |text: &str| format!("aws_access_key_id = {text}\n");
        let secret = |text: &str| format!("aws_secret_access_key = {text}\n");
        let token = |text: &str| format!("aws_session_token = {text}\n");
        let all = |text: &str| [id(text), secret(text), token(text)].concat();
        // A token of one file does not join the keys of the other.
        assert_eq!(of(&token("1"), &[id("2"), secret("2")].concat()), "2 2 -");
        assert_eq!(of(&all("1"), &[id("2"), secret("2")].concat()), "2 2 -");
        assert_eq!(of(&all("1"), &all("2")), "2 2 2");
        assert_eq!(of(&all("1"), ""), "1 1 1");
        assert_eq!(of(&all("1"), &token("2")), "1 1 1");
        assert_eq!(of(&secret("1"), &id("2")), "2 - -");
        assert_eq!(of(&id("1"), &secret("2")), "1 - -");
    }
}
