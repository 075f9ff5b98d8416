//! [`Diagnostic`]: a finding about a declaration that does not prevent reading.

/// A finding about an array of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of the finding.
    pub code: DiagnosticCode,
    /// The details, as text.
    pub detail: String,
}

impl Diagnostic {
    /// A diagnostic with its details.
    #[must_use]
    pub fn new(code: DiagnosticCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// The kind of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticCode {
    /// The declaration has the spelling `dependent_arrays`.
    AliasKey,
    /// Both spellings are present and equal.
    DuplicateDeclaration,
    /// Both spellings are present and differ; the declaration is ignored.
    AmbiguousDeclaration,
    /// The declaration is not an object and is ignored.
    DeclarationNotObject,
    /// A group has a declaration; only arrays can have dependents.
    DeclaredOnGroup,
    /// The encoding `suffix` with a member `prefix` was parsed as `prefix`.
    SuffixEncodingWithPrefixMember,
    /// `null` was treated as absent, instead of inheriting the primary's member.
    NullMeansAbsent,
    /// The primary's dimension names do not fit and were dropped.
    InheritedDimensionNamesDropped,
    /// The codec `bytes` gives no byte order, but the data type needs one.
    BytesCodecWithoutEndian,
    /// Two arrays share chunks and interpret them alike.
    AliasedChunks,
    /// Two arrays share chunks and interpret them differently.
    KeyCollision,
    /// There are too many keys to find out whether two arrays share some.
    CollisionUnknown,
    /// The keys that the array's chunks would have below its own path are keys of other chunks.
    NameShadowsChunkKey,
    /// The array's name equals the first segment of the primary's chunk keys.
    NameResemblesChunkPrefix,
    /// The name has characters that the specification advises against.
    NonrecommendedName,
    /// There are more dependents than the limit.
    TooMany,
    /// A level in a group's multiscale metadata is a dependent array.
    VirtualAsset,
}

impl DiagnosticCode {
    /// The code as a stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AliasKey => "alias_key",
            Self::DuplicateDeclaration => "duplicate_declaration",
            Self::AmbiguousDeclaration => "ambiguous_declaration",
            Self::DeclarationNotObject => "declaration_not_object",
            Self::DeclaredOnGroup => "declared_on_group",
            Self::SuffixEncodingWithPrefixMember => "suffix_encoding_with_prefix_member",
            Self::NullMeansAbsent => "null_means_absent",
            Self::InheritedDimensionNamesDropped => "inherited_dimension_names_dropped",
            Self::BytesCodecWithoutEndian => "bytes_codec_without_endian",
            Self::AliasedChunks => "aliased_chunks",
            Self::KeyCollision => "key_collision",
            Self::CollisionUnknown => "collision_unknown",
            Self::NameShadowsChunkKey => "name_shadows_chunk_key",
            Self::NameResemblesChunkPrefix => "name_resembles_chunk_prefix",
            Self::NonrecommendedName => "nonrecommended_name",
            Self::TooMany => "too_many",
            Self::VirtualAsset => "virtual_asset",
        }
    }
}
