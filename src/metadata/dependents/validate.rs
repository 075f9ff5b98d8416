//! [`DocumentValidation`]: checks a completed document by the convention's rules, and parses it.
//!
//! The checks are in the order of the convention's rules. The parser of v3 documents checks the rest and returns the array.
//! `fill_value` is required here, although that parser accepts documents without it: no known dependents lack it.

use serde_json::{Map, Value, json};

use super::completed::Completed;
use super::{DependentError, Diagnostic, DiagnosticCode, Reading};
use crate::metadata::chunk_key_encoding;
use crate::metadata::extension::Extension;
use crate::metadata::v3::{self, ARRAY_MEMBERS};
use crate::metadata::{ArrayMetadata, DataType, FillValue, MetadataError, MetadataLimits};

/// The required members of an array.
const REQUIRED: [&str; 8] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
];
/// The members that a dependent can drop by `null`, instead of inheriting them.
const OPTIONAL: [&str; 2] = ["dimension_names", "storage_transformers"];

/// The validation of one document.
pub(super) struct DocumentValidation<'d, 'a> {
    pub(super) document: &'d mut Completed<'a>,
    /// The declaration of the dependent; `None` for the primary.
    pub(super) partial: Option<&'a Map<String, Value>>,
    pub(super) reading: Reading,
    pub(super) limits: &'d MetadataLimits,
    pub(super) diagnostics: &'d mut Vec<Diagnostic>,
}

impl DocumentValidation<'_, '_> {
    /// The array, without its attributes.
    pub(super) fn run(mut self) -> Result<ArrayMetadata, DependentError> {
        self.remove_nulls()?;
        if let Some(field) = REQUIRED.into_iter().find(|field| self.document.get(field).is_none()) {
            return Err(DependentError::Incomplete { field });
        }
        if self.member("zarr_format").as_u64() != Some(3) {
            return Err(self.bad_field("zarr_format", "must be 3"));
        }
        if self.member("node_type").as_str() != Some("array") {
            return Err(self.bad_field("node_type", "must be \"array\""));
        }
        let lengths = self.member("shape").as_array();
        let rank = lengths.filter(|lengths| lengths.iter().all(Value::is_u64)).map(Vec::len);
        let rank = rank.ok_or_else(|| self.bad_field("shape", "must hold lengths"))?;
        if self.document.has_bad_attributes() {
            return Err(self.bad_field("attributes", "must be an object"));
        }
        self.check_ranks(rank)?;
        self.check_dimension_names(rank)?;
        self.check_unknown_members()?;
        let data_type = DataType::from_v3(self.member("data_type"))
            .map_err(|error| DependentError::from_metadata_error(error, self.is_inherited("data_type")))?;
        let codecs = self.codecs_with_byte_order(&data_type)?;
        self.check_fill_value(&data_type)?;
        self.check_chunk_key_encoding(rank)?;
        let mut members: Map<String, Value> = self
            .document
            .members()
            .filter(|(name, _)| ARRAY_MEMBERS.contains(name) && *name != "codecs")
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect();
        members.insert("codecs".to_owned(), codecs);
        v3::array(&members, self.limits, None).map_err(|error| {
            let inherited = match &error {
                MetadataError::Invalid { member, .. } => {
                    let field = member.split(['[', '.']).next().unwrap_or_default();
                    // Errors in parts of a member may have the part's name.
                    self.document.get(field).is_some() && self.is_inherited(field)
                }
                MetadataError::TooLarge { .. }
                | MetadataError::Json(_)
                | MetadataError::Unsupported { .. } => false,
            };
            DependentError::from_metadata_error(error, inherited)
        })
    }

    /// A member that is known to be present.
    fn member(&self, field: &str) -> &Value {
        self.document.get(field).unwrap_or(&Value::Null)
    }

    fn is_inherited(&self, field: &str) -> bool {
        self.partial.is_some_and(|partial| !partial.contains_key(field))
    }

    fn bad_field(&self, field: &str, reason: &str) -> DependentError {
        DependentError::bad_field(field, reason, self.is_inherited(field))
    }

    fn add_diagnostic(&mut self, code: DiagnosticCode, detail: impl Into<String>) {
        self.diagnostics.push(Diagnostic::new(code, detail));
    }

    /// Removes members that the dependent sets to `null`, which drops the primary's.
    fn remove_nulls(&mut self) -> Result<(), DependentError> {
        for field in OPTIONAL {
            if !self.partial.and_then(|partial| partial.get(field)).is_some_and(Value::is_null) {
                continue;
            }
            if self.reading == Reading::Strict {
                return Err(DependentError::NullField { field });
            }
            self.document.remove(field);
            self.add_diagnostic(DiagnosticCode::NullMeansAbsent, field);
        }
        Ok(())
    }

