//! [`RouteSpec`]: what is fixed about a route before any request comes.
//!
//! Each handler file has the specs of its routes beside its handlers. The router, rights, admission, the `OpenAPI` document,
//! metric labels, content codings and the fast path read them; no template is spelled anywhere else.

/// What the path of a route names, which decides the rights it needs and how its path is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// Nothing that needs a right: health, metrics, the documentation.
    Public,
    /// The server and its mounts, of which each caller sees those that it may use.
    Mounts,
    /// A key or prefix of a mount's store.
    Stored,
    /// A key or prefix of a view of a mount.
    View,
    /// A key or prefix of a rechunked mount.
    Rechunked,
    /// A mount as a bucket of S3, listed by the text that keys begin with.
    Bucket,
    /// A node.
    Node,
    /// A chunk of an array: a node and the chunk's key.
    Chunk,
    /// A Zarr Vector Format store and one of its subresources.
    Vectors,
    /// Keys in the request's body.
    Keys,
    /// What the server has cached of the keys below a node.
    Cache,
}

/// How a request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmittedBy {
    /// The middleware, for what a streamed response holds.
    Middleware,
    /// The handler, for what its response will hold.
    Handler,
    /// Nobody: the response is small and known beforehand.
    Nobody,
}

/// A handler that is called without the router, for the requests of which there are most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FastPath {
    /// A stored value, or one of a view.
    Value,
    /// Elements of an array.
    Elements,
    /// Elements of one chunk.
    Chunk,
}

/// The media types of a route's successful responses, where the same route has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaTypes {
    /// Those that the handler's own documentation names.
    Documented,
    /// Values, and listings of prefixes.
    ValuesAndListings,
    /// Values.
    Values,
    /// Elements of an array, in each format.
    Elements,
    /// Vertices, in each format.
    #[cfg(feature = "vectors")]
    Vertices,
}

/// A route.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read by another part of the server"
)]
pub(crate) struct RouteSpec {
    /// The path with its parameters, as the router writes it; `{*name}` is the rest of the path.
    pub(crate) template: &'static str,
    /// The same path with a slash at its end, where that means the same.
    pub(crate) with_slash: Option<&'static str>,
    /// What the path names.
    pub(crate) resource: Resource,
    /// How requests are admitted.
    pub(crate) admitted_by: AdmittedBy,
    /// Whether it answers however short memory is, and however often a client asks: health and metrics.
    pub(crate) answers_under_load: bool,
    /// Whether the admin listener has it too.
    pub(crate) is_admins: bool,
    /// Whether POST asks a question and so writes nothing.
    pub(crate) post_reads: bool,
    /// Whether errors are the XML of S3.
    pub(crate) speaks_s3: bool,
    /// Whether responses may be sent in a content coding.
    pub(crate) may_be_encoded: bool,
    /// Whether its responses never change while the process runs, so that they are encoded once.
    pub(crate) is_fixed: bool,
    /// The handler that is called without the router, if there is one.
    pub(crate) fast_path: Option<FastPath>,
    /// The media types of its responses.
    pub(crate) media_types: MediaTypes,
}

impl RouteSpec {
    /// A route that the middleware admits.
    pub(crate) const fn new(template: &'static str, resource: Resource) -> Self {
        Self {
            template,
            with_slash: None,
            resource,
            admitted_by: AdmittedBy::Middleware,
            answers_under_load: false,
            is_admins: false,
            post_reads: false,
            speaks_s3: false,
            may_be_encoded: true,
            is_fixed: false,
            fast_path: None,
            media_types: MediaTypes::Documented,
        }
    }

    /// Has another way of admission.
    pub(crate) const fn admitted_by(self, admitted_by: AdmittedBy) -> Self {
        Self { admitted_by, ..self }
    }

    /// Means the same with a slash at its end.
    pub(crate) const fn with_slash(self, template: &'static str) -> Self {
        Self { with_slash: Some(template), ..self }
    }

    /// Answers under load, and at the admin listener.
    pub(crate) const fn answers_under_load(self) -> Self {
        Self { answers_under_load: true, is_admins: true, ..self.admitted_by(AdmittedBy::Nobody) }
    }

    /// Is at the admin listener too.
    pub(crate) const fn at_admin_listener(self) -> Self {
        Self { is_admins: true, ..self }
    }

    /// Reads by POST.
    pub(crate) const fn post_reads(self) -> Self {
        Self { post_reads: true, ..self }
    }

    /// Has the errors of S3, and no content codings.
    pub(crate) const fn speaks_s3(self) -> Self {
        Self { speaks_s3: true, may_be_encoded: false, ..self }
    }

    /// Is never sent in a content coding.
    pub(crate) const fn never_encoded(self) -> Self {
        Self { may_be_encoded: false, ..self }
    }

    /// Never changes while the process runs.
    pub(crate) const fn fixed(self) -> Self {
        Self { is_fixed: true, ..self }
    }

    /// Is called without the router.
    pub(crate) const fn fast_path(self, fast_path: FastPath) -> Self {
        Self { fast_path: Some(fast_path), ..self }
    }

    /// Has responses of several media types.
    pub(crate) const fn media_types(self, media_types: MediaTypes) -> Self {
        Self { media_types, ..self }
    }

    /// Whether the path ends in a key or prefix.
    pub(crate) fn ends_in_key(&self) -> bool {
        self.template.ends_with("/{*key}")
    }

    /// Whether the path names a mount.
    pub(crate) fn names_mount(&self) -> bool {
        self.template.contains("{mount}")
    }

    /// The path as `OpenAPI` writes it, which has no sign for the rest of a path.
    pub(crate) fn documented_path(&self) -> String {
        self.template.replace("{*", "{")
    }
}
