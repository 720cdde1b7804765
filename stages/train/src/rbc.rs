use provenir_nn::{Backward, Ensemble, Forward, NnError, Shape, select_rows, squared_error};
use provenir_random::Stream;
use tch::{Kind, Tensor};

use crate::data::Data;
use crate::learner::Learner;
use crate::method::{Counts, Method, Trace};
use crate::partition::{Blocks, Chunks, Partition, Selection};

/// Robust behaviour cloning: at every step a chunk of samples is drawn and divided into blocks at random, and the blocks
/// around the median one give the gradient (Algorithm 1 of the paper, with its device of several blocks).
///
/// Blocks rank by the policy's loss less that of a challenger, which has its own initial values and its own optimiser and
/// takes the opposite side: ascent on the difference, which is descent on its own loss, on the same blocks. Without a
/// challenger they rank by the policy's loss.
pub(crate) struct Rbc<'a> {
    data: &'a Data,
    streams: &'a [Stream],
    policy: Player,
    challenger: Option<Player>,
    partition: Partition,
    blocks: Blocks,
    chunks: Chunks,
    /// `[K, n, out]`
    targets: Tensor,
    drawn: Vec<u64>,
    /// `[K · N]`
    selected: Tensor,
}

/// One side, with its buffers for a whole chunk and for the selected part of it.
struct Player {
    learner: Learner,
    chunk: Forward,
    /// Output − target over the chunk, `[K, n, out]`.
    difference: Tensor,
    selected: Forward,
    backward: Backward,
}

impl Player {
    fn new(
        shape: &Shape,
        data: &Data,
        streams: &[Stream],
        partition: Partition,
        clip: Option<f64>,
    ) -> Result<Self, NnError> {
        let learner = Learner::new(shape, streams, clip, data.device())?;
        let chunk = Forward::new(&learner.ensemble, partition.samples)?;
        Ok(Self {
            difference: chunk.output().f_zeros_like()?,
            chunk,
            selected: Forward::new(&learner.ensemble, partition.slots())?,
            backward: Backward::new(&learner.ensemble, partition.slots())?,
            learner,
        })
    }

    /// Losses of the chunk's samples, `[K, n]`.
    fn losses(&mut self, data: &Data, index: &Tensor, targets: &Tensor) -> Result<Tensor, NnError> {
        self.chunk.load(&data.observations, index)?;
        self.chunk.run(&self.learner.ensemble)?;
        squared_error(self.chunk.output(), targets, &self.difference)
    }

    /// A step on the selected samples, whose forward pass is taken over from the chunk; gives the gradients' norms.
    fn step(&mut self, selection: &Selection, rates: &[f64]) -> Result<Tensor, NnError> {
        self.selected.gather(&self.chunk, &selection.places)?;
        let mut delta = self.backward.output().shallow_clone();
        let (members, rows, width) = self.difference.size3()?;
        select_rows(
            &self.difference.f_view([members * rows, width])?,
            &selection.places,
            &delta,
        )?;
        let slopes = selection
            .weights
            .f_mul_scalar(2.0 / width as f64)?
            .f_unsqueeze(2)?;
        let _ = delta.f_mul_(&slopes)?;
        self.learner.descend(&self.selected, &mut self.backward, rates)
    }
}

/// Settings of [`Rbc`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RbcSettings {
    /// Whether there is a challenger.
    pub(crate) challenger: bool,
    /// How chunks are divided.
    pub(crate) partition: Partition,
    /// Largest norm of a gradient.
    pub(crate) clip: Option<f64>,
}

