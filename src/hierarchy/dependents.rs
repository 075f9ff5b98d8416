//! Dependent arrays as nodes: the paths `<array>/<dependent>`, where nothing is stored (Zarr convention
//! "dependent-arrays").
//!
//! A stored node takes precedence over a declared one. The family is parsed from the primary's document each time. The
//! opener of a dependent caches it by that document's version and by the absence of a stored node at its path.

use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::{Map, Value};

use super::documents::{Documents, ZARR_JSON, version_conditions};
use super::key_claims::{KeyDiagnostics, key_claims};
use super::load::MAX_ATTEMPTS;
use super::{Hierarchy, HierarchyError, Located};
use crate::key::NodePath;
use crate::metadata::dependents::{
    DependentError, Diagnostic, DiagnosticCode, Family, MAX_DEPENDENT_DEPTH, Member, Reading, parse_primary,
};
use crate::metadata::{ArrayMetadata, MetadataLimits};
use crate::store::StoreError;

/// A dependent array, opened.
#[derive(Clone, Debug)]
pub struct Dependent {
    /// The outermost primary; the chunks are stored below its prefix.
    pub primary: NodePath,
    /// The path below the primary.
    pub below: String,
    /// The array; its chunk keys are relative to the primary's prefix.
    pub array: Arc<ArrayMetadata>,
    /// The document, completed from the primary's as the convention says.
    pub complete: String,
    /// The document to serve from the dependent's own path, with default chunk keys. `None` if those keys belong, or may
    /// belong, to another array.
    pub rebased: Option<String>,
    /// Its declaration, as JSON.
    pub partial: String,
    /// The members inherited from the primary.
    pub inherited: Vec<String>,
    /// The diagnostics about it.
    pub diagnostics: Vec<Diagnostic>,
}

impl Dependent {
    /// Total size of its documents in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        let texts = [Some(&self.complete), self.rebased.as_ref(), Some(&self.partial)];
        texts.into_iter().flatten().map(|text| text.len() as u64).sum()
    }

    /// The collision diagnostic, if another array interprets some of its chunks differently.
    #[must_use]
    pub fn collision(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|diagnostic| diagnostic.code == DiagnosticCode::KeyCollision)
    }

    /// The diagnostic that prevents serving it from its own path, if any.
    #[must_use]
    pub fn hidden(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|diagnostic| hides(diagnostic))
    }
}

/// Whether a diagnostic means that chunks cannot be served from the array's own path.
fn hides(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.code, DiagnosticCode::NameShadowsChunkKey | DiagnosticCode::CollisionUnknown)
}

/// A primary and the dependents that its document declares.
#[derive(Clone, Debug)]
pub struct Dependents {
    /// Why the primary itself is not a valid array by the convention's rules.
    pub error: Option<DependentError>,
    /// The diagnostics about the primary and its declaration.
    pub diagnostics: Vec<Diagnostic>,
    /// The primary's document with default chunk keys, for readers that do not know its chunk key encoding; if requested.
    pub rebased: Option<String>,
    /// The dependents; nested dependents follow their parent.
    pub dependents: Vec<DependentEntry>,
}

/// A dependent in a list.
#[derive(Clone, Debug)]
pub struct DependentEntry {
    /// Its name.
    pub name: String,
    /// Its path below the primary.
    pub below: String,
    /// Its shape, and its data type as in a v3 document; or why it is invalid.
    pub array: Result<(Vec<u64>, Value), DependentError>,
    /// The diagnostics about it.
    pub diagnostics: Vec<Diagnostic>,
}

/// A valid declared array, without the errors of other arrays of its family.
#[derive(Clone, Debug)]
pub struct DeclaredArray {
    /// Its path.
    pub path: NodePath,
    /// The array, without its attributes; its chunk keys are relative to the primary's prefix.
    pub array: Arc<ArrayMetadata>,
    /// Whether it cannot be served from its own path.
    pub is_hidden: bool,
    /// The document to serve from there; `None` if hidden or if the family's documents exceed 16 MiB.
    pub rebased: Option<String>,
}

/// Approximate limit on the total size of the rebased documents of one family, in bytes.
const MAX_REBASED_BYTES: usize = 16 << 20;

