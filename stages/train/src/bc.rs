use provenir_nn::{Backward, Ensemble, Forward, NnError, Shape, squared_error};
use provenir_random::Stream;
use tch::{Kind, Tensor};

use crate::data::Data;
use crate::learner::Learner;
use crate::method::{Counts, Method, Trace};

/// Behaviour cloning: least squares over minibatches in an order that is drawn for every epoch; the last minibatch may
/// be short.
pub(crate) struct Bc<'a> {
    data: &'a Data,
    streams: &'a [Stream],
    learner: Learner,
    /// Samples a minibatch.
    size: usize,
    full: Minibatch,
    /// The last one of an epoch, where it is short.
    short: Option<Minibatch>,
    /// Samples of each policy in the epoch's order, counted through all data sets, `[K, N]`.
    order: Tensor,
    epochs: u64,
}

/// Buffers for a minibatch of one size.
struct Minibatch {
    forward: Forward,
    backward: Backward,
    /// `[K, B, out]`
    targets: Tensor,
}

impl Minibatch {
    fn new(learner: &Learner, rows: usize) -> Result<Self, NnError> {
        let forward = Forward::new(&learner.ensemble, rows)?;
        Ok(Self {
            backward: Backward::new(&learner.ensemble, rows)?,
            targets: forward.output().f_zeros_like()?,
            forward,
        })
    }

    /// A step on the samples that `index` names.
    fn step(
        &mut self,
        learner: &mut Learner,
        data: &Data,
        index: &Tensor,
        rates: &[f64],
    ) -> Result<Trace, NnError> {
        self.forward.load(&data.observations, index)?;
        data.actions_into(index, &self.targets)?;
        self.forward.run(&learner.ensemble)?;
        let mut delta = self.backward.output().shallow_clone();
        let loss =
            squared_error(self.forward.output(), &self.targets, &delta)?.f_mean_dim(1, false, Kind::Float)?;
        let terms = self.forward.rows() * data.action_width();
        let _ = delta.f_mul_scalar_(2.0 / terms as f64)?;
        let norm = learner.descend(&self.forward, &mut self.backward, rates)?;
        Ok(Trace {
            loss,
            norm,
            median: None,
        })
    }
}

impl<'a> Bc<'a> {
    /// Policies at their initial values, one for each stream and data set.
    pub(crate) fn new(
        shape: &Shape,
        data: &'a Data,
        streams: &'a [Stream],
        size: usize,
        clip: Option<f64>,
    ) -> Result<Self, NnError> {
        let initial: Vec<Stream> = streams.iter().map(|stream| stream.child("policy", 0)).collect();
        let learner = Learner::new(shape, &initial, clip, data.device())?;
        let size = size.min(data.samples);
        let short = data.samples % size;
        Ok(Self {
            full: Minibatch::new(&learner, size)?,
            short: (short > 0).then(|| Minibatch::new(&learner, short)).transpose()?,
            order: Tensor::f_zeros([0, 0], (Kind::Int64, data.device()))?,
            data,
            streams,
            learner,
            size,
            epochs: 0,
        })
    }
}

impl Method for Bc<'_> {
    fn policies(&self) -> &Ensemble {
        &self.learner.ensemble
    }

    fn learners(&mut self) -> Vec<&mut Learner> {
        vec![&mut self.learner]
    }

    fn begin_epoch(&mut self, epoch: u64) -> Result<(), NnError> {
        let Data { samples, members, .. } = *self.data;
        let mut order = Vec::with_capacity(members * samples);
        for (member, stream) in self.streams.iter().enumerate() {
            let permutation = stream.child("order", epoch).permutation(samples);
            order.extend(
                permutation
                    .into_iter()
                    .map(|sample| (member * samples + sample) as i64),
            );
        }
        self.order = Tensor::f_from_slice(&order)?
            .f_view([members as i64, samples as i64])?
            .f_to_device(self.data.device())?;
        self.epochs = epoch + 1;
        Ok(())
    }

    fn step(&mut self, within: usize, _: u64, rates: &[f64]) -> Result<Trace, NnError> {
        let start = within * self.size;
        let count = self.size.min(self.data.samples - start);
        let minibatch = match &mut self.short {
            Some(short) if count < self.size => short,
            _ => &mut self.full,
        };
        let index = self
            .order
            .f_narrow(1, start as i64, count as i64)?
            .f_reshape(-1)?;
        minibatch.step(&mut self.learner, self.data, &index, rates)
    }

    fn counts(&self) -> Result<Counts, NnError> {
        let each = vec![self.epochs; self.data.members * self.data.samples];
        Ok(Counts {
            drawn: each.clone(),
            selected: each,
        })
    }

    fn restore_counts(&mut self, _: &Counts) -> Result<(), NnError> {
        // Every epoch draws every sample once: `begin_epoch` counts.
        Ok(())
    }
}