impl<'a> Rbc<'a> {
    /// Policies at their initial values, one for each stream and data set.
    pub(crate) fn new(
        shape: &Shape,
        data: &'a Data,
        streams: &'a [Stream],
        settings: RbcSettings,
    ) -> Result<Self, NnError> {
        let RbcSettings {
            challenger,
            partition,
            clip,
        } = settings;
        let player = |name: &str| {
            let initial: Vec<Stream> = streams.iter().map(|stream| stream.child(name, 0)).collect();
            Player::new(shape, data, &initial, partition, clip)
        };
        let policy = player("policy")?;
        let counted = data.members * data.samples;
        Ok(Self {
            challenger: challenger.then(|| player("challenger")).transpose()?,
            blocks: Blocks::new(partition, data.members, data.device())?,
            chunks: Chunks::new(data.samples),
            targets: policy.chunk.output().f_zeros_like()?,
            drawn: vec![0; counted],
            selected: Tensor::f_zeros([counted as i64], (Kind::Int64, data.device()))?,
            partition,
            policy,
            data,
            streams,
        })
    }

    /// A chunk for each policy, counted through all data sets, `[K · n]`.
    fn draw(&mut self, step: u64) -> Result<Tensor, NnError> {
        let mut index = Vec::with_capacity(self.data.members * self.partition.samples);
        for (member, stream) in self.streams.iter().enumerate() {
            let offset = member * self.data.samples;
            self.chunks
                .draw(stream.child("chunk", step), self.partition.samples, |sample| {
                    self.drawn[offset + sample] += 1;
                    index.push((offset + sample) as i64);
                });
        }
        Ok(Tensor::f_from_slice(&index)?.f_to_device(self.data.device())?)
    }
}

impl Method for Rbc<'_> {
    fn policies(&self) -> &Ensemble {
        &self.policy.learner.ensemble
    }

    fn learners(&mut self) -> Vec<&mut Learner> {
        let challenger = self.challenger.as_mut().map(|player| &mut player.learner);
        std::iter::once(&mut self.policy.learner)
            .chain(challenger)
            .collect()
    }

    fn begin_epoch(&mut self, _: u64) -> Result<(), NnError> {
        Ok(())
    }

    fn step(&mut self, _: usize, step: u64, rates: &[f64]) -> Result<Trace, NnError> {
        let index = self.draw(step)?;
        self.data.actions_into(&index, &self.targets)?;
        let losses = self.policy.losses(self.data, &index, &self.targets)?;
        let selection = if let Some(challenger) = &mut self.challenger {
            let rival = challenger.losses(self.data, &index, &self.targets)?;
            self.blocks.select(&losses.f_sub(&rival)?)?
        } else {
            self.blocks.select(&losses)?
        };
        let members = self.data.members as i64;
        let selected_losses = losses
            .f_reshape(-1)?
            .f_index_select(0, &selection.places)?
            .f_view([members, -1])?;
        let loss = selected_losses
            .f_mul(&selection.weights)?
            .f_sum_dim_intlist(1, false, Kind::Float)?;
        let samples = index.f_index_select(0, &selection.places)?;
        let _ = self.selected.f_index_add_(0, &samples, &selection.selected)?;
        let norm = self.policy.step(&selection, rates)?;
        if let Some(challenger) = &mut self.challenger {
            let _ = challenger.step(&selection, rates)?;
        }
        Ok(Trace {
            loss,
            norm,
            median: Some(selection.median),
        })
    }

    fn counts(&self) -> Result<Counts, NnError> {
        let mut selected = vec![0_i64; self.drawn.len()];
        let count = selected.len();
        self.selected.f_copy_data(&mut selected, count)?;
        Ok(Counts {
            drawn: self.drawn.clone(),
            selected: selected.into_iter().map(i64::unsigned_abs).collect(),
        })
    }

    fn restore_counts(&mut self, counts: &Counts) -> Result<(), NnError> {
        for (what, found) in [("draws", &counts.drawn), ("selections", &counts.selected)] {
            if found.len() != self.drawn.len() {
                return Err(NnError::Length {
                    what,
                    expected: self.drawn.len(),
                    found: found.len(),
                });
            }
        }
        let selected: Vec<i64> = counts.selected.iter().map(|count| count.cast_signed()).collect();
        self.drawn.clone_from(&counts.drawn);
        self.selected.f_copy_(&Tensor::f_from_slice(&selected)?)?;
        Ok(())
    }
}
