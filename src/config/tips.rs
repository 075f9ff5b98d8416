//! Tips for flags that other servers have and this one does not.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Flags that users may try, and what to do instead.
const TIPS: &[(&[&str], &str)] = &[
    (&["-o", "--browser"], "use `--open`"),
    (
        &["--host", "--bind", "--address", "--addr", "--ip", "-b", "-H"],
        "use `--listen ADDRESS:PORT`; `0.0.0.0` for all addresses of this machine",
    ),
    (
        &["--dir", "--directory", "--root", "--path", "--data", "-d"],
        "a directory is an argument: `zarrd DIR`",
    ),
    (&["--read-only", "--readonly", "--ro"], "mounts are read-only, unless `--writable` is given"),
    (&["--write", "--rw", "-w"], "to write to the mounts given beside it, use `--writable`"),
    (&["--name", "-n"], "the name stands before the URL: `zarrd NAME=DIR`"),
    (
        &["--cors", "--cors-origin"],
        "pages of every origin may read already; to change that, set `http.cors` in a file given with `--config`",
    ),
    (
        &["--token", "--auth", "--password", "--user"],
        "`zarrd token NAME` generates a token, and prints the lines of configuration for it",
    ),
    (&["--tls", "--ssl", "--cert", "--key"], "set `server.tls` in a file given with `--config`"),
    (&["--log-level", "--debug", "--log"], "use `--verbose` or `--quiet`, or set `log.level`"),
    (&["--workers", "--threads", "-j"], "set `server.workers` or `cpu.threads` (ZARRD__CPU__THREADS=4)"),
    (&["--memory", "--cache", "--cache-size"], "set `server.max_memory` (ZARRD__SERVER__MAX_MEMORY=2GiB)"),
];

/// The tip for an argument.
fn tip(argument: &str) -> Option<&'static str> {
    let name = argument.split('=').next().unwrap_or(argument);
    TIPS.iter().find(|(names, _)| names.contains(&name)).map(|(_, tip)| *tip)
}

/// Adds a tip to the error for an unknown flag.
pub(super) fn add(error: &mut Error) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return };
    if let Some(tip) = tip(argument) {
        // The suggestion of a similar flag would mislead.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::Cli;

    #[test]
    fn flags_of_other_servers_are_answered_with_a_tip() {
        for (flag, part) in [
            ("--browser", "--open"),
            ("--host=0.0.0.0", "--listen ADDRESS:PORT"),
            ("--dir", "zarrd DIR"),
            ("--token", "zarrd token NAME"),
        ] {
            let mut error = Cli::try_parse_from(["zarrd", "serve", flag]).unwrap_err();
            add(&mut error);
            let message = error.to_string();
            assert!(message.contains(part), "{flag}: {message}");
        }
        let mut error = Cli::try_parse_from(["zarrd", "serve", "--lisen", "x"]).unwrap_err();
        add(&mut error);
        assert!(error.to_string().contains("--listen"), "{error}");
    }
}
