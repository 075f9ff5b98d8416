//! [`Report`]: the findings of all checks.

use std::collections::BTreeMap;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// No problem was found.
    Pass,
    /// The check could not run.
    Skipped,
    /// Unusual, but allowed.
    Warning,
    /// A violation of the format.
    Error,
}

impl Status {
    /// Its name in a report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding of a check at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of the check.
    pub id: &'static str,
    /// The level of validation that the check belongs to.
    pub level: u8,
    /// The outcome.
    pub status: Status,
    /// The path that was checked.
    pub path: String,
    /// What is wrong; empty if the check passed.
    pub message: String,
}

/// The largest number of findings of one check at one path that are listed; further ones are counted.
const MAX_FINDINGS: usize = 20;

/// Every check, and its level of validation.
const CHECKS: &[(&str, u8)] = &[
    ("root_metadata", 1),
    ("chunk_shape_present", 1),
    ("base_bin_shape_present", 1),
    ("level_0_exists", 1),
    ("vertices_array", 1),
    ("fragments_array", 1),
    ("level_metadata", 1),
    ("optional_nodes", 1),
    ("attributes_agree", 2),
    ("version_known", 2),
    ("chunk_shape_rank", 2),
    ("chunk_shape_positive", 2),
    ("bin_shape_rank", 2),
    ("bin_shape_positive", 2),
    ("chunk_bin_divisible", 2),
    ("library_would_reject", 2),
    ("chunk_grid_consistent", 2),
    ("bounds_rank", 2),
    ("bounds_order", 2),
    ("tokens", 2),
    ("geometry_types_nonempty", 2),
    ("level_index_matches", 2),
    ("level_chunk_shape", 2),
    ("bin_ratio", 2),
    ("object_sparsity", 2),
    ("vertex_count_type", 2),
    ("doc_array_shapes", 2),
    ("array_attrs", 2),
    ("chunk_decodes", 3),
    ("fragment_index", 3),
    ("vgo_arithmetic", 3),
    ("vertex_in_chunk", 3),
    ("finite", 3),
    ("vertex_count", 3),
    ("presence", 3),
    ("attr_aligned", 3),
    ("fragments_tile_claim", 3),
    ("bins_in_order", 3),
    ("manifests", 3),
    ("fragment_owner", 3),
    ("links_segments", 3),
    ("links_records", 3),
    ("geometry_links", 4),
    ("mesh_link_width", 4),
    ("point_cloud_links", 4),
    ("levels_contiguous", 5),
    ("vertex_count_monotone", 5),
    ("bin_ratio_monotone", 5),
    ("preserved_ids", 5),
];

/// The findings of all checks.
#[derive(Clone, Debug)]
pub struct Report {
    /// The highest level of checks that was requested.
    pub level: u8,
    /// Whether all data was checked before the deadline.
    pub is_complete: bool,
    /// Findings by position in [`CHECKS`] and by path.
    findings: BTreeMap<(usize, String), Findings>,
}

#[derive(Clone, Debug, Default)]
struct Findings {
    items: Vec<(Status, String)>,
    /// The number of further findings.
    omitted: usize,
    worst: Option<Status>,
}

impl Report {
    pub(super) fn new(level: u8) -> Self {
        Self { level, is_complete: true, findings: BTreeMap::new() }
    }

    fn entry(&mut self, id: &'static str, path: &str) -> &mut Findings {
        let position = CHECKS.iter().position(|(known, _)| *known == id).unwrap_or(CHECKS.len());
        self.findings.entry((position, path.to_owned())).or_default()
    }

    fn add(&mut self, id: &'static str, path: &str, status: Status, message: String) {
        let findings = self.entry(id, path);
        findings.worst = findings.worst.max(Some(status));
        // The first finding of each status is always listed, so that warnings do not hide errors.
        let is_new = !findings.items.iter().any(|(known, _)| *known == status);
        if findings.items.len() < MAX_FINDINGS || is_new {
            findings.items.push((status, message));
        } else {
            findings.omitted += 1;
        }
    }

    /// Records that a check ran; its findings are added separately.
    pub(super) fn pass(&mut self, id: &'static str, path: &str) {
        self.entry(id, path);
    }

    pub(super) fn error(&mut self, id: &'static str, path: &str, message: impl Into<String>) {
        self.add(id, path, Status::Error, message.into());
    }

    pub(super) fn warn(&mut self, id: &'static str, path: &str, message: impl Into<String>) {
        self.add(id, path, Status::Warning, message.into());
    }

    pub(super) fn skip(&mut self, id: &'static str, path: &str, message: impl Into<String>) {
        self.add(id, path, Status::Skipped, message.into());
    }

    /// Adds an error, or a warning where the profile requires less.
    pub(super) fn error_or_warn(
        &mut self,
        is_error: bool,
        id: &'static str,
        path: &str,
        message: impl Into<String>,
    ) {
        self.add(id, path, if is_error { Status::Error } else { Status::Warning }, message.into());
    }

    /// Marks all requested checks but one as skipped.
    pub(super) fn skip_all_but(&mut self, id: &str, message: &str) {
        for (known, level) in CHECKS {
            if *level <= self.level && *known != id {
                self.skip(known, "", message);
            }
        }
    }

    /// Marks requested checks as skipped if they never ran: they do not apply to the store, or lack their inputs.
    pub(super) fn skip_missing(&mut self) {
        for (position, (id, level)) in CHECKS.iter().enumerate() {
            if *level <= self.level && !self.findings.keys().any(|(known, _)| *known == position) {
                self.skip(id, "", "it does not apply to this store, or its inputs are missing");
            }
        }
    }

    /// Whether there are no errors.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.findings.values().all(|findings| findings.worst != Some(Status::Error))
    }

    /// All findings, in the order of the checks.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for ((position, path), findings) in &self.findings {
            let Some(&(id, level)) = CHECKS.get(*position) else { continue };
            let mut push = |status, message: String| {
                checks.push(Check { id, level, status, path: path.clone(), message });
            };
            if findings.items.is_empty() {
                push(Status::Pass, String::new());
            }
            for (status, message) in &findings.items {
                push(*status, message.clone());
            }
            if findings.omitted > 0 {
                push(findings.worst.unwrap_or(Status::Warning), format!("and {} more", findings.omitted));
            }
        }
        checks
    }
}
