use provenir_nn::{Backward, Ensemble, Forward, NnError, Repeated, select_rows, squared_error};
use provenir_random::Stream;
use tch::{Kind, Tensor};

use super::bc::{LeastSquares, Loss};
use crate::cloning::{Setting, initial};
use crate::data::{Data, column};
use crate::learner::Learner;
use crate::method::{Findings, Memory, Method, Stretch, Trace, frequencies, recall_learners};
use crate::order::{Selected, drawn, stretch};
use crate::partition::{Blocks, Chunks, Partition, Selection, median_of_blocks};
use crate::sweep::Sweep;

/// Robust behaviour cloning: at every step a chunk of samples is drawn and divided into blocks at random, and the blocks
/// around the median one give the gradient (Algorithm 1 of the paper, with its device of several blocks).
///
/// Blocks rank by the policy's loss less that of a challenger, which has its own initial values and its own optimiser and
/// takes the opposite side: ascent on the difference, which is descent on its own loss, on the same blocks. Without a
/// challenger they rank by the policy's loss.
pub(crate) struct Rbc<'a> {
    data: &'a Data,
    streams: Vec<Stream>,
    policy: Player,
    challenger: Option<Player>,
    settings: RbcSettings,
    loss: LeastSquares,
    blocks: Blocks,
    chunks: Chunks,
    /// The chunks of steps that may be announced next, drawn ahead.
    ahead: Option<(Stretch, Vec<i64>)>,
    /// The chunks of the steps that were announced, `[S, K · n]`, and the number within the epoch of the first.
    announced: Tensor,
    start: usize,
    /// The chunk of this step, at a place that stays, `[K · n]`.
    index: Tensor,
    /// `[K, n, out]`
    targets: Tensor,
    drawn: Vec<u64>,
    selected: Selected,
    trace: Trace,
    repeated: Repeated<()>,
}

/// One side, with its buffers for a whole chunk and for the selected part of it.
struct Player {
    learner: Learner,
    chunk: Forward,
    /// Output − target over the chunk, `[K, n, out]`.
    difference: Tensor,
    selected: Forward,
    backward: Backward,
    /// What a residual is multiplied by to be the derivative of its sample's loss, `[K, 1]`.
    slopes: Tensor,
}

impl Player {
    fn new(setting: &Setting<'_>, settings: &RbcSettings, streams: &[Stream]) -> Result<Self, NnError> {
        let (data, partition) = (setting.data, settings.partition);
        let learner = Learner::new(
            &setting.shape,
            &data.widths,
            streams,
            setting.descent,
            data.device(),
        )?;
        let chunk = Forward::new(&learner.ensemble, partition.samples)?;
        Ok(Self {
            difference: chunk.output().f_zeros_like()?,
            chunk,
            selected: Forward::new(&learner.ensemble, partition.slots())?,
            backward: Backward::new(&learner.ensemble, partition.slots())?,
            slopes: column(
                data.components().into_iter().map(|width| {
                    let (factor, _) = settings.loss.line(width);
                    2.0 / width as f64 * factor
                }),
                data.device(),
            )?,
            learner,
        })
    }

    /// Squared errors of the chunk's samples, which are in these [rows](Data::rows), `[K, n]`.
    fn errors(&mut self, data: &Data, rows: &Tensor, targets: &Tensor) -> Result<Tensor, NnError> {
        data.observations_into(rows, &mut self.chunk)?;
        self.chunk.run(&self.learner.ensemble)?;
        squared_error(
            self.chunk.output(),
            targets,
            self.learner.ensemble.components(),
            &self.difference,
        )
    }

    /// The part of a step that a GPU can repeat, along the loss of the selected samples, whose forward pass is taken over from
    /// the chunk; gives the gradients' norms, always the same tensor.
    fn step(&mut self, selection: &Selection) -> Result<&Tensor, NnError> {
        self.selected.gather(&self.chunk, &selection.places)?;
        let mut delta = self.backward.output().shallow_clone();
        let (members, rows, width) = self.difference.size3()?;
        select_rows(
            &self.difference.f_view([members * rows, width])?,
            &selection.places,
            &delta,
        )?;
        let slopes = selection.weights.f_mul(&self.slopes)?.f_unsqueeze(2)?;
        let _ = delta.f_mul_(&slopes)?;
        self.learner.descend(&self.selected, &mut self.backward)
    }
}

