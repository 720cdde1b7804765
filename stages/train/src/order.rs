//! Which samples make which minibatch, and how often each was used.

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
    /// The samples that each network may use; all, where there are none.
    pools: Option<Vec<Vec<usize>>>,
    /// M: networks of a data set.
    committee: usize,
    /// N
    samples: usize,
    size: usize,
    device: Device,
    /// Samples counted through all data sets, `[J, N]`.
    sequence: Tensor,
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
        Ok(Self {
            pools: None,
            samples,
            size: size.min(samples),
            device,
            sequence: Tensor::f_zeros([0, 0], (Kind::Int64, device))?,
            drawn: vec![0; streams.len() / committee * samples],
            streams,
            committee,
        })
    }

    /// From now on each network uses its pool alone; none is empty.
    pub(crate) fn restrict(&mut self, pools: Vec<Vec<usize>>) {
        assert!(
            pools.len() == self.streams.len() && pools.iter().all(|pool| !pool.is_empty()),
            "a pool of samples for each network"
        );
        self.pools = Some(pools);
    }

    /// The samples that a network may use.
    pub(crate) fn pool(&self, network: usize) -> Vec<usize> {
        match &self.pools {
            Some(pools) => pools[network].clone(),
            None => (0..self.samples).collect(),
        }
    }

    /// Samples of a whole minibatch, and of the last one of an epoch where that is short.
    pub(crate) fn sizes(&self) -> (usize, Option<usize>) {
        let short = self.samples % self.size;
        (self.size, (short > 0).then_some(short))
    }

    /// Draws the order of an epoch.
    pub(crate) fn shuffle(&mut self, epoch: u64) -> Result<(), NnError> {
        let mut order = Vec::with_capacity(self.streams.len() * self.samples);
        for (network, stream) in self.streams.iter().enumerate() {
            let offset = network / self.committee * self.samples;
            let mut stream = stream.child("order", epoch);
            let end = order.len() + self.samples;
            while order.len() < end {
                let wanted = end - order.len();
                let pool = self.pools.as_ref().map(|pools| &pools[network]);
                let permutation = stream.permutation(pool.map_or(self.samples, Vec::len));
                for place in permutation.into_iter().take(wanted) {
                    let sample = offset + pool.map_or(place, |pool| pool[place]);
                    self.drawn[sample] += 1;
                    order.push(sample as i64);
                }
            }
        }
        self.sequence = Tensor::f_from_slice(&order)?
            .f_view([self.streams.len() as i64, self.samples as i64])?
            .f_to_device(self.device)?;
        Ok(())
    }

    /// The samples of a minibatch of the epoch, counted through all data sets, `[J · B]`.
    pub(crate) fn minibatch(&self, within: usize) -> Result<Tensor, NnError> {
        let start = within * self.size;
        let count = self.size.min(self.samples - start);
        Ok(self
            .sequence
            .f_narrow(1, start as i64, count as i64)?
            .f_reshape(-1)?)
    }

    /// How often each sample was drawn, `[K · N]`.
    pub(crate) fn drawn(&self) -> &[u64] {
        &self.drawn
    }

    pub(crate) fn recall(&mut self, memory: &Memory) -> Result<(), NnError> {
        expect_length("draws", self.drawn.len(), memory.drawn.len())?;
        self.drawn.clone_from(&memory.drawn);
        Ok(())
    }
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

    pub(crate) fn recall(&mut self, memory: &Memory) -> Result<(), NnError> {
        expect_length("selections", self.0.numel(), memory.selected.len())?;
        let counts: Vec<i64> = memory.selected.iter().map(|count| count.cast_signed()).collect();
        self.0.f_copy_(&Tensor::f_from_slice(&counts)?)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(order: &mut Order, epoch: u64) -> Vec<Vec<i64>> {
        order.shuffle(epoch).unwrap();
        let (size, _) = order.sizes();
        (0..order.samples.div_ceil(size))
            .map(|within| Vec::try_from(order.minibatch(within).unwrap()).unwrap())
            .collect()
    }

    #[test]
    fn pools_are_used_up_before_they_are_used_again() {
        let streams: Vec<Stream> = (0..4).map(|seed| Stream::new(seed, "test")).collect();
        // Two data sets of 10 samples, two networks each.
        let mut order = Order::new(streams, 2, 10, 4, Device::Cpu).unwrap();
        order.restrict(vec![vec![1, 3, 5], (0..10).collect(), vec![7], vec![8, 9]]);
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
