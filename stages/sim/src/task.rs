use provenir_bullet_sys::{Body, InvalidRobot, Joint, Limits, Robot};
use serde::Deserialize;
use thiserror::Error;

use crate::robot::{BaseSpec, BodySpec, NamedRobot};

/// A robot and what is asked of it: to run along x and to stay upright.
#[derive(Clone, Debug)]
pub struct Task {
    name: String,
    pub(crate) robot: Robot,
    pub(crate) torso: Body,
    /// All bodies whose positions are averaged, in PyBullet's order; the floor comes after them.
    pub(crate) parts: Vec<Body>,
    pub(crate) actuators: Vec<Actuator>,
    /// Links whose contacts with the ground are observed.
    pub(crate) feet: Vec<usize>,
    pub(crate) alive: Alive,
    pub(crate) falls_end_episodes: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Actuator {
    pub(crate) link: usize,
    pub(crate) limits: Limits,
    /// N m at full action.
    pub(crate) torque: f64,
}

/// All that must hold for the robot to be alive.
#[derive(Clone, Debug)]
pub(crate) struct Alive {
    pub(crate) height_above: Option<f64>,
    pub(crate) pitch_below: Option<f64>,
    /// Feet (by their index) whose previous contact flag must be clear.
    pub(crate) off_ground: Vec<usize>,
}

/// Why a description is not that of a task.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidTask {
    /// Not TOML, or not of the expected form.
    #[error("{0}")]
    Syntax(String),
    /// A reference to a body or joint that does not exist, or comes later.
    #[error("there is no `{0}` before the place that names it")]
    UnknownPart(String),
    /// Two bodies or two joints with one name.
    #[error("the name `{0}` is used twice")]
    Duplicate(String),
    /// Limits are supported for revolute joints only.
    #[error("the prismatic joint `{0}` has limits")]
    PrismaticLimits(String),
    /// An actuated joint without limits, to which observations could not be scaled.
    #[error("the actuated joint `{0}` has no limits")]
    NoLimits(String),
    /// A foot that is the base.
    #[error("the foot `{0}` is the base")]
    FootIsBase(String),
    /// A contact that matters to being alive but is not observed.
    #[error("`{0}` is to stay off the ground but is not among the feet")]
    NotAFoot(String),
    /// The robot itself.
    #[error(transparent)]
    Robot(#[from] InvalidRobot),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSpec {
    name: String,
    base: BaseSpec,
    bodies: Vec<BodySpec>,
    task: TaskSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskSpec {
    torso: String,
    feet: Vec<String>,
    power: f64,
    actuators: Vec<ActuatorSpec>,
    alive: AliveSpec,
    falls_end_episodes: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActuatorSpec {
    joint: String,
    gain: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AliveSpec {
    height_above: Option<f64>,
    pitch_below: Option<f64>,
    #[serde(default)]
    off_ground: Vec<String>,
}

impl Task {
    /// Reads a task's description: TOML, as in `robots/hopper.toml`.
    pub fn parse(text: &str) -> Result<Self, InvalidTask> {
        let file: FileSpec = toml::from_str(text).map_err(|error| InvalidTask::Syntax(error.to_string()))?;
        let named = NamedRobot::assemble(file.base, file.bodies)?;
        let TaskSpec {
            torso,
            feet,
            power,
            actuators,
            alive,
            falls_end_episodes,
        } = file.task;
        let torso = named.body(&torso)?;
        let actuators = actuators
            .iter()
            .map(|spec| spec.actuator(power, &named))
            .collect::<Result<_, _>>()?;
        let off_ground = alive.off_ground.iter().map(|name| {
            feet.iter()
                .position(|foot| foot == name)
                .ok_or_else(|| InvalidTask::NotAFoot(name.clone()))
        });
        let alive = Alive {
            height_above: alive.height_above,
            pitch_below: alive.pitch_below,
            off_ground: off_ground.collect::<Result<_, _>>()?,
        };
        let feet = feet.iter().map(|foot| match named.body(foot)? {
            Body::Link(link) => Ok(link),
            Body::Base => Err(InvalidTask::FootIsBase(foot.clone())),
        });
        Ok(Self {
            name: file.name,
            torso,
            parts: parts(torso, named.robot.links.len()),
            actuators,
            feet: feet.collect::<Result<_, InvalidTask>>()?,
            alive,
            falls_end_episodes,
            robot: named.robot,
        })
    }

    /// The name in manifests and metadata.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Numbers in an observation, without the time feature: height, heading and velocity of the torso (8), two an
    /// actuator, one a foot.
    pub fn observation_width(&self) -> usize {
        8 + 2 * self.actuators.len() + self.feet.len()
    }

    /// Numbers in an action: one an actuator.
    pub fn action_width(&self) -> usize {
        self.actuators.len()
    }
}

impl ActuatorSpec {
    fn actuator(&self, power: f64, named: &NamedRobot) -> Result<Actuator, InvalidTask> {
        let link = named.joint(&self.joint)?;
        let Joint::Revolute {
            limits: Some(limits), ..
        } = named.robot.links[link].joint
        else {
            return Err(InvalidTask::NoLimits(self.joint.clone()));
        };
        Ok(Actuator {
            link,
            limits,
            torque: power * self.gain,
        })
    }
}

/// PyBullet's dictionary of parts holds the first link, then the torso, then the other links; the order decides the
/// roundings of the mean.
fn parts(torso: Body, links: usize) -> Vec<Body> {
    let rest = (1..links).map(Body::Link).filter(|body| *body != torso);
    [Body::Link(0), torso].into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOPPER: &str = include_str!("robots/hopper.toml");

    #[test]
    fn hopper_becomes_the_links_that_pybullet_makes() {
        let task = Task::parse(HOPPER).unwrap();
        let links = &task.robot.links;
        let parents: Vec<_> = links.iter().map(|link| link.parent).collect();
        assert_eq!(
            parents,
            std::iter::once(None).chain((0..9).map(Some)).collect::<Vec<_>>()
        );
        assert_eq!(
            (task.torso, task.feet.as_slice()),
            (Body::Link(3), [9].as_slice())
        );
        assert_eq!(
            task.actuators
                .iter()
                .map(|actuator| actuator.link)
                .collect::<Vec<_>>(),
            [4, 6, 8]
        );
        assert_eq!(
            task.actuators
                .iter()
                .map(|actuator| actuator.torque)
                .collect::<Vec<_>>(),
            [75.0; 3]
        );
        assert_eq!((task.observation_width(), task.action_width()), (15, 3));
        // The sum of 4/3 π r³ + π r² h at 1000 kg/m³, from the lengths in hopper.xml.
        let pi = std::f64::consts::PI;
        let capsule = |radius: f64, length: f64| {
            1000.0 * (4.0 / 3.0 * pi * radius.powi(3) + pi * radius.powi(2) * length)
        };
        let masses = [(3, 0.05, 0.4), (5, 0.05, 0.45), (7, 0.04, 0.5), (9, 0.06, 0.39)];
        for (link, radius, length) in masses {
            let mass = capsule(radius, length);
            assert!(
                (links[link].mass - mass).abs() < 1e-6 * mass,
                "link {link}: {} kg, not {mass}",
                links[link].mass
            );
        }
        let order: Vec<_> = [0, 3, 1, 2, 4, 5, 6, 7, 8, 9].map(Body::Link).to_vec();
        assert_eq!(task.parts, order);
    }

    #[test]
    fn mistakes_in_a_description_are_named() {
        let error = |from: &str, to: &str| {
            assert!(HOPPER.contains(from), "{from}");
            Task::parse(&HOPPER.replacen(from, to, 1))
                .unwrap_err()
                .to_string()
        };
        assert!(error("mass = 3.6", "mess = 3.6").contains("unknown field `mess`"));
        assert!(error("parent = \"leg\"", "parent = \"arm\"").contains("no `arm`"));
        assert!(error("parent = \"thigh\"", "parent = \"foot\"").contains("no `foot`"));
        assert!(error("name = \"leg\"", "name = \"thigh\"").contains("`thigh` is used twice"));
        assert!(error("joint = \"leg_joint\"", "joint = \"root_x\"").contains("`root_x` has no limits"));
        assert!(error("feet = [\"foot\"]", "feet = [\"world\"]").contains("`world` is the base"));
        assert!(error("mass = 3.6", "mass = -3.6").contains("link 3, mass"));
        assert!(error("mass = 3.665192295235619", "mass = nan").contains("link 3, mass"));
        assert!(error("radius = 0.05", "radius = -0.05").contains("link 3, shape"));
        assert!(error("pitch_below = 1.0", "off_ground = [\"leg\"]").contains("`leg` is to stay off"));
    }
}