    /// Checks the rank of the chunk grid, and of codecs that depend on it.
    fn check_ranks(&self, rank: usize) -> Result<(), DependentError> {
        let length = |extension: &Value, member: &str| {
            extension.get("configuration")?.get(member)?.as_array().map(Vec::len)
        };
        let grid = self.member("chunk_grid");
        let found = length(grid, "chunk_shape").or_else(|| length(grid, "chunk_shapes"));
        let mismatch = |field: &str, found| DependentError::RankMismatch {
            field: field.to_owned(),
            found,
            rank,
            inherited: self.is_inherited(field),
        };
        if let Some(found) = found.filter(|&found| found != rank) {
            return Err(mismatch("chunk_grid", found));
        }
        for codec in self.member("codecs").as_array().into_iter().flatten() {
            let member = match codec.get("name").and_then(Value::as_str) {
                Some("transpose") => "order",
                Some("sharding_indexed") => "chunk_shape",
                _ => continue,
            };
            if let Some(found) = length(codec, member).filter(|&found| found != rank) {
                return Err(mismatch("codecs", found));
            }
        }
        Ok(())
    }

    /// Checks the number of dimension names. Inherited names that do not fit are dropped.
    fn check_dimension_names(&mut self, rank: usize) -> Result<(), DependentError> {
        const FIELD: &str = "dimension_names";
        let Some(names) = self.document.get(FIELD).filter(|names| !names.is_null()) else { return Ok(()) };
        let found =
            names.as_array().map(Vec::len).ok_or_else(|| self.bad_field(FIELD, "must be an array"))?;
        if found == rank {
            return Ok(());
        }
        let inherited = self.is_inherited(FIELD);
        if !inherited || self.reading == Reading::Strict {
            return Err(DependentError::RankMismatch { field: FIELD.to_owned(), found, rank, inherited });
        }
        self.document.remove(FIELD);
        let detail = format!("names of {found} dimensions do not fit an array of {rank}");
        self.add_diagnostic(DiagnosticCode::InheritedDimensionNamesDropped, detail);
        Ok(())
    }

    fn check_unknown_members(&self) -> Result<(), DependentError> {
        let may_ignore = |name: &str, value: &Value| {
            value.get("must_understand") == Some(&Value::Bool(false))
                || (name == "consolidated_metadata" && value.is_null())
        };
        let unknown = self
            .document
            .members()
            .find(|(name, value)| !ARRAY_MEMBERS.contains(name) && !may_ignore(name, value));
        match unknown {
            None => Ok(()),
            Some((name, _)) => {
                Err(DependentError::MustUnderstand { field: crate::metadata::shortened(name.to_owned()) })
            }
        }
    }

    /// The codecs, with a byte order added where it is missing.
    fn codecs_with_byte_order(&mut self, data_type: &DataType) -> Result<Value, DependentError> {
        let mut codecs = self.member("codecs").clone();
        // A struct without byte order is little-endian, without a diagnostic.
        if data_type.is_variable()
            || data_type.endian_unit_bytes() == Some(1)
            || matches!(data_type, DataType::Struct(_))
            || !complete_byte_order(&mut codecs)
        {
            return Ok(codecs);
        }
        if self.reading == Reading::Strict {
            return Err(DependentError::BytesCodecWithoutEndian);
        }
        let detail = "the codec `bytes` has no `endian`, which the data type needs: little";
        self.add_diagnostic(DiagnosticCode::BytesCodecWithoutEndian, detail);
        Ok(codecs)
    }

    fn check_fill_value(&self, data_type: &DataType) -> Result<(), DependentError> {
        let fill_value = self.member("fill_value");
        let inherited = self.is_inherited("fill_value");
        if fill_value.is_null() {
            return Err(DependentError::FillValueMismatch { reason: "is null".to_owned(), inherited });
        }
        match FillValue::from_v3(data_type, Some(fill_value)) {
            Ok(_) => Ok(()),
            Err(error) => Err(DependentError::FillValueMismatch { reason: error.to_string(), inherited }),
        }
    }

    fn check_chunk_key_encoding(&mut self, rank: usize) -> Result<(), DependentError> {
        const FIELD: &str = "chunk_key_encoding";
        let inherited = self.is_inherited(FIELD);
        let invalid = |reason| DependentError::InvalidChunkKeyEncoding { reason, inherited };
        let parsed = match chunk_key_encoding::parse(self.member(FIELD), rank) {
            Ok(parsed) => parsed,
            Err(MetadataError::Unsupported { what, name }) => {
                return Err(DependentError::Unsupported { what, name });
            }
            Err(error) => return Err(invalid(error.to_string())),
        };
        if parsed.has_suffix_with_prefix {
            if self.reading == Reading::Strict {
                return Err(invalid("`suffix` has a member `prefix` instead of `suffix`".to_owned()));
            }
            let detail = "parsed as the encoding `prefix`";
            self.add_diagnostic(DiagnosticCode::SuffixEncodingWithPrefixMember, detail);
        }
        Ok(())
    }
}

/// Sets the byte order of each codec `bytes` without one to little. Returns whether there was one.
fn complete_byte_order(codecs: &mut Value) -> bool {
    let mut found = false;
    for codec in codecs.as_array_mut().into_iter().flatten() {
        let Ok(extension) = Extension::parse(codec, "codecs") else { continue };
        match extension.name.as_str() {
            "bytes" if !extension.configuration.contains_key("endian") => {
                *codec = json!({ "name": "bytes", "configuration": { "endian": "little" } });
                found = true;
            }
            "sharding_indexed" => {
                if let Some(inner) = codec.pointer_mut("/configuration/codecs") {
                    found |= complete_byte_order(inner);
                }
            }
            _ => {}
        }
    }
    found
}
