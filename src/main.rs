//! The binary: flags → configuration → logs → listeners → requests, and the exit code of each outcome.

mod telemetry;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use telemetry::Telemetry;
use zarrd::app::{App, AppError, Contact, PyramidError, is_alive};
use zarrd::config::{
    CheckArgs, Cli, Command, ConfigError, Origin, PyramidArgs, ServeArgs, SignArgs, Sources, TokenArgs,
    unix_seconds,
};
use zarrd::error::setting_key;
use zarrd::views::pyramid::{PyramidSpec, WrittenNode};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `EX_CONFIG` of sysexits.h.
const EXIT_CONFIGURATION: u8 = 78;
/// `EX_UNAVAILABLE` of sysexits.h.
const EXIT_BIND: u8 = 69;
/// Any other failure.
const EXIT_FAILURE: u8 = 1;

/// Maximum time for tasks that outlive the last connection.
const TASK_SHUTDOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

fn main() -> ExitCode {
    match run(Cli::from_process().into_command()) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "zarrd: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(arguments) => serve(arguments).map(|()| ExitCode::SUCCESS),
        Command::Check(arguments) => check(arguments),
        Command::Pyramid(arguments) => pyramid(arguments).map(|()| ExitCode::SUCCESS),
        Command::Openapi => print(&zarrd::web::openapi()).map(|()| ExitCode::SUCCESS),
        Command::Health(arguments) => Ok(health(arguments.into())),
        Command::Token(TokenArgs { name, s3 }) => {
            let text = if s3 { zarrd::auth::new_s3_key(&name) } else { zarrd::auth::new_token(&name) };
            let text = text.context("a token's name has 1 to 64 letters, digits, `-` or `.`")?;
            print(&text).map(|()| ExitCode::SUCCESS)
        }
        Command::Sign(arguments) => sign(arguments).map(|()| ExitCode::SUCCESS),
    }
}

/// Opens the file of the audit log, which is never truncated.
fn open_audit_file(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("cannot open `log.audit_file`, {}", path.display()))
}

/// Serves until a signal stops the process.
fn serve(arguments: ServeArgs) -> anyhow::Result<()> {
    let config = Sources::gather(arguments.clone())?.resolve()?;
    let opens_page = arguments.open;
    let reread = move || Sources::gather(arguments.clone())?.resolve_for_reload();
    let audit_file = config.log.audit_file.as_deref().map(open_audit_file).transpose()?;
    let mut telemetry =
        Telemetry::install(&config.log, &config.telemetry, audit_file, std::time::SystemTime::now);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if config.server.workers > 0 {
        runtime.worker_threads(config.server.workers.into());
    }
    let runtime = runtime.enable_all().thread_name("zarrd").build().context("cannot start threads")?;
    let origins = config.origins.clone();
    let ended = runtime.block_on(async {
        telemetry.start_export();
        let ended = match App::build(config).await {
            Ok(app) => {
                let app = app.with_process_metrics(Telemetry::process_metrics());
                app.with_page_opened(opens_page).run(reread).await
            }
            Err(error) => Err(error),
        };
        telemetry.flush_spans().await;
        ended
    });
    runtime.shutdown_timeout(TASK_SHUTDOWN_TIMEOUT);
    telemetry.flush_log();
    ended.map_err(|error| with_mount_origin(error, &origins))
}

/// Reports whether `serve` would start, and prints the effective configuration; with `--connect`, contacts the backends, too.
fn check(CheckArgs { serve, connect }: CheckArgs) -> anyhow::Result<ExitCode> {
    let config = Sources::gather(serve)?.resolve()?;
    let (origins, shown) = (config.origins.clone(), config.to_toml());
    let warnings = [config.server.warning().map(str::to_owned), config.memory_warning()];
    for warning in warnings.into_iter().flatten() {
        note(format_args!("warning: {warning}"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    let checked =
        runtime.block_on(zarrd::app::check(config)).map_err(|error| with_mount_origin(error, &origins))?;
    for name in &checked.in_use {
        note(format_args!(
            "the mount `{name}`: another server has its directory open for writing now; `serve` would not wait for it"
        ));
    }
    if checked.disk_in_use {
        note(format_args!(
            "the disk cache: another server uses its directory now; `serve` would not wait for it"
        ));
    }
    for line in checked.writers() {
        note(format_args!("{line}"));
    }
    print(&shown)?;
    if !connect {
        return Ok(ExitCode::SUCCESS);
    }
    let contacts = runtime.block_on(checked.connect());
    for line in contacts.iter().flat_map(Contact::lines) {
        note(format_args!("{line}"));
    }
    let all = contacts.iter().all(Contact::is_good);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILURE) })
}

