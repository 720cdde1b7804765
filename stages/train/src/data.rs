use std::ops::Range;

use provenir_nn::{Forward, NnError, Widths, select_rows};
use provenir_policy::Standardisation;
use provenir_table::Matrix;
use tch::{Device, Tensor};

/// Observations and actions are as wide as the next multiple of these, and 0 beyond their own widths, whether policies are
/// trained alone or together: so policies of different robots have one shape, and what they learn is the same to the bit.
///
/// All robots that there are come to 32 and 16: Hopper has 16 observed values with the time feature and 3 actions, Ant 29 and 8.
/// Hopper's networks of three layers of 64 units take a fifth more multiplications for it, of 500 a thirtieth. Rows of so many
/// floats are whole vectors of a processor and whole tiles of a GPU's tensor cores; a processor without AVX-512 takes three times
/// as long for a product that is 8 columns wide as for one of 16.
const OBSERVED: usize = 32;
const ACTED: usize = 16;

/// The widths that data sets of these widths have in a training.
pub(crate) fn padded(widths: Widths) -> Widths {
    Widths {
        inputs: widths.inputs.next_multiple_of(OBSERVED),
        outputs: widths.outputs.next_multiple_of(ACTED),
    }
}

/// The data sets of K policies, N samples each. Samples are counted through all of them, policy after policy, although policies
/// that learn from one data set have it in memory once.
pub(crate) struct Data {
    /// Standardised, of S data sets one after another, `[S · N, in]`; 0 beyond the width of its data set.
    pub(crate) observations: Tensor,
    /// `[S · N, out]`; 0 beyond the width of its data set.
    pub(crate) actions: Tensor,
    /// Which data set each policy has, `[K]`.
    pub(crate) sets: Vec<usize>,
    /// How far what is in memory stands before what is counted, for each policy, `[K, 1]`; nothing where each has a data set of its own.
    ahead: Option<Tensor>,
    /// The widths of each policy's data set, `[K]`.
    pub(crate) widths: Vec<Widths>,
    /// K.
    pub(crate) members: usize,
    /// N.
    pub(crate) samples: usize,
}

impl Data {
    /// From the standardised observations and the actions of data sets, all of one size and of one padded shape, and which of them each
    /// policy has.
    pub(crate) fn new(
        observations: &[&Matrix],
        actions: &[&Matrix],
        sets: Vec<usize>,
        device: Device,
    ) -> Result<Self, NnError> {
        let samples = observations.first().map_or(0, |matrix| matrix.rows());
        let widths: Vec<Widths> = observations
            .iter()
            .zip(actions)
            .map(|(observations, actions)| Widths {
                inputs: observations.width(),
                outputs: actions.width(),
            })
            .collect();
        let shape = widths.first().map(|widths| padded(*widths));
        let is_of_it = |widths: &Widths| Some(padded(*widths)) == shape;
        assert!(widths.iter().all(is_of_it), "data sets of one padded shape");
        let stack = |matrices: &[&Matrix], width: usize| -> Result<Tensor, NnError> {
            let parts = matrices
                .iter()
                .map(|matrix| {
                    assert_eq!(matrix.rows(), samples, "data sets of one size");
                    let own = [matrix.rows() as i64, matrix.width() as i64];
                    Ok(Tensor::f_from_slice(matrix.values())?
                        .f_view(own)?
                        .f_constant_pad_nd([0, width as i64 - own[1]])?)
                })
                .collect::<Result<Vec<_>, NnError>>()?;
            Ok(Tensor::f_cat(&parts, 0)?.f_to_device(device)?)
        };
        Ok(Self {
            observations: stack(observations, shape.map_or(0, |shape| shape.inputs))?,
            actions: stack(actions, shape.map_or(0, |shape| shape.outputs))?,
            ahead: ahead(&sets, samples, device)?,
            widths: sets.iter().map(|set| widths[*set]).collect(),
            members: sets.len(),
            sets,
            samples,
        })
    }

