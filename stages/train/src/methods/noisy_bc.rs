use provenir_nn::NnError;
use provenir_random::Stream;
use tch::{Kind, Tensor};

use crate::cloning::{Cloning, Course, Rule, Setting, Verdict};
use crate::data::Data;
use crate::method::{Memory, Notes, expect_length, part};
use crate::rounds::Rounds;
use crate::student::{Batch, mean};
use crate::sweep::Residuals;

/// Committees of networks that learn from disjoint parts of their policy's data set, or one network that learns from all
/// of it.
pub(crate) fn noisy_bc<'a>(
    setting: &Setting<'a>,
    committee: usize,
    rounds: u64,
    sigma_floor: f64,
) -> Result<Cloning<'a>, NnError> {
    let rounds = Rounds {
        count: rounds,
        epochs: setting.epochs,
    };
    let rule = |data: &Data| {
        Ok(Reweighted {
            rounds,
            sigma_floor,
            committee,
            on_device: Tensor::f_zeros(
                [(data.members * data.samples) as i64],
                (Kind::Float, data.device()),
            )?,
            round: None,
        })
    };
    let mut cloning = Cloning::new(setting, committee, rule)?.in_rounds(rounds);
    if committee > 1 {
        cloning.restrict(0, disjoint(&setting.streams, committee, setting.data.samples));
    }
    Ok(cloning)
}

/// Parts of every data set, of one size or one more, in random order: as many as a committee has networks.
pub(crate) fn disjoint(streams: &[Stream], committee: usize, samples: usize) -> Vec<Vec<usize>> {
    streams
        .iter()
        .flat_map(|stream| {
            let order = stream.child("parts", 0).permutation(samples);
            (0..committee).map(move |part| order.iter().skip(part).step_by(committee).copied().collect())
        })
        .collect()
}

/// Behaviour cloning from noisy demonstrations: rounds of weighted least squares, each from initial values anew, where
/// samples count by their density under the policy of the round before.
struct Reweighted {
    rounds: Rounds,
    sigma_floor: f64,
    committee: usize,
    /// The weights of the round, `[K · N]`.
    on_device: Tensor,
    /// Of every round but the first.
    round: Option<Round>,
}

/// What a round was given by the one before.
struct Round {
    /// Of each sample, with mean 1 over each data set, `[K · N]`.
    weights: Vec<f64>,
    /// Deviation of each network, `[J]`.
    deviations: Vec<f64>,
}

/// Logarithms of the mean of Gaussian densities, but for (2π)^(−A/2).
struct Density {
    /// At each sample.
    logarithms: Vec<f64>,
    /// Of the greatest possible value.
    largest: f64,
}

/// The density of a committee with these deviations, and these squared errors in `width` components at each sample.
fn density(errors: &[Vec<f64>], deviations: &[f64], width: usize) -> Density {
    let width = width as f64;
    let peaks: Vec<f64> = deviations
        .iter()
        .map(|sigma| -width * libm::log(*sigma))
        .collect();
    let average = |terms: &mut dyn Iterator<Item = f64>| {
        let terms: Vec<f64> = terms.collect();
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = terms.iter().map(|term| libm::exp(term - largest)).sum();
        largest + libm::log(sum / terms.len() as f64)
    };
    let samples = errors.first().map_or(0, Vec::len);
    let of_samples = (0..samples).map(|sample| {
        let terms = errors.iter().zip(deviations).zip(&peaks);
        average(
            &mut terms.map(|((errors, sigma), peak)| peak - width * errors[sample] / (2.0 * sigma * sigma)),
        )
    });
    Density {
        logarithms: of_samples.collect(),
        largest: average(&mut peaks.iter().copied()),
    }
}

/// exp(logarithms), in proportion to their mean.
fn weights(logarithms: &[f64]) -> Vec<f64> {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logarithms
        .iter()
        .map(|value| libm::exp(value - largest))
        .collect();
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    weights.into_iter().map(|weight| weight / mean).collect()
}

