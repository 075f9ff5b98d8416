//! [`ReferenceError`]: faults of a document of references, and of single references in it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::cpu::ComputePoolError;
use crate::error::{Classify, ErrorClass};
use crate::key::KeyError;
use crate::store::PrivateAddress;
use crate::store::container::OverBudget;

/// Why a document of references, or one reference, cannot be read.
///
/// No text names what a reference leads to, because responses have these texts: that is the source of the error, for
/// the log.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReferenceError {
    /// There is no document. That is a failure, not an absence of keys: the store itself is missing.
    #[error("the document of references does not exist")]
    NoDocument,
    /// The document is not one of references, or contradicts itself.
    #[error("the document of references is refused: {0}")]
    Document(&'static str),
    /// The document is not JSON; the position is where it stops being so.
    #[error("the document of references is refused: it is not valid at line {line}, column {column}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// An entry of the document is not a reference.
    #[error("the document of references is refused: {fault} (the entry of `{key}`)")]
    Entry {
        /// The beginning of its key.
        key: Arc<str>,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A file of references in Parquet is not one.
    #[error("a file of references is refused: {0}")]
    Record(&'static str),
    /// There is no Icechunk repository, or the version that the mount names is not in it.
    #[error("{0}")]
    NoRepository(Arc<str>),
    /// A file of an Icechunk repository is not one, or contradicts itself.
    #[error("the Icechunk repository is refused: {0}")]
    Repository(&'static str),
    /// A snapshot of an Icechunk repository has two nodes at the path that was asked for.
    #[error(
        "the snapshot of the Icechunk repository has two nodes at this path, and either may be the right one"
    )]
    TwoNodes,
    /// The repository has a version of the format that is not known.
    #[error(
        "the Icechunk repository is refused: version {found} of its format is not supported, only 1 and 2 are"
    )]
    SpecVersion {
        /// The version.
        found: u8,
    },
    /// The document does not fit into the budget for the references of all mounts.
    #[error(
        "the document of references is refused: it takes {needed} bytes of memory, which exceeds what is free of the {limit} bytes \
         for those of all mounts: raise `cache.references_size`"
    )]
    OverBudget {
        /// The bytes it takes, or a lower bound of them.
        needed: u64,
        /// The budget for all documents, in bytes.
        limit: u64,
    },
    /// A reference leads where none may.
    #[error("the reference is refused: {fault}")]
    Refused {
        /// Why.
        fault: RefusedReference,
        /// Where it leads.
        #[source]
        leads: LeadsTo,
    },
    /// What a reference leads to is not as the reference says.
    #[error("the reference is broken: {fault}")]
    Broken {
        /// In what way.
        fault: BrokenReference,
        /// Where it leads.
        #[source]
        leads: LeadsTo,
    },
    /// The task on the compute pool failed.
    #[error(transparent)]
    Cpu(#[from] ComputePoolError),
}

/// Why a reference leads where none may.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedReference {
    /// No prefix of the list covers it.
    #[error("it leads to none of the prefixes in the mount's `virtual`")]
    NotAllowed,
    /// A file of this machine that no prefix of the list covers.
    #[error(
        "it leads to a file of this machine, below none of the `file://` prefixes in the mount's `virtual`"
    )]
    File,
    /// A link-local address, where cloud providers have their metadata services.
    #[error("it leads to a link-local address, which no prefix in the mount's `virtual` names")]
    LinkLocal,
    /// A loopback or private address.
    #[error("it leads to a loopback or private address, which no prefix in the mount's `virtual` names")]
    Private,
    /// A name whose addresses are of this network.
    #[error(
        "the name of its host leads to {0}: to allow that, set `private_addresses = true` for the prefix in the mount's \
         `virtual`"
    )]
    Resolved(PrivateAddress),
    /// `file://host/…`.
    #[error("it has a `file://` URL with a host")]
    FileHost,
    /// `simplecache::s3://…`, `zip://a::s3://…`.
    #[error("it chains protocols by `::`")]
    Chained,
    /// `S3://`, `file:/`, `HTTP://Host`.
    #[error("its URL is not in its normal spelling")]
    Spelling,
    /// A user name or a password in the URL.
    #[error("its URL has a user name or a password")]
    UserInfo,
    /// A query or a fragment.
    #[error("its URL has a query or a fragment")]
    Query,
    /// A slash, or another character that separates, as an escape.
    #[error("its URL has an escaped slash, backslash or control character, or an invalid escape")]
    Escape,
    /// The path is no key.
    #[error("its path is not valid: {0}")]
    Path(#[from] KeyError),
    /// The backend cannot have a file of that name.
    #[error("its path is not valid for the backend: {0}")]
    Name(&'static str),
}

/// In what way the target of a reference is not as the reference says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenReference {
    /// It does not exist.
    #[error("what it leads to does not exist")]
    Missing,
    /// It is another one than the reference was made for, or that is not known.
    #[error("what it leads to has changed since the reference was made")]
    Changed,
    /// It ends before the range does.
    #[error("what it leads to is shorter than the range says")]
    Short,
    /// A symbolic link that is not followed.
    #[error("it leads to a symbolic link that is not followed")]
    Link,
}

/// Where a reference leads, as the source of an error.
#[derive(Clone, Debug)]
pub struct LeadsTo(Arc<str>);

/// The longest text of a URL in a log, in bytes.
const SHOWN_BYTES: usize = 300;

impl LeadsTo {
    pub(super) fn new(url: &str) -> Self {
        Self(shortened(&without_user(url), SHOWN_BYTES))
    }
}

/// A URL without the name and the password of a user.
fn without_user(url: &str) -> Cow<'_, str> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some((_, host)) = rest.get(..end).and_then(|authority| authority.rsplit_once('@')) else {
        return Cow::Borrowed(url);
    };
    let path = rest.get(end..).unwrap_or_default();
    let separator = if scheme.is_empty() { "" } else { "://" };
    Cow::Owned(format!("{scheme}{separator}***@{host}{path}"))
}

/// The beginning of a text, of at most this many bytes.
pub(super) fn shortened(text: &str, bytes: usize) -> Arc<str> {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default().into()
}

impl fmt::Display for LeadsTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it leads to {:?}", self.0)
    }
}

impl std::error::Error for LeadsTo {}

impl RefusedReference {
    /// The error for a reference to `url`.
    pub(super) fn of(self, url: &str) -> ReferenceError {
        ReferenceError::Refused { fault: self, leads: LeadsTo::new(url) }
    }
}

impl BrokenReference {
    /// The error for a reference to `url`.
    pub(super) fn of(self, url: &str) -> ReferenceError {
        ReferenceError::Broken { fault: self, leads: LeadsTo::new(url) }
    }
}

impl From<OverBudget> for ReferenceError {
    fn from(OverBudget { needed, limit }: OverBudget) -> Self {
        Self::OverBudget { needed, limit }
    }
}

impl Classify for ReferenceError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoDocument | Self::NoRepository(_) => ErrorClass::BackendFailed,
            Self::Document(_)
            | Self::Syntax { .. }
            | Self::Entry { .. }
            | Self::Record(_)
            | Self::Repository(_)
            | Self::SpecVersion { .. }
            | Self::OverBudget { .. } => ErrorClass::ReferencesRefused,
            Self::Refused { .. } => ErrorClass::ReferenceRefused,
            Self::TwoNodes | Self::Broken { .. } => ErrorClass::ReferenceBroken,
            Self::Cpu(error) => error.class(),
        }
    }
}
