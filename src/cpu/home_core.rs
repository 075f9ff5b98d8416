//! [`HomeCore`]: the core on which a thread of the pool wakes up.
//!
//! On a machine with two cores, the kernel often wakes two threads of the pool on one core, and leaves them there while the other core is
//! idle: then they do not run in parallel. So a thread that falls asleep is bound to a core that no other thread of the pool is bound
//! to. Once it is awake, it may run on every core again, and threads that it starts inherit no bound.

#[cfg(target_os = "linux")]
pub(super) use linux::HomeCore;
#[cfg(not(target_os = "linux"))]
pub(super) use unsupported::HomeCore;

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// With more cores, the kernel finds an idle one.
    const MOST_THREADS: usize = 4;

    /// The core on which one thread wakes up.
    pub(in crate::cpu) struct HomeCore {
        own: CpuSet,
        all: CpuSet,
    }

    impl HomeCore {
        /// The cores of a pool's threads. There are none for many threads, and none if the process may use more or fewer cores than
        /// there are threads: of more cores, other processes would choose the same ones.
        pub(in crate::cpu) fn of_threads(threads: usize) -> Vec<Self> {
            let Ok(all) = sched_getaffinity(None) else { return Vec::new() };
            let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core)).collect();
            if cores.len() != threads || !(2..=MOST_THREADS).contains(&threads) {
                return Vec::new();
            }
            let home = |core| {
                let mut own = CpuSet::new();
                own.set(core);
                Self { own, all }
            };
            cores.into_iter().map(home).collect()
        }

        /// Binds the calling thread to the core.
        pub(in crate::cpu) fn enter(&self) {
            rebind(&self.all, &self.own);
        }

        /// Lets the calling thread run on every core.
        pub(in crate::cpu) fn leave(&self) {
            rebind(&self.own, &self.all);
        }
    }

    /// Binds the calling thread to other cores, unless another program has bound it meanwhile: `taskset`, or what gives a container
    /// its cores.
    fn rebind(from: &CpuSet, to: &CpuSet) {
        if sched_getaffinity(None).is_ok_and(|now| now == *from) {
            // Where that is refused, the kernel chooses the core.
            let _ = sched_setaffinity(None, to);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn each_thread_has_a_core_of_its_own_while_it_sleeps_and_all_of_them_after_that() {
            let all = sched_getaffinity(None).unwrap();
            let cores = usize::try_from(all.count()).unwrap();
            let homes = HomeCore::of_threads(cores);
            assert_eq!(homes.len(), if (2..=MOST_THREADS).contains(&cores) { cores } else { 0 });
            let mut union = CpuSet::new();
            for home in &homes {
                home.enter();
                let own = sched_getaffinity(None).unwrap();
                assert_eq!(own.count(), 1);
                (0..CpuSet::MAX_CPU).filter(|&core| own.is_set(core)).for_each(|core| union.set(core));
                home.leave();
                assert_eq!(sched_getaffinity(None).unwrap(), all);
            }
            assert!(homes.is_empty() || union == all);
        }

        #[test]
        fn a_thread_that_another_program_has_bound_stays_so() {
            let all = sched_getaffinity(None).unwrap();
            let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core)).map(|core| {
                let mut own = CpuSet::new();
                own.set(core);
                HomeCore { own, all }
            });
            // With one core there is no other to bind it to.
            let (Some(first), Some(second)) = (cores.next(), cores.next()) else { return };
            first.enter();
            sched_setaffinity(None, &second.own).unwrap();
            first.leave();
            assert_eq!(sched_getaffinity(None).unwrap(), second.own);
            first.enter();
            assert_eq!(sched_getaffinity(None).unwrap(), second.own);
            sched_setaffinity(None, &all).unwrap();
        }

        #[test]
        fn no_thread_is_bound_where_there_is_not_one_core_for_each() {
            let cores = usize::try_from(sched_getaffinity(None).unwrap().count()).unwrap();
            assert!(HomeCore::of_threads(cores + 1).is_empty());
            assert!(HomeCore::of_threads(1).is_empty());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    /// Other systems choose the cores.
    pub(in crate::cpu) struct HomeCore;

    impl HomeCore {
        pub(in crate::cpu) fn of_threads(_threads: usize) -> Vec<Self> {
            Vec::new()
        }

        pub(in crate::cpu) fn enter(&self) {}

        pub(in crate::cpu) fn leave(&self) {}
    }
}
