//! The limit of open files, and how many connections it permits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for files, backends and the process itself.
const RESERVED: u64 = 256;

/// Raises the soft limit of open files to the hard one, and returns how many connections it permits, up to `wanted`.
pub(super) fn raise_limit(wanted: u32) -> u32 {
    let limit = getrlimit(Resource::Nofile);
    // If that fails, the soft limit stays.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).is_ok();
    let open_files = if raised { limit.maximum } else { limit.current };
    let connections = fitting(wanted, open_files);
    if connections < wanted {
        tracing::warn!(wanted, connections, "the limit on open files allows fewer connections");
    }
    connections
}

/// How many of the `wanted` connections fit in a limit of open files; without a limit, all.
fn fitting(wanted: u32, open_files: Option<u64>) -> u32 {
    let Some(open_files) = open_files else {
        return wanted;
    };
    // Below twice the reserve, both get half.
    let left = open_files.saturating_sub(RESERVED).max(open_files / 2).max(1);
    u32::try_from(left).map_or(wanted, |left| wanted.min(left))
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn connections_leave_descriptors_for_files_and_backends() {
        assert_eq!(fitting(16_384, Some(20_000)), 16_384);
        assert_eq!(fitting(16_384, Some(1024)), 768);
        assert_eq!(fitting(16_384, Some(256)), 128);
        assert_eq!(fitting(16_384, Some(0)), 1);
        assert_eq!(fitting(16_384, None), 16_384);
    }
}
