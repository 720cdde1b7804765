use std::collections::BTreeMap;
use std::time::Duration;

use provenir_api::protocol::Progress;
use provenir_execution::{Context, Failure};
use provenir_nn::{NnError, Schedule};
use tch::{Device, Kind, Tensor};

use crate::checkpoint::{NAME, decode, encode};
use crate::method::{Findings, Method, Notes, Stretch, Trace};
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

/// Policies that learn together: what each may know of its surroundings, and why it had to stop, where it had to.
pub(crate) struct Company<'a> {
    contexts: Vec<&'a Context<'a>>,
    failures: Vec<Option<Failure>>,
    /// The number of epochs after which each left a checkpoint, which is of finite numbers.
    safe: Option<u64>,
}

impl<'a> Company<'a> {
    /// At the start, after that many epochs.
    pub(crate) fn new(contexts: Vec<&'a Context<'a>>, epochs: u64) -> Self {
        Self {
            failures: vec![None; contexts.len()],
            contexts,
            safe: (epochs > 0).then_some(epochs),
        }
    }

    /// Why each policy had to stop.
    pub(crate) fn into_failures(self) -> Vec<Option<Failure>> {
        self.failures
    }

    /// K.
    fn members(&self) -> usize {
        self.contexts.len()
    }

    /// The surroundings that all share: the clock, and whether to stop.
    fn surroundings(&self) -> &Context<'a> {
        self.contexts[0]
    }

    /// Those that still learn.
    fn learning(&self) -> impl Iterator<Item = (usize, &Context<'a>)> {
        let each = self.contexts.iter().zip(&self.failures).enumerate();
        each.filter(|(_, (_, failure))| failure.is_none())
            .map(|(member, (context, _))| (member, *context))
    }

    fn leave_checkpoints(&mut self, state: &State) -> Result<(), Failure> {
        let alone = state.apart(self.members());
        for (member, context) in self.learning() {
            context.write_checkpoint(NAME, &encode(&alone[member]))?;
        }
        self.safe = Some(state.epochs);
        Ok(())
    }
}

/// Trains from the state, which the method has recalled, to the end. A policy whose loss is not finite stops, and is a failure
/// of the company's; the others go on. Nothing comes of it where nobody is left.
pub(crate) fn run(
    method: &mut dyn Method,
    mut validation: Option<Validation<'_>>,
    plan: &Plan,
    state: &mut State,
    company: &mut Company<'_>,
) -> Result<Option<Findings>, Failure> {
    let members = company.members();
    let before = match state.journal.seconds.len() {
        0 => vec![0.0; members],
        count => state.journal.seconds[count - members..].to_vec(),
    };
    let elapsed = |company: &Company<'_>| company.surroundings().elapsed();
    let mut trained = Duration::ZERO;
    let mut saved = elapsed(company);
    while state.epochs < plan.epochs {
        #[cfg(test)]
        crate::tests::memory::allocate(members, state.epochs).map_err(failure)?;
        let began = elapsed(company);
        let rate = train_epoch(method, plan, state, company)?;
        // The epoch's losses have been read: an accelerator has nothing left to do.
        trained += elapsed(company).saturating_sub(began);
        if company.learning().next().is_none() {
            return Ok(None);
        }
        journalise(&method.notes().map_err(failure)?, plan.rates.len(), state);
        if let Some(validation) = &mut validation {
            let losses = validation.measure(method.policies()).map_err(failure)?;
            state.journal.validation.extend(losses);
        }
        state.epochs += 1;
        state.journal.rate.push(rate);
        let seconds = trained.as_secs_f64();
        state
            .journal
            .seconds
            .extend(before.iter().map(|before| before + seconds));
        let due = plan.keep_every > 0 && state.epochs.is_multiple_of(plan.keep_every);
        if due || state.epochs == plan.epochs {
            let networks = method.policies().save().map_err(failure)?;
            state.kept.push((state.epochs, networks));
        }
        if state.epochs < plan.epochs && elapsed(company) >= saved + plan.pace {
            state.memories = method.memory().map_err(failure)?;
            company.leave_checkpoints(state)?;
            saved = elapsed(company);
        }
    }
    state.memories = method.memory().map_err(failure)?;
    let afterwards = method.steps_afterwards();
    for step in 0..afterwards {
        company.surroundings().check_cancelled()?;
        let (_, rates) = plan.rates_at(step, afterwards);
        method.step_afterwards(step, &rates).map_err(failure)?;
    }
    method.findings().map(Some).map_err(failure)
}

