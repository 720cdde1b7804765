//! Replays a recording of `scripts/record_pybullet.py` and counts where ours differs.

use std::error::Error;

use provenir_sim::Environment;

/// A recorded step; step 0 is the reset, without action, reward and end.
pub(crate) struct Row {
    pub(crate) episode: u32,
    pub(crate) step: u32,
    pub(crate) action: Vec<f32>,
    pub(crate) observation: Vec<f32>,
    pub(crate) reward: Option<f64>,
    pub(crate) terminated: bool,
    /// Link, position and velocity of each joint, where recorded.
    pub(crate) joints: Vec<(usize, f64, f64)>,
}

/// How far a replay was from what was recorded.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Differences {
    pub(crate) steps: usize,
    /// Values that differ in a bit.
    pub(crate) observations: usize,
    pub(crate) rewards: usize,
    pub(crate) ends: usize,
    pub(crate) joints: usize,
    /// Greatest absolute differences.
    pub(crate) worst_observation: f64,
    pub(crate) worst_reward: f64,
    pub(crate) worst_joint: f64,
}

impl Differences {
    /// Whether there are none.
    pub(crate) fn is_exact(&self) -> bool {
        self.observations + self.rewards + self.ends + self.joints == 0
    }
}

/// Reads a recording.
pub(crate) fn read(path: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let text = fs_err::read_to_string(path)?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().ok_or("the recording is empty")?.split(',').collect();
    lines.map(|line| read_row(&header, line)).collect()
}

fn read_row(header: &[&str], line: &str) -> Result<Row, Box<dyn Error>> {
    let mut row = Row {
        episode: 0,
        step: 0,
        action: Vec::new(),
        observation: Vec::new(),
        reward: None,
        terminated: false,
        joints: Vec::new(),
    };
    let mut velocities = Vec::new();
    for (name, value) in header
        .iter()
        .zip(line.split(','))
        .filter(|(_, value)| !value.is_empty())
    {
        match *name {
            "episode" => row.episode = value.parse()?,
            "step" => row.step = value.parse()?,
            "reward" => row.reward = Some(value.parse()?),
            "terminated" => row.terminated = value == "1",
            name if name.starts_with('a') => row.action.push(value.parse()?),
            name if name.starts_with('o') => row.observation.push(value.parse()?),
            name if name.starts_with('q') => row.joints.push((name[1..].parse()?, value.parse()?, 0.0)),
            name if name.starts_with('v') => velocities.push(value.parse()?),
            name => return Err(format!("unknown column `{name}`").into()),
        }
    }
    for ((_, _, velocity), recorded) in row.joints.iter_mut().zip(velocities) {
        *velocity = recorded;
    }
    Ok(row)
}

/// Replays the rows up to `horizon` steps into each episode, beginning each with the recorded joint angles. `fresh` gives every
/// episode an environment of its own.
pub(crate) fn replay(
    rows: &[Row],
    horizon: u32,
    fresh: bool,
    make: impl Fn() -> Environment,
) -> Result<Differences, Box<dyn Error>> {
    let mut environment = make();
    let mut found = Differences::default();
    for row in rows.iter().filter(|row| row.step <= horizon) {
        if let Some(reward) = row.reward {
            let step = environment.step(&row.action)?;
            found.steps += 1;
            found.rewards += usize::from(step.reward.to_bits() != reward.to_bits());
            found.worst_reward = found.worst_reward.max((step.reward - reward).abs());
            found.ends += usize::from(step.terminated != row.terminated);
        } else {
            if fresh {
                environment = make();
            }
            // Those of a planar robot's root come first, and stay at 0.
            let root = row.joints.len() - environment.action_width();
            let angles: Vec<f64> = row.joints[root..]
                .iter()
                .map(|(_, position, _)| *position)
                .collect();
            environment.reset_to(&angles);
        }
        assert_eq!(environment.observation().len(), row.observation.len());
        for (ours, theirs) in environment.observation().iter().zip(&row.observation) {
            found.observations += usize::from(ours.to_bits() != theirs.to_bits());
            found.worst_observation = found.worst_observation.max(f64::from((ours - theirs).abs()));
        }
        let (q, qdot) = environment.joints();
        for (link, position, velocity) in &row.joints {
            for (ours, theirs) in [(q[*link], *position), (qdot[*link], *velocity)] {
                found.joints += usize::from(ours.to_bits() != theirs.to_bits());
                found.worst_joint = found.worst_joint.max((ours - theirs).abs());
            }
        }
    }
    Ok(found)
}
