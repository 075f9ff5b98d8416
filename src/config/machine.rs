//! [`AvailableMemory`]: the memory limit of this process and the memory of the machine, from control groups and proc(5).
//!
//! Linux control groups of both versions; on other systems nothing is known. Files that are missing or have another form are
//! ignored.

use std::path::Path;

/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";
/// Limits from here on mean that there is none: version 1 writes a number near the largest.
const NO_LIMIT: u64 = 1 << 60;

/// How much memory there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AvailableMemory {
    /// The limit of this process, if there is one: from the configuration, or of its control group.
    pub limit: Option<u64>,
    /// The memory of the machine, if known.
    pub machine: Option<u64>,
}

impl AvailableMemory {
    /// The memory for this process, and the share of it for budgets that are `"auto"`: of a limit, which is for this process alone,
    /// four fifths (the rest is for connections); of a machine, which other processes use too, half.
    #[must_use]
    pub fn total_and_share(self) -> Option<(u64, u64)> {
        let limit = self.limit.filter(|limit| self.machine.is_none_or(|machine| *limit <= machine));
        match (limit, self.machine) {
            (Some(limit), _) => Some((limit, limit / 5 * 4)),
            (None, Some(machine)) => Some((machine, machine / 2)),
            (None, None) => None,
        }
    }
}

/// The limit of the control groups of this process, and the memory of the machine.
#[must_use]
pub(super) fn memory() -> AvailableMemory {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok();
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    AvailableMemory {
        limit: groups.and_then(|named| limit_of_groups(Path::new(GROUPS), &named)),
        machine: machine.and_then(|text| kilobytes_of(&text, "MemTotal:")),
    }
}

/// Resident memory of this process, in bytes.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes_of(&status, "VmRSS:")
}

/// The value of a line of proc(5), which is in kB, in bytes.
fn kilobytes_of(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The lowest limit of the groups that `/proc/self/cgroup` names, and of their ancestors.
fn limit_of_groups(root: &Path, named: &str) -> Option<u64> {
    let limits = named.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                (root.join(controllers), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // In a container, the path may not exist below the mount point; its own group is then the root.
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        groups.filter_map(|group| limit_in(&root.join(group).join(file))).min()
    });
    limits.min()
}

fn limit_in(file: &Path) -> Option<u64> {
    let limit = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (limit < NO_LIMIT).then_some(limit)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), text).unwrap();
    }

    #[test]
    fn the_lowest_memory_limit_of_a_control_group_and_its_ancestors_applies() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let second = "0::/a.slice/b.scope\n";
        assert_eq!(limit_of_groups(root, second), None);
        write(root, "a.slice/b.scope/memory.max", "max\n");
        assert_eq!(limit_of_groups(root, second), None);
        write(root, "a.slice/memory.max", "2000\n");
        assert_eq!(limit_of_groups(root, second), Some(2000));
        write(root, "a.slice/b.scope/memory.max", "1000\n");
        assert_eq!(limit_of_groups(root, second), Some(1000));

        let first = "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n";
        write(root, "memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit_of_groups(root, first), None);
        write(root, "memory/memory.limit_in_bytes", "500\n");
        assert_eq!(limit_of_groups(root, first), Some(500));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_machine_has_some_memory() {
        assert!(memory().machine.unwrap() > 64 << 20);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_some_memory() {
        assert!(resident_bytes().unwrap() > 1 << 20);
    }
}
