use std::collections::BTreeMap;
use std::time::Duration;

use provenir_api::protocol::Progress;
use provenir_execution::{Context, Failure};
use provenir_nn::{NnError, Schedule};
use tch::Tensor;

use crate::checkpoint::{NAME, decode, encode};
use crate::method::{Method, Trace};
use crate::state::State;
use crate::validation::Validation;

/// How long to train and what to keep.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) epochs: u64,
    /// Gradient steps an epoch.
    pub(crate) steps: usize,
    /// Learning rate of each policy at the start.
    pub(crate) rates: Vec<f64>,
    pub(crate) schedule: Schedule,
    /// The policies are kept after every so many epochs, and after the last; 0 keeps the last alone.
    pub(crate) keep_every: u64,
    /// Time between checkpoints: an interruption loses about as much.
    pub(crate) pace: Duration,
}

/// Trains from wherever an earlier attempt left off, to the end.
pub(crate) fn run(
    method: &mut dyn Method,
    mut validation: Option<Validation<'_>>,
    plan: &Plan,
    context: &Context<'_>,
) -> Result<State, Failure> {
    let mut state = resume(method, plan, context)?;
    let before = state.journal.seconds.last().copied().unwrap_or(0.0);
    let mut saved = context.elapsed();
    while state.epochs < plan.epochs {
        let rate = train_epoch(method, plan, &mut state, context)?;
        if let Some(validation) = &mut validation {
            let losses = validation.measure(method.policies()).map_err(failure)?;
            state.journal.validation.extend(losses);
        }
        state.epochs += 1;
        state.journal.rate.push(rate);
        state
            .journal
            .seconds
            .push(before + context.elapsed().as_secs_f64());
        let due = plan.keep_every > 0 && state.epochs.is_multiple_of(plan.keep_every);
        if due || state.epochs == plan.epochs {
            let networks = method.policies().save().map_err(failure)?;
            state.kept.push((state.epochs, networks));
        }
        if state.epochs < plan.epochs && context.elapsed() >= saved + plan.pace {
            note(method, &mut state)?;
            context.write_checkpoint(NAME, &encode(&state))?;
            saved = context.elapsed();
        }
    }
    note(method, &mut state)?;
    Ok(state)
}

/// The steps of an epoch; gives the share of the learning rates at the last one.
fn train_epoch(
    method: &mut dyn Method,
    plan: &Plan,
    state: &mut State,
    context: &Context<'_>,
) -> Result<f64, Failure> {
    let total = plan.epochs * plan.steps as u64;
    let mut traces = Vec::with_capacity(plan.steps);
    let mut share = 1.0;
    method.begin_epoch(state.epochs).map_err(failure)?;
    for within in 0..plan.steps {
        context.check_cancelled()?;
        let step = state.epochs * plan.steps as u64 + within as u64;
        share = plan.schedule.share(step, total);
        let rates: Vec<f64> = plan.rates.iter().map(|rate| rate * share).collect();
        traces.push(method.step(within, step, &rates).map_err(failure)?);
        context.progress(progress(step + 1, total, state));
    }
    read_traces(&traces, state)?;
    Ok(share)
}

/// The means of an epoch's traces go into the journal; a number that is not finite ends the training.
fn read_traces(traces: &[Trace], state: &mut State) -> Result<(), Failure> {
    let read = |pick: &dyn Fn(&Trace) -> Option<&Tensor>| -> Result<Vec<Vec<f64>>, NnError> {
        let Some(rows) = traces.iter().map(pick).collect::<Option<Vec<_>>>() else {
            return Ok(Vec::new());
        };
        Ok(Vec::try_from(
            Tensor::f_stack(&rows, 0)?.f_to_kind(tch::Kind::Double)?,
        )?)
    };
    let loss = read(&|trace| Some(&trace.loss)).map_err(failure)?;
    let norm = read(&|trace| Some(&trace.norm)).map_err(failure)?;
    let median = read(&|trace| trace.median.as_ref()).map_err(failure)?;
    for (batch, values) in loss.iter().zip(&norm).enumerate() {
        for (what, values) in [("loss", values.0), ("gradient's norm", values.1)] {
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                return Err(Failure::stage(format!(
                    "the {what} of batch {} of {} in epoch {} is {value}",
                    batch + 1,
                    traces.len(),
                    state.epochs + 1
                ))
                .help(
                    "lower `learning_rate`, clip with `gradient_clip`, or `standardize`; look for extreme values among \
                     the demonstrations",
                ));
            }
        }
    }
    state.journal.loss.extend(means(&loss));
    state.journal.norm.extend(means(&norm));
    state.journal.median.extend(means(&median));
    Ok(())
}

/// The mean of each column.
fn means(rows: &[Vec<f64>]) -> Vec<f64> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width)
        .map(|column| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64)
        .collect()
}

fn progress(done: u64, total: u64, state: &State) -> Progress {
    let last = |column: &[f64]| column.last().copied();
    let metrics = [
        ("loss", last(&state.journal.loss)),
        ("validation_loss", last(&state.journal.validation)),
    ];
    Progress {
        done,
        total: Some(total),
        unit: "steps".to_owned(),
        metrics: metrics
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect::<BTreeMap<_, _>>(),
    }
}

/// Brings what the method knows into the state.
fn note(method: &mut dyn Method, state: &mut State) -> Result<(), Failure> {
    state.counts = method.counts().map_err(failure)?;
    state.learners = method
        .learners()
        .into_iter()
        .map(|learner| learner.save())
        .collect::<Result<_, _>>()
        .map_err(failure)?;
    Ok(())
}

/// What an earlier attempt left, brought into the method; the beginning where it left nothing of use.
fn resume(method: &mut dyn Method, plan: &Plan, context: &Context<'_>) -> Result<State, Failure> {
    let Some(bytes) = context.read_checkpoint(NAME)? else {
        return Ok(State::default());
    };
    let members = plan.rates.len();
    let fits = |state: &State| {
        usize::try_from(state.epochs).is_ok_and(|epochs| state.journal.fits(epochs, members))
            && state.epochs < plan.epochs
            && state.learners.len() == method.learners().len()
    };
    let Some(state) = decode(&bytes).filter(fits) else {
        context.warn("the checkpoint of an earlier attempt is damaged or of another version: starting from the beginning");
        return Ok(State::default());
    };
    for (learner, saved) in method.learners().into_iter().zip(&state.learners) {
        learner.load(saved).map_err(failure)?;
    }
    method.restore_counts(&state.counts).map_err(failure)?;
    context.info(format!(
        "continuing an earlier attempt after {} of {} epochs",
        state.epochs, plan.epochs
    ));
    Ok(state)
}

/// Whose fault it is when a network cannot be trained.
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub(crate) fn failure(error: NnError) -> Failure {
    let message = error.to_string();
    match error {
        NnError::Device(_) => Failure::environment(message).help("set `device` to `auto` or `cpu`"),
        NnError::Torch(_) | NnError::Graph(_) if message.contains("memory") => Failure::environment(message)
            .help("use smaller networks, a smaller `batch` or a smaller `rbc.chunk`"),
        NnError::Policy(_) => Failure::stage(message),
        NnError::Torch(_) | NnError::Graph(_) | NnError::Length { .. } => Failure::bug(message),
    }
}
