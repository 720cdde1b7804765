use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::state::Signal;
use crate::clock;

/// Exit code of a run that was interrupted.
pub const INTERRUPTED: i32 = 130;

/// Signals that come so soon after the first are the same request: `timeout` of GNU coreutils sends one to the command and
/// then one to its whole group, a supervisor one to every process that it knows.
const SAME: Duration = Duration::from_millis(500);

/// Listens for requests to stop for as long as it lives: the first goes to the engine, the second ends the process.
pub(super) struct Interrupts(Handle);

impl Interrupts {
    pub(super) fn listen(engine: SyncSender<Signal>) -> std::io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        thread::spawn(move || {
            let mut asked: Option<Instant> = None;
            for _ in signals.forever() {
                match asked {
                    None => {
                        asked = Some(clock::instant());
                        engine.send(Signal::Interrupt).ok();
                    }
                    Some(first) if first.elapsed() >= SAME => leave(),
                    Some(_) => {}
                }
            }
        });
        Ok(Self(handle))
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Ends the process at once. Its workers end with it, because their input closes; what was not committed is lost, and
/// what is left below `tmp/` is removed by the next run.
#[expect(clippy::exit, reason = "the person asked twice")]
fn leave() -> ! {
    std::process::exit(INTERRUPTED)
}
