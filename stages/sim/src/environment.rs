use provenir_bullet_sys::{Body, Pose, STEP, World};
use provenir_random::Stream;
use thiserror::Error;

use crate::capsule::Capsule;
use crate::numpy::{euler, mean};
use crate::task::Task;

/// Steps after which an episode that has not ended is truncated.
pub const EPISODE_STEPS: u32 = 1000;

/// The robot is to run towards this x, m; far enough that the direction never changes.
const TARGET: f64 = 1000.0;
const ELECTRICITY_COST: f64 = -2.0;
const STALL_TORQUE_COST: f64 = -0.1;
const JOINTS_AT_LIMIT_COST: f64 = -0.1;
/// Every actuated joint starts within this angle of zero, rad.
const INITIAL_ANGLE: f64 = 0.1;

/// Why a step was not taken.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimError {
    /// An action with the wrong number of components.
    #[error("the action has {found} components; `{task}` takes {expected}")]
    ActionWidth {
        /// The task.
        task: String,
        /// What was given.
        found: usize,
        /// What it takes.
        expected: usize,
    },
    /// An action that is infinite or not a number.
    #[error("component {component} of the action at step {step} is {value}: the policy has diverged")]
    Action {
        /// Which component, from 0.
        component: usize,
        /// Steps taken before.
        step: u32,
        /// Its value.
        value: f32,
    },
    /// The operating system gave no threads.
    #[error("no threads to step environments with: {0}")]
    Threads(String),
    /// The caller of [`crate::Rollouts::run`] asked to stop.
    #[error("the rollout was stopped")]
    Stopped,
}

/// What a step gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Reward of the step.
    pub reward: f64,
    /// The robot fell, and its task ends episodes there.
    pub terminated: bool,
    /// [`EPISODE_STEPS`] have been taken without a fall.
    pub truncated: bool,
}

