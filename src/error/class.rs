//! [`ErrorClass`]: the kind of a failure; [`Classify`]: the trait by which an error names its class.

/// The class of a failure: which side is at fault, and whether a retry can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The request itself is malformed: a bad key, a bad selection, a bad option.
    InvalidRequest,
    /// The requested resource does not exist. A store returns this only if the backend confirmed the absence.
    NotFound,
    /// The mount or backend does not offer the operation (a write to a read-only mount).
    NotAllowed,
    /// The operation conflicts with stored data (a key below a key on a file system).
    Conflict,
    /// A condition of the request does not hold.
    PreconditionFailed,
    /// The request exceeds a configured limit.
    TooLarge,
    /// A byte range lies outside the value.
    RangeNotSatisfiable,
    /// A stored metadata document breaks the specification.
    InvalidMetadata,
    /// Stored bytes do not decode to what the metadata describes.
    CorruptData,
    /// A stored symbolic link points to nothing that may be served.
    UnusableLink,
    /// A document of references is not one that this server accepts.
    ReferencesRefused,
    /// A reference leads where the operator allows none to lead.
    ReferenceRefused,
    /// What a reference leads to is missing, or not as the reference says.
    ReferenceBroken,
    /// Valid by the specification, but not implemented here.
    Unsupported,
    /// The operation needs more memory than the operator has configured for its kind.
    OverBudget,
    /// The backend refused the request, failed, or returned an invalid response.
    BackendFailed,
    /// The backend or this server is too busy; a later retry can succeed.
    Overloaded,
    /// The value is being computed; a later retry will succeed.
    BeingBuilt,
    /// A timeout expired.
    TimedOut,
    /// The backend has no free space.
    StorageFull,
    /// A bug in this server.
    Internal,
}

impl ErrorClass {
    /// The class as a stable kebab-case name for problem documents, logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
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
            Self::ReferencesRefused => "references-refused",
            Self::ReferenceRefused => "reference-refused",
            Self::ReferenceBroken => "reference-broken",
            Self::Unsupported => "unsupported",
            Self::OverBudget => "over-budget",
            Self::BackendFailed => "backend-failed",
            Self::Overloaded => "overloaded",
            Self::BeingBuilt => "being-built",
            Self::TimedOut => "timed-out",
            Self::StorageFull => "storage-full",
            Self::Internal => "internal",
        }
    }

    /// Whether the caller is at fault. If so, the response may include the error's text.
    #[must_use]
    pub const fn is_caller_fault(self) -> bool {
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

/// The effect of a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteEffect {
    /// Nothing was written.
    No,
    /// Unknown: either everything or nothing was written.
    Unknown,
}

/// An error that knows its [`ErrorClass`].
pub trait Classify: std::error::Error + Send + Sync + 'static {
    /// The class of this error. Implementations match every variant by name, without a catch-all arm.
    fn class(&self) -> ErrorClass;

    /// The effect of the failed write, if the error knows it.
    fn written(&self) -> Option<WriteEffect> {
        None
    }
}
