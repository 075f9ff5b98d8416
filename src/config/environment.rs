//! The layer of environment variables.
//!
//! `ZARRD__SECTION__KEY` is a setting. Other variables that begin with `ZARRD_` are rejected like unknown keys of a file, except
//! those that Kubernetes sets in every container for a service named `zarrd`.

use std::ffi::OsString;

use super::error::ConfigError;
use super::origin::Origin;
use super::tree::{ConfigValue, LocatedValue};
use crate::error::{is_one_edit_from, nearest};

/// Variables with this prefix are settings; `__` stands between the keys.
const PREFIX: &str = "ZARRD__";
/// Variables with this prefix belong to this program.
const OWN: &str = "ZARRD_";
/// The variable of OpenTelemetry that names the collector of traces.
const OTLP: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The variable that names the configuration file, unless a flag does.
pub(super) const FILE: &str = "ZARRD_CONFIG";
/// The variable that names the file below it, which a container image sets.
pub(super) const BASE_FILE: &str = "ZARRD_BASE_CONFIG";
/// Settings without a default, which are therefore not keys of the defaults.
const WITHOUT_DEFAULT: [&str; 5] = [
    "ZARRD__CACHE__DISK__PATH",
    "ZARRD__SERVER__ADMIN_LISTEN",
    "ZARRD__SERVER__TLS__CERTIFICATE",
    "ZARRD__SERVER__TLS__KEY",
    "ZARRD__TELEMETRY__OTLP_ENDPOINT",
];

/// The names of the variables for all keys of the defaults, and of those that name files.
pub(super) fn names(defaults: &LocatedValue) -> Vec<String> {
    fn below(entry: &LocatedValue, name: &str, names: &mut Vec<String>) {
        match &entry.node {
            ConfigValue::Table(entries) => {
                for (key, entry) in entries {
                    below(entry, &format!("{name}__{}", key.to_ascii_uppercase()), names);
                }
            }
            _ => names.push(name.to_owned()),
        }
    }
    let mut names: Vec<String> =
        WITHOUT_DEFAULT.iter().chain(&[FILE, BASE_FILE]).map(|&name| name.to_owned()).collect();
    below(defaults, "ZARRD", &mut names);
    names
}

/// Merges the variables into the tree.
///
/// # Errors
/// [`ConfigError::Syntax`], [`ConfigError::UnknownVariable`].
pub(super) fn apply(
    tree: &mut LocatedValue,
    variables: &[(OsString, OsString)],
    known: &[String],
) -> Result<(), ConfigError> {
    for (name, value) in variables {
        // The variable that all programs share; our own overrides it.
        if name == OTLP && !value.is_empty() {
            let origin = Origin::Variable(OTLP.to_owned());
            let node = ConfigValue::Word(value.to_string_lossy().into_owned());
            tree.set(&["telemetry", "otlp_endpoint"], LocatedValue { node, origin });
        }
    }
    variables.iter().try_for_each(|(name, value)| {
        let name = name.to_string_lossy();
        match name.strip_prefix(PREFIX) {
            Some(path) => {
                check_underscores(&name, known)?;
                set(tree, path, Origin::Variable(name.to_string()), value)
            }
            None => check(&name, &value.to_string_lossy(), known),
        }
    })
}

/// Sets the value of one variable.
fn set(tree: &mut LocatedValue, path: &str, origin: Origin, value: &OsString) -> Result<(), ConfigError> {
    let Some(value) = value.to_str() else {
        return Err(ConfigError::Syntax { origin, reason: "the value is not UTF-8".to_owned() });
    };
    let path = path.to_ascii_lowercase();
    let path: Vec<&str> = path.split("__").collect();
    if path.iter().any(|key| key.is_empty()) {
        let reason = "a setting is named ZARRD__SECTION__KEY".to_owned();
        return Err(ConfigError::Syntax { origin, reason });
    }
    tree.set(&path, LocatedValue { node: ConfigValue::Word(value.to_owned()), origin });
    Ok(())
}

