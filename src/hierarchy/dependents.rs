//! Dependent arrays as nodes: what stands at `<array>/<dependent>`, where nothing is stored (the Zarr convention
//! "dependent-arrays").
//!
//! A stored node always wins over a declared one. The family is read from the primary's document each time: whoever
//! opens a dependent remembers it by the version of that document, and by there being nothing in the dependent's place.

use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::{Map, Value};

use super::documents::{Documents, ZARR_JSON, conditions};
use super::key_claims::{KeyClaim, key_claims};
use super::load::TRIES;
use super::{Hierarchy, HierarchyError, Located};
use crate::key::NodePath;
use crate::metadata::dependents::{
    DependentError, Diagnostic, DiagnosticCode, Family, MOST_DEPTH, Member, Reading, parse_primary,
};
use crate::metadata::{ArrayMetadata, MetadataLimits};
use crate::store::StoreError;

/// A dependent array, opened.
#[derive(Clone, Debug)]
pub struct Dependent {
    /// The outermost primary, below whose prefix the chunks stand.
    pub primary: NodePath,
    /// The path below the primary.
    pub below: String,
    /// The array; its chunks' keys are relative to the primary's prefix.
    pub array: Arc<ArrayMetadata>,
    /// The document as the convention completes it.
    pub complete: String,
    /// The document to be served from the dependent's own path, with default keys. `None` if the keys there are, or may
    /// be, somebody else's.
    pub rebased: Option<String>,
    /// What the declaration says of it.
    pub partial: String,
    /// The members that are the primary's.
    pub inherited: Vec<String>,
    /// What is odd about it.
    pub diagnostics: Vec<Diagnostic>,
}

impl Dependent {
    /// Bytes of its documents.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        let texts = [Some(&self.complete), self.rebased.as_ref(), Some(&self.partial)];
        texts.into_iter().flatten().map(|text| text.len() as u64).sum()
    }

    /// Why some of its chunks are none: another array takes them for something else.
    #[must_use]
    pub fn collision(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|diagnostic| diagnostic.code == DiagnosticCode::KeyCollision)
    }

    /// Why there is nothing to be served from its own path.
    #[must_use]
    pub fn hidden(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|diagnostic| hides(diagnostic))
    }
}

/// Whether chunks cannot be served from their array's own path.
fn hides(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.code, DiagnosticCode::NameShadowsChunkKey | DiagnosticCode::CollisionUnknown)
}

/// What a primary's document says of itself and its dependents.
#[derive(Clone, Debug)]
pub struct Dependents {
    /// Why the primary is no whole array by the convention's rules.
    pub error: Option<DependentError>,
    /// What is odd about the primary and its declaration.
    pub diagnostics: Vec<Diagnostic>,
    /// The primary's own document for readers that do not know its chunk key encoding, if it was asked for.
    pub rebased: Option<String>,
    /// The dependents, those of dependents behind them.
    pub dependents: Vec<DependentEntry>,
}

/// A dependent in a list.
#[derive(Clone, Debug)]
pub struct DependentEntry {
    /// Its name.
    pub name: String,
    /// Its path below the primary.
    pub below: String,
    /// Its shape and its data type as in a document; why there is no such array.
    pub array: Result<(Vec<u64>, Value), DependentError>,
    /// What is odd about it.
    pub diagnostics: Vec<Diagnostic>,
}

/// An array that another declares, as far as its chunks go: whatever is wrong with others of its family is not told.
#[derive(Clone, Debug)]
pub struct DeclaredArray {
    /// Its path.
    pub path: NodePath,
    /// The array, without its attributes; its chunks' keys are relative to the primary's prefix.
    pub array: Arc<ArrayMetadata>,
    /// Whether it cannot be served from its own path.
    pub is_withheld: bool,
    /// The document to be served from there, if all of them together are no longer than is remembered.
    pub rebased: Option<String>,
}

/// Bytes of the documents of one family that are made at once.
const MOST_REBASED_BYTES: usize = 16 << 20;

