//! Which samples make which minibatch, and how often each was used.

use std::ops::Range;

use provenir_nn::NnError;
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

use crate::method::{Memory, expect_length};

/// The samples of J networks in an order that is drawn for every epoch, cut into minibatches; the last one may be short.
///
/// An epoch holds N samples of each network, whatever the number of those that it may use: their permutations follow each
/// other until there are enough.
pub(crate) struct Order {
    streams: Vec<Stream>,
    /// The samples that each network may use, where it may not use all.
    pools: Vec<Option<Vec<usize>>>,
    /// M: networks of a data set.
    committee: usize,
    /// N
    samples: usize,
    size: usize,
    /// The order of the epoch that was begun: samples counted through all data sets, network after network, `[J · N]`.
    sequence: Vec<i64>,
    /// That of another epoch, drawn ahead.
    ahead: Option<(u64, Vec<i64>)>,
    /// The part of the order on the device that minibatches are taken from now, `[J, …]`, and where in the epoch it begins.
    announced: Tensor,
    start: usize,
    /// The minibatch of this step, `[J · B]`, at places that stay: of a whole one, and of the short one.
    minibatches: Vec<Tensor>,
    /// `[K · N]`
    drawn: Vec<u64>,
}

impl Order {
    /// For networks with these streams, `committee` of them for each data set of `samples` samples.
    pub(crate) fn new(
        streams: Vec<Stream>,
        committee: usize,
        samples: usize,
        size: usize,
        device: Device,
    ) -> Result<Self, NnError> {
        let mut order = Self {
            pools: vec![None; streams.len()],
            samples,
            size: size.min(samples),
            sequence: Vec::new(),
            ahead: None,
            announced: Tensor::f_zeros([0, 0], (Kind::Int64, device))?,
            start: 0,
            minibatches: Vec::new(),
            drawn: vec![0; streams.len() / committee * samples],
            streams,
            committee,
        };
        let (whole, short) = order.sizes();
        let networks = order.streams.len();
        order.minibatches = std::iter::once(whole)
            .chain(short)
            .map(|rows| Tensor::f_zeros([(networks * rows) as i64], (Kind::Int64, device)))
            .collect::<Result<_, _>>()?;
        Ok(order)
    }

    /// From now on each network from this one on uses its pool alone; none is empty.
    pub(crate) fn restrict(&mut self, first: usize, pools: Vec<Vec<usize>>) {
        assert!(pools.iter().all(|pool| !pool.is_empty()), "samples in each pool");
        let places = first..first + pools.len();
        self.pools.splice(places, pools.into_iter().map(Some));
        assert_eq!(
            self.pools.len(),
            self.streams.len(),
            "no more pools than networks"
        );
        self.ahead = None;
    }

    /// The samples that a network may use.
    pub(crate) fn pool(&self, network: usize) -> Vec<usize> {
        let pool = self.pools[network].clone();
        pool.unwrap_or_else(|| (0..self.samples).collect())
    }

    /// Samples of a whole minibatch, and of the last one of an epoch where that is short.
    pub(crate) fn sizes(&self) -> (usize, Option<usize>) {
        let short = self.samples % self.size;
        (self.size, (short > 0).then_some(short))
    }

    /// How many steps' minibatches may be announced at once.
    pub(crate) fn stretch(&self) -> usize {
        stretch(self.streams.len() * self.size)
    }

    fn draw(&self, epoch: u64) -> Vec<i64> {
        let mut order = Vec::with_capacity(self.streams.len() * self.samples);
        for (network, stream) in self.streams.iter().enumerate() {
            let offset = network / self.committee * self.samples;
            let mut stream = stream.child("order", epoch);
            let end = order.len() + self.samples;
            while order.len() < end {
                let wanted = end - order.len();
                let pool = self.pools[network].as_ref();
                let permutation = stream.permutation(pool.map_or(self.samples, Vec::len));
                for place in permutation.into_iter().take(wanted) {
                    order.push((offset + pool.map_or(place, |pool| pool[place])) as i64);
                }
            }
        }
        order
    }

    /// Draws the order of an epoch that may be the next, while a device is busy with this one.
    pub(crate) fn foresee(&mut self, epoch: u64) {
        self.ahead = Some((epoch, self.draw(epoch)));
    }

    /// Draws the order of an epoch, which begins now.
    pub(crate) fn shuffle(&mut self, epoch: u64) {
        self.sequence = match self.ahead.take() {
            Some((foreseen, order)) if foreseen == epoch => order,
            _ => self.draw(epoch),
        };
        for sample in &self.sequence {
            self.drawn[*sample as usize] += 1;
        }
    }

    /// Brings the minibatches of these steps of the epoch to the device.
    pub(crate) fn announce(&mut self, steps: Range<usize>) -> Result<(), NnError> {
        let start = steps.start * self.size;
        let end = (steps.end * self.size).min(self.samples);
        let rows = self.sequence.chunks(self.samples);
        let part: Vec<i64> = rows.flat_map(|row| &row[start..end]).copied().collect();
        self.announced = Tensor::f_from_slice(&part)?
            .f_view([self.streams.len() as i64, (end - start) as i64])?
            .f_to_device(self.announced.device())?;
        self.start = start;
        Ok(())
    }

    /// Brings in a minibatch of those that were announced; gives which of the two sizes it has.
    pub(crate) fn load(&mut self, within: usize) -> Result<usize, NnError> {
        let start = within * self.size;
        let rows = self.size.min(self.samples - start);
        let from = self
            .announced
            .f_narrow(1, (start - self.start) as i64, rows as i64)?;
        let place = usize::from(rows < self.size);
        self.minibatches[place]
            .f_view([-1, rows as i64])?
            .f_copy_(&from)?;
        Ok(place)
    }

