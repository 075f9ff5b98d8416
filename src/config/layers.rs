//! [`Sources`]: the layers of the configuration, merged: defaults < base file < file < environment < flags.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::argument_hint::argument_hint;
use super::cli::ServeArgs;
use super::error::ConfigError;
use super::machine::AvailableMemory;
use super::mounts::{self, DEMO, PYRAMID_SOURCE, UrlError};
use super::options::{Config, DEFAULTS};
use super::origin::Origin;
use super::read::read;
use super::server::parse_listen;
use super::tls::TlsOptions;
use super::tree::{ConfigValue, LocatedValue};
use super::{access, budgets, environment, local_paths, machine};
use crate::auth::Access;
use crate::error::setting_key;
use crate::store::takes_option;

/// The layers above the defaults. Only here are the environment and configuration files read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Paths and texts of the files, each overriding the one before: that of a container image, and the user's own.
    pub files: Vec<(PathBuf, String)>,
    /// All environment variables; those that are not settings are skipped.
    pub variables: Vec<(OsString, OsString)>,
    /// The command line.
    pub flags: ServeArgs,
    /// How much memory there is.
    pub memory: AvailableMemory,
}

impl Sources {
    /// Reads the environment, the files that flags or environment name, and the memory of the machine.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`].
    pub fn gather(flags: ServeArgs) -> Result<Self, ConfigError> {
        let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let named = |variable: &str| {
            let found = variables.iter().find(|(name, value)| name == variable && !value.is_empty());
            found.map(|(_, value)| PathBuf::from(value))
        };
        let own = flags.config.clone().or_else(|| named(environment::FILE));
        let paths = named(environment::BASE_FILE).into_iter().chain(own);
        let files = paths.map(|path| match std::fs::read_to_string(&path) {
            Ok(text) => Ok((path, text)),
            Err(source) => Err(ConfigError::Unreadable { path, source }),
        });
        let files = files.collect::<Result<_, _>>()?;
        Ok(Self { files, variables, flags, memory: machine::memory() })
    }

    /// The configuration that results from the defaults and these layers.
    ///
    /// # Errors
    /// [`ConfigError`]: the first error, with its place.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let config = self.resolve_for_reload()?;
        config.check_directories(|_| false)?;
        Ok(config)
    }

    /// [`Self::resolve`] for a server that is running: a mount whose directory cannot be found is no error, but listed in
    /// [`Config::missing_directories`].
    ///
    /// # Errors
    /// [`ConfigError`]: the first error, with its place.
    pub fn resolve_for_reload(self) -> Result<Config, ConfigError> {
        let mut tree = LocatedValue::parse(DEFAULTS, &Origin::Default)?;
        let known = environment::names(&tree);
        for (path, text) in self.files {
            tree.merge(LocatedValue::parse(&text, &Origin::file(path))?);
        }
        environment::apply(&mut tree, &self.variables, &known)?;
        set_flags(&mut tree, &self.flags)?;
        mounts::check_options(&tree)?;
        let memory = budgets::apply_limit(&mut tree, self.memory);
        budgets::resolve_auto(&mut tree, memory);
        let mut config: Config = read(&tree).map_err(|error| mounts::explain_missing_url(error, &tree))?;
        budgets::limit_buffered(&mut config);
        config.memory = memory;
        config.detected_memory = self.memory.total_and_share().map(|(total, _)| total);
        budgets::limit_chunks(&mut config);
        config.missing_directories = check(&config, &tree)?;
        budgets::check(&config, &tree)?;
        let origin = |name: &String| (name.clone(), tree.origin_of(&["mounts", name, "url"]));
        config.origins = config.mounts.keys().map(origin).collect();
        config.check_disk_cache(config.cache.disk.path.as_deref())?;
        Ok(config)
    }
}

impl Config {
    /// Rejects mounts whose directory cannot be found, except those by the names that `is_served` accepts.
    ///
    /// # Errors
    /// [`ConfigError::InvalidValue`] for the first such mount.
    pub fn check_directories(&self, is_served: impl Fn(&str) -> bool) -> Result<(), ConfigError> {
        match self.missing_directories.iter().find(|(name, _)| !is_served(name)) {
            None => Ok(()),
            Some((name, reason)) => Err(self.invalid_url(name, reason.clone())),
        }
    }

