//! Memory over many episodes; alone in its process, so that nothing else moves it.

#![cfg(target_os = "linux")]

use provenir_sim::{Environment, NAMES, Task};

fn resident() -> usize {
    let status = fs_err::read_to_string("/proc/self/status").expect("the system tells");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("it tells the resident size");
    let kibibytes: usize = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("it is a number");
    kibibytes << 10
}

#[test]
fn episodes_leave_nothing_behind() {
    for name in NAMES {
        let task = Task::named(name).expect("it is built in");
        let mut environment = Environment::new(task, true);
        let mut live = |episodes: std::ops::Range<u64>| {
            for episode in episodes {
                environment.reset(episode);
                for step in 0..10 {
                    let action = if step % 2 == 0 { 0.9 } else { -0.4 };
                    environment
                        .step(&vec![action; task.action_width()])
                        .expect("the action is finite");
                }
            }
        };
        live(0..100);
        let before = resident();
        live(100..2100);
        let grown = resident().saturating_sub(before);
        // 64 bytes an episode would show.
        assert!(
            grown < 128 << 10,
            "{name}: 2000 episodes left {grown} bytes behind"
        );
    }
}
