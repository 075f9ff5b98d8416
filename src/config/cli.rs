//! [`Cli`]: the command line: commands, and flags that override a few settings.
//!
//! Only the grammar is here. `mounts` parses mount arguments, and settings of flags are merged into the same tree as those of files
//! and the environment.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use super::tips;

/// An HTTP array server for Zarr.
///
/// `zarrd DIR` is short for `zarrd serve DIR`; without anything: `zarrd serve --demo`.
#[derive(Clone, Debug, Parser)]
#[command(name = "zarrd", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to serve.
    #[command(flatten)]
    pub serve: ServeArgs,
}

impl Cli {
    /// The command line of this process. Ends the process if it is malformed or requests help.
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

/// A command.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve mounts over HTTP.
    Serve(ServeArgs),
    /// Check whether `serve` would start, and print the effective configuration, with secrets masked. Ports are not
    /// checked.
    Check(CheckArgs),
    /// Print the OpenAPI document.
    Openapi,
    /// Check whether the server at the configured address is healthy: exit code 0 or 1.
    Health(HealthArgs),
    /// Write the arrays of a directory or bucket as OME-Zarr images with coarser levels, as `/pyramid` shows them, into a
    /// new directory.
    Pyramid(PyramidArgs),
    /// Print a new token, and the lines of configuration for it.
    Token(TokenArgs),
    /// Print path and query of a URL, signed with a key of the configuration, for reading without a token.
    Sign(SignArgs),
}

/// Arguments of `serve` and `check`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ServeArgs {
    /// What to serve: a directory, a zip file, or a file://, s3://, gs://, az://, http(s):// or memory:// URL; with icechunk+
    /// before the URL, an Icechunk repository, and with kerchunk+, a document of references. The name is part of the URLs of
    /// this server; by default it is the last segment of the path.
    #[arg(value_name = "[NAME=]URL")]
    pub mounts: Vec<String>,
    /// Address and port to listen on [default: 127.0.0.1:8000].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Port to listen on, at the configured address [default: 8000].
    #[arg(short, long, value_name = "PORT", conflicts_with = "listen")]
    pub port: Option<u16>,
    /// Configuration file (also: environment variable `ZARRD_CONFIG`).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Allow writes to the mounts given here.
    #[arg(long)]
    pub writable: bool,
    /// Serve the built-in demo hierarchy, as the mount `demo`.
    #[arg(long)]
    pub demo: bool,
    /// Open the page of the data in a browser. Without a browser, the page's address is printed all the same.
    #[arg(long)]
    pub open: bool,
    /// Log only warnings and errors; twice: only errors.
    #[arg(short, long, action = ArgAction::Count, conflicts_with = "verbose")]
    pub quiet: u8,
    /// Log details of each request; twice: everything.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

impl ServeArgs {
    /// The requested log level, if any.
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

/// Arguments of `check`.
#[derive(Clone, Debug, Default, Args)]
pub struct CheckArgs {
    /// Arguments of `serve`.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Also check that the backend of each mount answers, and that of a writable one checks the conditions of writes: exit code 1 if one
    /// does not answer or cannot be written to.
    #[arg(long)]
    pub connect: bool,
}

/// Arguments of `pyramid`.
#[derive(Clone, Debug, Args)]
pub struct PyramidArgs {
    /// What to read: a directory, or a URL as for `serve`.
    #[arg(value_name = "SRC")]
    pub source: String,
    /// The directory to write, which must not exist.
    #[arg(value_name = "DST")]
    pub destination: PathBuf,
    /// How elements are reduced: `auto`, `mean`, `mode`, `min`, `max` or `stride`, with the options that it has in URLs of
    /// `/pyramid`.
    #[arg(long, default_value = "auto")]
    pub method: String,
    /// The shape of chunks, such as `64,64,64`, or `auto` for chunks of up to 1 MiB.
    #[arg(long, default_value = "auto")]
    pub chunks: String,
    /// The codec of chunks, as in URLs of `/rechunk`.
    #[arg(long, default_value = "zstd")]
    pub codec: String,
    /// Configuration file (also: environment variable `ZARRD_CONFIG`).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Arguments of `token`.
#[derive(Clone, Debug, Args)]
pub struct TokenArgs {
    /// Name of the token, which is part of it: letters, digits, `-` and `.`.
    pub name: String,
    /// Print a key for clients of S3 instead.
    #[arg(long)]
    pub s3: bool,
}

/// Arguments of `sign`.
#[derive(Clone, Debug, Args)]
pub struct SignArgs {
    /// Name of the mount.
    pub mount: String,
    /// A key; or with a slash at its end a prefix, for all keys below it. Empty for the whole mount.
    pub key: String,
    /// The name of the signing key.
    #[arg(long = "by", value_name = "NAME")]
    pub by: String,
    /// For how many seconds the URL is valid.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub seconds: u32,
    /// Configuration file (also: environment variable `ZARRD_CONFIG`).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Arguments of `health`.
#[derive(Clone, Debug, Default, Args)]
pub struct HealthArgs {
    /// Address and port of the server, if not as configured.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Port of the server, if not as configured.
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
