use std::time::Duration;

use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::train::{self, Train, TrainParameters};
use provenir_nn::device::{Choice, select, set_threads};
use provenir_nn::{Schedule, Shape};
use provenir_policy::{About, ActionMap, Activation, Policy, PolicySet, Squash, Standardisation};
use provenir_random::Stream;
use provenir_table::demonstrations::Demonstrations;
use provenir_table::{Matrix, Table, TableBuilder, TableError};

use crate::cloning::Setting;
use crate::committee::side_by_side;
use crate::data::{Data, Fitted, standardisation, standardised};
use crate::learner::Descent;
use crate::method::{Findings, Method};
use crate::methods::method;
use crate::run::{Plan, failure, run};
use crate::state::State;
use crate::validation::Validation;

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
        execute(parameters, inputs, context, PACE)
    }
}

pub(crate) fn execute(
    parameters: &TrainParameters,
    inputs: &Inputs,
    context: &Context<'_>,
    pace: Duration,
) -> Result<Outputs, Failure> {
    let demos = Demonstrations::from_table(inputs.one("demos")?)?;
    if demos.rows() == 0 {
        return Err(Failure::stage("there are no demonstrations to learn from"));
    }
    let validation = validation(inputs, &demos)?;
    set_threads(parameters.threads);
    let selected = select(choice(parameters.device)).map_err(failure)?;
    context.info(selected.reason);
    let standardisation = parameters
        .standardize
        .then(|| standardise(&demos.observation, parameters.standardize_floor, context));
    let load = |demos: &Demonstrations| {
        let observations = match &standardisation {
            Some(standardisation) => &standardised(&demos.observation, standardisation),
            None => &demos.observation,
        };
        Data::new(&[observations], &[&demos.action], selected.device).map_err(failure)
    };
    let data = load(&demos)?;
    let validation = validation.as_ref().map(load).transpose()?;
    let setting = Setting {
        shape: shape(parameters, &demos),
        data: &data,
        streams: vec![Stream::new(parameters.seed, "train")],
        batch: parameters.batch as usize,
        epochs: u64::from(parameters.epochs),
        descent: Descent {
            clip: (parameters.gradient_clip > 0.0).then_some(parameters.gradient_clip),
            weight_decay: parameters.weight_decay,
        },
    };
    let mut method = method(parameters, &setting, context)?;
    let plan = Plan {
        epochs: setting.epochs,
        steps: data.samples.div_ceil(setting.batch),
        rates: vec![parameters.learning_rate],
        schedule: match parameters.schedule {
            train::Schedule::Constant => Schedule::Constant,
            train::Schedule::Linear => Schedule::Linear {
                last: parameters.final_share,
            },
            train::Schedule::Cosine => Schedule::Cosine {
                last: parameters.final_share,
            },
        },
        keep_every: u64::from(parameters.checkpoint_every),
        pace,
    };
    let validation = validation
        .as_ref()
        .map(|data| Validation::new(method.policies(), method.committee(), data))
        .transpose()
        .map_err(failure)?;
    let (state, findings) = run(method.as_mut(), validation, &plan, context)?;
    let about = About {
        environment: demos.about.environment.clone(),
        time_feature: demos.about.time_feature,
        method: parameters.method.name().to_owned(),
        ..About::default()
    };
    let policies = policies(&state, method.as_ref(), standardisation.as_ref(), &about)?;
    Ok(Outputs::new()
        .table("policy", policies)
        .table("history", history(&state, &findings, &plan)?)
        .table(
            "trust",
            TableBuilder::new()
                .u64("sample", demos.sample)
                .u64("drawn", state.memory.drawn.clone())
                .u64("selected", state.memory.selected.clone())
                .f64("trust", findings.trust)
                .build()?,
        )
        .table(
            "timing",
            TableBuilder::new()
                .u32("epoch", epochs(&state))
                .f64("seconds", state.journal.seconds)
                .unit("s")
                .build()?,
        ))
}

/// The validation set, where one is wired that holds anything.
fn validation(inputs: &Inputs, demos: &Demonstrations) -> Result<Option<Demonstrations>, Failure> {
    let Some(table) = inputs.optional("validation") else {
        return Ok(None);
    };
    let validation = Demonstrations::from_table(table)?;
    for (what, ours, theirs) in [
        ("observations", &demos.observation, &validation.observation),
        ("actions", &demos.action, &validation.action),
    ] {
        if ours.width() != theirs.width() {
            return Err(Failure::stage(format!(
                "the {what} to learn from have {} entries, those to validate on {}",
                ours.width(),
                theirs.width()
            ))
            .help("wire both from demonstrations of one environment"));
        }
    }
    if validation.rows() > 0 && demos.about.time_feature != validation.about.time_feature {
        let (with, without) = if demos.about.time_feature {
            ("learn from", "validate on")
        } else {
            ("validate on", "learn from")
        };
        return Err(Failure::stage(format!(
            "the observations to {with} end with the time feature, those to {without} do not"
        ))
        .help("wire both from demonstrations of one expert"));
    }
    Ok((validation.rows() > 0).then_some(validation))
}

fn choice(device: train::Device) -> Choice {
    match device {
        train::Device::Auto => Choice::Auto,
        train::Device::Cpu => Choice::Cpu,
        train::Device::Cuda => Choice::Cuda,
    }
}

fn shape(parameters: &TrainParameters, demos: &Demonstrations) -> Shape {
    Shape {
        inputs: demos.observation.width(),
        hidden: parameters.hidden.iter().map(|width| *width as usize).collect(),
        outputs: demos.action.width(),
        activation: activation(parameters.activation),
    }
}

fn activation(activation: train::Activation) -> Activation {
    match activation {
        train::Activation::Relu => Activation::Relu,
        train::Activation::Tanh => Activation::Tanh,
    }
}

fn standardise(observations: &Matrix, floor: f64, context: &Context<'_>) -> Standardisation {
    let Fitted {
        standardisation,
        constant,
        raised,
    } = standardisation(observations, floor);
    let list = |columns: &[usize]| {
        columns
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !constant.is_empty() {
        context.info(format!(
            "observations do not vary in columns {} (counted from 0): the policy learns nothing from them",
            list(&constant)
        ));
    }
    if !raised.is_empty() {
        context.warn(format!(
            "observations hardly vary in columns {} (counted from 0): standardised with a deviation of {floor}, the \
             `standardize_floor`",
            list(&raised)
        ));
    }
    standardisation
}

/// Every kept committee as a policy that standardises what it observes and clips its actions to the environment's bounds.
fn policies(
    state: &State,
    method: &dyn Method,
    standardisation: Option<&Standardisation>,
    about: &About,
) -> Result<Table, Failure> {
    let ensemble = method.policies();
    let shape = ensemble.shape();
    let checkpoints = state.kept.iter().map(|(epoch, networks)| {
        let committee = (0..method.committee())
            .map(|network| ensemble.saved_member(networks, network))
            .collect::<Result<Vec<_>, _>>()?;
        let policy = Policy::new(
            side_by_side(committee)?,
            shape.activation,
            standardisation.cloned(),
            ActionMap {
                squash: Squash::Clip,
                low: vec![-1.0; shape.outputs],
                high: vec![1.0; shape.outputs],
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

fn history(state: &State, findings: &Findings, plan: &Plan) -> Result<Table, TableError> {
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
            journal.rate.iter().map(|share| share * plan.rates[0]).collect(),
        )
        .f64("gradient_norm", journal.norm.clone())
        .optional_f64("sigma", journal.sigma.clone())
        .optional_f64("effective_samples", journal.effective.clone())
        .optional_f64("tau", tau)
        .build()
}
