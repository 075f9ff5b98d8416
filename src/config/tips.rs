//! Tips for flags that other servers have and this one has not.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// What somebody may type, and what to do instead.
const TIPS: &[(&[&str], &str)] = &[
    (
        &["--open", "-o", "--browser"],
        "no browser is opened: open one of the URLs that are printed at the start",
    ),
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
        "`zarrd token NAME` makes a token, and prints the lines of configuration for it",
    ),
    (&["--tls", "--ssl", "--cert", "--key"], "set `server.tls` in a file given with `--config`"),
    (&["--log-level", "--debug", "--log"], "use `--verbose` or `--quiet`, or set `log.level`"),
    (&["--workers", "--threads", "-j"], "set `server.workers` or `cpu.threads` (ZARRD__CPU__THREADS=4)"),
    (
        &["--memory", "--cache", "--cache-size"],
        "set `server.memory_limit_bytes` (ZARRD__SERVER__MEMORY_LIMIT_BYTES=2GiB)",
    ),
];

/// What to do instead of giving an argument.
fn tip(argument: &str) -> Option<&'static str> {
    let name = argument.split('=').next().unwrap_or(argument);
    TIPS.iter().find(|(names, _)| names.contains(&name)).map(|(_, tip)| *tip)
}

/// Adds a tip to the complaint about a flag that there is not.
pub(super) fn add(error: &mut Error) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return };
    if let Some(tip) = tip(argument) {
        // A near name would only mislead beside it.
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
    fn a_flag_of_other_servers_is_answered_with_what_to_do() {
        for (flag, part) in [
            ("--open", "open one of the URLs"),
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
