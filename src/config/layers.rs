//! The layers laid upon each other: defaults < base file < file < environment < flags.

use std::ffi::OsString;
use std::path::PathBuf;

use super::memory::{self, Memory};
use super::mounts::{self, DEMO};
use super::read::read;
use super::server::parse_listen;
use super::tree::{Entry, Node};
use super::{Config, ConfigError, DEFAULTS, Origin, ServeArgs, TlsOptions};
use super::{access, environment, machine, units};
use crate::auth::Access;

/// What lies above the defaults, as found outside of the process: the only place that looks there.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The files' paths and texts, each laid over the one before: what an image brings along, and the user's own.
    pub files: Vec<(PathBuf, String)>,
    /// The environment: all variables; those that are no settings are skipped.
    pub variables: Vec<(OsString, OsString)>,
    /// The command line.
    pub flags: ServeArgs,
    /// How much memory there is.
    pub memory: Memory,
}

impl Sources {
    /// Reads the environment and the files that the flags or the environment name, and asks the machine for its memory.
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

    /// The configuration these sources make upon the defaults.
    ///
    /// # Errors
    /// [`ConfigError`]: the first thing that is wrong, with its place.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let mut tree = Entry::parse(DEFAULTS, &Origin::Default)?;
        let known = environment::names(&tree);
        for (path, text) in self.files {
            tree.merge(Entry::parse(&text, &Origin::file(path))?);
        }
        environment::lay(&mut tree, &self.variables, &known)?;
        set_flags(&mut tree, &self.flags)?;
        mounts::check_options(&tree)?;
        units::count(&mut tree);
        let memory = memory::limit(&mut tree, self.memory);
        memory::choose(&mut tree, memory);
        let mut config: Config = read(&tree)?;
        config.memory = memory;
        check(&config, &tree)?;
        memory::check(&config, &tree)?;
        let origin = |name: &String| (name.clone(), tree.origin_of(&["mounts", name, "url"]));
        config.origins = config.mounts.keys().map(origin).collect();
        Ok(config)
    }
}

/// Sets what the command line says.
fn set_flags(tree: &mut Entry, flags: &ServeArgs) -> Result<(), ConfigError> {
    if let Some(listen) = &flags.listen {
        let node = Node::String(listen.clone());
        tree.set(&["server", "listen"], Entry { node, origin: Origin::Flag("--listen") });
    }
    if let Some(port) = flags.port {
        // Where what is there is no address, that is refused when it is read.
        let text = tree.get(&["server", "listen"]).and_then(Entry::text).unwrap_or_default();
        if let Some(mut listen) = parse_listen(text) {
            listen.set_port(port);
            let node = Node::String(listen.to_string());
            tree.set(&["server", "listen"], Entry { node, origin: Origin::Flag("--port") });
        }
    }
    if let Some(level) = flags.level() {
        let node = Node::String(level.to_owned());
        tree.set(&["log", "level"], Entry { node, origin: Origin::Flag("--quiet or --verbose") });
    }
    for argument in &flags.mounts {
        let (name, url) = mounts::parse_argument(argument);
        let origin = Origin::Flag("[NAME=]URL");
        // What a file or the environment say of a mount without a URL is about the one given here.
        if tree.get(&["mounts", &name, "url"]).is_some() {
            return Err(ConfigError::DuplicateMount { origin, name });
        }
        let string = |text: String| Entry { node: Node::String(text), origin: origin.clone() };
        tree.set(&["mounts", &name, "url"], string(url));
        if flags.writable {
            let entry = Entry { node: Node::Bool(true), origin: Origin::Flag("--writable") };
            tree.set(&["mounts", &name, "writable"], entry);
        }
    }
    if flags.writable && flags.mounts.is_empty() {
        return Err(ConfigError::InvalidValue {
            origin: Origin::Flag("--writable"),
            key: "mounts.NAME.writable".to_owned(),
            reason: "the flag is for mounts given beside it; in a file, set the key".to_owned(),
        });
    }
    if flags.demo {
        tree.set(&["demo"], Entry { node: Node::Bool(true), origin: Origin::Flag("--demo") });
    }
    Ok(())
}

/// Why an address cannot be listened on where there are credentials.
const READABLE: &str = "tokens would pass there for others to read: set `server.tls`, listen on the loopback, or set \
    `server.behind_proxy` where something in front of the server speaks TLS";

/// What no single value shows: ranges, names, roots.
fn check(config: &Config, tree: &Entry) -> Result<(), ConfigError> {
    let invalid = |path: &[&str], reason: String| ConfigError::InvalidValue {
        origin: tree.origin_of(path),
        key: path.join("."),
        reason,
    };
    if let Some((key, reason)) = config.server.complaint() {
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
        return Err(invalid(&["http"], error.to_string()));
    }
    if let Some((key, reason)) = config.limits.complaint() {
        return Err(invalid(&["limits", key], reason));
    }
    if let Some((key, reason)) = config.log.complaint() {
        return Err(invalid(&["log", key], reason));
    }
    if let Some((key, reason)) = config.telemetry.complaint() {
        return Err(invalid(&["telemetry", key], reason));
    }
    for (name, mount) in &config.mounts {
        if let Some(reason) = mounts::name_complaint(name) {
            return Err(invalid(&["mounts", name], reason));
        }
        if let Some(reason) = mounts::url_complaint(mount) {
            return Err(invalid(&["mounts", name, "url"], reason));
        }
        if let Some(reason) = mounts::freshness_complaint(mount) {
            return Err(invalid(&["mounts", name, "freshness"], reason));
        }
        if let Some((key, reason)) = mounts::redirect_complaint(mount) {
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
    if let Some((name, key, reason)) = mounts::root_complaint(&config.server, &config.mounts) {
        return Err(invalid(&["mounts", name, key], reason));
    }
    if let Some((one, two)) = mounts::overlap(config.mounts.iter()) {
        let reason = format!("its root and that of the mount `{one}` overlap, and one of them is writable");
        return Err(invalid(&["mounts", two, "url"], reason));
    }
    Ok(())
}
