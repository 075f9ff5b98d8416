//! [`RouteSpec`]: the static properties of a route.
//!
//! Each handler file has the specs of its routes next to its handlers. The router, access control, admission, the `OpenAPI`
//! document, metric labels, content codings and the fast path read them. No other code repeats a path template.

/// The kind of resource that the path of a route names. It determines the required rights and how the path is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A resource that needs no right: health, metrics, the documentation.
    Public,
    /// The server and its mounts. Each caller sees the mounts that it may use.
    Mounts,
    /// A key or prefix of a mount's store.
    Stored,
    /// A key of a mount's store as an S3 object, or an upload to it.
    Object,
    /// A key or prefix of a view of a mount.
    View,
    /// A key or prefix of a rechunked mount.
    Rechunked,
    /// A key or prefix of a mount as pyramids.
    Pyramid,
    /// A mount as an S3 bucket, listed by a text prefix of keys.
    Bucket,
    /// A node.
    Node,
    /// A node, and a tile of its picture.
    Tile,
    /// A node as a page for people.
    Page,
    /// A node as a dataset of DAP: its path, with the suffix of a response.
    Dap,
    /// A chunk of an array: a node and the chunk's key.
    Chunk,
    /// A Zarr Vector Format store and one of its subresources.
    #[cfg_attr(not(feature = "vectors"), expect(dead_code, reason = "only `/v1/vectors` uses it"))]
    Vectors,
    /// Keys in the request body.
    Keys,
    /// Nodes in the request body.
    Nodes,
    /// The cache entries of the keys below a node.
    Cache,
}

/// How a request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmittedBy {
    /// The middleware charges the memory of a streamed response.
    Middleware,
    /// The handler charges the memory of its response.
    Handler,
    /// No admission: the response is small and its size is known.
    Exempt,
}

/// A handler that bypasses the router, for the most frequent requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FastPath {
    /// A value of a store or a view.
    Value,
    /// Elements of an array.
    Elements,
    /// Elements of one chunk.
    Chunk,
}

/// The media types of the successful responses of a route, for routes with several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaTypes {
    /// Those in the documentation of the handler.
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
    /// The path template in the syntax of the router; `{*name}` is the rest of the path.
    pub(crate) template: &'static str,
    /// The same path with a trailing slash, if that is equivalent.
    pub(crate) with_slash: Option<&'static str>,
    /// The kind of resource that the path names.
    pub(crate) resource: Resource,
    /// How requests are admitted.
    pub(crate) admitted_by: AdmittedBy,
    /// Whether the route ignores memory limits and rate limits: health and metrics.
    pub(crate) answers_under_load: bool,
    /// Whether the admin listener serves the route too.
    pub(crate) is_admins: bool,
    /// Whether POST can be a read.
    pub(crate) post_reads: bool,
    /// Whether errors are S3 error documents.
    pub(crate) speaks_s3: bool,
    /// Whether errors are error objects of DAP.
    pub(crate) speaks_dap: bool,
    /// Whether errors are pages, for requests that prefer HTML.
    pub(crate) is_for_people: bool,
    /// Whether responses may be sent in a content coding.
    pub(crate) may_be_encoded: bool,
    /// Whether the responses never change while the process runs, so that they are encoded once.
    pub(crate) is_fixed: bool,
    /// The handler that bypasses the router, if there is one.
    pub(crate) fast_path: Option<FastPath>,
    /// The media types of the responses.
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
            speaks_dap: false,
            is_for_people: false,
            may_be_encoded: true,
            is_fixed: false,
            fast_path: None,
            media_types: MediaTypes::Documented,
        }
    }

    /// Sets the kind of admission.
    pub(crate) const fn admitted_by(self, admitted_by: AdmittedBy) -> Self {
        Self { admitted_by, ..self }
    }

    /// Sets the equivalent path with a trailing slash.
    pub(crate) const fn with_slash(self, template: &'static str) -> Self {
        Self { with_slash: Some(template), ..self }
    }

    /// Exempts the route from admission and rate limits, and adds it to the admin listener.
    pub(crate) const fn answers_under_load(self) -> Self {
        Self { answers_under_load: true, is_admins: true, ..self.admitted_by(AdmittedBy::Exempt) }
    }

    /// Adds the route to the admin listener.
    pub(crate) const fn at_admin_listener(self) -> Self {
        Self { is_admins: true, ..self }
    }

    /// Whether the body of a POST decides whether that writes.
    pub(crate) fn body_decides_to_write(&self) -> bool {
        self.post_reads && self.resource == Resource::Keys
    }

    /// Marks POST as a possible read.
    pub(crate) const fn post_reads(self) -> Self {
        Self { post_reads: true, ..self }
    }

    /// Selects S3 errors, without content codings.
    pub(crate) const fn speaks_s3(self) -> Self {
        Self { speaks_s3: true, may_be_encoded: false, ..self }
    }

    /// Selects error objects of DAP.
    pub(crate) const fn speaks_dap(self) -> Self {
        Self { speaks_dap: true, ..self }
    }

    /// Makes errors pages, for requests that prefer HTML.
    pub(crate) const fn for_people(self) -> Self {
        Self { is_for_people: true, ..self }
    }

    /// Excludes the responses from content codings.
    pub(crate) const fn never_encoded(self) -> Self {
        Self { may_be_encoded: false, ..self }
    }

    /// Marks the responses as constant while the process runs.
    pub(crate) const fn fixed(self) -> Self {
        Self { is_fixed: true, ..self }
    }

    /// Sets the handler that bypasses the router.
    pub(crate) const fn fast_path(self, fast_path: FastPath) -> Self {
        Self { fast_path: Some(fast_path), ..self }
    }

    /// Sets the media types of the responses.
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

    /// The path in `OpenAPI` syntax, which has no notation for the rest of a path.
    pub(crate) fn documented_path(&self) -> String {
        self.template.replace("{*", "{")
    }
}
