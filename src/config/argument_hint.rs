//! [`argument_hint`]: what an argument may be that is no mount.

use clap::CommandFactory;

use super::cli::Cli;
use super::mounts::{DEMO, name_error};
use crate::error::nearest;

/// A tip behind the error for an argument that is no mount: it may be a misspelt command, or begin with an invalid name.
pub(super) fn argument_hint(argument: &str) -> Option<String> {
    if let Some((name, _)) = argument.split_once('=') {
        // Otherwise it is a URL or a path, and may have a secret.
        let is_name = !name.contains([':', '/', '@', '?']);
        let reason = name_error(name).filter(|_| is_name)?;
        return Some(format!("; `{name}` cannot be the name of a mount: {reason}"));
    }
    if argument == DEMO {
        return Some("; did you mean `zarrd --demo`?".to_owned());
    }
    let grammar = Cli::command();
    let commands = grammar.get_subcommands().map(clap::Command::get_name);
    nearest(argument, commands).map(|command| format!("; did you mean `zarrd {command}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_that_is_no_mount_is_answered_with_a_tip() {
        for (argument, tip) in [
            ("healh", Some("; did you mean `zarrd health`?")),
            ("serv", Some("; did you mean `zarrd serve`?")),
            ("health", Some("; did you mean `zarrd health`?")),
            ("demo", Some("; did you mean `zarrd --demo`?")),
            ("data", None),
            ("/srv/healh", None),
            ("name=healh", None),
            ("https://canary@host/?a=b", None),
        ] {
            assert_eq!(argument_hint(argument).as_deref(), tip, "{argument}");
        }
        let tip = argument_hint("a b=data").unwrap_or_default();
        assert!(
            tip.starts_with(
                "; `a b` cannot be the name of a mount: a mount's name has 1 to 64 letters, digits"
            ),
            "{tip}"
        );
    }
}
