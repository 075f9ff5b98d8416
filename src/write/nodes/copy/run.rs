//! A copy from its first step to its last.

use std::sync::atomic::{AtomicBool, Ordering};

use super::copied_document::CopiedDocument;
use super::copied_versions::CopiedVersions;
use super::error::{NodeCopyError, NodeCopyFailure};
use super::node_copy::{NodeCopy, NodeTransfer};
use super::plan::NodeCopyPlan;
use super::values::CopiedValues;

impl NodeCopy {
    /// Makes the copy, and for a move erases the source.
    ///
    /// # Errors
    /// [`NodeCopyFailure`]. Unless the node is at its target, the same copy can be made again, and goes on with what is there.
    pub async fn run(self, mut plan: NodeCopyPlan) -> Result<(), NodeCopyFailure> {
        let has_written = AtomicBool::new(false);
        let outcome = self.steps(&mut plan, &has_written).await;
        match &outcome {
            // While a value may still arrive, no other copy begins: the lease ends by itself.
            Err(error) if !error.is_settled() => {}
            // The node was there before.
            _ if plan.at_target.is_some() => plan.lease.end_unmade(false).await,
            Ok(()) => plan.lease.end_made().await,
            Err(error) if error.is_complete() => plan.lease.end_made().await,
            Err(_) => {
                plan.lease.end_unmade(has_written.load(Ordering::Relaxed) || plan.has_leftovers).await;
            }
        }
        outcome.map_err(|error| {
            let has_written = has_written.load(Ordering::Relaxed) || error.is_complete();
            NodeCopyFailure { error, has_written }
        })
    }

    async fn steps(&self, plan: &mut NodeCopyPlan, has_written: &AtomicBool) -> Result<(), NodeCopyError> {
        if plan.at_target.is_some() {
            return self.erase_rest(plan).await;
        }
        let mut has_made = false;
        let made = self.to.writer.make_groups_above(&self.to.path, plan.format, &mut has_made).await;
        has_written.fetch_or(has_made, Ordering::Relaxed);
        made?;
        let CopiedValues { versions, count, first } = self.copy_values(plan, has_written).await?;
        self.check_source(plan).await?;
        self.store_documents(plan, (count, first), has_written).await?;
        let (to, own) = (&self.to, plan.documents.last().map_or("", CopiedDocument::name));
        let restored = to.writer.restore_groups_above(&to.path, plan.format, own).await;
        restored.map_err(|error| {
            NodeCopyError::from(error).after_storing("a group above it could not be made again")
        })?;
        let updated = self.update_copies_above(plan).await;
        updated
            .map_err(|error| error.after_storing("consolidated metadata above it could not be changed"))?;
        if self.transfer == NodeTransfer::Move {
            self.erase_moved(plan, &versions).await?;
        }
        Ok(())
    }

    /// Erases the source of a move whose node is at its target.
    pub(super) async fn erase_moved(
        &self,
        plan: &NodeCopyPlan,
        versions: &CopiedVersions,
    ) -> Result<(), NodeCopyError> {
        let erased = self.erase_source(plan, versions).await;
        erased.map_err(|error| match error {
            kept @ NodeCopyError::Kept { .. } => kept,
            error => error.after_storing("the source is not erased as a whole"),
        })
    }
}
