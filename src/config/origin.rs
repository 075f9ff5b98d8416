//! [`Origin`]: where a setting was written.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `config/default.toml`, compiled in.
    Default,
    /// A line of a file, counted from one.
    File(Arc<Path>, usize),
    /// An environment variable.
    Variable(String),
    /// The command line: a flag, or the name of an argument as the help gives it.
    Flag(&'static str),
}

impl Origin {
    /// The first line of the file at `path`.
    #[must_use]
    pub fn file(path: PathBuf) -> Self {
        Self::File(path.into(), 1)
    }

    /// The same source at the line in which the byte `offset` of `text` stands.
    pub(super) fn at(&self, text: &str, offset: usize) -> Self {
        match self {
            Self::File(path, _) => {
                let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
                let line = 1 + before.split(|&byte| byte == b'\n').count().saturating_sub(1);
                Self::File(Arc::clone(path), line)
            }
            other => other.clone(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the built-in defaults"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}
