use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use provenir_api::protocol::Blame;
use provenir_execution::{Cell, Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::train::{self, Train, TrainParameters};
use provenir_nn::device::{Choice, Precision, Selected, select, set_precision, set_threads};
use provenir_nn::{Schedule, Shape, Widths};
use provenir_policy::{About, ActionMap, Activation, Policy, PolicySet, Squash};
use provenir_random::Stream;
use provenir_table::demonstrations::Demonstrations;
use provenir_table::{Table, TableBuilder, TableError};
use tch::Device;

use crate::cloning::Setting;
use crate::committee::side_by_side;
use crate::data::padded;
use crate::learner::Descent;
use crate::lesson::{Lesson, Source, load};
use crate::method::{Findings, Method};
use crate::methods::{Wanted, is_alike, method};
use crate::run::{Company, Plan, failure, left_by_earlier_attempt, run};
use crate::state::State;
use crate::validation::Validation;
use crate::warm_up::warm_up;

/// Learns a policy from demonstrations.
pub struct TrainExecution;

/// Time between checkpoints: an interruption loses about as much.
const PACE: Duration = Duration::from_secs(30);

impl Execution for TrainExecution {
    type Kind = Train;

    fn execute(
        &self,
        parameters: &TrainParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let cell = Cell {
            parameters,
            inputs,
            context,
        };
        train_all(&[cell], PACE).remove(0)
    }

    fn execute_together(&self, cells: &[Cell<'_, TrainParameters>]) -> Vec<Result<Outputs, Failure>> {
        train_all(cells, PACE)
    }
}

/// Trains the policies of cells whose steps have the same shape as one ensemble each; gives what each cell gives.
pub(crate) fn train_all(
    cells: &[Cell<'_, TrainParameters>],
    pace: Duration,
) -> Vec<Result<Outputs, Failure>> {
    let Some(first) = cells.first() else {
        return Vec::new();
    };
    set_threads(first.parameters.threads);
    let selected = match device(first.parameters) {
        Ok(selected) => selected,
        Err(failure) => return cells.iter().map(|_| Err(failure.clone())).collect(),
    };
    let mut results: Vec<Option<Result<Outputs, Failure>>> = cells.iter().map(|_| None).collect();
    let mut pupils: Vec<Pupil<'_>> = Vec::with_capacity(cells.len());
    for (place, cell) in cells.iter().enumerate() {
        cell.context.info(&selected.reason);
        match Pupil::new(place, *cell, &pupils) {
            Ok(pupil) => pupils.push(pupil),
            Err(failure) => results[place] = Some(Err(failure)),
        }
    }
    teach_all(pupils, selected.device, pace, &mut results);
    let missing = || Err(Failure::bug("a cell of a group was left out"));
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(missing))
        .collect()
}

/// Trains policies, those together whose steps have the same shape.
fn teach_all(
    pupils: Vec<Pupil<'_>>,
    device: Device,
    pace: Duration,
    results: &mut [Option<Result<Outputs, Failure>>],
) {
    let mut companies: BTreeMap<Steps, Vec<Pupil<'_>>> = BTreeMap::new();
    for pupil in pupils {
        let company = companies.entry(pupil.steps()).or_default();
        // Next to those that follow the same rule.
        let alike = |other: &Pupil<'_>| is_alike(other.cell.parameters, pupil.cell.parameters);
        let place = company
            .iter()
            .rposition(alike)
            .map_or(company.len(), |last| last + 1);
        company.insert(place, pupil);
    }
    for pupils in companies.into_values() {
        teach(pupils, device, pace, results);
    }
}

/// Trains policies together; where that cannot be done, because memory runs out or for a reason that may concern only some
/// of them, each half for itself, from the checkpoints that they left.
fn teach(
    mut pupils: Vec<Pupil<'_>>,
    device: Device,
    pace: Duration,
    results: &mut [Option<Result<Outputs, Failure>>],
) {
    let failure = match train_together(&pupils, device, pace) {
        Ok(trained) => {
            for (pupil, result) in pupils.iter().zip(trained) {
                results[pupil.place] = Some(result);
            }
            return;
        }
        Err(failure) => failure,
    };
    if pupils.len() == 1 || failure.blame() == Blame::Cancelled {
        for pupil in pupils {
            results[pupil.place] = Some(Err(failure.clone()));
        }
        return;
    }
    let together = pupils.len();
    let right = pupils.split_off(together / 2);
    for half in [pupils, right] {
        half[0].cell.context.warn(format!(
            "{together} policies cannot be trained together ({failure}): going on with {}",
            half.len()
        ));
        let mut ready = Vec::with_capacity(half.len());
        for mut pupil in half {
            match left_by_earlier_attempt(u64::from(pupil.cell.parameters.epochs), pupil.cell.context) {
                Ok(state) => {
                    pupil.state = state;
                    ready.push(pupil);
                }
                Err(failure) => results[pupil.place] = Some(Err(failure)),
            }
        }
        teach_all(ready, device, pace, results);
    }
}

/// What a cell brings to a training.
struct Pupil<'a> {
    /// Which cell of those that are executed.
    place: usize,
    cell: Cell<'a, TrainParameters>,
    lesson: Rc<Lesson>,
    state: State,
}

/// What policies have in common whose steps can be taken together, beside the parameters that are not in
/// [`Kind::group`]'s list: numbers of samples, padded widths, and epochs done.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Steps {
    samples: usize,
    validation: usize,
    inputs: usize,
    outputs: usize,
    epochs: u64,
}

