//! Logs: what is written, how, and where (standard error, so that standard output stays the user's).

use std::io::IsTerminal;

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};
use zarrd::config::{LogFormat, LogOptions};

/// Sends every event of the process to standard error from here on.
pub(crate) fn install(options: &LogOptions) {
    // `config` has checked the levels; should the two ever disagree, more is better than nothing.
    let filter: Targets = options.level.parse().unwrap_or_else(|_| Targets::new().with_default(Level::INFO));
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let registry = registry();
    // A second subscriber is refused; the first then stays, which is as good.
    let _ = match options.format {
        LogFormat::Text => registry.with(layer.with_filter(filter)).try_init(),
        LogFormat::Json => registry.with(layer.json().flatten_event(true).with_filter(filter)).try_init(),
    };
}