/// (Σw)²/Σw²
fn effective(weights: &[f64]) -> f64 {
    let sum: f64 = weights.iter().sum();
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    sum * sum / squares
}

impl Reweighted {
    fn begin_round(&mut self, round: Round) -> Result<(), NnError> {
        let singles: Vec<f32> = round.weights.iter().map(|weight| *weight as f32).collect();
        self.on_device.f_copy_(&Tensor::f_from_slice(&singles)?)?;
        self.round = Some(round);
        Ok(())
    }

    /// The likeliest deviation of each network under the weights that it learnt by, on the samples that it learnt from:
    /// σ² = Σ w e / Σ w.
    fn deviations(&self, course: &Course<'_>, residuals: &Residuals) -> Vec<f64> {
        let samples = course.data.samples;
        (0..course.networks.len())
            .map(|network| {
                let errors = residuals.errors(network);
                let offset = network / self.committee * samples;
                let (mut weight, mut square) = (0.0, 0.0);
                for sample in course.pool(network) {
                    let own = self
                        .round
                        .as_ref()
                        .map_or(1.0, |round| round.weights[offset + sample]);
                    weight += own;
                    square += own * errors[sample];
                }
                // A part of the data that has no weight left says nothing of its network.
                let likeliest = if weight > 0.0 {
                    (square / weight).sqrt()
                } else {
                    0.0
                };
                likeliest.max(self.sigma_floor)
            })
            .collect()
    }

    /// The density of each policy, and the deviation of each network.
    fn densities(&self, course: &Course<'_>) -> Result<(Vec<Density>, Vec<f64>), NnError> {
        let residuals = course.residuals()?;
        let deviations = self.deviations(course, &residuals);
        let densities = deviations
            .chunks(self.committee)
            .enumerate()
            .map(|(member, deviations)| {
                let networks = member * self.committee..(member + 1) * self.committee;
                let errors: Vec<Vec<f64>> = networks.map(|network| residuals.errors(network)).collect();
                density(&errors, deviations, course.data.widths[member].outputs)
            })
            .collect();
        Ok((densities, deviations))
    }
}

impl Rule for Reweighted {
    fn begin_epoch(&mut self, epoch: u64, course: &Course<'_>) -> Result<(), NnError> {
        if self.rounds.next(epoch).is_none() {
            return Ok(());
        }
        let (densities, deviations) = self.densities(course)?;
        let weights = densities
            .iter()
            .flat_map(|density| weights(&density.logarithms))
            .collect();
        self.begin_round(Round { weights, deviations })
    }

    fn variant(&self) -> u8 {
        u8::from(self.round.is_some())
    }

    fn judge(&mut self, batch: &mut Batch) -> Result<Verdict, NnError> {
        if self.round.is_none() {
            batch.follow_all()?;
            return Ok(Verdict {
                loss: mean(&batch.errors)?,
                selected: None,
            });
        }
        let weights = batch.look_up(&self.on_device)?;
        let loss = batch.errors.f_mul(&weights)?.f_mean_dim(1, false, Kind::Float)?;
        batch.follow(&weights)?;
        Ok(Verdict { loss, selected: None })
    }

    fn notes(&self) -> Result<Notes, NnError> {
        let Some(round) = &self.round else {
            return Ok(Notes::default());
        };
        let members = round.deviations.len() / self.committee;
        let samples = round.weights.len() / members;
        Ok(Notes {
            sigma: round
                .deviations
                .chunks(self.committee)
                .map(|deviations| Some(deviations.iter().sum::<f64>() / deviations.len() as f64))
                .collect(),
            effective: round
                .weights
                .chunks(samples)
                .map(|weights| Some(effective(weights)))
                .collect(),
        })
    }

    fn trust(&mut self, course: &Course<'_>) -> Result<Option<Vec<f64>>, NnError> {
        let (densities, _) = self.densities(course)?;
        let trust = densities.iter().flat_map(|density| {
            // Rounding may put a density just above the greatest possible.
            let relative = |value: &f64| libm::exp(value - density.largest).min(1.0);
            density.logarithms.iter().map(relative)
        });
        Ok(Some(trust.collect()))
    }

