//! `train` from outside, and its steps against their definitions.

mod company;
mod continuation;
mod golden;
mod group;
mod learning;
mod measuring;
pub(crate) mod memory;
mod refusals;
mod steps;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use provenir_api::protocol::{Level, Progress};
use provenir_execution::{Cell, Context, Failure, Inputs, Outputs, Reporter};
use provenir_kinds::train::TrainParameters;
use provenir_policy::PolicySet;
use provenir_random::Stream;
use provenir_table::Matrix;
use provenir_table::demonstrations::{About, Demonstrations};

use crate::execution::train_all;
use crate::method::{Method, Stretch, Trace};

/// Parameters as a manifest gives them.
macro_rules! parameters {
    ($($json:tt)*) => {
        serde_json::from_value::<provenir_kinds::train::TrainParameters>(serde_json::json!($($json)*)).unwrap()
    };
}
use parameters;

/// Collects what is said, and asks the execution to stop after a number of steps.
#[derive(Default)]
struct Listener {
    said: Mutex<Vec<(Level, String)>>,
    stop_after: Mutex<Option<u64>>,
    cancelled: AtomicBool,
}

impl Reporter for Listener {
    fn progress(&self, progress: Progress) {
        if self
            .stop_after
            .lock()
            .unwrap()
            .is_some_and(|steps| progress.done >= steps)
        {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn log(&self, level: Level, message: &str) {
        self.said.lock().unwrap().push((level, message.to_owned()));
    }
}

impl Listener {
    fn warnings(&self) -> Vec<String> {
        let said = self.said.lock().unwrap();
        let warnings = said.iter().filter(|(level, _)| *level == Level::Warning);
        warnings.map(|(_, message)| message.clone()).collect()
    }
}

/// What the tests' expert does: two smooth functions of three observed values within ±0.9.
fn expert(observation: &[f32]) -> [f32; 2] {
    [
        0.9 * (observation[0] - 0.5 * observation[1]).tanh(),
        -0.7 * observation[2].tanh(),
    ]
}

/// What the expert does at standard normal observations.
pub(crate) fn demonstrations(rows: usize, seed: u64) -> Demonstrations {
    let mut stream = Stream::new(seed, "demonstrations");
    let observations: Vec<f32> = (0..rows * 3).map(|_| stream.normal() as f32).collect();
    let actions = observations.chunks(3).flat_map(expert).collect();
    demonstrated(
        Matrix::new(3, observations).unwrap(),
        Matrix::new(2, actions).unwrap(),
    )
}

/// What experts of different robots do: of a small one, and of such as have as many observed values and actions as Hopper and
/// Ant.
fn demonstrations_of_robot(robot: u64, rows: usize, seed: u64) -> Demonstrations {
    let (observed, acted) = match robot % 3 {
        0 => (16, 3),
        1 => return demonstrations(rows, seed),
        _ => (29, 8),
    };
    let mut stream = Stream::new(seed, "demonstrations");
    let observations: Vec<f32> = (0..rows * observed).map(|_| stream.normal() as f32).collect();
    let act = |observation: &[f32]| -> Vec<f32> {
        let pairs = observation.windows(2).take(acted);
        pairs.map(|pair| 0.9 * (pair[0] - 0.5 * pair[1]).tanh()).collect()
    };
    let actions = observations.chunks(observed).flat_map(act).collect();
    demonstrated(
        Matrix::new(observed, observations).unwrap(),
        Matrix::new(acted, actions).unwrap(),
    )
}

fn demonstrated(observation: Matrix, action: Matrix) -> Demonstrations {
    let rows = observation.rows();
    Demonstrations {
        sample: (0..rows as u64).map(|row| row * 7).collect(),
        episode: vec![0; rows],
        step: (0..rows as u32).collect(),
        observation,
        action,
        reward: vec![0.0; rows],
        terminated: vec![false; rows],
        truncated: vec![false; rows],
        about: About {
            environment: "hopper".to_owned(),
            time_feature: true,
            expert: "test".to_owned(),
            notes: [].into(),
        },
    }
}

/// Puts ±1 in place of the actions of the first samples.
fn with_outliers(mut demos: Demonstrations, count: usize) -> Demonstrations {
    let mut stream = Stream::new(99, "outliers");
    for row in 0..count {
        for action in demos.action.row_mut(row) {
            *action = if stream.below(2) == 0 { -1.0 } else { 1.0 };
        }
    }
    demos
}

fn inputs(demos: &Demonstrations) -> Inputs {
    Inputs::new().with_table("demos", demos.clone().into_table().unwrap())
}

/// Takes a step, of this number within its epoch and within the run; gives the losses, norms and medians that it
/// found, `[K]`.
fn step(method: &mut dyn Method, within: usize, step: u64, rates: &[f64]) -> [tch::Tensor; 3] {
    let stretch = Stretch {
        epoch: 0,
        within: within..within + 1,
        first: step,
    };
    method.announce(&stretch, &[rates.to_vec()]).unwrap();
    method.step(within).unwrap();
    [Trace::LOSS, Trace::NORM, Trace::MEDIAN].map(|part| method.trace().values().get(part as i64).copy())
}

/// One cell, with a checkpoint after that much time.
fn execute(
    parameters: &TrainParameters,
    inputs: &Inputs,
    context: &Context<'_>,
    pace: Duration,
) -> Result<Outputs, Failure> {
    let cell = Cell {
        parameters,
        inputs,
        context,
    };
    train_all(&[cell], pace).remove(0)
}

fn train_with(
    parameters: &TrainParameters,
    inputs: &Inputs,
    listener: &Listener,
) -> Result<Outputs, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let partial = camino::Utf8Path::from_path(folder.path()).unwrap();
    let context = Context::new(listener, &listener.cancelled, partial);
    execute(parameters, inputs, &context, Duration::MAX / 2)
}

fn train(parameters: &TrainParameters, demos: &Demonstrations) -> Outputs {
    train_with(parameters, &inputs(demos), &Listener::default()).unwrap()
}

fn policies(outputs: &Outputs) -> PolicySet {
    PolicySet::from_table(outputs.get_table("policy").unwrap()).unwrap()
}

/// What the last policy does at the observations.
fn actions(outputs: &Outputs, observations: &Matrix) -> Matrix {
    let mut actions = vec![0.0; observations.rows() * 2];
    policies(outputs)
        .last()
        .actor()
        .act(observations.values(), &mut actions);
    Matrix::new(2, actions).unwrap()
}
