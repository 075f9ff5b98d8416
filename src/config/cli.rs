//! The command line: which command, and the last word on a few settings.
//!
//! Only the grammar is here. What a mount argument means is decided in `mounts`, and every setting a flag can
//! make passes through the same tree as the file's and the environment's.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// An HTTP array server for Zarr.
///
/// Without a command: `zarrd serve --demo`.
#[derive(Clone, Debug, Parser)]
#[command(name = "zarrd", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// The command line of this process. Ends the process where it is malformed, or asks for help.
    #[must_use]
    pub fn from_process() -> Self {
        Self::parse()
    }

    /// The command; `serve --demo` if none was given.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.command.unwrap_or_else(|| Command::Serve(ServeArgs { demo: true, ..ServeArgs::default() }))
    }
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve mounts over HTTP.
    Serve(ServeArgs),
    /// Check the configuration and print the effective one, secrets masked.
    Check(ServeArgs),
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
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// What to serve: a directory, or a file://, s3://, gs://, az://, http(s):// or memory:// URL. The name stands
    /// in the URLs of this server; without one, the last segment of the path is taken.
    #[arg(value_name = "[NAME=]URL")]
    pub mounts: Vec<String>,
    /// Address and port to listen on [default: 127.0.0.1:8000].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Configuration file (also: environment variable `ZARRD_CONFIG`).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Allow writing to the mounts given here.
    #[arg(long)]
    pub writable: bool,
    /// Serve the built-in demo hierarchy, as the mount `demo`.
    #[arg(long)]
    pub demo: bool,
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
    /// Configuration file (also: environment variable `ZARRD_CONFIG`).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl From<HealthArgs> for ServeArgs {
    fn from(HealthArgs { listen, config }: HealthArgs) -> Self {
        Self { listen, config, ..Self::default() }
    }
}
