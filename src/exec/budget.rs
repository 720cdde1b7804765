use provenir_api::Resources;

/// What running cells may occupy together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    all: Resources,
    free: Resources,
}

impl Budget {
    pub(super) fn new(all: Resources) -> Self {
        Self { all, free: all }
    }

    /// Occupies what a cell needs, if that is free. A cell that needs more than there is runs alone.
    pub(super) fn take(&mut self, needs: Resources) -> bool {
        let needs = self.clamped(needs);
        if needs.cores > self.free.cores || needs.memory > self.free.memory {
            return false;
        }
        self.free.cores -= needs.cores;
        self.free.memory -= needs.memory;
        true
    }

    /// All of it: whoever takes that is alone.
    pub(super) fn all(&self) -> Resources {
        self.all
    }

    /// Occupies one more core, if one is free.
    pub(super) fn take_core(&mut self) -> bool {
        let free = self.free.cores > 0;
        self.free.cores -= u32::from(free);
        free
    }

    /// Occupies so much more memory, in MiB, if that is free.
    pub(super) fn take_memory(&mut self, memory: u64) -> bool {
        let is_free = memory <= self.free.memory;
        self.free.memory -= if is_free { memory } else { 0 };
        is_free
    }

    /// How many cores nothing occupies.
    pub(super) fn free_cores(&self) -> u32 {
        self.free.cores
    }

    /// Gives back what was taken: what [`Budget::clamped`] made of a cell's needs, and what was taken besides.
    pub(super) fn give_back(&mut self, needs: Resources) {
        self.free.cores += needs.cores;
        self.free.memory += needs.memory;
    }

    /// Whether nothing more can be taken, whatever it is.
    pub(super) fn is_exhausted(&self) -> bool {
        self.free.cores == 0
    }

    /// What a cell that needs this occupies: no more than there is.
    pub(super) fn clamped(&self, needs: Resources) -> Resources {
        Resources {
            cores: needs.cores.clamp(1, self.all.cores),
            memory: needs.memory.min(self.all.memory),
        }
    }
}

/// The memory of this machine, or of the container that it looks like, in MiB.
pub fn memory() -> u64 {
    const MIB: u64 = 1 << 20;
    let info = rustix::system::sysinfo();
    let physical = u64::from(info.mem_unit) * info.totalram / MIB;
    let limit = fs_err::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok())
        .map_or(u64::MAX, |bytes| bytes / MIB);
    physical.min(limit)
}

/// The processor cores that this process may use.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resources() -> impl Strategy<Value = Resources> {
        (0_u32..6, 0_u64..6).prop_map(|(cores, memory)| Resources { cores, memory })
    }

    proptest! {
        #[test]
        fn everything_runs_in_the_end_and_nothing_is_given_twice(all in resources(), needs in prop::collection::vec(resources(), 0..20)) {
            let all = Resources { cores: all.cores.max(1), memory: all.memory };
            let mut budget = Budget::new(all);
            let mut running: Vec<Resources> = Vec::new();
            for need in needs {
                while !budget.take(need) {
                    let Some(done) = running.pop() else {
                        return Err(TestCaseError::fail("an idle machine refused a cell"));
                    };
                    budget.give_back(budget.clamped(done));
                }
                running.push(need);
                let cores: u32 = running.iter().map(|need| need.cores.clamp(1, all.cores)).sum();
                let memory: u64 = running.iter().map(|need| need.memory.min(all.memory)).sum();
                prop_assert!(cores <= all.cores && memory <= all.memory);
            }
        }
    }

    #[test]
    fn who_takes_all_is_alone() {
        let all = Resources { cores: 3, memory: 7 };
        let little = Resources { cores: 1, memory: 0 };
        let mut budget = Budget::new(all);
        assert!(budget.take(little) && !budget.take(budget.all()));
        budget.give_back(little);
        assert!(budget.take(budget.all()));
        assert!(!budget.take(little) && !budget.take_core() && !budget.take_memory(1));
        budget.give_back(all);
        assert!(budget.take(little));
    }

    #[test]
    fn this_machine_has_memory_and_cores() {
        assert!(memory() > 0 && cores() > 0);
    }
}