/// Writes the pyramids of a source into a new directory.
fn pyramid(arguments: PyramidArgs) -> anyhow::Result<()> {
    let PyramidArgs { source, destination, method, chunks, codec, config } = arguments;
    let spec = PyramidSpec::parse(&method, &chunks, &codec, None)?;
    let serve = ServeArgs {
        mounts: vec![format!("{}={source}", zarrd::config::PYRAMID_SOURCE)],
        config,
        quiet: 1,
        ..ServeArgs::default()
    };
    let config = Sources::gather(serve)?.resolve().map_err(|error| match error {
        ConfigError::InvalidValue { origin: Origin::Flag(_), reason, .. } => {
            ConfigError::InvalidArgument { argument: "SRC", reason }
        }
        error => error,
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    // Fails if there is anything of this name.
    std::fs::create_dir(&destination)
        .with_context(|| format!("the destination `{}` must not exist", destination.display()))?;
    let report = |written: WrittenNode| {
        let WrittenNode { path, chunks, bytes, copied_because } = written;
        match copied_because {
            None => note(format_args!("{path}: {chunks} chunks, {bytes} bytes")),
            Some(reason) => {
                note(format_args!(
                    "{path}: copied as it is stored, {chunks} chunks, {bytes} bytes: {reason}"
                ));
            }
        }
    };
    let written = runtime.block_on(zarrd::app::write_pyramid(config, spec, &destination, report));
    written.with_context(|| format!("`{}` is incomplete: remove it", destination.display()))?;
    drop(runtime);
    let own = destination.join(zarrd::app::STORE_FOLDER);
    std::fs::remove_dir_all(&own).with_context(|| format!("cannot remove `{}`", own.display()))
}

/// Prints a line for the operator.
fn note(line: std::fmt::Arguments<'_>) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "zarrd: {line}");
}

/// An error, with the place where its mount is configured.
fn with_mount_origin(error: AppError, origins: &BTreeMap<String, Origin>) -> anyhow::Error {
    let place = match &error {
        AppError::Mount { name, .. } => {
            origins.get(name).map(|origin| format!("{origin}: `{}`", setting_key(["mounts", name])))
        }
        _ => None,
    };
    match place {
        Some(place) => anyhow::Error::from(error).context(place),
        None => error.into(),
    }
}

/// Success if the configured listener is alive.
fn health(arguments: ServeArgs) -> ExitCode {
    let answer = Sources::gather(arguments).and_then(Sources::resolve).map_err(anyhow::Error::from).and_then(
        |config| {
            let listen = config.server.listen;
            is_alive(&config).with_context(|| format!("{listen} does not answer"))
        },
    );
    match answer {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => drop(writeln!(std::io::stderr(), "zarrd: the server is not healthy")),
        Err(error) => drop(writeln!(std::io::stderr(), "zarrd: {error:#}")),
    }
    ExitCode::from(EXIT_FAILURE)
}

/// Prints a signed URL.
fn sign(arguments: SignArgs) -> anyhow::Result<()> {
    let SignArgs { mount, key, by, seconds, config } = arguments;
    let config = Sources::gather(ServeArgs { config, ..ServeArgs::default() })?.resolve()?;
    let expires = unix_seconds().saturating_add(seconds.into());
    let url = zarrd::auth::sign(&config.access, &by, &mount, &key, expires);
    let url = url.with_context(|| {
        let names: Vec<&str> = config.access.signing_keys.keys().map(String::as_str).collect();
        if names.contains(&by.as_str()) {
            format!("`{key}` is not a valid key or prefix")
        } else {
            let known = match names.join(", ") {
                known if known.is_empty() => {
                    "none (`access.signing_keys`): name its file with `--config`".to_owned()
                }
                known => known,
            };
            format!("there is no signing key `{by}`; the configuration has {known}")
        }
    })?;
    if !config.mounts.contains_key(&mount) {
        writeln!(
            std::io::stderr(),
            "zarrd: the configuration has no mount `{mount}`: the URL works only on a server that has one"
        )?;
    }
    let is_open = || {
        let anonymous = config.mounts.get(&mount).and_then(|mount| mount.anonymous.as_ref());
        anonymous.is_some_and(|scopes| scopes.contains(&zarrd::auth::Scope::Read))
    };
    if !zarrd::auth::is_granted(&config.access, &by, &mount, &key) && !is_open() {
        note(format_args!("warning: `{by}` has no grant for this: the URL gets 403"));
    }
    print(&format!("{url}\n"))
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<ConfigError>() {
        return EXIT_CONFIGURATION;
    }
    let app_error = match error.downcast_ref::<PyramidError>() {
        Some(PyramidError::Source(source)) => Some(source),
        _ => error.downcast_ref::<AppError>(),
    };
    match app_error {
        Some(
            AppError::Mount { .. }
            | AppError::DiskCache(_)
            | AppError::Http(_)
            | AppError::Tls(_)
            | AppError::Access(_),
        ) => EXIT_CONFIGURATION,
        Some(AppError::Bind { .. }) => EXIT_BIND,
        Some(AppError::Demo(_) | AppError::Cpu(_) | AppError::Signals(_)) | None => EXIT_FAILURE,
    }
}