    /// Those of some of the policies, which share their tensors with these.
    pub(crate) fn part(&self, members: &Range<usize>) -> Result<Self, NnError> {
        let sets = self.sets[members.clone()].to_vec();
        Ok(Self {
            observations: self.observations.shallow_clone(),
            actions: self.actions.shallow_clone(),
            ahead: ahead(&sets, self.samples, self.device())?,
            sets,
            widths: self.widths[members.clone()].to_vec(),
            members: members.len(),
            samples: self.samples,
        })
    }

    /// Where the samples that `index` names are in memory, `[J · B]` both: equally many of each policy, which may have several networks.
    pub(crate) fn rows(&self, index: &Tensor) -> Result<Tensor, NnError> {
        Ok(match &self.ahead {
            None => index.shallow_clone(),
            Some(ahead) => index
                .f_view([self.members as i64, -1])?
                .f_sub(ahead)?
                .f_view([-1])?,
        })
    }

    /// The input of networks becomes the observations in these [rows](Self::rows).
    pub(crate) fn observations_into(&self, rows: &Tensor, forward: &mut Forward) -> Result<(), NnError> {
        forward.load(&self.observations, rows)
    }

    /// `actions` (`[J, B, out]`) become those in these [rows](Self::rows).
    pub(crate) fn actions_into(&self, rows: &Tensor, actions: &Tensor) -> Result<(), NnError> {
        select_rows(&self.actions, rows, actions)
    }

    /// Where the tensors are.
    pub(crate) fn device(&self) -> Device {
        self.observations.device()
    }

    /// The widths of each of J networks, equally many of each data set.
    pub(crate) fn widths_of(&self, networks: usize) -> Vec<Widths> {
        let each = self.widths.iter();
        each.flat_map(|widths| std::iter::repeat_n(*widths, networks / self.members))
            .collect()
    }

    /// A: how many components the actions of each data set have, `[K]`.
    pub(crate) fn components(&self) -> Vec<usize> {
        self.widths.iter().map(|widths| widths.outputs).collect()
    }

    /// How many columns they take, of which those beyond their own are 0.
    pub(crate) fn action_columns(&self) -> usize {
        self.actions.size()[1] as usize
    }
}

/// [`Data::ahead`] of policies with these data sets.
fn ahead(sets: &[usize], samples: usize, device: Device) -> Result<Option<Tensor>, NnError> {
    if sets.iter().copied().eq(0..sets.len()) {
        return Ok(None);
    }
    let ahead = |(member, set): (usize, &usize)| (member as i64 - *set as i64) * samples as i64;
    let ahead: Vec<i64> = sets.iter().enumerate().map(ahead).collect();
    Ok(Some(
        Tensor::f_from_slice(&ahead)?
            .f_view([-1, 1])?
            .f_to_device(device)?,
    ))
}

/// A value for each network, `[J, 1]`.
pub(crate) fn column(values: impl Iterator<Item = f64>, device: Device) -> Result<Tensor, NnError> {
    let values: Vec<f32> = values.map(|value| value as f32).collect();
    Ok(Tensor::f_from_slice(&values)?
        .f_view([-1, 1])?
        .f_to_device(device)?)
}

/// A deviation of this size, beside values of size 1, is a few roundings of single precision.
const ROUNDING: f64 = 1e-6;

/// How observations are standardised.
pub(crate) struct Fitted {
    /// Mean and deviation of each column; deviations below the floor are raised to it.
    pub(crate) standardisation: Standardisation,
    /// Columns that hold one value, but for the rounding of a simulation: usual where a robot cannot move in every
    /// direction.
    pub(crate) constant: Vec<usize>,
    /// Other columns whose deviation was raised.
    pub(crate) raised: Vec<usize>,
}

