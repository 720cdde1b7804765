use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{JoinHandle, Thread};

use crate::environment::{Environment, Step};

/// How often somebody who waits looks again before giving the core away: some tens of microseconds, a few environment steps.
const LOOKS: usize = 2_000;

/// An environment, what it is to do and what came of it.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) environment: Environment,
    pub(crate) action: Vec<f32>,
    pub(crate) step: Step,
    /// The last round that it took part in.
    round: u64,
}

impl Lane {
    pub(crate) fn new(environment: Environment) -> Self {
        Self {
            action: vec![0.0; environment.action_width()],
            step: Step {
                reward: 0.0,
                terminated: false,
                truncated: false,
            },
            environment,
            round: 0,
        }
    }

    fn advance(&mut self) {
        self.step = self.environment.advance(&self.action);
    }
}

/// Lanes, and the threads that step them together with the caller's.
///
/// In a round every lane takes one step. Each thread has a share of the lanes, so that a world mostly stays in one core's
/// cache, and takes what is left of the others' when it has done its own. Nobody waits for a helper that has not begun: a
/// round ends when every lane has been stepped by whomever.
#[derive(Debug)]
pub(crate) struct Crew {
    shared: Arc<Shared>,
    helpers: Vec<Helper>,
}

#[derive(Debug)]
struct Helper {
    /// `None` once it was joined.
    handle: Option<JoinHandle<()>>,
    thread: Thread,
    /// It sleeps, or is about to.
    waits: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Shared {
    lanes: Vec<Mutex<Lane>>,
    /// How many threads step, the caller's included.
    members: AtomicUsize,
    /// Rounds begun.
    round: AtomicU64,
    /// Lanes of this round, the first of all.
    count: AtomicUsize,
    /// Of those, lanes that have not been stepped yet.
    left: AtomicUsize,
    over: AtomicBool,
}

impl Crew {
    /// These lanes, stepped by the caller's thread.
    pub(crate) fn new(lanes: impl Iterator<Item = Lane>) -> Self {
        Self {
            shared: Arc::new(Shared {
                lanes: lanes.map(Mutex::new).collect(),
                members: AtomicUsize::new(1),
                round: AtomicU64::new(0),
                count: AtomicUsize::new(0),
                left: AtomicUsize::new(0),
                over: AtomicBool::new(false),
            }),
            helpers: Vec::new(),
        }
    }

    /// Another thread to step them.
    pub(crate) fn hire(&mut self) -> std::io::Result<()> {
        let number = self.helpers.len() + 1;
        let waits = Arc::new(AtomicBool::new(false));
        let handle = std::thread::Builder::new()
            .name(format!("lanes {number}"))
            .spawn({
                let (shared, waits) = (Arc::clone(&self.shared), Arc::clone(&waits));
                move || shared.help(number, &waits)
            })?;
        self.helpers.push(Helper {
            thread: handle.thread().clone(),
            handle: Some(handle),
            waits,
        });
        self.shared.members.store(number + 1, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn lane(&self, lane: usize) -> MutexGuard<'_, Lane> {
        self.shared.lanes[lane]
            .lock()
            .expect("a panic while a lane stepped went on to the caller")
    }

    /// Lets two lanes change places.
    pub(crate) fn swap(&mut self, one: usize, other: usize) {
        if one != other {
            std::mem::swap(&mut *self.lane(one), &mut *self.lane(other));
        }
    }

    /// A round: each of the first `count` lanes takes the step of its action.
    pub(crate) fn step(&mut self, count: usize) {
        let Self { shared, helpers } = self;
        shared.count.store(count, Ordering::Relaxed);
        shared.left.store(count, Ordering::Relaxed);
        // In one order with what a helper does before it sleeps: either it sees the round, or it is seen to wait.
        let round = shared.round.fetch_add(1, Ordering::SeqCst) + 1;
        for helper in helpers.iter() {
            if helper.waits.load(Ordering::SeqCst) {
                helper.thread.unpark();
            }
        }
        shared.sweep(0, round);
        let mut looks = 0;
        // What somebody still held when it was passed over is done by then, or is done now.
        while shared.left.load(Ordering::Acquire) > 0 {
            wait(&mut looks);
            shared.sweep(0, round);
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        for helper in &mut self.helpers {
            helper.thread.unpark();
            if let Some(handle) = helper.handle.take() {
                // Its panic was one of a lane, which went on to the caller.
                drop(handle.join());
            }
        }
    }
}

impl Shared {
    /// A helper's life.
    fn help(&self, member: usize, waits: &AtomicBool) {
        let mut last = 0;
        loop {
            let mut looks = 0;
            let round = loop {
                let round = self.round.load(Ordering::Acquire);
                if self.over.load(Ordering::Relaxed) {
                    return;
                }
                if round != last {
                    break round;
                }
                if looks < LOOKS {
                    wait(&mut looks);
                    continue;
                }
                waits.store(true, Ordering::SeqCst);
                if self.round.load(Ordering::SeqCst) == last && !self.over.load(Ordering::SeqCst) {
                    std::thread::park();
                }
                waits.store(false, Ordering::SeqCst);
            };
            self.sweep(member, round);
            last = round;
        }
    }

    /// Steps what of the round nobody has, or has begun to: a member's own lanes first, then the others' from their ends,
    /// where their owners come last.
    fn sweep(&self, member: usize, round: u64) {
        let (count, members) = (
            self.count.load(Ordering::Relaxed),
            self.members.load(Ordering::Relaxed),
        );
        let (start, end) = (member * count / members, (member + 1) * count / members);
        for lane in (start..end).chain((end..count).rev()).chain((0..start).rev()) {
            // Held means stepped by somebody, or looked at by a helper that is late.
            let Ok(mut lane) = self.lanes[lane].try_lock() else {
                continue;
            };
            if lane.round >= round {
                continue;
            }
            let stepped = Stepped(&self.left);
            lane.round = round;
            lane.advance();
            drop(lane);
            drop(stepped);
        }
    }
}

/// Counts a lane as stepped, even where the step panicked: nobody waits for ever, and who reads the lane panics too.
struct Stepped<'a>(&'a AtomicUsize);

impl Drop for Stepped<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// A moment; once there have been many, one that others may use.
fn wait(looks: &mut usize) {
    *looks += 1;
    if *looks < LOOKS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
