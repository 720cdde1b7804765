use std::collections::BTreeMap;
use std::time::Duration;

use provenir_api::protocol::Progress;
use provenir_execution::{Context, Failure};
use provenir_kinds::expert::{Algorithm, ExpertParameters, Keep};
use provenir_nn::NnError;
use provenir_policy::{About, Policy};
use provenir_random::Stream;
use provenir_sim::{Lanes, Task};
use tch::Device;

use crate::checkpoint::{self, Candidate, State};
use crate::evaluation::evaluate;
use crate::journal::{Journal, Told};
use crate::learner::{Batch, Learner, LearnerSettings, Value};
use crate::policies::{numbers_of, with_numbers};
use crate::replay::{Columns, Replay};
use crate::sampler::{Sampler, Trouble};

/// A training under way.
pub(crate) struct Training<'a> {
    parameters: &'a ExpertParameters,
    context: &'a Context<'a>,
    task: &'a Task,
    about: About,
    device: Device,
    learner: Learner,
    sampler: Sampler,
    replay: Replay,
    /// What everything is drawn from but the learner's own noise.
    stream: Stream,
    /// Buffers.
    columns: Columns,
    actions: Vec<f32>,
    /// What a checkpoint holds; the parts that learner, sampler and buffer know are brought in when one is written.
    state: State,
    /// Wall-clock seconds of earlier attempts.
    before: f64,
}

/// What a training ends with.
pub(crate) struct Finished {
    /// Environment steps before it, and the policy.
    pub(crate) policy: (u64, Policy),
    pub(crate) journal: Journal,
}

impl<'a> Training<'a> {
    /// A training at its beginning.
    pub(crate) fn new(
        parameters: &'a ExpertParameters,
        task: &'a Task,
        about: About,
        device: Device,
        context: &'a Context<'a>,
    ) -> Result<Self, Failure> {
        let stream = Stream::new(parameters.seed, "expert");
        let lanes = Lanes::new(task, parameters.time_feature, parameters.environments as usize)
            .with_threads(context.cores().min(parameters.environments as usize))
            .map_err(|error| Failure::environment(error.to_string()))?;
        let sampler = Sampler::new(lanes, stream.child("episodes", 0), parameters.gamma as f32);
        let (observation, action) = (sampler.observation_width(), sampler.action_width());
        let settings = settings(parameters);
        Ok(Self {
            learner: Learner::new(&settings, observation, action, parameters.seed, device)
                .map_err(failure)?,
            replay: Replay::new(observation, action, u64::from(parameters.buffer)),
            actions: vec![0.0; sampler.count() * action],
            columns: Columns::default(),
            state: State::default(),
            before: 0.0,
            parameters,
            device,
            context,
            task,
            about,
            sampler,
            stream,
        })
    }

    /// Goes on where an earlier attempt left off, where there is one.
    pub(crate) fn resume(mut self) -> Result<Self, Failure> {
        let Self {
            parameters,
            task,
            context,
            ..
        } = self;
        let device = self.device;
        let empty = Replay::new(
            self.sampler.observation_width(),
            self.sampler.action_width(),
            u64::from(parameters.buffer),
        );
        let why = match checkpoint::load(empty, context)? {
            Err(None) => return Ok(self),
            Err(Some(why)) => why,
            Ok((state, replay)) => match self.take_over(state, replay) {
                Ok(()) => {
                    context.notice(format!(
                        "continuing an earlier attempt after {} of {} steps",
                        self.steps(),
                        self.total_steps()
                    ));
                    return Ok(self);
                }
                Err(why) => why,
            },
        };
        context.warn(format!(
            "the checkpoint of an earlier attempt {why}: starting from the beginning"
        ));
        checkpoint::discard(context)?;
        let about = self.about;
        Self::new(parameters, task, about, device, context)
    }