/// Rejects a variable that would be a known setting with two underscores in place of one.
fn check_underscores(name: &str, known: &[String]) -> Result<(), ConfigError> {
    let squeezed = |name: &str| name.to_ascii_uppercase().replace("__", "_");
    let is_known = known.iter().any(|setting| setting.eq_ignore_ascii_case(name));
    match known.iter().find(|setting| squeezed(setting) == squeezed(name)) {
        Some(setting) if !is_known => Err(meant(name, setting)),
        _ => Ok(()),
    }
}

fn meant(name: &str, setting: &str) -> ConfigError {
    ConfigError::UnknownVariable { name: name.to_owned(), hint: format!("did you mean `{setting}`?") }
}

/// Rejects a variable with the prefix of this program that is not a setting, and one whose prefix is misspelt.
fn check(name: &str, value: &str, known: &[String]) -> Result<(), ConfigError> {
    if let Some((prefix, key)) = name.split_once("__") {
        let setting = format!("{PREFIX}{}", key.to_ascii_uppercase());
        let is_setting = known.contains(&setting) || setting.starts_with("ZARRD__MOUNTS__");
        // With more edits it would be a variable of another program.
        let is_near = is_one_edit_from(&prefix.to_ascii_uppercase(), "ZARRD");
        if is_setting && is_near {
            return Err(meant(name, &setting));
        }
    }
    if !name.starts_with(OWN) || name == FILE || name == BASE_FILE || is_kubernetes_service(name, value) {
        return Ok(());
    }
    // A complete key whose section is missing or misspelt.
    let key = name.strip_prefix(OWN).map(|key| format!("__{key}")).unwrap_or_default();
    if let Some(setting) = known.iter().find(|setting| setting.ends_with(&key)) {
        return Err(meant(name, setting));
    }
    let hint = match nearest(name, known.iter().map(String::as_str)) {
        _ if name.starts_with("ZARRD_MOUNTS_") => {
            "settings of mounts are named `ZARRD__MOUNTS__NAME__KEY`".to_owned()
        }
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "settings are named `ZARRD__SECTION__KEY`, with two underscores".to_owned(),
    };
    Err(ConfigError::UnknownVariable { name: name.to_owned(), hint })
}