    fn remember(&self, memories: &mut [Memory]) -> Result<(), NnError> {
        let members = memories.len();
        if let Some(Round { weights, deviations }) = &self.round {
            for (member, memory) in memories.iter_mut().enumerate() {
                memory.values = [weights, deviations]
                    .map(|values| part(values, member, members))
                    .to_vec();
            }
        }
        Ok(())
    }

    fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError> {
        // Equally many epochs: all are in one round.
        if memories.iter().all(|memory| memory.values.len() == 2) {
            let [weights, deviations] =
                [0, 1].map(|place| Memory::chained(memories, |memory| &memory.values[place]));
            expect_length("weights", self.on_device.numel(), weights.len())?;
            self.begin_round(Round { weights, deviations })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn weights_of_one_network_are_its_densities() {
        // Two components, σ = 0.5, squared errors averaged over components: the density is ∝ exp(−2e/(2 · 0.25)).
        let errors = vec![vec![0.0, 0.125, 0.5, 3.0]];
        let Density {
            logarithms: found,
            largest,
        } = density(&errors, &[0.5], 2);
        let densities = [1.0_f64, (-0.5_f64).exp(), (-2.0_f64).exp(), (-12.0_f64).exp()];
        let mean = densities.iter().sum::<f64>() / 4.0;
        for ((weight, logarithm), density) in weights(&found).iter().zip(&found).zip(densities) {
            assert!((weight - density / mean).abs() < 1e-12);
            assert!(((logarithm - largest).exp() - density).abs() < 1e-12);
        }
    }

    #[test]
    fn weights_survive_densities_that_numbers_do_not() {
        let weights = weights(&density(&[vec![4.0, 4.001]], &[0.01], 8).logarithms);
        // exp(−8 · 0.001/(2 · 1e-4)) = exp(−40) beside 1.
        assert!((weights[0] - 2.0).abs() < 1e-12 && weights[1] > 0.0 && weights[1] < 1e-16);
        assert!((effective(&weights) - 1.0).abs() < 1e-12);
        assert!((effective(&[1.0; 9]) - 9.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn weights_of_a_committee_are_its_mean_density_in_proportion(
            rows in prop::collection::vec(prop::collection::vec(0.0..2.0, 6), 1..4),
            sigmas in prop::collection::vec(0.3..1.5, 3), width in 1..4_i32,
        ) {
            let sigmas = &sigmas[..rows.len()];
            let Density { logarithms: found, largest } = density(&rows, sigmas, width as usize);
            // Densities themselves, which these residuals do not let vanish.
            let gaussian = |sigma: f64, error: f64| {
                sigma.powi(-width) * (-f64::from(width) * error / (2.0 * sigma * sigma)).exp()
            };
            let plain = |error: &dyn Fn(usize) -> f64| {
                let terms = sigmas.iter().enumerate().map(|(network, sigma)| gaussian(*sigma, error(network)));
                terms.sum::<f64>() / sigmas.len() as f64
            };
            let densities: Vec<f64> = (0..6).map(|sample| plain(&|network| rows[network][sample])).collect();
            let mean = densities.iter().sum::<f64>() / 6.0;
            let peak = plain(&|_| 0.0);
            for ((weight, logarithm), density) in weights(&found).iter().zip(&found).zip(&densities) {
                prop_assert!((weight - density / mean).abs() < 1e-9 * (1.0 + weight));
                prop_assert!(((logarithm - largest).exp() - density / peak).abs() < 1e-9);
            }
        }

        #[test]
        fn parts_are_disjoint_and_hold_everything(seed: u64, samples in 1..60_usize, committee in 1..7_usize) {
            let parts = disjoint(&[Stream::new(seed, "test")], committee, samples);
            prop_assert_eq!(parts.len(), committee);
            prop_assert!(parts.iter().all(|part| part.len().abs_diff(samples / committee) <= 1));
            let mut all = parts.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..samples).collect::<Vec<_>>());
        }
    }
}
