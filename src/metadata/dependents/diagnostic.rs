//! [`Diagnostic`]: what is odd about a declaration and still does not keep anything from being read.

/// A remark on an array of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it is about.
    pub code: DiagnosticCode,
    /// The particulars.
    pub detail: String,
}

impl Diagnostic {
    /// A remark with its particulars.
    #[must_use]
    pub fn new(code: DiagnosticCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// What a remark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticCode {
    /// The declaration is spelt `dependent_arrays`.
    AliasKey,
    /// Both spellings are there, and say the same.
    DuplicateDeclaration,
    /// Both spellings are there, and differ: nothing is declared.
    AmbiguousDeclaration,
    /// The declaration is no object: nothing is declared.
    DeclarationNotObject,
    /// Groups cannot declare anything.
    DeclaredOnGroup,
    /// The encoding `suffix` with a `prefix` was read as `prefix`.
    SuffixEncodingWithPrefixMember,
    /// `null` was read as "without", not as the primary's.
    NullMeansAbsent,
    /// The primary's dimension names do not fit and were left out.
    InheritedDimensionNamesDropped,
    /// `bytes` does not say its byte order, and the type has one.
    BytesCodecWithoutEndian,
    /// Two arrays read the same chunks in the same way.
    AliasedChunks,
    /// Two arrays read the same chunks and take them for different things.
    KeyCollision,
    /// There are too many keys to tell whether two arrays share some.
    CollisionUnknown,
    /// The chunks as they would stand below the array's own path are somebody else's.
    NameShadowsChunkKey,
    /// The array is called as what the primary's keys begin with.
    NameResemblesChunkPrefix,
    /// The name has characters that the specification advises against.
    NonrecommendedName,
    /// There are more dependents than are looked at.
    TooMany,
    /// What a group calls one of its levels is declared by an array.
    VirtualAsset,
}

impl DiagnosticCode {
    /// The code as a stable word.
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