/// Passes a chunk through both networks; gives the policy's losses, `[K, n]`, and the blocks around the median one. They
/// rank by squared errors: the loss is a growing function of these, and so are differences.
fn judge(
    policy: &mut Player,
    challenger: Option<&mut Player>,
    data: &Data,
    index: &Tensor,
    targets: &Tensor,
    blocks: &Blocks,
    loss: &LeastSquares,
) -> Result<(Tensor, Selection), NnError> {
    let rows = data.rows(index)?;
    data.actions_into(&rows, targets)?;
    let errors = policy.errors(data, &rows, targets)?;
    let mut selection;
    let median;
    if let Some(challenger) = challenger {
        let rival = challenger.errors(data, &rows, targets)?;
        selection = blocks.select(&errors.f_sub(&rival)?)?;
        median = loss.of_difference(selection.median.f_unsqueeze(1)?)?;
    } else {
        selection = blocks.select(&errors)?;
        median = loss.of(selection.median.f_unsqueeze(1)?)?;
    }
    selection.median = median.f_squeeze_dim(1)?;
    Ok((loss.of(errors)?, selection))
}

/// Settings of [`Rbc`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RbcSettings {
    /// Whether there is a challenger.
    pub(crate) challenger: bool,
    /// How chunks are divided.
    pub(crate) partition: Partition,
    /// Samples of a block of the partition that τ̂ is measured on.
    pub(crate) block: usize,
    pub(crate) loss: Loss,
    /// Steps of the challenger before τ̂ is measured; 0 measures none.
    pub(crate) tau_steps: u64,
    /// Deviation of the Gaussians whose likelihoods τ̂ compares.
    pub(crate) sigma: f64,
}

impl<'a> Rbc<'a> {
    /// Policies at their initial values.
    pub(crate) fn new(setting: &Setting<'a>, settings: RbcSettings) -> Result<Self, NnError> {
        let streams = &setting.streams;
        let (data, partition) = (setting.data, settings.partition);
        let repeated = Repeated::new(data.device())?;
        let player = |name: &str| Player::new(setting, &settings, &initial(streams, name, 0));
        let policy = player("policy")?;
        let counted = data.members * data.samples;
        let chunk = (data.members * partition.samples) as i64;
        Ok(Self {
            challenger: settings.challenger.then(|| player("challenger")).transpose()?,
            loss: LeastSquares::new(settings.loss, data)?,
            blocks: Blocks::new(partition, data.members, data.device())?,
            chunks: Chunks::new(data.samples),
            ahead: None,
            announced: Tensor::new(),
            start: 0,
            index: Tensor::f_zeros([chunk], (Kind::Int64, data.device()))?,
            targets: policy.chunk.output().f_zeros_like()?,
            drawn: vec![0; counted],
            selected: Selected::new(counted, data.device())?,
            trace: Trace::new(data.members, data.device())?,
            repeated,
            settings,
            policy,
            data,
            streams: streams.clone(),
        })
    }

    /// Adds a chunk for each policy, counted through all data sets, `[K · n]`.
    fn draw(&mut self, name: &str, step: u64, into: &mut Vec<i64>) {
        let count = self.settings.partition.samples;
        for (member, stream) in self.streams.iter().enumerate() {
            let offset = member * self.data.samples;
            self.chunks.draw(stream.child(name, step), count, |sample| {
                into.push((offset + sample) as i64);
            });
        }
    }

    /// The chunks of these steps, `[S · K · n]`.
    fn draw_all(&mut self, stretch: &Stretch) -> Vec<i64> {
        let mut index = Vec::with_capacity(stretch.within.len() * self.index.numel());
        for step in (stretch.first..).take(stretch.within.len()) {
            self.draw("chunk", step, &mut index);
        }
        index
    }

    /// How often each sample was selected when it was drawn, `[K · N]`.
    pub(crate) fn trust(&self) -> Result<Vec<f64>, NnError> {
        Ok(frequencies(&self.drawn, &self.selected.counts()?))
    }

    /// τ̂ of each policy: how much the median block's likelihood falls short of the challenger's; nothing where there is
    /// none, or where it took no further steps.
    fn tau(&self) -> Result<Vec<f64>, NnError> {
        if self.steps_afterwards() == 0 {
            return Ok(Vec::new());
        }
        let Some(challenger) = &self.challenger else {
            return Ok(Vec::new());
        };
        let mut sweep = Sweep::new(self.policies(), self.data)?;
        let policy = sweep.residuals(self.policies())?;
        let challenger = sweep.residuals(&challenger.learner.ensemble)?;
        let samples = self.data.samples;
        let partition = Partition::new(samples, self.settings.block, 0.0);
        let streams = self.streams.iter().zip(self.data.components()).enumerate();
        Ok(streams
            .map(|(member, (stream, width))| {
                let (factor, _) = Loss::Likelihood(self.settings.sigma).line(width);
                let (policy, challenger) = (policy.errors(member), challenger.errors(member));
                let differences: Vec<f64> = stream
                    .child("partition", 0)
                    .permutation(samples)
                    .into_iter()
                    .map(|sample| policy[sample] - challenger[sample])
                    .collect();
                factor * median_of_blocks(&differences, partition)
            })
            .collect())
    }
}