    fn take_over(&mut self, state: State, replay: Replay) -> Result<(), &'static str> {
        let fits = state.rounds <= self.rounds()
            && state.updates == self.updates_after(state.rounds)
            && state.pushed == state.rounds * self.sampler.count() as u64
            && state.pushed == replay.pushed();
        if !fits {
            return Err("is not one of this training");
        }
        self.learner
            .load(&state.learner)
            .map_err(|_| "holds networks that cannot be read")?;
        if !self.sampler.load(&state.sampler) {
            return Err("leads elsewhere in this simulator");
        }
        self.replay = replay;
        self.before = state.seconds;
        self.state = state;
        Ok(())
    }

    /// Trains to the end; checkpoints are written no more often than every `pace`.
    pub(crate) fn run(mut self, pace: Duration) -> Result<Finished, Failure> {
        let mut saved = self.context.elapsed();
        while self.state.rounds < self.rounds() {
            if let Err(cancelled) = self.context.check_cancelled() {
                self.save()?;
                self.context.notice(format!(
                    "what was learned in {} of {} steps is kept: the next run goes on from there",
                    self.steps(),
                    self.total_steps()
                ));
                return Err(cancelled);
            }
            self.step()?;
            self.context.progress(self.progress());
            if self.context.elapsed() >= saved + pace {
                self.save()?;
                saved = self.context.elapsed();
            }
        }
        let policy = match self.parameters.keep {
            Keep::Best => self.best()?,
            Keep::Last => (self.steps(), self.policy()?),
        };
        Ok(Finished {
            policy,
            journal: self.state.journal,
        })
    }

    /// A step of every environment, the updates that are due then, and the evaluation, where one is.
    pub(crate) fn step(&mut self) -> Result<(), Failure> {
        self.act()?;
        let before = self.steps();
        let ended = self
            .sampler
            .step(&self.actions, &mut self.replay)
            .map_err(|trouble| self.trouble(&trouble))?;
        self.state.journal.ended(&ended);
        self.state.rounds += 1;
        while self.state.updates < self.updates_after(self.state.rounds) {
            self.update()?;
        }
        let every = self.parameters.evaluate_every;
        if self.steps() / every > before / every || self.state.rounds == self.rounds() {
            self.evaluate()?;
        }
        Ok(())
    }

    /// Chooses an action for every environment.
    fn act(&mut self) -> Result<(), Failure> {
        let round = self.state.rounds;
        if self.steps() < self.parameters.learning_starts {
            let mut stream = self.stream.child("random actions", round);
            for action in &mut self.actions {
                *action = stream.uniform(-1.0, 1.0) as f32;
            }
            return Ok(());
        }
        let gsde = &self.parameters.gsde;
        let draw = if gsde.enabled {
            round / u64::from(gsde.resample)
        } else {
            round
        };
        let stream = self.stream.child("exploration", draw);
        self.learner
            .explore(self.sampler.observations(), &mut self.actions, stream)
            .map_err(failure)
    }

    /// A step of the learner.
    fn update(&mut self) -> Result<(), Failure> {
        let number = self.state.updates;
        let share = self
            .parameters
            .rate_share(number, self.updates_after(self.rounds()));
        let stream = self.stream.child("batch", number);
        self.replay
            .sample(self.parameters.batch as usize, stream, &mut self.columns);
        let Columns {
            observations,
            actions,
            rewards,
            next_observations,
            discounts,
        } = &self.columns;
        let batch = Batch {
            observations,
            actions,
            rewards,
            next_observations,
            discounts,
        };
        let metrics = self.learner.update(&batch, share).map_err(failure)?;
        let told = Told {
            critic_loss: metrics.critic_loss,
            policy_loss: metrics.policy.map(|policy| policy.loss),
            temperature: metrics.temperature,
            entropy: metrics.policy.map(|policy| policy.entropy),
        };
        self.check(&told)?;
        self.state.updates += 1;
        self.state.journal.updated(told, share);
        Ok(())
    }

    /// A number that is not finite ends the training; checkpoints are from before it.
    fn check(&self, told: &Told) -> Result<(), Failure> {
        let numbers = [
            ("loss of the critics", Some(told.critic_loss)),
            ("loss of the policy", told.policy_loss),
            ("temperature", Some(told.temperature)),
            ("entropy", told.entropy),
        ];
        for (what, value) in numbers {
            if let Some(value) = value.filter(|value| !value.is_finite()) {
                return Err(Failure::stage(format!(
                    "the {what} at update {} (after {} environment steps) is {value}",
                    self.state.updates + 1,
                    self.steps()
                ))
                .help("lower `learning_rate`, or try another `seed`"));
            }
        }
        Ok(())
    }

    fn trouble(&self, trouble: &Trouble) -> Failure {
        match trouble {
            Trouble::Simulation(error) => Failure::stage(format!(
                "after {} environment steps: {error}",
                self.steps()
            ))
            .help("lower `learning_rate`, or try another `seed`"),
            Trouble::Diverged { episode, step } => Failure::stage(format!(
                "after {} environment steps the simulator gave a number that is not finite (training episode {episode}, step \
                 {step})",
                self.steps()
            ))
            .help("another `seed` leads elsewhere"),
        }
    }

    /// Measures the policy without its noise, and keeps it where it is the best so far.
    fn evaluate(&mut self) -> Result<(), Failure> {
        let number = self.state.journal.rows.len() as u64;
        let seeds = self.seeds("evaluation", number, self.parameters.evaluation_episodes);
        let policy = self.policy()?;
        let evaluation = evaluate(self.task, &policy, &seeds, self.context)?;
        let (steps, mean) = (self.steps(), evaluation.mean);
        self.context.info(format!(
            "after {steps} steps: mean return {mean:.1} (standard deviation {:.1}), {} of {} episodes ended in a fall",
            evaluation.std,
            evaluation.falls,
            seeds.len()
        ));
        let seconds = self.seconds();
        self.state.journal.evaluated(
            steps,
            self.state.updates,
            self.sampler.ended(),
            evaluation,
            seconds,
        );
        let best = &mut self.state.best;
        let place = best.partition_point(|candidate| candidate.mean >= mean);
        if self.parameters.keep == Keep::Best && place < self.parameters.candidates as usize {
            let numbers = numbers_of(&policy);
            best.insert(place, Candidate { steps, mean, numbers });
            best.truncate(self.parameters.candidates as usize);
        }
        Ok(())
    }

    /// The best of the candidates, and the environment steps before it.
    fn best(&self) -> Result<(u64, Policy), Failure> {
        let shape = self.policy()?;
        let mut candidates = Vec::with_capacity(self.state.best.len());
        for candidate in &self.state.best {
            let policy = with_numbers(&shape, &candidate.numbers)
                .ok_or_else(|| Failure::bug("a candidate has another shape than the last policy"))?;
            candidates.push((candidate.steps, policy));
        }
        if candidates.len() > 1 {
            let seeds = self.seeds("candidates", 0, self.parameters.candidate_episodes);
            let mut means = Vec::with_capacity(candidates.len());
            for (steps, policy) in &candidates {
                let evaluation = evaluate(self.task, policy, &seeds, self.context)?;
                self.context.info(format!(
                    "candidate after {steps} steps: mean return {:.1} (standard deviation {:.1}), {} of {} episodes ended in a \
                     fall",
                    evaluation.mean,
                    evaluation.std,
                    evaluation.falls,
                    seeds.len()
                ));
                means.push(evaluation.mean);
            }
            let order = |left: &usize, right: &usize| {
                let earlier = candidates[*right].0.cmp(&candidates[*left].0);
                means[*left].total_cmp(&means[*right]).then(earlier)
            };
            if let Some(best) = (0..candidates.len()).max_by(order) {
                candidates.swap(0, best);
            }
        }
        candidates
            .into_iter()
            .next()
            .ok_or_else(|| Failure::bug("a training ended without an evaluation"))
    }

    /// Seeds of episodes that nobody else plays.
    fn seeds(&self, name: &str, number: u64, count: u32) -> Vec<u64> {
        let seeds = self.stream.child(name, number);
        (0..u64::from(count)).map(|episode| seeds.at(episode)).collect()
    }

    /// Leaves a checkpoint.
    pub(crate) fn save(&mut self) -> Result<(), Failure> {
        self.state.sampler = self.sampler.save();
        self.state.learner = self.learner.save().map_err(failure)?;
        self.state.seconds = self.seconds();
        checkpoint::save(&mut self.state, &self.replay, self.context)
    }

    fn policy(&self) -> Result<Policy, Failure> {
        self.learner.policy(self.about.clone()).map_err(failure)
    }

    /// Wall-clock seconds of all attempts.
    fn seconds(&self) -> f64 {
        self.before + self.context.elapsed().as_secs_f64()
    }

    /// Steps of each environment so far.
    #[cfg(test)]
    pub(crate) fn rounds_done(&self) -> u64 {
        self.state.rounds
    }

    /// Environment steps so far.
    fn steps(&self) -> u64 {
        self.state.rounds * self.sampler.count() as u64
    }

    /// Environment steps in all.
    fn total_steps(&self) -> u64 {
        self.rounds() * self.sampler.count() as u64
    }

    /// Steps of each environment in all.
    fn rounds(&self) -> u64 {
        self.parameters.steps.div_ceil(self.sampler.count() as u64)
    }

    /// Updates that belong to so many steps of each environment.
    fn updates_after(&self, rounds: u64) -> u64 {
        let steps = rounds * self.sampler.count() as u64;
        steps.saturating_sub(self.parameters.learning_starts) / u64::from(self.parameters.steps_per_update)
    }

    fn progress(&self) -> Progress {
        let mut metrics = BTreeMap::new();
        if let Some(row) = self.state.journal.rows.last() {
            metrics.insert("return".to_owned(), row.evaluation.mean);
        }
        Progress {
            done: self.steps(),
            total: Some(self.total_steps()),
            unit: "steps".to_owned(),
            metrics,
        }
    }
}