impl Plan {
    /// The steps of an epoch from one on, as many as may be announced at once.
    pub(crate) fn stretch(&self, epoch: u64, start: usize, most: usize) -> Stretch {
        Stretch {
            epoch,
            within: start..self.steps.min(start + most),
            first: epoch * self.steps as u64 + start as u64,
        }
    }

    /// Share of the learning rates at a step out of so many, and the rates.
    fn rates_at(&self, step: u64, steps: u64) -> (f64, Vec<f64>) {
        let share = self.schedule.share(step, steps);
        (share, self.rates.iter().map(|rate| rate * share).collect())
    }
}

/// The steps of an epoch; gives the share of the learning rates at the last one.
fn train_epoch(
    method: &mut dyn Method,
    plan: &Plan,
    state: &mut State,
    company: &mut Company<'_>,
) -> Result<f64, Failure> {
    let span = method.span(state.epochs, plan.epochs);
    let in_span = (span.end - span.start) * plan.steps as u64;
    let total = plan.epochs * plan.steps as u64;
    let mut found = Found::default();
    let mut share = 1.0;
    method.begin_epoch(state.epochs).map_err(failure)?;
    let mut stretch = plan.stretch(state.epochs, 0, method.stretch());
    loop {
        let (shares, rates): (Vec<f64>, Vec<Vec<f64>>) = (stretch.first..)
            .take(stretch.within.len())
            .map(|step| plan.rates_at(step - span.start * plan.steps as u64, in_span))
            .unzip();
        share = shares.last().copied().unwrap_or(share);
        method.announce(&stretch, &rates).map_err(failure)?;
        let traces = Traces::new(method, stretch.within.len()).map_err(failure)?;
        for (step, within) in (stretch.first..).zip(stretch.within.clone()) {
            company.surroundings().check_cancelled()?;
            method.step(within).map_err(failure)?;
            traces
                .take(within - stretch.within.start, method)
                .map_err(failure)?;
            for (member, context) in company.learning() {
                context.progress(progress(step + 1, total, state, member, plan.rates.len()));
            }
        }
        let end = stretch.within.end;
        let next = if end < plan.steps {
            plan.stretch(state.epochs, end, method.stretch())
        } else {
            plan.stretch(state.epochs + 1, 0, method.stretch())
        };
        if next.epoch < plan.epochs {
            method.foresee(&next);
        }
        traces.read(method.has_median(), &mut found).map_err(failure)?;
        if next.epoch > state.epochs {
            break;
        }
        stretch = next;
    }
    note(&found, state, company);
    Ok(share)
}

/// What the steps of a stretch found, on the device: read once, so that no step waits.
struct Traces(Tensor);

/// What the steps of an epoch found: of each, `[K]`.
#[derive(Default)]
struct Found {
    loss: Vec<Vec<f64>>,
    norm: Vec<Vec<f64>>,
    /// Empty where there is none.
    median: Vec<Vec<f64>>,
}

impl Traces {
    fn new(method: &dyn Method, steps: usize) -> Result<Self, NnError> {
        let values = method.trace().values();
        let (parts, policies) = values.size2()?;
        let kind = (values.kind(), values.device());
        Ok(Self(Tensor::f_zeros([steps as i64, parts, policies], kind)?))
    }

    /// Takes over what the last step found.
    fn take(&self, place: usize, method: &dyn Method) -> Result<(), NnError> {
        Ok(self.0.f_get(place as i64)?.f_copy_(method.trace().values())?)
    }

    /// Waits for the steps.
    fn read(&self, has_median: bool, found: &mut Found) -> Result<(), NnError> {
        let all = self.0.f_to_device(Device::Cpu)?.f_to_kind(Kind::Double)?;
        let part = |part: usize| -> Result<Vec<Vec<f64>>, NnError> {
            Ok(Vec::try_from(all.f_select(1, part as i64)?)?)
        };
        found.loss.extend(part(Trace::LOSS)?);
        found.norm.extend(part(Trace::NORM)?);
        if has_median {
            found.median.extend(part(Trace::MEDIAN)?);
        }
        Ok(())
    }
}