/// Whether a variable is one of those in which Kubernetes (and Docker's links) give the address of a service:
/// `ZARRD_SERVICE_HOST`, `ZARRD_SERVICE_PORT_HTTP`, `ZARRD_PORT=tcp://…`, `ZARRD_PORT_8000_TCP_ADDR`.
fn is_kubernetes_service(name: &str, value: &str) -> bool {
    let is_port = || {
        let protocols = ["tcp://", "udp://", "sctp://"];
        name.ends_with("_PORT") && protocols.iter().any(|protocol| value.starts_with(protocol))
    };
    let is_part_of_port = || {
        name.match_indices("_PORT_").any(|(at, word)| {
            let rest = name.get(at + word.len()..).unwrap_or_default();
            let mut words = rest.split('_');
            let number = words.next().is_some_and(|word| word.parse::<u16>().is_ok());
            let protocol = words.next().is_some_and(|word| ["TCP", "UDP", "SCTP"].contains(&word));
            number && protocol && words.next().is_none_or(|word| ["PROTO", "PORT", "ADDR"].contains(&word))
        })
    };
    let is_service = || {
        ["_SERVICE_HOST", "_SERVICE_PORT"].iter().any(|end| name.ends_with(end))
            || name.contains("_SERVICE_PORT_")
    };
    is_service() || is_port() || is_part_of_port()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DEFAULTS;

    fn error_of(name: &str, value: &str) -> Option<String> {
        let known = names(&LocatedValue::parse(DEFAULTS, &Origin::Default).unwrap());
        check(name, value, &known).err().map(|error| error.to_string())
    }

    #[test]
    fn misspelt_variables_are_rejected_with_the_nearest_name() {
        for (name, part) in [
            ("ZARRD_SERVER_LISTEN", "did you mean `ZARRD__SERVER__LISTEN`?"),
            ("ZARRD_SERVER__LISTEN", "did you mean `ZARRD__SERVER__LISTEN`?"),
            ("ZARRD_LISTEN", "did you mean `ZARRD__SERVER__LISTEN`?"),
            ("ZARRD_CACHE_DECODED_SIZE", "did you mean `ZARRD__CACHE__DECODED_SIZE`?"),
            ("ZARRD_SERVER_ADMIN_LISTEN", "did you mean `ZARRD__SERVER__ADMIN_LISTEN`?"),
            ("zarrd__server__listen", "did you mean `ZARRD__SERVER__LISTEN`?"),
            ("ZARD__SERVER__LISTEN", "did you mean `ZARRD__SERVER__LISTEN`?"),
            ("Zarrd__Mounts__a__Url", "did you mean `ZARRD__MOUNTS__A__URL`?"),
            ("ZARRD_CONFIG_FILE", "did you mean `ZARRD_CONFIG`?"),
            ("ZARRD_MOUNTS_DATA_URL", "`ZARRD__MOUNTS__NAME__KEY`"),
            ("ZARRD_SOMETHING_ELSE_ALTOGETHER_UNLIKE", "two underscores"),
            ("ZARRD_PORT", "settings are named"),
        ] {
            let message = error_of(name, "8000").unwrap_or_default();
            assert!(message.starts_with(&format!("environment variable {name}: ")), "{name}: {message}");
            assert!(message.contains(part), "{name}: {message}");
        }
    }

    #[test]
    fn a_setting_with_one_underscore_in_place_of_two_is_rejected_with_its_name() {
        let defaults = || LocatedValue::parse(DEFAULTS, &Origin::Default).unwrap();
        let apply_one = |name: &str| {
            apply(&mut defaults(), &[(name.into(), "1".into())], &names(&defaults()))
                .map_err(|error| error.to_string())
        };
        for (name, setting) in [
            ("ZARRD__SERVER_LISTEN", "ZARRD__SERVER__LISTEN"),
            ("ZARRD__SERVER__TLS_KEY", "ZARRD__SERVER__TLS__KEY"),
            ("ZARRD__CACHE__DECODED__SIZE", "ZARRD__CACHE__DECODED_SIZE"),
        ] {
            let message = apply_one(name).unwrap_err();
            assert!(message.contains(&format!("did you mean `{setting}`?")), "{name}: {message}");
        }
        for name in ["ZARRD__SERVER__LISTEN", "ZARRD__MOUNTS__A__URL", "ZARRD__CACHE__DECODED_SIZE"] {
            apply_one(name).unwrap();
        }
    }

    #[test]
    fn variables_of_kubernetes_services_are_ignored() {
        for (name, value) in [
            ("ZARRD_SERVICE_HOST", "10.0.0.1"),
            ("ZARRD_SERVICE_PORT", "8000"),
            ("ZARRD_SERVICE_PORT_HTTP", "8000"),
            ("ZARRD_PORT", "tcp://10.0.0.1:8000"),
            ("ZARRD_PORT_8000_TCP", "tcp://10.0.0.1:8000"),
            ("ZARRD_PORT_8000_TCP_PROTO", "tcp"),
            ("ZARRD_PORT_8000_TCP_PORT", "8000"),
            ("ZARRD_PORT_8000_TCP_ADDR", "10.0.0.1"),
            ("ZARRD_ADMIN_SERVICE_HOST", "10.0.0.1"),
            ("ZARRD_ADMIN_PORT_8002_UDP_ADDR", "10.0.0.1"),
            ("ZARRD_CONFIG", "/etc/zarrd.toml"),
            ("ZARRD_BASE_CONFIG", "/etc/zarrd.toml"),
            ("ZARR_SERVER_LISTEN", "x"),
            ("CARD__SERVER__LISTEN", "x"),
            ("HOME", "/"),
        ] {
            assert_eq!(error_of(name, value), None, "{name}");
        }
    }
}
