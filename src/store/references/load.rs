//! What is loaded of one version of a document, and how.

use bytes::Bytes;

use super::{ReferenceError, ReferenceTable};
use crate::cpu::ComputePool;
use crate::key::StoreKey;
use crate::store::container::ContainerError;
use crate::store::{ByteRange, ContainerBudget, SharedStore, StoreError, ValueInfo};

/// The references of one version of a document.
#[derive(Debug)]
pub(super) struct LoadedReferences {
    pub(super) info: ValueInfo,
    pub(super) table: ReferenceTable,
}

/// Reads one version of a file, and parses it on the pool.
pub(super) async fn parsed<T: Send + 'static>(
    (inner, file): (&SharedStore, &StoreKey),
    info: ValueInfo,
    (cpu, budget): (&ComputePool, &ContainerBudget),
    parse: impl FnOnce(&Bytes, &ContainerBudget) -> Result<T, ReferenceError> + Send + 'static,
) -> Result<T, StoreError> {
    // Held until the parser has reserved as much.
    let mut reserved = budget.empty();
    reserved.resize(info.size).map_err(ReferenceError::from)?;
    let value = inner.get(file, ByteRange::Whole, Some(&info.version)).await?;
    let bytes = value.ok_or(StoreError::VersionChanged)?.bytes(info.size).await?;
    let budget = budget.clone();
    let parse = move || {
        drop(reserved);
        parse(&bytes, &budget)
    };
    // A short document may take long: its rules may make millions of references.
    Ok(cpu.run_long(parse).await.map_err(ReferenceError::Cpu)??)
}

impl ContainerError for ReferenceError {
    const NO_FILE: Self = Self::NoDocument;

    fn of(error: &StoreError) -> Option<&Self> {
        if let StoreError::References(error) = error { Some(error) } else { None }
    }

    fn is_lasting(&self) -> bool {
        match self {
            Self::Document(_)
            | Self::Syntax { .. }
            | Self::Entry { .. }
            | Self::Record(_)
            | Self::Repository(_)
            | Self::SpecVersion { .. } => true,
            // Lasting if it is too large even alone; otherwise other mounts may release memory.
            Self::OverBudget { needed, limit } => needed > limit,
            Self::NoDocument
            | Self::NoRepository(_)
            | Self::TwoNodes
            | Self::Refused { .. }
            | Self::Broken { .. }
            | Self::Cpu(_) => false,
        }
    }
}
