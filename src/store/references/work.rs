//! [`TemplateWork`]: the work that the templates of one document may take.

use super::expression::TemplateFault;

/// The steps of a document, beside one for each of its bytes: about a second of work.
const STEPS: u64 = 1 << 27;
/// The bytes of text that count as a step.
const STEP_BYTES: usize = 16;

/// The steps that are left for the templates of a document: nodes of expressions, and bytes that are copied.
#[derive(Debug)]
pub(super) struct TemplateWork {
    left: u64,
}

impl TemplateWork {
    /// The work for a document of this many bytes.
    pub(super) fn new(document_bytes: u64) -> Self {
        Self { left: STEPS.saturating_add(document_bytes) }
    }

    /// A number of steps.
    #[cfg(test)]
    pub(super) fn of_steps(left: u64) -> Self {
        Self { left }
    }

    /// Takes steps, and as many more as a text of this many bytes costs.
    pub(super) fn spend(&mut self, steps: u64, bytes: usize) -> Result<(), TemplateFault> {
        let steps = steps.saturating_add((bytes / STEP_BYTES) as u64);
        self.left = self.left.checked_sub(steps).ok_or("its templates take too much work")?;
        Ok(())
    }
}
