//! [`PinnedVersion`]: a branch, tag or snapshot, as the configuration and the first segment of keys name it.

use std::fmt;
use std::str::FromStr;

use super::id::ObjectId;

/// What the first segment of a key begins with, if it names a version.
pub(super) const MARK: char = '@';

/// A version of a repository, by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PinnedVersion {
    /// What a branch leads to, which changes.
    Branch(Box<str>),
    /// What a tag leads to.
    Tag(Box<str>),
    /// A snapshot.
    Snapshot(ObjectId),
}

impl PinnedVersion {
    /// The version that a segment of a path names after its `@`: `branch.NAME`, `tag.NAME` or the id of a snapshot.
    #[must_use]
    pub fn of_segment(segment: &str) -> Option<Self> {
        let named = |name: &str| (!name.is_empty()).then(|| Box::from(name));
        match segment.split_once('.') {
            Some(("branch", name)) => named(name).map(Self::Branch),
            Some(("tag", name)) => named(name).map(Self::Tag),
            _ => ObjectId::parse(segment).map(Self::Snapshot),
        }
    }

    /// The version that a key or prefix names in its first segment; `None` if that names none.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        split(text)?.0.ok()
    }

    /// A key or prefix without the version that its first segment names.
    #[must_use]
    pub fn without(text: &str) -> &str {
        match split(text) {
            Some((Ok(_), _, rest)) => rest,
            Some((Err(()), ..)) | None => text,
        }
    }

    /// Whether what it names never changes.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        !matches!(self, Self::Branch(_))
    }

    /// The branch `main`.
    #[must_use]
    pub fn main() -> Self {
        Self::Branch("main".into())
    }
}

/// As the segment of a path, without its `@`.
impl fmt::Display for PinnedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch(name) => write!(f, "branch.{name}"),
            Self::Tag(name) => write!(f, "tag.{name}"),
            Self::Snapshot(id) => id.fmt(f),
        }
    }
}

/// As the configuration has it: `branch:NAME`, `tag:NAME` or `snapshot:ID`.
impl FromStr for PinnedVersion {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected `branch:NAME`, `tag:NAME` or `snapshot:ID`";
        let (kind, name) = text.split_once(':').ok_or(expected)?;
        match kind {
            _ if name.is_empty() || name.contains('/') => Err(expected),
            "branch" => Ok(Self::Branch(name.into())),
            "tag" => Ok(Self::Tag(name.into())),
            "snapshot" => {
                ObjectId::parse(name).map(Self::Snapshot).ok_or("the id of a snapshot has 20 characters")
            }
            _ => Err(expected),
        }
    }
}

/// The version that a key or prefix names in its first segment, with its text, and the rest. `Err` if the segment is none.
pub(super) fn split(text: &str) -> Option<(Result<PinnedVersion, ()>, &str, &str)> {
    let pinned = text.strip_prefix(MARK)?;
    let (segment, rest) = pinned.split_once('/').unwrap_or((pinned, ""));
    let length = text.len() - rest.len();
    Some((PinnedVersion::of_segment(segment).ok_or(()), text.get(..length).unwrap_or_default(), rest))
}
