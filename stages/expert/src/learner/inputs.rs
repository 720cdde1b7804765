use provenir_nn::NnError;
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

use super::{Batch, normal};

/// All that an update reads and that changes from update to update, at places that stay: a GPU that repeats a recorded
/// update finds it there.
pub(super) struct Inputs {
    /// `[B, O]`
    pub(super) observations: Tensor,
    /// `[B, A]`
    pub(super) actions: Tensor,
    /// `[B, 1]`
    pub(super) rewards: Tensor,
    /// `[B, 1]`
    pub(super) discounts: Tensor,
    /// `[B, O]`
    pub(super) next_observations: Tensor,
    /// Standard normal, for the actions that the policy would take now and next, `[B, A]`.
    pub(super) noise: Tensor,
    pub(super) next_noise: Tensor,
    pub(super) entropy: Entropy,
}

/// The weight α of the entropy, in the forms in which the B terms of the losses take it.
pub(super) struct Entropy {
    /// −α
    pub(super) negative: Tensor,
    /// 2 α
    pub(super) double: Tensor,
    /// −α / B
    pub(super) negative_share: Tensor,
    rows: usize,
}

impl Inputs {
    pub(super) fn new(
        rows: usize,
        observation: usize,
        action: usize,
        device: Device,
    ) -> Result<Self, NnError> {
        let zeros = |width: usize| Tensor::f_zeros([rows as i64, width as i64], (Kind::Float, device));
        Ok(Self {
            observations: zeros(observation)?,
            actions: zeros(action)?,
            rewards: zeros(1)?,
            discounts: zeros(1)?,
            next_observations: zeros(observation)?,
            noise: zeros(action)?,
            next_noise: zeros(action)?,
            entropy: Entropy::new(rows, device)?,
        })
    }

    /// Brings in a batch, noise of this stream, and the weight of the entropy.
    pub(super) fn load(
        &mut self,
        batch: &Batch<'_>,
        stream: &Stream,
        temperature: f64,
    ) -> Result<(), NnError> {
        for (tensor, values) in [
            (&mut self.observations, batch.observations),
            (&mut self.actions, batch.actions),
            (&mut self.rewards, batch.rewards),
            (&mut self.discounts, batch.discounts),
            (&mut self.next_observations, batch.next_observations),
        ] {
            let (rows, width) = tensor.size2()?;
            tensor.f_copy_(&Tensor::f_from_slice(values)?.f_view([rows, width])?)?;
        }
        for (tensor, name) in [(&mut self.noise, "now"), (&mut self.next_noise, "next")] {
            let (rows, width) = tensor.size2()?;
            tensor.f_copy_(&normal(stream.child(name, 0), [rows, width])?)?;
        }
        self.entropy.set(temperature)
    }
}

impl Entropy {
    /// Of no weight.
    pub(super) fn new(rows: usize, device: Device) -> Result<Self, NnError> {
        let zero = || Tensor::f_zeros([], (Kind::Float, device));
        Ok(Self {
            negative: zero()?,
            double: zero()?,
            negative_share: zero()?,
            rows,
        })
    }

    pub(super) fn set(&mut self, temperature: f64) -> Result<(), NnError> {
        let _ = self.negative.f_fill_(-temperature)?;
        let _ = self.double.f_fill_(2.0 * temperature)?;
        let _ = self.negative_share.f_fill_(-temperature / self.rows as f64)?;
        Ok(())
    }
}
