//! [`LayoutWarning`]: what makes a node hard to read or view, and [`WayOut`]: what helps.

/// What helps against what a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayOut {
    /// The view that adds levels to an array.
    Pyramid,
    /// The view with other chunks.
    Rechunk,
}

/// What makes a node hard to read or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutWarning {
    /// A stable word.
    pub code: &'static str,
    /// What is wrong, as a sentence without a stop.
    pub detail: String,
    /// What helps, if the server offers it.
    pub way_out: Option<WayOut>,
}

impl LayoutWarning {
    pub(super) fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), way_out: None }
    }

    pub(super) fn with(self, way_out: WayOut) -> Self {
        Self { way_out: Some(way_out), ..self }
    }
}