    /// Rejects mounts that read files of the directory of a disk cache, or the directory in which it is.
    ///
    /// # Errors
    /// [`ConfigError::InvalidValue`] for the first such mount.
    pub fn check_disk_cache(&self, directory: Option<&Path>) -> Result<(), ConfigError> {
        let reading = directory.and_then(|directory| {
            local_paths::reading_from(directory, self.mounts.iter()).map(|name| (name, directory))
        });
        match reading {
            None => Ok(()),
            Some((name, directory)) => Err(self.invalid_url(
                name,
                format!(
                    "the mount, or where its references may lead, and the disk cache (`cache.disk.path`, `{}`) overlap: clients of the \
                     mount could read what is cached of others",
                    directory.display()
                ),
            )),
        }
    }

    fn invalid_url(&self, name: &str, reason: String) -> ConfigError {
        let origin = self.origins.get(name).cloned().unwrap_or(Origin::Default);
        ConfigError::InvalidValue { origin, key: setting_key(["mounts", name, "url"]), reason }
    }
}

/// Applies the flags and arguments of the command line.
fn set_flags(tree: &mut LocatedValue, flags: &ServeArgs) -> Result<(), ConfigError> {
    if let Some(listen) = &flags.listen {
        let node = ConfigValue::String(listen.clone());
        tree.set(&["server", "listen"], LocatedValue { node, origin: Origin::Flag("--listen") });
    }
    if let Some(port) = flags.port {
        // A value that is no address is rejected when it is read.
        let text = tree.get(&["server", "listen"]).and_then(LocatedValue::text).unwrap_or_default();
        if let Some(mut listen) = parse_listen(text) {
            listen.set_port(port);
            let node = ConfigValue::String(listen.to_string());
            tree.set(&["server", "listen"], LocatedValue { node, origin: Origin::Flag("--port") });
        }
    }
    if let Some(level) = flags.level() {
        let node = ConfigValue::String(level.to_owned());
        tree.set(&["log", "level"], LocatedValue { node, origin: Origin::Flag("--quiet or --verbose") });
    }
    for argument in &flags.mounts {
        let (name, url) = mounts::parse_argument(argument);
        let origin = Origin::Flag("[NAME=]URL");
        // Settings of a file or the environment for a mount without a URL apply to the mount given here.
        if tree.get(&["mounts", &name, "url"]).is_some() {
            return Err(ConfigError::DuplicateMount { origin, name });
        }
        let string = |text: String| LocatedValue { node: ConfigValue::String(text), origin: origin.clone() };
        let credentials = ["mounts", &name, "options", "credentials"];
        if takes_option(&url, "credentials") && tree.get(&credentials).is_none() {
            tree.set(&credentials, string("chain".to_owned()));
        }
        tree.set(&["mounts", &name, "url"], string(url));
        if flags.writable {
            let entry = LocatedValue { node: ConfigValue::Bool(true), origin: Origin::Flag("--writable") };
            tree.set(&["mounts", &name, "writable"], entry);
        }
    }
    if flags.writable && flags.mounts.is_empty() {
        return Err(ConfigError::InvalidValue {
            origin: Origin::Flag("--writable"),
            key: "mounts.NAME.writable".to_owned(),
            reason: "`--writable` needs a mount on the command line; in a file, set the key".to_owned(),
        });
    }
    if flags.demo {
        tree.set(&["demo"], LocatedValue { node: ConfigValue::Bool(true), origin: Origin::Flag("--demo") });
    }
    Ok(())
}

/// Why a server with credentials cannot listen on an address.
const READABLE: &str = "others could read tokens in transit to this address: set `server.tls`, listen on a loopback address, or set \
    `server.behind_proxy` if a proxy in front of the server terminates TLS";

/// More threads than any machine has cores. The system may not start as many.
const MOST_THREADS: usize = 1024;

