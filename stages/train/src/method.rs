use std::ops::Range;

use provenir_nn::{Ensemble, NnError};
use tch::{Device, Kind, Tensor};

use crate::learner::{Learner, LearnerState};

/// A way to learn K policies.
pub(crate) trait Method {
    /// The networks of the policies, policy after policy: as many of each as its committee has.
    fn policies(&self) -> &Ensemble;

    /// M: networks of a policy, which does the mean of what they do.
    fn committee(&self) -> usize {
        1
    }

    /// The epochs that are one training with that of this number, out of so many in all: the schedule of the step size
    /// runs over these.
    fn span(&self, _: u64, epochs: u64) -> Range<u64> {
        0..epochs
    }

    /// Prepares an epoch, counted from 0.
    fn begin_epoch(&mut self, epoch: u64) -> Result<(), NnError>;

    /// The most steps that may be announced at once.
    fn stretch(&self) -> usize;

    /// Brings to the device what these steps of the epoch that was begun need, with a learning rate for each policy, step after
    /// step: none of them waits for the host.
    fn announce(&mut self, stretch: &Stretch, rates: &[Vec<f64>]) -> Result<(), NnError>;

    /// Takes a gradient step, of this number within its epoch, counted from 0: the first of those that were announced and
    /// not taken. What it found stands in [`Method::trace`]. On a GPU it is asked for, and done in its turn.
    fn step(&mut self, within: usize) -> Result<(), NnError>;

    /// What the last step found.
    fn trace(&self) -> &Trace;

    /// Whether blocks have a median, which steps find.
    fn has_median(&self) -> bool {
        false
    }

    /// Draws on the host what steps that may be announced next will need, while a device is busy with others. It changes no
    /// result, whether they come or not.
    fn foresee(&mut self, _: &Stretch) {}

    /// What there is to note at the end of an epoch.
    fn notes(&self) -> Result<Notes, NnError> {
        Ok(Notes::default())
    }

    /// All that it takes to go on after an epoch, of each policy, `[K]`.
    fn memory(&self) -> Result<Vec<Memory>, NnError>;

    /// Goes on from there: the next call is [`Method::begin_epoch`] of the next epoch.
    fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError>;

    /// How many further steps it takes, when the policies are finished, before it can say all that it has to.
    fn steps_afterwards(&self) -> u64 {
        0
    }

    /// One of these, counted from 0, which leaves the policies alone.
    fn step_afterwards(&mut self, _: u64, _: &[f64]) -> Result<(), NnError> {
        Ok(())
    }

    /// What is to be said of the samples and of the policies after all steps.
    fn findings(&mut self) -> Result<Findings, NnError>;
}

/// Steps that follow each other within an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) epoch: u64,
    /// Their numbers within it, counted from 0.
    pub(crate) within: Range<usize>,
    /// The number of the first within the run, counted from 0.
    pub(crate) first: u64,
}

/// What a step found of each policy, at a place that stays, `[3, K]`: the loss that gave the gradient, before the step; the
/// norm of the gradient, before clipping; and, where there is one, the value of the median block.
pub(crate) struct Trace(Tensor);

impl Trace {
    pub(crate) const LOSS: usize = 0;
    pub(crate) const NORM: usize = 1;
    pub(crate) const MEDIAN: usize = 2;

    /// Of so many policies.
    pub(crate) fn new(policies: usize, device: Device) -> Result<Self, NnError> {
        Ok(Self(Tensor::f_zeros(
            [3, policies as i64],
            (Kind::Float, device),
        )?))
    }

    /// Notes a part of it, `[K]`.
    pub(crate) fn note(&self, what: usize, values: &Tensor) -> Result<(), NnError> {
        Ok(self.0.f_get(what as i64)?.f_copy_(values)?)
    }

    /// Notes a part of it of the policies from this one on.
    pub(crate) fn note_part(&self, what: usize, first: usize, values: &Tensor) -> Result<(), NnError> {
        let all = self.0.f_get(what as i64)?;
        Ok(all
            .f_narrow(0, first as i64, values.numel() as i64)?
            .f_copy_(values)?)
    }

    /// All of it.
    pub(crate) fn values(&self) -> &Tensor {
        &self.0
    }