impl<'a> Pupil<'a> {
    /// With the same lesson as one of the others where it is the same.
    fn new(place: usize, cell: Cell<'a, TrainParameters>, others: &[Self]) -> Result<Self, Failure> {
        let Cell {
            parameters,
            inputs,
            context,
        } = cell;
        let source = Source::new(parameters, inputs)?;
        let known = others.iter().map(|other| &other.lesson);
        let lesson = match known.into_iter().find(|lesson| lesson.is_of(&source)) {
            Some(lesson) => Rc::clone(lesson),
            None => Rc::new(Lesson::new(source)?),
        };
        lesson.tell(context);
        Ok(Self {
            place,
            cell,
            lesson,
            state: left_by_earlier_attempt(u64::from(parameters.epochs), context)?,
        })
    }

    fn widths(&self) -> Widths {
        Widths {
            inputs: self.lesson.demos.observation.width(),
            outputs: self.lesson.demos.action.width(),
        }
    }

    fn steps(&self) -> Steps {
        let Widths { inputs, outputs } = padded(self.widths());
        Steps {
            samples: self.lesson.demos.rows(),
            validation: self.lesson.validation.as_ref().map_or(0, Demonstrations::rows),
            inputs,
            outputs,
            epochs: self.state.epochs,
        }
    }
}

