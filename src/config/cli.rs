//! The command line: which command, and the last word on a few settings.
//!
//! Only the grammar is here. What a mount argument means is decided in `mounts`, and every setting a flag can
//! make passes through the same tree as the file's and the environment's.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use super::tips;

/// An HTTP array server for Zarr.
///
/// `zarrd DIR` is short for `zarrd serve DIR`; without anything: `zarrd serve --demo`.
#[derive(Clone, Debug, Parser)]
#[command(name = "zarrd", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to serve.
    #[command(flatten)]
    pub serve: ServeArgs,
}

impl Cli {
    /// The command line of this process. Ends the process where it is malformed, or asks for help.
    #[must_use]
    pub fn from_process() -> Self {
        Self::try_parse().unwrap_or_else(|mut error| {
            tips::add(&mut error);
            error.exit()
        })
    }

    /// The command: `serve` if none was given, and `serve --demo` if nothing was.
    #[must_use]
    pub fn into_command(self) -> Command {
        let Self { command, mut serve } = self;
        command.unwrap_or_else(|| {
            serve.demo |= serve.mounts.is_empty() && serve.config.is_none();
            Command::Serve(serve)
        })
    }
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve mounts over HTTP.
    Serve(ServeArgs),
    /// Say whether `serve` would start, and print the effective configuration, secrets masked. That the port is free is
    /// not looked at.
    Check(CheckArgs),
    /// Print the OpenAPI document.
    Openapi,
    /// Ask the configured listener whether it is alive: exit code 0 or 1.
    Health(HealthArgs),
    /// Print a new token, and the lines of configuration that make it known.
    Token(TokenArgs),
    /// Print a URL's path and query, signed with a key of the configuration, for reading without a token.
    Sign(SignArgs),
}

/// What `serve` and `check` are told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ServeArgs {
    /// What to serve: a directory, or a file://, s3://, gs://, az://, http(s):// or memory:// URL. The name stands
    /// in the URLs of this server; without one, the last segment of the path is taken.
    #[arg(value_name = "[NAME=]URL")]
    pub mounts: Vec<String>,
    /// Address and port to listen on [default: 127.0.0.1:8000].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Port to listen on, at the address that is configured [default: 8000].
    #[arg(short, long, value_name = "PORT", conflicts_with = "listen")]
    pub port: Option<u16>,
    /// Configuration file (also: environment variable `ZARRD_CONFIG`).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Allow writing to the mounts given here.
    #[arg(long)]
    pub writable: bool,
    /// Serve the built-in demo hierarchy, as the mount `demo`.
    #[arg(long)]
    pub demo: bool,
    /// Log warnings and errors alone; twice: errors alone.
    #[arg(short, long, action = ArgAction::Count, conflicts_with = "verbose")]
    pub quiet: u8,
    /// Log what each request does; twice: everything.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

impl ServeArgs {
    /// The level of the log that is asked for, if any is.
    pub(super) fn level(&self) -> Option<&'static str> {
        match (self.quiet, self.verbose) {
            (0, 0) => None,
            (1, _) => Some("warn"),
            (2.., _) => Some("error"),
            (0, 1) => Some("info,zarrd=debug"),
            (0, 2..) => Some("debug,zarrd=trace"),
        }
    }
}

/// What `check` is told.
#[derive(Clone, Debug, Default, Args)]
pub struct CheckArgs {
    /// What `serve` would be told.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Ask each mount's backend whether it answers, too: exit code 1 if one does not.
    #[arg(long)]
    pub connect: bool,
}

/// What `token` is told.
#[derive(Clone, Debug, Args)]
pub struct TokenArgs {
    /// Its name, which stands in it: letters, digits, `-` and `.`.
    pub name: String,
}

/// What `sign` is told.
#[derive(Clone, Debug, Args)]
pub struct SignArgs {
    /// The mount.
    pub mount: String,
    /// A key; or with a slash at its end a prefix, for everything below it. Empty for all of the mount.
    pub key: String,
    /// The name of the signing key.
    #[arg(long = "by", value_name = "NAME")]
    pub by: String,
    /// For how many seconds it is good.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub seconds: u32,
    /// Configuration file (also: environment variable `ZARRD_CONFIG`).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What `health` is told.
#[derive(Clone, Debug, Default, Args)]
pub struct HealthArgs {
    /// Address and port the server listens on, if not as configured.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Port the server listens on, if not as configured.
    #[arg(short, long, value_name = "PORT", conflicts_with = "listen")]
    pub port: Option<u16>,
    /// Configuration file (also: environment variable `ZARRD_CONFIG`).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl From<HealthArgs> for ServeArgs {
    fn from(HealthArgs { listen, port, config }: HealthArgs) -> Self {
        Self { listen, port, config, ..Self::default() }
    }
}
