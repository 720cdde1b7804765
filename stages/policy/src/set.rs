use crate::{Policy, PolicyError};

/// The checkpoints of one training: at least one, with ascending numbers, alike in all but their values.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySet {
    checkpoints: Vec<(u32, Policy)>,
}

impl PolicySet {
    /// These checkpoints, where they belong together.
    pub fn new(checkpoints: Vec<(u32, Policy)>) -> Result<Self, PolicyError> {
        let Some((_, first)) = checkpoints.first() else {
            return Err(PolicyError::new("it has no checkpoints"));
        };
        if let Some(pair) = checkpoints.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(PolicyError::new(format!(
                "checkpoint {} follows checkpoint {}",
                pair[1].0, pair[0].0
            )));
        }
        if let Some((number, _)) = checkpoints.iter().find(|(_, policy)| !alike(first, policy)) {
            return Err(PolicyError::new(format!(
                "checkpoint {number} has another shape, activation, action map or origin than the first"
            )));
        }
        Ok(Self { checkpoints })
    }

    /// One policy, as checkpoint 0.
    pub fn single(policy: Policy) -> Self {
        Self {
            checkpoints: vec![(0, policy)],
        }
    }

    /// All checkpoints, by ascending number.
    pub fn checkpoints(&self) -> &[(u32, Policy)] {
        &self.checkpoints
    }

    /// The checkpoint of a number.
    pub fn get(&self, number: u32) -> Option<&Policy> {
        let index = self
            .checkpoints
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        Some(&self.checkpoints[index].1)
    }

    /// The last checkpoint: the finished policy.
    pub fn last(&self) -> &Policy {
        &self.checkpoints[self.checkpoints.len() - 1].1
    }
}

/// Whether two policies differ in values only.
fn alike(left: &Policy, right: &Policy) -> bool {
    let shape = |policy: &Policy| -> Vec<(usize, usize)> {
        policy
            .layers()
            .iter()
            .map(|layer| (layer.inputs(), layer.outputs()))
            .collect()
    };
    let clip = |policy: &Policy| {
        policy
            .standardisation()
            .map(|standardisation| standardisation.clip)
    };
    shape(left) == shape(right)
        && left.activation() == right.activation()
        && left.action_map().squash == right.action_map().squash
        && left.about() == right.about()
        && clip(left) == clip(right)
}