/// Checks what no single value shows: ranges, names, roots. Returns the mounts whose directories cannot be found, and why.
fn check(config: &Config, tree: &LocatedValue) -> Result<BTreeMap<String, String>, ConfigError> {
    let invalid = |path: &[&str], reason: String| ConfigError::InvalidValue {
        origin: tree.origin_of(path),
        key: setting_key(path.iter().copied()),
        reason,
    };
    if let Some((key, reason)) = config.server.first_error() {
        return Err(invalid(&["server", key], reason));
    }
    if let Some(Err(error)) = config.server.tls.as_ref().map(TlsOptions::load) {
        return Err(invalid(&["server", "tls", error.setting()], error.to_string()));
    }
    if config.access.has_credentials() {
        let listens = config.mounts.iter().filter_map(|(name, mount)| Some((Some(name), mount.listen?)));
        for (name, listen) in std::iter::once((None, config.server.listen)).chain(listens) {
            if config.server.is_readable_by_others(listen) {
                let path = name.map_or(vec!["server", "listen"], |name| vec!["mounts", name, "listen"]);
                return Err(invalid(&path, READABLE.to_owned()));
            }
        }
    }
    if let Err(error) = config.http.check() {
        return Err(invalid(&[&["http"], error.setting()].concat(), error.to_string()));
    }
    if let Some((key, reason)) = config.limits.first_error() {
        return Err(invalid(&["limits", key], reason));
    }
    if config.cpu.threads > MOST_THREADS {
        return Err(invalid(&["cpu", "threads"], format!("must be between 0 and {MOST_THREADS}")));
    }
    if let Some((key, reason)) = config.cache.disk.first_error() {
        return Err(invalid(&["cache", "disk", key], reason));
    }
    if let Some((key, reason)) = config.log.first_error() {
        return Err(invalid(&["log", key], reason));
    }
    if let Some((key, reason)) = config.telemetry.first_error() {
        return Err(invalid(&["telemetry", key], reason));
    }
    let hint_for = |name: &str, url: &str| match tree.origin_of(&["mounts", name, "url"]) {
        Origin::Flag(_) if name != PYRAMID_SOURCE => argument_hint(url).unwrap_or_default(),
        _ => String::new(),
    };
    let mut missing = BTreeMap::new();
    for (name, mount) in &config.mounts {
        if let Some(reason) = mounts::name_error(name) {
            return Err(invalid(&["mounts", name], reason));
        }
        match mounts::check_url(mount) {
            Ok(()) => {}
            Err(UrlError::MissingDirectory(reason)) => {
                drop(missing.insert(name.clone(), reason + &hint_for(name, &mount.url)));
            }
            Err(UrlError::Invalid(reason)) => {
                let hint = hint_for(name, &mount.url);
                return Err(invalid(&["mounts", name, "url"], reason + &hint));
            }
        }
        if let Some((key, reason)) = mounts::virtual_error(mount) {
            return Err(invalid(&[&["mounts", name], &*key].concat(), reason));
        }
        if let Some(reason) = mounts::version_error(mount) {
            return Err(invalid(&["mounts", name, "ref"], reason));
        }
        if let Some(reason) = mounts::writers_error(mount) {
            return Err(invalid(&["mounts", name, "writers"], reason.to_owned()));
        }
        if let Some(reason) = mounts::freshness_error(mount) {
            return Err(invalid(&["mounts", name, "freshness"], reason));
        }
        if let Some((key, reason)) = mounts::redirect_error(mount) {
            return Err(invalid(&["mounts", name, key], reason));
        }
    }
    let is_mount = |name: &str| config.mounts.contains_key(name) || name == DEMO;
    let checked = config.access.check(is_mount).and_then(|()| access::key_sets(&config.access));
    if let Err(error) = checked.and_then(|keys| Access::check_key_sets(&config.access, &keys)) {
        let path: Vec<&str> =
            std::iter::once("access").chain(error.path.iter().map(String::as_str)).collect();
        return Err(invalid(&path, error.fault.to_string()));
    }
    if config.demo && config.mounts.contains_key(DEMO) {
        let origin = tree.origin_of(&["mounts", DEMO]);
        return Err(ConfigError::DuplicateMount { origin, name: DEMO.to_owned() });
    }
    if let Some((name, key, reason)) = mounts::root_error(&config.server, &config.mounts) {
        return Err(invalid(&["mounts", name, key], reason));
    }
    if let Some((one, two)) = mounts::overlap(config.mounts.iter()) {
        let reason = format!("its root and that of the mount `{one}` overlap, and one of them is writable");
        return Err(invalid(&["mounts", two, "url"], reason));
    }
    Ok(missing)
}