impl Hierarchy {
    /// The nearest `zarr.json` above a path, which may declare a node there; at most 8 levels above.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn locate_primary(
        &self,
        path: &NodePath,
    ) -> Result<Option<(NodePath, Located)>, HierarchyError> {
        let mut above = path.parent();
        for _ in 0..MAX_DEPENDENT_DEPTH {
            let Some(primary) = above else { return Ok(None) };
            if let Some(info) = self.head_document(&primary, ZARR_JSON).await? {
                let documents = Documents::V3 { zarr_json: info.version };
                return Ok(Some((primary, Located { documents, bytes: info.size })));
            }
            above = primary.parent();
        }
        Ok(None)
    }

    /// Whether a dependent is unchanged since it was located. Sends HEAD requests for all keys it depends on concurrently.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn revalidate_dependent(
        &self,
        path: &NodePath,
        located: &Located,
    ) -> Result<bool, HierarchyError> {
        let Documents::Dependent { primary, zarr_json } = &located.documents else { return Ok(false) };
        let checks =
            version_conditions(path, primary, zarr_json)?.into_iter().map(|(key, version)| async move {
                let found = self.store.head(&key).await;
                let found = found.map_err(|source| HierarchyError::Store { key: key.to_string(), source })?;
                Ok::<_, HierarchyError>(found.map(|found| found.version).as_ref() == version)
            });
        Ok(try_join_all(checks).await?.into_iter().all(|is_unchanged| is_unchanged))
    }

    /// The valid dependents that the array at a path declares. Empty if the declaration cannot be parsed.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn declared_dependents(
        &self,
        path: &NodePath,
        located: &Located,
    ) -> Result<Vec<DeclaredArray>, HierarchyError> {
        let primary = path.clone();
        let found = self.with_document(path, path, located, move |document, limits| {
            let (family, key_diagnostics) = parse_family(document, Reading::Lenient, &limits);
            let (mut declared, mut bytes_left) = (Vec::new(), MAX_REBASED_BYTES);
            // First is the primary.
            for (member, own_key_diagnostics) in family.members.iter().zip(key_diagnostics).skip(1) {
                let Ok(array) = &member.array else { continue };
                // A path that is too long has no keys.
                let path = NodePath::parse(&format!("{}{}", primary.prefix(), member.path));
                let Ok(path) = path else { continue };
                let is_hidden = own_key_diagnostics.iter().any(hides);
                let is_rebased = !is_hidden && bytes_left > 0;
                let rebased = if is_rebased { member.rebased() } else { None };
                let rebased = rebased.map(|document| Value::Object(document).to_string());
                bytes_left = bytes_left.saturating_sub(rebased.as_ref().map_or(0, String::len));
                declared.push(DeclaredArray { path, array: Arc::new(array.clone()), is_hidden, rebased });
            }
            Ok(declared)
        });
        match found.await {
            Err(HierarchyError::Dependent { .. }) => Ok(Vec::new()),
            found => found,
        }
    }

    /// The dependents that the array at a path declares.
    ///
    /// # Errors
    /// Failures of the store. An invalid declaration is reported in [`Dependents::error`].
    pub async fn dependents(
        &self,
        path: &NodePath,
        located: &Located,
        reading: Reading,
        is_rebased: bool,
    ) -> Result<Dependents, HierarchyError> {
        let found = self.with_document(path, path, located, move |document, limits| {
            let (family, mut key_diagnostics) = parse_family(document, reading, &limits);
            let mut all_diagnostics = |member: &Member, index: usize| {
                let mut diagnostics = member.diagnostics.clone();
                diagnostics
                    .append(&mut key_diagnostics.get_mut(index).map(std::mem::take).unwrap_or_default());
                diagnostics
            };
            let mut members = family.members.iter().enumerate();
            let (index, primary) = members.next().ok_or(DependentError::NotObject)?;
            let diagnostics = all_diagnostics(primary, index);
            let dependents = members.map(|(index, member)| DependentEntry {
                name: member.name.clone(),
                below: member.path.clone(),
                array: match &member.array {
                    Ok(array) => Ok((array.shape.clone(), array.data_type.to_metadata())),
                    Err(error) => Err(error.clone()),
                },
                diagnostics: all_diagnostics(member, index),
            });
            let rebased = if is_rebased { primary.rebased() } else { None };
            Ok(Dependents {
                error: primary.array.as_ref().err().cloned(),
                diagnostics,
                rebased: rebased.map(|document| Value::Object(document).to_string()),
                dependents: dependents.collect(),
            })
        });
        match found.await {
            Err(HierarchyError::Dependent { source, .. }) => {
                let (diagnostics, dependents) = (Vec::new(), Vec::new());
                Ok(Dependents { error: Some(source), diagnostics, rebased: None, dependents })
            }
            found => found,
        }
    }

    /// The dependent at a path that the array at `primary` declares.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchDependent`]; [`HierarchyError::Dependent`] if it is declared but invalid; failures of the
    /// store.
    pub async fn dependent(
        &self,
        path: &NodePath,
        primary: &NodePath,
        located: &Located,
        reading: Reading,
    ) -> Result<Arc<Dependent>, HierarchyError> {
        let below = path.as_str().strip_prefix(primary.prefix().as_str()).unwrap_or_default().to_owned();
        let at = primary.clone();
        let dependent = self.with_document(path, primary, located, move |document, limits| {
            let (family, key_diagnostics) = parse_family(document, reading, &limits);
            let Some(member) = family.find(&below)? else { return Ok(None) };
            let array = Arc::new(member.array()?);
            let index = family.members.iter().position(|other| other.path == member.path);
            let own_key_diagnostics =
                index.and_then(|index| key_diagnostics.get(index).cloned()).unwrap_or_default();
            let text = |document| Value::Object(document).to_string();
            let diagnostics = [member.diagnostics.clone(), own_key_diagnostics].concat();
            let is_hidden = diagnostics.iter().any(hides);
            Ok(Some(Dependent {
                primary: at,
                array,
                complete: member.complete().map(text).unwrap_or_default(),
                rebased: member.rebased().filter(|_| !is_hidden).map(text),
                partial: member.partial().map(Value::to_string).unwrap_or_default(),
                inherited: member.inherited().into_iter().map(str::to_owned).collect(),
                diagnostics,
                below,
            }))
        });
        let error = || HierarchyError::NoSuchDependent { path: path.clone(), primary: primary.clone() };
        dependent.await?.map(Arc::new).ok_or_else(error)
    }

    /// Reads the document of a primary at its located version or a newer one, and runs `work` on it in the compute pool.
    async fn with_document<T: Send + 'static>(
        &self,
        requested: &NodePath,
        path: &NodePath,
        located: &Located,
        work: impl FnOnce(&Map<String, Value>, MetadataLimits) -> Result<T, DependentError> + Send + 'static,
    ) -> Result<T, HierarchyError> {
        let no_such_node = || HierarchyError::NoSuchNode { path: path.clone() };
        let mut located = located.clone();
        let mut attempts = 1;
        let text = loop {
            let Documents::V3 { zarr_json } = &located.documents else { return Err(no_such_node()) };
            let slot = self.acquire_document_slot(located.bytes).await;
            match self.read_document(path, ZARR_JSON, zarr_json).await {
                Err(HierarchyError::Store { source: StoreError::VersionChanged, .. })
                    if attempts < MAX_ATTEMPTS =>
                {
                    attempts += 1;
                    drop(slot);
                    located = self.locate(path).await?;
                }
                text => break text?,
            }
        };
        let limits = self.limits;
        let bytes = text.len() as u64;
        let result = self.cpu.run_document(bytes, move || work(&parse_primary(&text, &limits)?, limits));
        let failed = |source| HierarchyError::Dependent { path: requested.clone(), source };
        result.await?.map_err(failed)
    }
}

/// The family of a primary, and the key diagnostics of each of its arrays.
fn parse_family<'a>(
    document: &'a Map<String, Value>,
    reading: Reading,
    limits: &MetadataLimits,
) -> (Family<'a>, Vec<KeyDiagnostics>) {
    let family = Family::from_primary(document, reading, limits);
    let key_diagnostics = key_claims(&family);
    (family, key_diagnostics)
}
