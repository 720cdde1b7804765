//! Demonstrations whose numbers tell which sample they belong to, and the execution around them.

use std::sync::atomic::AtomicBool;

use provenir_api::protocol::{Level, Progress};
use provenir_corrupt::CorruptExecution;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs, Reporter};
use provenir_kinds::corrupt::CorruptParameters;
use provenir_table::Matrix;
use provenir_table::demonstrations::{About, Demonstrations};

struct Silent;

impl Reporter for Silent {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: Level, _: &str) {}
}

/// `samples` transitions of two dimensions, whose actions tell which sample they belong to.
pub(crate) fn demonstrations(samples: std::ops::Range<u64>) -> Demonstrations {
    let count = samples.clone().count();
    let numbers: Vec<f32> = samples
        .clone()
        .map(|sample| (sample % 512) as f32 / 1024.0)
        .collect();
    Demonstrations {
        sample: samples.collect(),
        episode: (0..count).map(|row| (row / 5) as u32).collect(),
        step: (0..count).map(|row| (row % 5) as u32).collect(),
        observation: Matrix::new(
            3,
            numbers.iter().flat_map(|number| [*number, 1.0, -2.0]).collect(),
        )
        .unwrap(),
        action: Matrix::new(2, numbers.iter().flat_map(|number| [*number, -number]).collect()).unwrap(),
        reward: numbers,
        terminated: vec![false; count],
        truncated: (0..count).map(|row| row % 5 == 4).collect(),
        about: About {
            environment: "hopper".to_owned(),
            time_feature: false,
            expert: "test".to_owned(),
            notes: [("license".to_owned(), "CC0".to_owned())].into(),
        },
    }
}

pub(crate) fn corrupt(demos: Demonstrations, parameters: &CorruptParameters) -> Result<Outputs, Failure> {
    run(
        &Inputs::new().with_table("demos", demos.into_table()?),
        parameters,
    )
}

pub(crate) fn run(inputs: &Inputs, parameters: &CorruptParameters) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(false);
    let context = Context::new(&Silent, &cancelled, "unused");
    CorruptExecution.execute(parameters, inputs, &context)
}

/// The demonstrations after, and which samples are marked.
pub(crate) fn results(outputs: &Outputs) -> (Demonstrations, Vec<bool>) {
    let demos = Demonstrations::from_table(outputs.get_table("demos").unwrap()).unwrap();
    let mask = outputs.get_table("mask").unwrap();
    assert_eq!(mask.column_u64("sample").unwrap(), demos.sample);
    (demos, mask.column_bool("corrupted").unwrap())
}