/// The standardisation of these observations, where no deviation is taken to be less than `floor`.
pub(crate) fn standardisation(observations: &Matrix, floor: f64) -> Fitted {
    let width = observations.width();
    let count = observations.rows().max(1) as f64;
    let average = |term: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
        let mut sums = vec![0.0; width];
        for row in observations {
            for (column, (sum, value)) in sums.iter_mut().zip(row).enumerate() {
                *sum += term(column, f64::from(*value));
            }
        }
        sums.into_iter().map(|sum| sum / count).collect()
    };
    let mean = average(&|_, value| value);
    let deviation: Vec<f64> = average(&|column, value| (value - mean[column]) * (value - mean[column]))
        .into_iter()
        .map(f64::sqrt)
        .collect();
    let (constant, raised) = (0..width)
        .filter(|column| deviation[*column] < floor)
        .partition(|column| deviation[*column] <= ROUNDING * mean[*column].abs().max(1.0));
    let scale = deviation
        .into_iter()
        .map(|deviation| deviation.max(floor))
        .collect();
    Fitted {
        standardisation: Standardisation {
            mean,
            scale,
            clip: None,
        },
        constant,
        raised,
    }
}

/// Standardised observations, to the bit what a policy with that standardisation makes of them.
pub(crate) fn standardised(observations: &Matrix, standardisation: &Standardisation) -> Matrix {
    let mut result = observations.clone();
    let Standardisation { mean, scale, .. } = standardisation;
    for row in 0..result.rows() {
        for ((value, mean), scale) in result.row_mut(row).iter_mut().zip(mean).zip(scale) {
            *value = ((f64::from(*value) - mean) / scale) as f32;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_with_one_data_set_find_the_same_samples_as_with_copies_of_it() {
        const SAMPLES: usize = 5;
        let matrix = |width: usize, start: usize| {
            let values = (start..start + width * SAMPLES).map(|value| value as f32);
            Matrix::new(width, values.collect()).unwrap()
        };
        let observations = [matrix(3, 0), matrix(4, 100), matrix(2, 200)];
        let actions = [matrix(1, 300), matrix(2, 400), matrix(1, 500)];
        let data = |different: &[usize], sets: &[usize]| {
            let observations: Vec<&Matrix> = different.iter().map(|set| &observations[*set]).collect();
            let actions: Vec<&Matrix> = different.iter().map(|set| &actions[*set]).collect();
            Data::new(&observations, &actions, sets.to_vec(), Device::Cpu).unwrap()
        };
        let of_members = [1, 0, 1, 2, 2];
        let once = data(&[0, 1, 2], &of_members);
        let copied = data(&of_members, &[0, 1, 2, 3, 4]);
        assert_eq!(once.observations.size()[0] as usize, 3 * SAMPLES);
        assert_eq!(once.widths, copied.widths);
        let found = |data: &Data, index: &Tensor| {
            let rows = data.rows(index).unwrap();
            [&data.observations, &data.actions].map(|all| all.index_select(0, &rows))
        };
        for members in [0..5, 1..4, 3..5, 0..1] {
            let (once, copied) = (once.part(&members).unwrap(), copied.part(&members).unwrap());
            assert_eq!(once.components(), copied.components());
            // Two networks a policy, every sample.
            let index: Vec<i64> = (0..members.len() * 2)
                .flat_map(|network| (0..SAMPLES).map(move |sample| (network / 2 * SAMPLES + sample) as i64))
                .collect();
            let index = Tensor::from_slice(&index);
            assert_eq!(found(&once, &index), found(&copied, &index));
        }
    }

    #[test]
    fn columns_get_mean_zero_and_deviation_one_and_constant_ones_zero() {
        let observations = Matrix::new(3, vec![1.0, 7.0, 4.0, 3.0, 7.0, 4.0, 5.0, 7.0, 4.001]).unwrap();
        let Fitted {
            standardisation,
            constant,
            raised,
        } = standardisation(&observations, 1e-2);
        assert_eq!((constant, raised), (vec![1], vec![2]));
        assert!((standardisation.mean[0] - 3.0).abs() < 1e-15);
        assert!((standardisation.scale[0] - (8.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        let standardised = standardised(&observations, &standardisation);
        let column = |column: usize| standardised.iter().map(move |row| f64::from(row[column]));
        let root = 1.5_f64.sqrt();
        for (found, expected) in column(0).zip([-root, 0.0, root]) {
            assert!((found - expected).abs() < 1e-6);
        }
        assert!(column(1).all(|value| value == 0.0));
        assert!(column(2).all(|value| value.abs() < 0.1));
    }
}