impl Hierarchy {
    /// The document above a path that may declare the node there: the nearest one, if it is of Zarr v3.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn locate_primary(
        &self,
        path: &NodePath,
    ) -> Result<Option<(NodePath, Located)>, HierarchyError> {
        let mut above = path.parent();
        for _ in 0..MOST_DEPTH {
            let Some(primary) = above else { return Ok(None) };
            if let Some(info) = self.look(&primary, ZARR_JSON).await? {
                let documents = Documents::V3 { zarr_json: info.version };
                return Ok(Some((primary, Located { documents, bytes: info.size })));
            }
            above = primary.parent();
        }
        Ok(None)
    }

    /// Whether a dependent is what it was located as: asks for all that it depends on at once.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn is_declared_still(
        &self,
        path: &NodePath,
        located: &Located,
    ) -> Result<bool, HierarchyError> {
        let Documents::Dependent { primary, zarr_json } = &located.documents else { return Ok(false) };
        let looks = conditions(path, primary, zarr_json)?.into_iter().map(|(key, version)| async move {
            let found = self.store.head(&key).await;
            let found = found.map_err(|source| HierarchyError::Store { key: key.to_string(), source })?;
            Ok::<_, HierarchyError>(found.map(|found| found.version).as_ref() == version)
        });
        Ok(try_join_all(looks).await?.into_iter().all(|is_still| is_still))
    }

    /// The dependents that the array at a path declares and that can be used, by their paths. None, if its declaration
    /// cannot be read.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn declared(
        &self,
        path: &NodePath,
        located: &Located,
    ) -> Result<Vec<DeclaredArray>, HierarchyError> {
        let primary = path.clone();
        let found = self.with_document(path, path, located, move |document, limits| {
            let (family, standings) = family(document, Reading::Lenient, &limits);
            let (mut declared, mut bytes_left) = (Vec::new(), MOST_REBASED_BYTES);
            // First is the primary.
            for (member, standing) in family.members.iter().zip(standings).skip(1) {
                let Ok(array) = &member.array else { continue };
                // Too long a path has no keys.
                let path = NodePath::parse(&format!("{}{}", primary.prefix(), member.path));
                let Ok(path) = path else { continue };
                let is_withheld = standing.iter().any(hides);
                let is_made = !is_withheld && bytes_left > 0;
                let rebased = if is_made { member.rebased() } else { None };
                let rebased = rebased.map(|document| Value::Object(document).to_string());
                bytes_left = bytes_left.saturating_sub(rebased.as_ref().map_or(0, String::len));
                declared.push(DeclaredArray { path, array: Arc::new(array.clone()), is_withheld, rebased });
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
    /// Failures of the store. A declaration that cannot be read is told, and is no failure.
    pub async fn dependents(
        &self,
        path: &NodePath,
        located: &Located,
        reading: Reading,
        is_rebased: bool,
    ) -> Result<Dependents, HierarchyError> {
        let found = self.with_document(path, path, located, move |document, limits| {
            let (family, mut standings) = family(document, reading, &limits);
            let mut of = |member: &Member, place: usize| {
                let mut diagnostics = member.diagnostics.clone();
                diagnostics.append(&mut standings.get_mut(place).map(std::mem::take).unwrap_or_default());
                diagnostics
            };
            let mut members = family.members.iter().enumerate();
            let (place, primary) = members.next().ok_or(DependentError::NotObject)?;
            let diagnostics = of(primary, place);
            let dependents = members.map(|(place, member)| DependentEntry {
                name: member.name.clone(),
                below: member.path.clone(),
                array: match &member.array {
                    Ok(array) => Ok((array.shape.clone(), array.data_type.to_metadata())),
                    Err(error) => Err(error.clone()),
                },
                diagnostics: of(member, place),
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
    /// [`HierarchyError::NoSuchDependent`]; [`HierarchyError::Dependent`] if it is declared and cannot be used; failures
    /// of the store.
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
            let (family, standings) = family(document, reading, &limits);
            let Some(member) = family.find(&below)? else { return Ok(None) };
            let array = Arc::new(member.array()?);
            let place = family.members.iter().position(|other| other.path == member.path);
            let standing = place.and_then(|place| standings.get(place).cloned()).unwrap_or_default();
            let text = |document| Value::Object(document).to_string();
            let diagnostics = [member.diagnostics.clone(), standing].concat();
            let is_withheld = diagnostics.iter().any(hides);
            Ok(Some(Dependent {
                primary: at,
                array,
                complete: member.complete().map(text).unwrap_or_default(),
                rebased: member.rebased().filter(|_| !is_withheld).map(text),
                partial: member.partial().map(Value::to_string).unwrap_or_default(),
                inherited: member.inherited().into_iter().map(str::to_owned).collect(),
                diagnostics,
                below,
            }))
        });
        let error = || HierarchyError::NoSuchDependent { path: path.clone(), primary: primary.clone() };
        dependent.await?.map(Arc::new).ok_or_else(error)
    }

    /// Reads the document of a primary at its version, or if a writer was faster, at a newer one, and works on it for
    /// what is asked.
    async fn with_document<T: Send + 'static>(
        &self,
        asked: &NodePath,
        path: &NodePath,
        located: &Located,
        work: impl FnOnce(&Map<String, Value>, MetadataLimits) -> Result<T, DependentError> + Send + 'static,
    ) -> Result<T, HierarchyError> {
        let no_such_node = || HierarchyError::NoSuchNode { path: path.clone() };
        let mut located = located.clone();
        let mut tries = 1;
        let text = loop {
            let Documents::V3 { zarr_json } = &located.documents else { return Err(no_such_node()) };
            let room = self.room_for(located.bytes).await;
            match self.read(path, ZARR_JSON, zarr_json).await {
                Err(HierarchyError::Store { source: StoreError::VersionChanged, .. }) if tries < TRIES => {
                    tries += 1;
                    drop(room);
                    located = self.locate(path).await?;
                }
                text => break text?,
            }
        };
        let limits = self.limits;
        let bytes = text.len() as u64;
        let result = self.cpu.run_document(bytes, move || work(&parse_primary(&text, &limits)?, limits));
        let failed = |source| HierarchyError::Dependent { path: asked.clone(), source };
        result.await?.map_err(failed)
    }
}

/// A family, and for each of its arrays how its keys stand to those of the others.
fn family<'a>(
    document: &'a Map<String, Value>,
    reading: Reading,
    limits: &MetadataLimits,
) -> (Family<'a>, Vec<KeyClaim>) {
    let family = Family::of(document, reading, limits);
    let standings = key_claims(&family);
    (family, standings)
}
