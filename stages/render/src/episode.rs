use provenir_execution::{Context, Failure};
use provenir_policy::Policy;
use provenir_sim::{Capsule, Environment, Task};
use provenir_table::{Table, TableBuilder, TableError};

use crate::vector::{Vector, between};

/// Seconds that a step lasts.
pub(crate) const STEP: f64 = provenir_sim::STEP;

/// What happened, moment by moment: the beginning, and one for each step.
#[derive(Clone, Debug)]
pub(crate) struct Episode {
    /// At least two.
    pub(crate) moments: Vec<Moment>,
    /// It ended in a fall.
    pub(crate) terminated: bool,
}

/// Where the robot is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moment {
    pub(crate) capsules: Vec<Capsule>,
    pub(crate) torso: Vector,
    /// Rewards so far.
    pub(crate) total_reward: f64,
}

impl Moment {
    fn now(environment: &Environment, total_reward: f64) -> Self {
        Self {
            capsules: environment.capsules(),
            torso: environment.torso().position,
            total_reward,
        }
    }
}

impl Episode {
    /// Lets a policy act from the initial state of a seed, for so many steps at most.
    pub(crate) fn run(
        task: &Task,
        policy: &Policy,
        seed: u64,
        steps: u32,
        context: &Context<'_>,
    ) -> Result<Self, Failure> {
        let mut environment = Environment::new(task, policy.about().time_feature);
        environment.reset(seed);
        let mut actor = policy.actor();
        let mut action = vec![0.0; task.action_width()];
        let mut episode = Self {
            moments: vec![Moment::now(&environment, 0.0)],
            terminated: false,
        };
        let mut total_reward = 0.0;
        for _ in 0..steps {
            context.check_cancelled()?;
            actor.act(environment.observation(), &mut action);
            let step = environment
                .step(&action)
                .map_err(|error| Failure::stage(format!("the policy cannot be rolled out: {error}")))?;
            total_reward += step.reward;
            episode.moments.push(Moment::now(&environment, total_reward));
            if step.is_last() {
                episode.terminated = step.terminated;
                break;
            }
        }
        // The simulation may diverge in a fall; nothing can be drawn of it.
        if let Some(step) = episode.moments.iter().position(|moment| !moment.is_finite()) {
            return Err(
                Failure::stage(format!("the simulation diverged at step {step}")).help(format!(
                    "draw the steps before that: `steps = {}`",
                    step.saturating_sub(1).max(1)
                )),
            );
        }
        Ok(episode)
    }

    /// How many steps it took.
    pub(crate) fn steps(&self) -> u32 {
        (self.moments.len() - 1) as u32
    }

    /// How long it took, s.
    pub(crate) fn duration(&self) -> f64 {
        f64::from(self.steps()) * STEP
    }

    /// The moment at a time, s: straight lines between steps, the rewards those of the last full step.
    pub(crate) fn at(&self, time: f64) -> Moment {
        let (before, share) = self.place(time);
        let from = &self.moments[before];
        let Some(to) = self.moments.get(before + 1) else {
            return from.clone();
        };
        let capsules = from.capsules.iter().zip(&to.capsules).map(|(from, to)| Capsule {
            from: between(from.from, to.from, share),
            to: between(from.to, to.to, share),
            ..*from
        });
        Moment {
            capsules: capsules.collect(),
            torso: between(from.torso, to.torso, share),
            total_reward: from.total_reward,
        }
    }

    /// The last full step at a time, and the share of the next one that has passed.
    pub(crate) fn place(&self, time: f64) -> (usize, f64) {
        let steps = (time / STEP).clamp(0.0, f64::from(self.steps()));
        // A time that rounding put just before a step is that step's.
        let before = (steps + 1e-9).floor();
        (before as usize, (steps - before).max(0.0))
    }

    /// Whether the robot moves in the plane of x and z alone.
    pub(crate) fn is_planar(&self) -> bool {
        let flat = |capsule: &Capsule| capsule.from[1].abs() < 1e-6 && capsule.to[1].abs() < 1e-6;
        self.moments.iter().all(|moment| moment.capsules.iter().all(flat))
    }

    /// A row for the beginning, and one a step.
    pub(crate) fn table(&self, environment: &str, method: &str) -> Result<Table, TableError> {
        let column = |value: &dyn Fn(&Moment) -> f64| self.moments.iter().map(value).collect();
        let start = self.moments[0].torso[0];
        TableBuilder::new()
            .metadata("environment", environment)
            .metadata("method", method)
            .u32("step", (0..=self.steps()).collect())
            .f64(
                "time",
                (0..=self.steps()).map(|step| f64::from(step) * STEP).collect(),
            )
            .unit("s")
            .f64("distance", column(&|moment| moment.torso[0] - start))
            .unit("m")
            .f64("height", column(&|moment| moment.torso[2]))
            .unit("m")
            .f64("return", column(&|moment| moment.total_reward))
            .build()
    }
}

impl Moment {
    fn is_finite(&self) -> bool {
        let mut ends = self
            .capsules
            .iter()
            .flat_map(|capsule| [capsule.from, capsule.to]);
        // Far beyond what a robot reaches, and far within what can be projected.
        ends.all(|end| end.iter().all(|component| component.abs() < 1e6))
    }
}