fn settings(parameters: &ExpertParameters) -> LearnerSettings {
    LearnerSettings {
        hidden: parameters.hidden.iter().map(|width| *width as usize).collect(),
        value: match parameters.algorithm {
            Algorithm::Sac => Value::Mean,
            Algorithm::Tqc => Value::Quantiles {
                count: parameters.tqc.quantiles as usize,
                dropped: parameters.tqc.dropped as usize,
            },
        },
        normalised_critics: parameters.normalised_critics,
        gsde: parameters.gsde.enabled.then_some(parameters.gsde.log_std_init),
        learning_rate: parameters.learning_rate,
        batch: parameters.batch as usize,
        tau: parameters.tau,
        policy_delay: u64::from(parameters.policy_delay),
        temperature: parameters.temperature,
    }
}

/// Whose fault it is when a network cannot be trained.
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub(crate) fn failure(error: NnError) -> Failure {
    let message = error.to_string();
    let short_of_memory = error.is_out_of_memory();
    match error {
        NnError::Device(_) => Failure::environment(message).help("set `device` to `auto` or `cpu`"),
        NnError::Torch(_) | NnError::Graph(_) if short_of_memory => {
            Failure::environment(message).help("use smaller networks or a smaller `batch`")
        }
        NnError::Policy(_) => Failure::stage(message),
        NnError::Torch(_) | NnError::Graph(_) | NnError::Length { .. } => Failure::bug(message),
    }
}