/// The means of what an epoch's steps found go into the journal; a number that is not finite stops its policy, whose
/// checkpoint stays.
fn note(found: &Found, state: &mut State, company: &mut Company<'_>) {
    let Found { loss, norm, median } = found;
    let safe = company.safe;
    let diverged = |member: usize| {
        let mut numbers = loss
            .iter()
            .zip(norm)
            .enumerate()
            .flat_map(|(batch, (loss, norm))| {
                [("loss", loss[member]), ("gradient's norm", norm[member])]
                    .map(|(what, value)| (batch, what, value))
            });
        let (batch, what, value) = numbers.find(|(_, _, value)| !value.is_finite())?;
        let stays = safe.map_or_else(String::new, |epochs| {
            format!("; the checkpoint after epoch {epochs} stays")
        });
        Some(
            Failure::stage(format!(
                "the {what} of batch {} of {} in epoch {} is {value}",
                batch + 1,
                loss.len(),
                state.epochs + 1
            ))
            .help(format!(
                "lower `learning_rate`, clip with `gradient_clip`, or `standardize`; look for extreme values among the \
                 demonstrations, and among the deviations and scales that the method is given{stays}"
            )),
        )
    };
    for (member, failure) in company.failures.iter_mut().enumerate() {
        if failure.is_none() {
            *failure = diverged(member);
        }
    }
    state.journal.loss.extend(means(loss));
    state.journal.norm.extend(means(norm));
    state.journal.median.extend(means(median));
}

/// What a method noted of its policies goes into the journal.
fn journalise(notes: &Notes, members: usize, state: &mut State) {
    let or_missing = |values: &[Option<f64>]| -> Vec<Option<f64>> {
        (0..members)
            .map(|member| values.get(member).copied().flatten())
            .collect()
    };
    state.journal.sigma.extend(or_missing(&notes.sigma));
    state.journal.effective.extend(or_missing(&notes.effective));
}

/// The mean of each column.
fn means(rows: &[Vec<f64>]) -> Vec<f64> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width)
        .map(|column| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64)
        .collect()
}

/// In the epoch after those that are done.
fn progress(done: u64, total: u64, state: &State, member: usize, members: usize) -> Progress {
    let last = |column: &[f64]| {
        let start = column.len().checked_sub(members)?;
        column.get(start + member).copied()
    };
    let journal = &state.journal;
    let metrics = [
        ("epoch", Some(state.epochs as f64 + 1.0)),
        ("loss", last(&journal.loss)),
        ("validation_loss", last(&journal.validation)),
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

/// What an earlier attempt at a cell left of its policy; the beginning where it left nothing of use.
pub(crate) fn left_by_earlier_attempt(epochs: u64, context: &Context<'_>) -> Result<State, Failure> {
    let Some(bytes) = context.read_checkpoint(NAME)? else {
        return Ok(State::default());
    };
    let fits = |state: &State| {
        usize::try_from(state.epochs).is_ok_and(|done| state.journal.fits(done, 1))
            && state.memories.len() == 1
            && state.epochs < epochs
    };
    let Some(state) = decode(&bytes).filter(fits) else {
        context.warn("the checkpoint of an earlier attempt is damaged or of another version: starting from the beginning");
        return Ok(State::default());
    };
    context.notice(format!(
        "continuing an earlier attempt after {} of {epochs} epochs",
        state.epochs
    ));
    Ok(state)
}

/// Whose fault it is when a network cannot be trained.
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub(crate) fn failure(error: NnError) -> Failure {
    let message = error.to_string();
    let short_of_memory = error.is_out_of_memory();
    match error {
        NnError::Device(_) => Failure::environment(message).help("set `device` to `auto` or `cpu`"),
        NnError::Torch(_) | NnError::Graph(_) if short_of_memory => Failure::environment(message)
            .help("use smaller networks, a smaller `batch` or a smaller `rbc.chunk`"),
        NnError::Policy(_) => Failure::stage(message),
        NnError::Torch(_) | NnError::Graph(_) | NnError::Length { .. } => Failure::bug(message),
    }
}
