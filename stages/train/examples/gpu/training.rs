//! Trains a group within a time, and says how fast it went.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use provenir_api::protocol::{Blame, Level, Progress};
use provenir_execution::{Cell, Context, Execution, Inputs, Outputs, Reporter};
use provenir_kinds::train::TrainParameters;
use provenir_train::TrainExecution;

use crate::sets::Sets;
use crate::support::Silent;
use crate::workload::{Size, Task};

/// Time since the start, and what was made once for all trainings.
pub(crate) struct Clock {
    started: Instant,
    /// By the number of samples in each.
    sets: Mutex<BTreeMap<usize, Sets>>,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            sets: Mutex::new(BTreeMap::new()),
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// A data set of that many samples, by its number.
    pub(crate) fn inputs(&self, samples: usize, set: usize) -> Result<Inputs, Box<dyn Error>> {
        let mut sets = self.sets.lock().map_err(|_| "a lock is broken")?;
        let sets = match sets.entry(samples) {
            Entry::Occupied(place) => place.into_mut(),
            Entry::Vacant(place) => place.insert(Sets::new(samples)?),
        };
        sets.inputs(set)
    }
}

/// Hears of a training's progress, and ends it when its time is over.
struct Watch<'a> {
    clock: &'a Clock,
    end: Duration,
    steps: u64,
    cancelled: &'a AtomicBool,
    /// Epochs that were done at a time. Steps are reported when a GPU is asked for them; that it has done those of an epoch
    /// is known when the next one begins.
    done: Mutex<Vec<(u64, Duration)>>,
    complaint: Mutex<Option<String>>,
}

impl Reporter for Watch<'_> {
    fn progress(&self, progress: Progress) {
        let now = self.clock.now();
        let epochs = progress.done.saturating_sub(1) / self.steps;
        if let Ok(mut done) = self.done.lock()
            && done.last().is_none_or(|(last, _)| *last < epochs)
        {
            done.push((epochs, now));
        }
        if now > self.end {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn log(&self, level: Level, message: &str) {
        // A group that is divided, above all: what is then measured is not what was asked for.
        if level == Level::Warning
            && let Ok(mut complaint) = self.complaint.lock()
        {
            *complaint = Some(message.to_owned());
        }
    }
}

/// What a training came to.
#[derive(Default)]
pub(crate) struct Measured {
    /// Seconds of everything.
    pub(crate) seconds: f64,
    /// Seconds until the first step was reported.
    pub(crate) before: f64,
    /// Seconds at the ends of the epochs, where it was not cut off.
    ends: Option<Vec<f64>>,
    done: Vec<(u64, Duration)>,
}

impl Measured {
    pub(crate) fn is_whole(&self) -> bool {
        self.ends.is_some()
    }

    /// Epochs done.
    pub(crate) fn epochs(&self, task: &Task) -> u64 {
        match (&self.ends, self.done.last()) {
            (Some(_), _) => task.epochs as u64,
            (None, last) => last.map_or(0, |(epochs, _)| *epochs),
        }
    }

    /// Milliseconds a step: of the fastest epoch of the second half of a whole training; the mean after the first epoch of one
    /// that was cut off.
    pub(crate) fn step_ms(&self, task: &Task) -> Option<f64> {
        if let Some(ends) = &self.ends {
            let least = ends[ends.len() / 2..]
                .windows(2)
                .map(|pair| pair[1] - pair[0])
                .fold(f64::INFINITY, f64::min);
            return least.is_finite().then(|| least / task.steps() as f64 * 1e3);
        }
        self.mean_step_ms(task)
    }

    /// Milliseconds a step between the first report after the first epoch and the last.
    pub(crate) fn mean_step_ms(&self, task: &Task) -> Option<f64> {
        let (first, from) = self.done.iter().find(|(epochs, _)| *epochs > 0)?;
        let (last, to) = self.done.last()?;
        let steps = (last - first) * task.steps() as u64;
        (steps > 0).then(|| to.saturating_sub(*from).as_secs_f64() / steps as f64 * 1e3)
    }
}

/// Trains the group, for no longer than that, and through `TrainExecution`; not at all where there is no time.
pub(crate) fn train(
    task: &Task,
    size: &Size,
    clock: &Clock,
    limit: Duration,
) -> Result<Measured, Box<dyn Error>> {
    if limit.is_zero() {
        return Ok(Measured::default());
    }
    let pupils = pupils(task, size, clock)?;
    let began = clock.now();
    let cancelled = AtomicBool::new(false);
    let watch = Watch {
        clock,
        end: began + limit,
        steps: task.steps() as u64,
        cancelled: &cancelled,
        done: Mutex::new(Vec::new()),
        complaint: Mutex::new(None),
    };
    let results = together(&pupils, &watch, &cancelled)?;
    let seconds = clock.now().saturating_sub(began).as_secs_f64();
    let mut ends = None;
    match results.into_iter().next().ok_or("nothing was trained")? {
        Ok(outputs) => {
            let timing = outputs.get_table("timing").ok_or("no timing")?;
            ends = Some(timing.column_f64("seconds")?.to_vec());
        }
        Err(failure) if failure.blame() == Blame::Cancelled => {}
        Err(failure) => return Err(failure.into()),
    }
    let complaint = watch.complaint.into_inner().map_err(|_| "a lock is broken")?;
    if let Some(complaint) = complaint {
        println!("note: {complaint}");
    }
    let done = watch.done.into_inner().map_err(|_| "a lock is broken")?;
    Ok(Measured {
        seconds,
        before: done
            .first()
            .map_or(seconds, |(_, at)| at.saturating_sub(began).as_secs_f64()),
        ends,
        done,
    })
}

/// A policy to be trained.
pub(crate) struct Pupil {
    pub(crate) parameters: TrainParameters,
    pub(crate) inputs: Inputs,
}

/// Those of a group: with seeds from 0 on, and with a data set each as far as there are so many.
fn pupils(task: &Task, size: &Size, clock: &Clock) -> Result<Vec<Pupil>, Box<dyn Error>> {
    let parameters = task.parameters(size)?;
    (0..task.policies)
        .map(|policy| {
            Ok(Pupil {
                parameters: TrainParameters {
                    seed: policy as u64,
                    ..parameters.clone()
                },
                inputs: clock.inputs(task.samples, policy % size.sets)?,
            })
        })
        .collect()
}

type Results = Vec<Result<Outputs, provenir_execution::Failure>>;

/// Trains policies together; the first one's reports go to the reporter.
pub(crate) fn together(
    pupils: &[Pupil],
    reporter: &dyn Reporter,
    cancelled: &AtomicBool,
) -> Result<Results, Box<dyn Error>> {
    // Checkpoints are written as in a pipeline.
    let folder = tempfile::tempdir()?;
    let partial = Utf8Path::from_path(folder.path()).ok_or("the folder for temporary files is not UTF-8")?;
    let contexts: Vec<Context<'_>> = (0..pupils.len())
        .map(|place| {
            let reporter = if place == 0 { reporter } else { &Silent };
            Context::new(reporter, cancelled, partial.join(place.to_string()))
        })
        .collect();
    let cells: Vec<Cell<'_, TrainParameters>> = pupils
        .iter()
        .zip(&contexts)
        .map(|(pupil, context)| Cell {
            parameters: &pupil.parameters,
            inputs: &pupil.inputs,
            context,
        })
        .collect();
    Ok(TrainExecution.execute_together(&cells))
}