impl Step {
    /// Whether the episode ends here.
    pub fn is_last(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// One running episode of a task.
///
/// What an episode gives depends on its initial joint angles and its actions only, not on earlier episodes.
#[derive(Debug)]
pub struct Environment {
    task: Task,
    world: World,
    time_feature: bool,
    steps: u32,
    initial_height: f64,
    potential: f64,
    /// Whether the world's state has been finite since it was made.
    finite: bool,
    /// Contact flags of the feet after the last step, 0 or 1.
    contacts: Vec<f32>,
    observation: Vec<f32>,
    scratch: Scratch,
}

/// Buffers that live longer than one step to be allocated once.
#[derive(Debug)]
struct Scratch {
    q: Vec<f64>,
    qdot: Vec<f64>,
    torques: Vec<f64>,
    positions: Vec<[f64; 3]>,
    touching: Vec<u8>,
    coordinates: Vec<f64>,
    power: Vec<f32>,
    squares: Vec<f32>,
}

/// What observing also finds out.
struct Observed {
    pitch: f64,
    potential: f64,
    joints_at_limit: usize,
}

impl Environment {
    /// An environment at rest with all joints at zero.
    ///
    /// With `time_feature` observations end with 1 − step / [`EPISODE_STEPS`], as the `TimeFeatureWrapper` of RL Zoo adds it.
    pub fn new(task: &Task, time_feature: bool) -> Self {
        let world = World::new(&task.robot).expect("a task's robot is checked when it is read");
        let (links, actions) = (world.links(), task.action_width());
        let mut environment = Self {
            world,
            time_feature,
            steps: 0,
            initial_height: 0.0,
            potential: 0.0,
            finite: true,
            contacts: vec![0.0; task.feet.len()],
            observation: Vec::with_capacity(task.observation_width() + usize::from(time_feature)),
            scratch: Scratch {
                q: vec![0.0; links],
                qdot: vec![0.0; links],
                torques: vec![0.0; links],
                positions: vec![[0.0; 3]; links],
                touching: vec![0; links],
                coordinates: vec![0.0; task.parts.len() + 1],
                power: vec![0.0; actions],
                squares: vec![0.0; actions],
            },
            task: task.clone(),
        };
        environment.reset_to(&vec![0.0; actions]);
        environment
    }

    /// Begins the episode of that seed and gives its first observation.
    pub fn reset(&mut self, seed: u64) -> &[f32] {
        let mut stream = Stream::new(seed, "initial joint angles");
        let angles: Vec<f64> = self
            .task
            .actuators
            .iter()
            .map(|_| stream.uniform(-INITIAL_ANGLE, INITIAL_ANGLE))
            .collect();
        self.reset_to(&angles)
    }

    /// Begins an episode with these angles of the actuated joints, rad, and gives its first observation.
    pub fn reset_to(&mut self, angles: &[f64]) -> &[f32] {
        assert_eq!(angles.len(), self.task.actuators.len());
        self.scratch.q.fill(0.0);
        for (actuator, angle) in self.task.actuators.iter().zip(angles) {
            self.scratch.q[actuator.link] = *angle;
        }
        if !self.finite {
            // Bullet disables colliders that are nowhere, and its tree of boxes does not recover: no reset would mend it.
            self.world = World::new(&self.task.robot).expect("it was one before");
        }
        self.world.reset(&self.scratch.q);
        self.steps = 0;
        self.contacts.fill(0.0);
        self.initial_height = self.world.pose(self.task.torso).position[2];
        self.potential = self.observe().potential;
        self.finite = self.is_finite();
        &self.observation
    }

    /// Takes one step. Components outside ±1 drive the joints as ±1 does but cost energy as they are.
    ///
    /// An episode may be stepped on after its end; the physics simply goes on.
    pub fn step(&mut self, action: &[f32]) -> Result<Step, SimError> {
        self.check(action)?;
        Ok(self.advance(action))
    }

    /// [`Environment::step`] for an action that [`Environment::check`] has passed.
    pub(crate) fn advance(&mut self, action: &[f32]) -> Step {
        for (actuator, value) in self.task.actuators.iter().zip(action) {
            self.scratch.torques[actuator.link] = actuator.torque * f64::from(value.clamp(-1.0, 1.0));
        }
        self.world.step(&self.scratch.torques);
        self.steps += 1;

        let observed = self.observe();
        let alive = self.is_alive(observed.pitch);
        let progress = observed.potential - self.potential;
        self.potential = observed.potential;
        // Only now: the observation and the rule above see the contacts of the step before, as in PyBullet.
        self.refresh_contacts();
        let reward = if alive { 1.0 } else { -1.0 }
            + progress
            + self.electricity(action)
            + JOINTS_AT_LIMIT_COST * observed.joints_at_limit as f64;
        let fallen = !alive && self.task.falls_end_episodes;
        self.finite &= self.is_finite();
        let terminated = fallen || self.observation.iter().any(|value| !value.is_finite());
        Step {
            reward,
            terminated,
            truncated: self.steps >= EPISODE_STEPS && !terminated,
        }
    }

    /// The current observation.
    pub fn observation(&self) -> &[f32] {
        &self.observation
    }

    /// Numbers in an observation, the time feature included.
    pub fn observation_width(&self) -> usize {
        self.observation.len()
    }

    /// Numbers in an action.
    pub fn action_width(&self) -> usize {
        self.task.action_width()
    }

    /// Steps taken in this episode.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Positions and velocities of the robot's joints, one a link of Bullet's, zero for fixed ones; rad or m, and per second.
    pub fn joints(&self) -> (&[f64], &[f64]) {
        (&self.scratch.q, &self.scratch.qdot)
    }

    /// Where the robot's bodies are now: the base, then its links in Bullet's order, each at its centre of mass.
    pub fn poses(&self) -> Vec<Pose> {
        self.world.poses()
    }

    /// The robot as it is to be drawn: its collision shapes where they are now.
    pub fn capsules(&self) -> Vec<Capsule> {
        let poses = self.poses();
        let placed = |capsule: Capsule| capsule.placed(&poses[capsule.body]);
        self.task.capsules().into_iter().map(placed).collect()
    }

    /// Where the torso is now.
    pub fn torso(&self) -> Pose {
        self.poses()[match self.task.torso {
            Body::Base => 0,
            Body::Link(link) => link + 1,
        }]
    }

    pub(crate) fn check(&self, action: &[f32]) -> Result<(), SimError> {
        if action.len() != self.action_width() {
            return Err(SimError::ActionWidth {
                task: self.task.name().to_owned(),
                found: action.len(),
                expected: self.action_width(),
            });
        }
        match action.iter().position(|value| !value.is_finite()) {
            Some(component) => Err(SimError::Action {
                component,
                step: self.steps,
                value: action[component],
            }),
            None => Ok(()),
        }
    }

    /// Fills the observation: `WalkerBase.calc_state` of `pybullet_envs`.
    fn observe(&mut self) -> Observed {
        let scratch = &mut self.scratch;
        self.world.joints(&mut scratch.q, &mut scratch.qdot);
        self.world.positions(&mut scratch.positions);
        let torso = self.world.pose(self.task.torso);
        let velocity = self.world.velocity(self.task.torso);
        let base = self.world.pose(Body::Base).position;
        let mut mean_of = |axis: usize| {
            for (coordinate, part) in scratch.coordinates.iter_mut().zip(&self.task.parts) {
                *coordinate = match part {
                    Body::Base => base[axis],
                    Body::Link(link) => scratch.positions[*link][axis],
                };
            }
            // The last one stays 0: it is the floor's.
            mean(&scratch.coordinates)
        };
        let (dx, dy) = (TARGET - mean_of(0), 0.0 - mean_of(1));
        let [roll, pitch, yaw] = euler(torso.rotation);
        let bearing = dy.atan2(dx) - yaw;
        let (sine, cosine) = ((-yaw).sin(), (-yaw).cos());
        let forward = cosine * velocity[0] - sine * velocity[1];
        let sideways = sine * velocity[0] + cosine * velocity[1];

        let observation = &mut self.observation;
        observation.clear();
        observation.extend(
            [
                torso.position[2] - self.initial_height,
                bearing.sin(),
                bearing.cos(),
                0.3 * forward,
                0.3 * sideways,
                0.3 * velocity[2],
                roll,
                pitch,
            ]
            .map(|value| value as f32),
        );
        let mut joints_at_limit = 0;
        for (actuator, power) in self.task.actuators.iter().zip(&mut scratch.power) {
            let (lower, upper) = (actuator.limits.lower, actuator.limits.upper);
            let middle = 0.5 * (lower + upper);
            let position = (2.0 * (scratch.q[actuator.link] - middle) / (upper - lower)) as f32;
            let speed = (0.1 * scratch.qdot[actuator.link]) as f32;
            joints_at_limit += usize::from(position.abs() > 0.99);
            observation.extend([position, speed]);
            // The energy terms take speeds before they are clipped; the action joins in `electricity`.
            *power = speed;
        }
        observation.extend(&self.contacts);
        for value in observation.iter_mut() {
            *value = value.clamp(-5.0, 5.0);
        }
        if self.time_feature {
            observation.push((1.0 - f64::from(self.steps) / f64::from(EPISODE_STEPS)) as f32);
        }
        Observed {
            pitch,
            // NumPy's norm is a dot product, which BLAS fuses.
            potential: -dx.mul_add(dx, dy * dy).sqrt() / STEP,
            joints_at_limit,
        }
    }

    fn is_finite(&self) -> bool {
        let Scratch { q, qdot, .. } = &self.scratch;
        let observed = self.observation.iter().all(|value| value.is_finite());
        observed && self.potential.is_finite() && q.iter().chain(qdot).all(|value| value.is_finite())
    }

    fn is_alive(&self, pitch: f64) -> bool {
        let rule = &self.task.alive;
        let height = f64::from(self.observation[0]) + self.initial_height;
        rule.height_above.is_none_or(|limit| height > limit)
            && rule.pitch_below.is_none_or(|limit| pitch.abs() < limit)
            && rule.off_ground.iter().all(|foot| self.contacts[*foot] == 0.0)
    }

    /// Cost of driving the motors and of holding torque, averaged in single precision as `NumPy` does for such actions.
    fn electricity(&mut self, action: &[f32]) -> f64 {
        let Scratch { power, squares, .. } = &mut self.scratch;
        for ((power, square), value) in power.iter_mut().zip(squares.iter_mut()).zip(action) {
            *power = (value * *power).abs();
            *square = value * value;
        }
        ELECTRICITY_COST * f64::from(mean(power)) + STALL_TORQUE_COST * f64::from(mean(squares))
    }

    fn refresh_contacts(&mut self) {
        self.world.contacts(&mut self.scratch.touching);
        for (flag, link) in self.contacts.iter_mut().zip(&self.task.feet) {
            *flag = f32::from(self.scratch.touching[*link]);
        }
    }
}
