use provenir_nn::{Ensemble, NnError, Repeated};
use tch::{Kind, Tensor};

use crate::cloning::Setting;
use crate::data::Data;
use crate::method::{Findings, Memory, Method, Stretch, Trace, frequencies, recall_learners};
use crate::order::{Order, Selected};
use crate::student::{Batch, Student, smallest};

/// Two networks of which each learns from the samples of a minibatch that the other one fits best; the first is the
/// policy.
pub(crate) struct CoTeaching<'a> {
    data: &'a Data,
    order: Order,
    policy: Student,
    peer: Student,
    selected: Selected,
    settings: CoTeachingSettings,
    /// Share of a minibatch that is left out in this epoch.
    forgotten: f64,
    trace: Trace,
    /// Minibatches of either size.
    repeated: Repeated<usize>,
}

/// Settings of [`CoTeaching`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoTeachingSettings {
    /// Share of a minibatch that is left out in the end.
    pub(crate) epsilon: f64,
    /// Epochs until then.
    pub(crate) ramp: u64,
}

impl CoTeachingSettings {
    /// ε min(t/T, 1): the share that is left out in an epoch, counted from 0.
    fn forgotten(self, epoch: u64) -> f64 {
        if epoch >= self.ramp {
            self.epsilon
        } else {
            self.epsilon * epoch as f64 / self.ramp as f64
        }
    }
}

impl<'a> CoTeaching<'a> {
    pub(crate) fn new(setting: &Setting<'a>, settings: CoTeachingSettings) -> Result<Self, NnError> {
        let data = setting.data;
        let repeated = Repeated::new(data.device())?;
        let order = setting.order(1)?;
        let student = |name| setting.student(&setting.streams, name, &order);
        Ok(Self {
            policy: student("policy")?,
            peer: student("peer")?,
            selected: Selected::new(data.members * data.samples, data.device())?,
            order,
            data,
            settings,
            forgotten: 0.0,
            trace: Trace::new(data.members, data.device())?,
            repeated,
        })
    }
}

/// A step on the samples that are flagged, `keep` of each network; gives loss and gradient's norm.
fn learn<'s>(
    student: &'s mut Student,
    mut batch: Batch,
    flags: &Tensor,
    keep: usize,
) -> Result<(Tensor, &'s Tensor), NnError> {
    let weights = flags.f_mul_scalar(batch.rows() as f64 / keep as f64)?;
    let loss = batch.errors.f_mul(&weights)?.f_mean_dim(1, false, Kind::Float)?;
    batch.follow(&weights)?;
    Ok((loss, student.descend(&batch)?))
}

impl Method for CoTeaching<'_> {
    fn policies(&self) -> &Ensemble {
        self.policy.ensemble()
    }

    fn begin_epoch(&mut self, epoch: u64) -> Result<(), NnError> {
        let forgotten = self.settings.forgotten(epoch);
        if forgotten.to_bits() != self.forgotten.to_bits() {
            // How many samples a step keeps is a part of what a GPU records.
            self.repeated.forget();
            self.forgotten = forgotten;
        }
        self.order.shuffle(epoch);
        Ok(())
    }

    fn stretch(&self) -> usize {
        self.order.stretch()
    }

    fn announce(&mut self, stretch: &Stretch, rates: &[Vec<f64>]) -> Result<(), NnError> {
        self.order.announce(stretch.within.clone())?;
        self.policy.learner.announce(rates)?;
        self.peer.learner.announce(rates)
    }

    fn step(&mut self, within: usize) -> Result<(), NnError> {
        let place = self.order.load(within)?;
        for student in [&mut self.policy, &mut self.peer] {
            student.learner.advance()?;
        }
        let Self {
            data,
            order,
            policy,
            peer,
            selected,
            forgotten,
            trace,
            repeated,
            ..
        } = self;
        let index = order.minibatch(place);
        repeated.run(place, || {
            let of_policy = policy.pass(data, index)?;
            let of_peer = peer.pass(data, index)?;
            let rows = of_policy.rows();
            let keep = ((1.0 - *forgotten) * rows as f64 + 1e-9).floor() as usize;
            let keep = keep.clamp(1, rows);
            let by_policy = smallest(&of_policy.errors, keep)?;
            let by_peer = smallest(&of_peer.errors, keep)?;
            selected.add(index, &by_peer.f_to_kind(Kind::Int64)?.f_reshape(-1)?)?;
            let (loss, norm) = learn(policy, of_policy, &by_peer, keep)?;
            trace.note(Trace::LOSS, &loss)?;
            trace.note(Trace::NORM, norm)?;
            let _ = learn(peer, of_peer, &by_policy, keep)?;
            Ok(())
        })?;
        for student in [&mut self.policy, &mut self.peer] {
            student.learner.settle()?;
        }
        Ok(())
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn foresee(&mut self, stretch: &Stretch) {
        // An order is drawn for a whole epoch.
        if stretch.within.start == 0 {
            self.order.foresee(stretch.epoch);
        }
    }

    fn memory(&self) -> Result<Vec<Memory>, NnError> {
        let learners = [self.policy.learner.save()?, self.peer.learner.save()?];
        Ok(Memory::of_each(
            self.data.members,
            &learners,
            self.order.drawn(),
            &self.selected.counts()?,
        ))
    }

    fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError> {
        recall_learners([&mut self.policy.learner, &mut self.peer.learner], memories)?;
        self.order.recall(memories)?;
        self.selected.recall(memories)
    }

    fn findings(&mut self) -> Result<Findings, NnError> {
        Ok(Findings {
            trust: frequencies(self.order.drawn(), &self.selected.counts()?),
            tau: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_grows_linearly_until_it_is_all_that_is_assumed() {
        let settings = CoTeachingSettings {
            epsilon: 0.2,
            ramp: 4,
        };
        for (epoch, expected) in [(0, 0.0), (1, 0.05), (3, 0.15), (4, 0.2), (90, 0.2)] {
            assert!((settings.forgotten(epoch) - expected).abs() < 1e-12);
        }
        let at_once = CoTeachingSettings { ramp: 0, ..settings };
        assert!((at_once.forgotten(0) - 0.2).abs() < 1e-12);
    }
}