    /// Waits until the device has taken the step.
    pub(crate) fn wait(&self) -> Result<(), NnError> {
        let _ = self.0.f_to_device(Device::Cpu)?;
        Ok(())
    }
}

/// What a method notes at the end of an epoch: `[K]` each, or empty where no policy has any.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Notes {
    /// Deviation of the policy, or scale of its residuals.
    pub(crate) sigma: Vec<Option<f64>>,
    /// Effective number of samples.
    pub(crate) effective: Vec<Option<f64>>,
}

/// All that a method has learnt and counted of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    /// Of everything that learns.
    pub(crate) learners: Vec<LearnerState>,
    /// How often each sample was drawn, and gave a gradient, `[N]`.
    pub(crate) drawn: Vec<u64>,
    pub(crate) selected: Vec<u64>,
    /// Whatever else the method needs.
    pub(crate) values: Vec<Vec<f64>>,
}

impl Memory {
    /// Those of K policies, of what learns for all of them, and of how often each of all samples, `[K · N]`, was drawn and
    /// gave a gradient.
    pub(crate) fn of_each(
        members: usize,
        learners: &[LearnerState],
        drawn: &[u64],
        selected: &[u64],
    ) -> Vec<Self> {
        let of = |member: usize| Self {
            learners: learners
                .iter()
                .map(|learner| learner.part(member, members))
                .collect(),
            drawn: part(drawn, member, members),
            selected: part(selected, member, members),
            values: Vec::new(),
        };
        (0..members).map(of).collect()
    }

    /// What policies have, policy after policy.
    pub(crate) fn chained<T: Copy>(memories: &[Self], values: impl Fn(&Self) -> &[T]) -> Vec<T> {
        memories
            .iter()
            .flat_map(|memory| values(memory).iter().copied())
            .collect()
    }
}

/// The part of a policy among values that stand policy after policy, equally many of each.
pub(crate) fn part<T: Copy>(values: &[T], member: usize, members: usize) -> Vec<T> {
    let each = values.len() / members;
    values[member * each..][..each].to_vec()
}

/// What a method says in the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings {
    /// How much it trusts each sample, within 0 and 1, `[K · N]`.
    pub(crate) trust: Vec<f64>,
    /// τ̂ of each policy; empty where there is none.
    pub(crate) tau: Vec<f64>,
}

impl Findings {
    /// Those of each of K policies.
    pub(crate) fn apart(&self, members: usize) -> Vec<Self> {
        (0..members)
            .map(|member| Self {
                trust: part(&self.trust, member, members),
                tau: self.tau.get(member).copied().into_iter().collect(),
            })
            .collect()
    }
}

/// How often each sample gave a gradient when it was drawn; 0 where it never was.
pub(crate) fn frequencies(drawn: &[u64], selected: &[u64]) -> Vec<f64> {
    let counts = drawn.iter().zip(selected);
    counts
        .map(|(drawn, selected)| match drawn {
            0 => 0.0,
            drawn => *selected as f64 / *drawn as f64,
        })
        .collect()
}

/// Fails where saved values are not as many as are needed.
pub(crate) fn expect_length(what: &'static str, expected: usize, found: usize) -> Result<(), NnError> {
    if expected == found {
        Ok(())
    } else {
        Err(NnError::Length {
            what,
            expected,
            found,
        })
    }
}

/// Gives learners back what they had learnt, the first ones of each policy's memory.
pub(crate) fn recall_learners<'l>(
    learners: impl IntoIterator<Item = &'l mut Learner>,
    memories: &[Memory],
) -> Result<(), NnError> {
    for (index, learner) in learners.into_iter().enumerate() {
        learner.load(&learnt_by(index, memories)?)?;
    }
    Ok(())
}

/// What the learner of that number has learnt for all policies together.
pub(crate) fn learnt_by(index: usize, memories: &[Memory]) -> Result<LearnerState, NnError> {
    let of = |memory: &Memory| {
        memory.learners.get(index).cloned().ok_or(NnError::Length {
            what: "learners",
            expected: index + 1,
            found: memory.learners.len(),
        })
    };
    let alone: Vec<LearnerState> = memories.iter().map(of).collect::<Result<_, _>>()?;
    Ok(LearnerState::together(&alone))
}