/// Trains policies as one ensemble; gives what each cell gives, or why it could not. Fails where none could be trained.
fn train_together(
    pupils: &[Pupil<'_>],
    device: Device,
    pace: Duration,
) -> Result<Vec<Result<Outputs, Failure>>, Failure> {
    let parameters = pupils[0].cell.parameters;
    if pupils.len() > 1 {
        let told = format!("one of {} policies that are trained together", pupils.len());
        for pupil in pupils {
            pupil.cell.context.info(&told);
        }
    }
    let lessons: Vec<&Rc<Lesson>> = pupils.iter().map(|pupil| &pupil.lesson).collect();
    let data = load(&lessons, |lesson| Some(&lesson.demos), device)?;
    let data = data.ok_or_else(|| Failure::bug("no demonstrations to load"))?;
    let validation = load(&lessons, |lesson| lesson.validation.as_ref(), device)?;
    let setting = Setting {
        shape: shape(parameters, padded(pupils[0].widths())),
        data: &data,
        streams: pupils
            .iter()
            .map(|pupil| Stream::new(pupil.cell.parameters.seed, "train"))
            .collect(),
        batch: parameters.batch as usize,
        epochs: u64::from(parameters.epochs),
        descent: Descent {
            clip: (parameters.gradient_clip > 0.0).then_some(parameters.gradient_clip),
            weight_decay: parameters.weight_decay,
        },
    };
    let wanted: Vec<Wanted<'_>> = pupils
        .iter()
        .map(|pupil| Wanted {
            parameters: pupil.cell.parameters,
            context: pupil.cell.context,
        })
        .collect();
    let mut method = method(&wanted, &setting)?;
    let plan = Plan {
        epochs: setting.epochs,
        steps: data.samples.div_ceil(setting.batch),
        rates: pupils
            .iter()
            .map(|pupil| pupil.cell.parameters.learning_rate)
            .collect(),
        schedule: schedule(parameters),
        keep_every: u64::from(parameters.checkpoint_every),
        pace,
    };
    if parameters.measure_time {
        warm_up(parameters, &setting, &plan)?;
    }
    let validation = validation
        .as_ref()
        .map(|data| Validation::new(method.policies(), method.committee(), data))
        .transpose()
        .map_err(failure)?;
    let alone: Vec<State> = pupils.iter().map(|pupil| pupil.state.clone()).collect();
    let mut state = State::together(&alone)
        .ok_or_else(|| Failure::bug("the checkpoints of these policies do not go together"))?;
    if state.epochs > 0 {
        method.recall(&state.memories).map_err(failure)?;
    }
    let mut company = Company::new(
        pupils.iter().map(|pupil| pupil.cell.context).collect(),
        state.epochs,
    );
    let findings = run(method.as_mut(), validation, &plan, &mut state, &mut company)?;
    let Some(findings) = findings else {
        let stopped = company.into_failures().into_iter().flatten();
        return Ok(stopped.map(Err).collect());
    };
    let members = pupils.len();
    let of_each = state.apart(members).into_iter().zip(findings.apart(members));
    Ok(pupils
        .iter()
        .zip(of_each.zip(company.into_failures()))
        .enumerate()
        .map(|(member, (pupil, ((own, findings), failure)))| match failure {
            Some(failure) => Err(failure),
            None => outputs(
                pupil,
                policies(pupil, member, &state, method.as_ref())?,
                own,
                findings,
            ),
        })
        .collect())
}

fn schedule(parameters: &TrainParameters) -> Schedule {
    let last = parameters.final_share;
    match parameters.schedule {
        train::Schedule::Constant => Schedule::Constant,
        train::Schedule::Linear => Schedule::Linear { last },
        train::Schedule::Cosine => Schedule::Cosine { last },
    }
}

/// What a cell gives: its own part of a training together.
fn outputs(
    pupil: &Pupil<'_>,
    policies: Table,
    mut state: State,
    findings: Findings,
) -> Result<Outputs, Failure> {
    let parameters = pupil.cell.parameters;
    let memory = state.memories.pop();
    let memory = memory.ok_or_else(|| Failure::bug("a training that remembers nothing"))?;
    Ok(Outputs::new()
        .table("policy", policies)
        .table("history", history(&state, &findings, parameters.learning_rate)?)
        .table(
            "trust",
            TableBuilder::new()
                .u64("sample", pupil.lesson.demos.sample.clone())
                .u64("drawn", memory.drawn)
                .u64("selected", memory.selected)
                .f64("trust", findings.trust)
                .build()?,
        )
        .table(
            "timing",
            TableBuilder::new()
                .u32("epoch", epochs(&state))
                .f64("seconds", state.journal.seconds.clone())
                .unit("s")
                .build()?,
        ))
}

/// Where and how exactly these parameters compute, which holds from now on.
fn device(parameters: &TrainParameters) -> Result<Selected, Failure> {
    let mut selected = select(choice(parameters.device)).map_err(failure)?;
    let precision = match parameters.precision {
        train::Precision::Float32 => Precision::Float32,
        train::Precision::Tf32 => Precision::Tf32,
    };
    set_precision(selected.device, precision).map_err(failure)?;
    if precision == Precision::Tf32 {
        selected.reason += if selected.device.is_cuda() {
            ", in TF32"
        } else {
            "; in single precision, as processors have no TF32"
        };
    }
    Ok(selected)
}

fn choice(device: train::Device) -> Choice {
    match device {
        train::Device::Auto => Choice::Auto,
        train::Device::Cpu => Choice::Cpu,
        train::Device::Cuda => Choice::Cuda,
    }
}

fn shape(parameters: &TrainParameters, widths: Widths) -> Shape {
    Shape {
        inputs: widths.inputs,
        hidden: parameters.hidden.iter().map(|width| *width as usize).collect(),
        outputs: widths.outputs,
        activation: activation(parameters.activation),
    }
}

fn activation(activation: train::Activation) -> Activation {
    match activation {
        train::Activation::Relu => Activation::Relu,
        train::Activation::Tanh => Activation::Tanh,
    }
}

/// Every kept committee of a member, from the training of all, as a policy that standardises what it observes and clips its
/// actions to the environment's bounds.
fn policies(pupil: &Pupil<'_>, member: usize, state: &State, method: &dyn Method) -> Result<Table, Failure> {
    let ensemble = method.policies();
    let width = pupil.widths().outputs;
    let about = About {
        environment: pupil.lesson.demos.about.environment.clone(),
        time_feature: pupil.lesson.demos.about.time_feature,
        method: pupil.cell.parameters.method.name().to_owned(),
        ..About::default()
    };
    let checkpoints = state.kept.iter().map(|(epoch, networks)| {
        let first = member * method.committee();
        let committee = (first..first + method.committee())
            .map(|network| ensemble.saved_member(networks, network))
            .collect::<Result<Vec<_>, _>>()?;
        let policy = Policy::new(
            side_by_side(committee)?,
            ensemble.shape().activation,
            pupil.lesson.standardisation().cloned(),
            ActionMap {
                squash: Squash::Clip,
                low: vec![-1.0; width],
                high: vec![1.0; width],
            },
            about.clone(),
        )?;
        Ok((*epoch as u32, policy))
    });
    let checkpoints = checkpoints.collect::<Result<_, _>>().map_err(failure)?;
    let set = PolicySet::new(checkpoints).map_err(|error| Failure::bug(error.to_string()))?;
    Ok(set.to_table()?)
}

/// Epochs, counted from 1.
fn epochs(state: &State) -> Vec<u32> {
    (1..=state.epochs as u32).collect()
}

fn history(state: &State, findings: &Findings, learning_rate: f64) -> Result<Table, TableError> {
    let journal = &state.journal;
    let or_missing = |column: &[f64]| -> Vec<Option<f64>> {
        (0..state.epochs as usize)
            .map(|epoch| column.get(epoch).copied())
            .collect()
    };
    // Known in the end alone.
    let mut tau = vec![None; state.epochs as usize];
    if let (Some(last), Some(found)) = (tau.last_mut(), findings.tau.first()) {
        *last = Some(*found);
    }
    TableBuilder::new()
        .u32("epoch", epochs(state))
        .f64("loss", journal.loss.clone())
        .optional_f64("validation_loss", or_missing(&journal.validation))
        .optional_f64("median", or_missing(&journal.median))
        .f64(
            "learning_rate",
            journal.rate.iter().map(|share| share * learning_rate).collect(),
        )
        .f64("gradient_norm", journal.norm.clone())
        .optional_f64("sigma", journal.sigma.clone())
        .optional_f64("effective_samples", journal.effective.clone())
        .optional_f64("tau", tau)
        .build()
}
