//! [`ErrorClass`]: the kind of a failure; [`Classify`]: the trait by which an error names its class.

/// The kind of a failure: who is at fault, and whether asking again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The request itself is malformed: a bad key, a bad selection, a bad option.
    InvalidRequest,
    /// What was asked for does not exist. A store says this only when the backend said so.
    NotFound,
    /// The mount or backend does not offer the operation (a write to a read-only mount).
    NotAllowed,
    /// The operation clashes with what is there (a key below a key on a file system).
    Conflict,
    /// A condition the request made does not hold.
    PreconditionFailed,
    /// The request asks for more than the configured limits allow.
    TooLarge,
    /// A byte range lies outside the value.
    RangeNotSatisfiable,
    /// A stored metadata document breaks the specification.
    InvalidMetadata,
    /// Stored bytes do not decode to what the metadata promises.
    CorruptData,
    /// A symbolic link among what is stored leads to nothing that may be served.
    UnusableLink,
    /// Valid by the specification, but not implemented here.
    Unsupported,
    /// It takes more memory than whoever runs the server has set aside for such things.
    OverBudget,
    /// The backend refused, failed or answered nonsense.
    BackendFailed,
    /// The backend or this server is too busy now; asking again later can help.
    Overloaded,
    /// A deadline passed.
    TimedOut,
    /// The backend has no room left.
    StorageFull,
    /// A defect of this server.
    Internal,
}

impl ErrorClass {
    /// The class as a stable, kebab-case word for problem documents, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid-request",
            Self::NotFound => "not-found",
            Self::NotAllowed => "not-allowed",
            Self::Conflict => "conflict",
            Self::PreconditionFailed => "precondition-failed",
            Self::TooLarge => "too-large",
            Self::RangeNotSatisfiable => "range-not-satisfiable",
            Self::InvalidMetadata => "invalid-metadata",
            Self::CorruptData => "corrupt-data",
            Self::UnusableLink => "unusable-link",
            Self::Unsupported => "unsupported",
            Self::OverBudget => "over-budget",
            Self::BackendFailed => "backend-failed",
            Self::Overloaded => "overloaded",
            Self::TimedOut => "timed-out",
            Self::StorageFull => "storage-full",
            Self::Internal => "internal",
        }
    }

    /// Whether the caller is at fault, so that the error's own text may be shown to them.
    #[must_use]
    pub const fn is_callers(self) -> bool {
        matches!(
            self,
            Self::InvalidRequest
                | Self::NotFound
                | Self::NotAllowed
                | Self::Conflict
                | Self::PreconditionFailed
                | Self::TooLarge
                | Self::RangeNotSatisfiable
        )
    }
}

/// What a write that failed has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    /// Nothing.
    No,
    /// That cannot be told: all of it, or nothing.
    Unknown,
}

/// An error that knows its [`ErrorClass`].
pub trait Classify: std::error::Error + Send + Sync + 'static {
    /// The class of this error. Implementations match every variant by name, with no catch-all arm.
    fn class(&self) -> ErrorClass;

    /// What the write that failed has done, where the error itself says so.
    fn written(&self) -> Option<Written> {
        None
    }
}
