use std::ops::Range;

use provenir_nn::{Ensemble, NnError};

use super::bc::{LeastSquares, Loss};
use super::noisy_bc::disjoint;
use super::rbc::{Rbc, RbcSettings};
use crate::cloning::{Cloning, Setting, initial};
use crate::data::Data;
use crate::method::{Findings, Memory, Method, Stretch, Trace, expect_length};

/// Behaviour cloning of the samples that are left after others judged them: in a first part of the epochs the judges
/// learn, in a second one the policies, from initial values.
pub(crate) struct Filter<'a> {
    data: &'a Data,
    judge: Judge<'a>,
    policies: Cloning<'a>,
    settings: FilterSettings,
    /// The samples that are left, of each data set, once it is known.
    kept: Option<Vec<Vec<usize>>>,
}

/// Settings of [`Filter`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterSettings {
    /// Epochs of the judges, at least one, and fewer than there are.
    pub(crate) judging: u64,
    /// Share of the samples that is left out.
    pub(crate) epsilon: f64,
    pub(crate) by: By,
}

/// What judges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    /// As many networks as this, each from all parts of the data but one.
    CrossFit(usize),
    Rbc(RbcSettings),
}

enum Judge<'a> {
    CrossFit(Box<Cloning<'a>>, Vec<Vec<usize>>),
    Rbc(Box<Rbc<'a>>),
}

impl<'a> Judge<'a> {
    fn new(setting: &Setting<'a>, by: By) -> Result<Self, NnError> {
        let setting = Setting {
            streams: initial(&setting.streams, "judge", 0),
            ..setting.clone()
        };
        match by {
            By::CrossFit(folds) => {
                let samples = setting.data.samples;
                let parts = disjoint(&setting.streams, folds, samples);
                let mut cloning = Cloning::new(&setting, folds, least_squares)?;
                cloning.restrict(0, parts.iter().map(|part| others(part, samples)).collect());
                Ok(Self::CrossFit(Box::new(cloning), parts))
            }
            By::Rbc(settings) => Ok(Self::Rbc(Box::new(Rbc::new(&setting, settings)?))),
        }
    }

    fn method(&self) -> &dyn Method {
        match self {
            Self::CrossFit(cloning, _) => cloning.as_ref(),
            Self::Rbc(rbc) => rbc.as_ref(),
        }
    }

    fn method_mut(&mut self) -> &mut dyn Method {
        match self {
            Self::CrossFit(cloning, _) => cloning.as_mut(),
            Self::Rbc(rbc) => rbc.as_mut(),
        }
    }

    /// How implausible each sample of each data set is.
    fn scores(&mut self, data: &Data) -> Result<Vec<Vec<f64>>, NnError> {
        let samples = data.samples;
        match self {
            Self::CrossFit(cloning, parts) => {
                let residuals = cloning.residuals()?;
                let folds = parts.len() / data.members;
                let mut scores = vec![vec![0.0; samples]; data.members];
                for (network, part) in parts.iter().enumerate() {
                    let errors = residuals.errors(network);
                    for sample in part {
                        scores[network / folds][*sample] = errors[*sample];
                    }
                }
                Ok(scores)
            }
            Self::Rbc(rbc) => {
                let trust = rbc.trust()?;
                Ok(trust
                    .chunks(samples)
                    .map(|trust| trust.iter().map(|trust| 1.0 - trust).collect())
                    .collect())
            }
        }
    }
}

fn least_squares(data: &Data) -> Result<LeastSquares, NnError> {
    LeastSquares::new(Loss::SquaredError, data)
}

/// The samples that are in no such part, in order.
fn others(part: &[usize], samples: usize) -> Vec<usize> {
    let mut is_other = vec![true; samples];
    for sample in part {
        is_other[*sample] = false;
    }
    (0..samples).filter(|sample| is_other[*sample]).collect()
}

/// The samples with the smallest scores, in order, without that share of all; at least one is left.
fn best(scores: &[f64], share: f64) -> Vec<usize> {
    let samples = scores.len();
    // A share that divides evenly (0.1 of 70) may fall short by a rounding.
    let dropped = (share * samples as f64 + 1e-9).floor() as usize;
    let mut ranked: Vec<usize> = (0..samples).collect();
    ranked.sort_by(|left, right| scores[*left].total_cmp(&scores[*right]));
    ranked.truncate((samples - dropped.min(samples)).max(1));
    ranked.sort_unstable();
    ranked
}

impl<'a> Filter<'a> {
    pub(crate) fn new(setting: &Setting<'a>, settings: FilterSettings) -> Result<Self, NnError> {
        Ok(Self {
            data: setting.data,
            judge: Judge::new(setting, settings.by)?,
            policies: Cloning::new(setting, 1, least_squares)?,
            settings,
            kept: None,
        })
    }

    fn keep(&mut self, kept: Vec<Vec<usize>>) {
        self.policies.restrict(0, kept.clone());
        self.kept = Some(kept);
    }

    /// Whoever learns now.
    fn active(&mut self) -> &mut dyn Method {
        if self.kept.is_some() {
            &mut self.policies
        } else {
            self.judge.method_mut()
        }
    }
}

impl Method for Filter<'_> {
    fn policies(&self) -> &Ensemble {
        self.policies.policies()
    }

    fn span(&self, epoch: u64, epochs: u64) -> Range<u64> {
        let judging = self.settings.judging;
        if epoch < judging {
            0..judging
        } else {
            judging..epochs
        }
    }

    fn begin_epoch(&mut self, epoch: u64) -> Result<(), NnError> {
        if epoch >= self.settings.judging && self.kept.is_none() {
            let scores = self.judge.scores(self.data)?;
            let share = self.settings.epsilon;
            self.keep(scores.iter().map(|scores| best(scores, share)).collect());
        }
        self.active().begin_epoch(epoch)
    }

    fn stretch(&self) -> usize {
        self.judge.method().stretch().min(self.policies.stretch())
    }

    fn announce(&mut self, stretch: &Stretch, rates: &[Vec<f64>]) -> Result<(), NnError> {
        self.active().announce(stretch, rates)
    }

    fn step(&mut self, within: usize) -> Result<(), NnError> {
        self.active().step(within)
    }

    /// Without a median: the policies that come after the judges have none.
    fn trace(&self) -> &Trace {
        if self.kept.is_some() {
            self.policies.trace()
        } else {
            self.judge.method().trace()
        }
    }

    fn foresee(&mut self, stretch: &Stretch) {
        // What the first epoch of the policies draws from is known when it begins.
        if self.kept.is_some() || stretch.epoch < self.settings.judging {
            self.active().foresee(stretch);
        }
    }

    fn memory(&self) -> Result<Vec<Memory>, NnError> {
        let Some(kept) = &self.kept else {
            return self.judge.method().memory();
        };
        let mut memories = self.policies.memory()?;
        for (memory, kept) in memories.iter_mut().zip(kept) {
            memory.values = vec![kept.iter().map(|sample| *sample as f64).collect()];
        }
        Ok(memories)
    }

    fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError> {
        // Equally many epochs: what is left is known of all or of none.
        let kept: Option<Vec<Vec<usize>>> = memories
            .iter()
            .map(|memory| {
                let kept = memory.values.first()?.iter();
                Some(kept.map(|sample| *sample as usize).collect())
            })
            .collect();
        if let Some(kept) = kept {
            for kept in &kept {
                let sound = kept.iter().filter(|sample| **sample < self.data.samples).count();
                expect_length("kept samples", kept.len().max(1), sound)?;
            }
            self.keep(kept);
        }
        self.active().recall(memories)
    }

    fn findings(&mut self) -> Result<Findings, NnError> {
        self.policies.findings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_are_left_out_and_the_others_stay_in_order() {
        let scores = [0.3, 9.0, 0.1, 0.3, 0.2];
        assert_eq!(best(&scores, 0.0), [0, 1, 2, 3, 4]);
        assert_eq!(best(&scores, 0.2), [0, 2, 3, 4]);
        // Equal scores: the earlier sample ranks first.
        assert_eq!(best(&scores, 0.4), [0, 2, 4]);
        assert_eq!(best(&scores, 0.99), [2]);
        assert_eq!(best(&[1.0; 70], 0.1).len(), 63);
        assert_eq!(others(&[3, 0], 5), [1, 2, 4]);
    }
}