    /// The samples of the last minibatch of that size, counted through all data sets, `[J · B]`: always the same tensor.
    pub(crate) fn minibatch(&self, place: usize) -> &Tensor {
        &self.minibatches[place]
    }

    /// How often each sample was drawn, `[K · N]`.
    pub(crate) fn drawn(&self) -> &[u64] {
        &self.drawn
    }

    pub(crate) fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError> {
        self.drawn = drawn(memories, self.drawn.len())?;
        Ok(())
    }
}

/// How often each of so many samples was drawn, `[K · N]`.
pub(crate) fn drawn(memories: &[Memory], count: usize) -> Result<Vec<u64>, NnError> {
    let drawn = Memory::chained(memories, |memory| &memory.drawn);
    expect_length("draws", count, drawn.len())?;
    Ok(drawn)
}

/// How many steps' samples are brought to the device at once, where a step takes so many: a bounded amount of memory on
/// both sides, and long enough that the wait between two stretches does not count.
pub(crate) fn stretch(samples: usize) -> usize {
    /// 64 MiB.
    const SAMPLES: usize = (64 << 20) / size_of::<i64>();
    (SAMPLES / samples).max(1)
}

/// How often samples gave a gradient, counted on the device.
pub(crate) struct Selected(Tensor);

impl Selected {
    /// For `count` samples.
    pub(crate) fn new(count: usize, device: Device) -> Result<Self, NnError> {
        Ok(Self(Tensor::f_zeros([count as i64], (Kind::Int64, device))?))
    }

    /// Adds 0 or 1 (`flags`, as many as `index`, of whole numbers) to the counts of the samples that `index` names.
    pub(crate) fn add(&mut self, index: &Tensor, flags: &Tensor) -> Result<(), NnError> {
        let _ = self.0.f_index_add_(0, index, flags)?;
        Ok(())
    }

    pub(crate) fn counts(&self) -> Result<Vec<u64>, NnError> {
        let mut counts = vec![0_i64; self.0.numel()];
        let count = counts.len();
        self.0.f_copy_data(&mut counts, count)?;
        Ok(counts.into_iter().map(i64::unsigned_abs).collect())
    }

    pub(crate) fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError> {
        let counts = Memory::chained(memories, |memory| &memory.selected);
        expect_length("selections", self.0.numel(), counts.len())?;
        let counts: Vec<i64> = counts.into_iter().map(u64::cast_signed).collect();
        self.0.f_copy_(&Tensor::f_from_slice(&counts)?)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minibatches of an epoch, so many of them announced at a time.
    fn epoch_by(order: &mut Order, epoch: u64, together: usize) -> Vec<Vec<i64>> {
        order.shuffle(epoch);
        let (size, _) = order.sizes();
        let steps = order.samples.div_ceil(size);
        let mut batches = Vec::new();
        for within in 0..steps {
            if within % together == 0 {
                order.announce(within..(within + together).min(steps)).unwrap();
            }
            let place = order.load(within).unwrap();
            batches.push(Vec::try_from(order.minibatch(place)).unwrap());
        }
        batches
    }

    fn epoch(order: &mut Order, epoch: u64) -> Vec<Vec<i64>> {
        epoch_by(order, epoch, 1000)
    }

    #[test]
    fn minibatches_do_not_depend_on_how_they_are_announced_or_on_what_was_foreseen() {
        let order = || {
            let streams: Vec<Stream> = (0..3).map(|seed| Stream::new(seed, "test")).collect();
            Order::new(streams, 1, 11, 4, Device::Cpu).unwrap()
        };
        let mut plain = order();
        let expected: Vec<_> = (0..3).map(|number| epoch(&mut plain, number)).collect();
        let mut other = order();
        for (number, expected) in (0..).zip(&expected) {
            assert_eq!(&epoch_by(&mut other, number, 1 + number as usize), expected);
            // The next one, but once.
            other.foresee(if number == 0 { 1 } else { 7 });
        }
        assert_eq!(plain.drawn(), other.drawn());
        assert_eq!(plain.drawn().iter().sum::<u64>(), 3 * 33);
        // What was foreseen for other pools is not used.
        other.foresee(5);
        other.restrict(0, vec![vec![0]; 3]);
        assert_eq!(
            epoch(&mut other, 5)[0],
            [0, 0, 0, 0, 11, 11, 11, 11, 22, 22, 22, 22]
        );
    }

    #[test]
    fn pools_are_used_up_before_they_are_used_again() {
        let streams: Vec<Stream> = (0..4).map(|seed| Stream::new(seed, "test")).collect();
        // Two data sets of 10 samples, two networks each.
        let mut order = Order::new(streams, 2, 10, 4, Device::Cpu).unwrap();
        // The second may use all that there are.
        order.restrict(0, vec![vec![1, 3, 5]]);
        order.restrict(2, vec![vec![7], vec![8, 9]]);
        let batches = epoch(&mut order, 3);
        assert_eq!(
            batches.iter().map(Vec::len).collect::<Vec<_>>(),
            [4 * 4, 4 * 4, 4 * 2]
        );
        let of = |network: usize| -> Vec<i64> {
            batches
                .iter()
                .flat_map(|batch| {
                    let size = batch.len() / 4;
                    batch[network * size..][..size].to_vec()
                })
                .collect()
        };
        for pass in of(0).chunks(3) {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert!(if pass.len() == 3 {
                sorted == [1, 3, 5]
            } else {
                [1, 3, 5].contains(&pass[0])
            });
        }
        let mut all = of(1);
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        assert_eq!(of(2), [17; 10]);
        assert_eq!(order.drawn()[17], 10);
        assert_eq!(order.drawn()[18] + order.drawn()[19], 10);
        assert_eq!(order.drawn().iter().sum::<u64>(), 40);
    }
}