impl Method for Rbc<'_> {
    fn policies(&self) -> &Ensemble {
        &self.policy.learner.ensemble
    }

    fn begin_epoch(&mut self, _: u64) -> Result<(), NnError> {
        Ok(())
    }

    fn stretch(&self) -> usize {
        stretch(self.index.numel())
    }

    fn announce(&mut self, stretch: &Stretch, rates: &[Vec<f64>]) -> Result<(), NnError> {
        let chunks = match self.ahead.take() {
            Some((foreseen, chunks)) if foreseen == *stretch => chunks,
            _ => self.draw_all(stretch),
        };
        for sample in &chunks {
            self.drawn[*sample as usize] += 1;
        }
        self.announced = Tensor::f_from_slice(&chunks)?
            .f_view([stretch.within.len() as i64, -1])?
            .f_to_device(self.data.device())?;
        self.start = stretch.within.start;
        for player in std::iter::once(&mut self.policy).chain(&mut self.challenger) {
            player.learner.announce(rates)?;
        }
        Ok(())
    }

    fn step(&mut self, within: usize) -> Result<(), NnError> {
        let chunk = self.announced.f_get((within - self.start) as i64)?;
        self.index.f_copy_(&chunk)?;
        for player in std::iter::once(&mut self.policy).chain(&mut self.challenger) {
            player.learner.advance()?;
        }
        let Self {
            policy,
            challenger,
            repeated,
            ..
        } = self;
        let (data, loss, blocks) = (self.data, &self.loss, &self.blocks);
        let (index, targets, selected, trace) = (&self.index, &self.targets, &mut self.selected, &self.trace);
        repeated.run((), || {
            let (losses, selection) = judge(policy, challenger.as_mut(), data, index, targets, blocks, loss)?;
            let losses = losses
                .f_reshape(-1)?
                .f_index_select(0, &selection.places)?
                .f_view([data.members as i64, -1])?;
            let loss = losses
                .f_mul(&selection.weights)?
                .f_sum_dim_intlist(1, false, Kind::Float)?;
            let samples = index.f_index_select(0, &selection.places)?;
            selected.add(&samples, &selection.selected)?;
            let norm = policy.step(&selection)?;
            trace.note(Trace::LOSS, &loss)?;
            trace.note(Trace::NORM, norm)?;
            trace.note(Trace::MEDIAN, &selection.median)?;
            if let Some(challenger) = challenger.as_mut() {
                let _ = challenger.step(&selection)?;
            }
            Ok(())
        })?;
        for player in std::iter::once(&mut self.policy).chain(&mut self.challenger) {
            player.learner.settle()?;
        }
        Ok(())
    }

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn has_median(&self) -> bool {
        true
    }

    fn foresee(&mut self, stretch: &Stretch) {
        self.ahead = Some((stretch.clone(), self.draw_all(stretch)));
    }

    fn memory(&self) -> Result<Vec<Memory>, NnError> {
        let players = std::iter::once(&self.policy).chain(&self.challenger);
        let learners: Vec<_> = players
            .map(|player| player.learner.save())
            .collect::<Result<_, _>>()?;
        Ok(Memory::of_each(
            self.data.members,
            &learners,
            &self.drawn,
            &self.selected.counts()?,
        ))
    }

    fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError> {
        let players = std::iter::once(&mut self.policy).chain(&mut self.challenger);
        recall_learners(players.map(|player| &mut player.learner), memories)?;
        self.drawn = drawn(memories, self.drawn.len())?;
        self.selected.recall(memories)
    }

    fn steps_afterwards(&self) -> u64 {
        match self.challenger {
            Some(_) => self.settings.tau_steps,
            None => 0,
        }
    }

    fn step_afterwards(&mut self, step: u64, rates: &[f64]) -> Result<(), NnError> {
        let mut chunk = Vec::with_capacity(self.index.numel());
        self.draw("tau", step, &mut chunk);
        self.index.f_copy_(&Tensor::f_from_slice(&chunk)?)?;
        let Some(challenger) = &mut self.challenger else {
            return Ok(());
        };
        challenger.learner.prepare(rates)?;
        let (policy, blocks) = (&mut self.policy, &self.blocks);
        let (_, selection) = judge(
            policy,
            Some(challenger),
            self.data,
            &self.index,
            &self.targets,
            blocks,
            &self.loss,
        )?;
        let _ = challenger.step(&selection)?;
        challenger.learner.settle()
    }

    fn findings(&mut self) -> Result<Findings, NnError> {
        Ok(Findings {
            trust: self.trust()?,
            tau: self.tau()?,
        })
    }
}
