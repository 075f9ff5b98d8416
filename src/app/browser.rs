//! Opens a page in the browser of the person who started the server.

use std::process::{Command, Stdio};

/// The programs that open a URL, each with the arguments before it.
const OPENERS: &[(&str, &[&str])] = if cfg!(target_os = "macos") {
    &[("open", &[])]
} else if cfg!(windows) {
    &[("rundll32", &["url.dll,FileProtocolHandler"])]
} else {
    &[("xdg-open", &[]), ("gio", &["open"]), ("wslview", &[])]
};

/// Starts the first of the programs that there is, without waiting for it. Returns whether one was started: what becomes
/// of it then is between it and the user.
pub(super) fn open(url: &str) -> bool {
    open_by(OPENERS, url)
}

fn open_by(openers: &[(&str, &[&str])], url: &str) -> bool {
    openers.iter().any(|(program, arguments)| {
        let mut command = Command::new(program);
        // A browser of the terminal would take it over.
        command.args(*arguments).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return false };
        // The system keeps a child that no one waits for.
        std::thread::spawn(move || child.wait());
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_that_exists_is_started() {
        let none: (&str, &[&str]) = ("zarrd-no-such-program", &[]);
        assert!(!open_by(&[none], "http://localhost/"));
        if cfg!(unix) {
            assert!(open_by(&[none, ("true", &[])], "http://localhost/"));
        }
    }
}
