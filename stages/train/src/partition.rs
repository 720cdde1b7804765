//! Median of means: a chunk of samples, its division into blocks, and the blocks around the median one.
//!
//! A chunk is drawn in random order, so that any fixed division of it is a random one. Its n samples make M blocks that
//! differ in size by at most one: samples j·s to (j+1)·s − 1 are block j (s = ⌊n/M⌋), and the r = n mod M samples at the
//! end go to the first r blocks, one each. No sample is left out, and every shape is known beforehand.

use provenir_nn::NnError;
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

/// How a chunk is divided and which of its blocks are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// n: samples of a chunk.
    pub(crate) samples: usize,
    /// M: number of blocks.
    pub(crate) blocks: usize,
    /// W: number of blocks that are selected.
    pub(crate) window: usize,
}

impl Partition {
    /// Of `samples` into blocks of `block` samples, or one more; the share `window` of them is selected, and at least one.
    pub(crate) fn new(samples: usize, block: usize, window: f64) -> Self {
        let blocks = (samples / block).max(1);
        let wanted = (window * blocks as f64).round() as usize;
        Self {
            samples,
            blocks,
            window: wanted.clamp(1, blocks),
        }
    }

    /// s: samples of a block, but for the extra one of the first blocks.
    pub(crate) fn block(&self) -> usize {
        self.samples / self.blocks
    }

    /// r: blocks with an extra sample.
    pub(crate) fn extras(&self) -> usize {
        self.samples % self.blocks
    }

    /// Rank of the first selected block. The window lies evenly about the middle; where it cannot, it leans to the lower
    /// ranks, so that it holds the lower median always.
    pub(crate) fn first(&self) -> usize {
        (self.blocks - self.window) / 2
    }

    /// Rank of the median block; of the two middle ones, the lower.
    pub(crate) fn median(&self) -> usize {
        (self.blocks - 1) / 2
    }

    /// Samples for which a selection has room: those of W blocks, and all extra ones.
    pub(crate) fn slots(&self) -> usize {
        self.window * self.block() + self.extras()
    }
}

/// The blocks of K chunks, on the device.
pub(crate) struct Blocks {
    partition: Partition,
    members: i64,
    /// Size of each block, `[1, M]`.
    sizes: Tensor,
    /// 0 to s − 1, `[1, 1, s]`.
    within: Tensor,
    /// Places of the extra samples, `[K, r]`.
    extras: Tensor,
    /// Where each policy's chunk begins, `[K, 1]`.
    offsets: Tensor,
}

/// The samples of the blocks around the median one. A place is counted through the K chunks.
pub(crate) struct Selection {
    /// Places in the chunks, policy after policy, `[K · S]`; those of extra samples whose block is not selected are there
    /// with weight 0.
    pub(crate) places: Tensor,
    /// What each counts for in the mean over blocks of the blocks' means, `[K, S]`; the sum is 1.
    pub(crate) weights: Tensor,
    /// Whether it is selected, `[K · S]`, 0 or 1.
    pub(crate) selected: Tensor,
    /// Value of the median block, `[K]`.
    pub(crate) median: Tensor,
}

impl Blocks {
    pub(crate) fn new(partition: Partition, members: usize, device: Device) -> Result<Self, NnError> {
        let members = members as i64;
        let Partition { samples, blocks, .. } = partition;
        let (block, extras) = (partition.block(), partition.extras());
        let sizes: Vec<f32> = (0..blocks)
            .map(|index| (block + usize::from(index < extras)) as f32)
            .collect();
        let range = |start: usize, end: usize| -> Result<Tensor, NnError> {
            let values: Vec<i64> = (start as i64..end as i64).collect();
            Ok(Tensor::f_from_slice(&values)?.f_to_device(device)?)
        };
        let offsets = range(0, members as usize)?
            .f_view([members, 1])?
            .f_mul_scalar(samples as i64)?;
        Ok(Self {
            partition,
            members,
            sizes: Tensor::f_from_slice(&sizes)?
                .f_view([1, blocks as i64])?
                .f_to_device(device)?,
            within: range(0, block)?.f_view([1, 1, block as i64])?,
            extras: range(blocks * block, samples)?
                .f_view([1, extras as i64])?
                .f_add(&offsets)?,
            offsets,
        })
    }

    /// Ranks blocks by the mean of their samples' values (`[K, n]`) and selects those around the median one. Equal blocks
    /// rank by their number. Nothing here waits for the device.
    pub(crate) fn select(&self, values: &Tensor) -> Result<Selection, NnError> {
        let Self {
            partition, members, ..
        } = *self;
        let (blocks, block) = (partition.blocks as i64, partition.block() as i64);
        let (window, extras) = (partition.window as i64, partition.extras() as i64);
        let mut means = values
            .f_narrow(1, 0, blocks * block)?
            .f_reshape([members, blocks, block])?
            .f_sum_dim_intlist(2, false, Kind::Float)?;
        let _ = means
            .f_narrow(1, 0, extras)?
            .f_add_(&values.f_narrow(1, blocks * block, extras)?)?;
        let _ = means.f_div_(&self.sizes)?;
        let ranked = means.f_argsort_stable(true, 1, false)?;
        let median = ranked.f_narrow(1, partition.median() as i64, 1)?;
        let median = means.f_gather(1, &median, false)?.f_squeeze_dim(1)?;

        let chosen = ranked.f_narrow(1, partition.first() as i64, window)?;
        let places = chosen
            .f_mul_scalar(block)?
            .f_add(&self.offsets)?
            .f_unsqueeze(2)?
            .f_add(&self.within)?
            .f_reshape([members, window * block])?;
        let mut is_chosen = means.f_zeros_like()?;
        let _ = is_chosen.f_scatter_value_(1, &chosen, 1.0)?;
        let flags = Tensor::f_cat(
            &[
                places.f_ones_like()?.f_to_kind(Kind::Float)?,
                is_chosen.f_narrow(1, 0, extras)?,
            ],
            1,
        )?;
        let shares = self
            .sizes
            .f_mul_scalar(window)?
            .f_reciprocal()?
            .f_expand([members, blocks], false)?;
        let weights = Tensor::f_cat(
            &[
                shares
                    .f_gather(1, &chosen, false)?
                    .f_unsqueeze(2)?
                    .f_expand([members, window, block], false)?
                    .f_reshape([members, window * block])?,
                shares.f_narrow(1, 0, extras)?,
            ],
            1,
        )?;
        Ok(Selection {
            places: Tensor::f_cat(&[&places, &self.extras], 1)?.f_view(-1)?,
            weights: weights.f_mul(&flags)?,
            selected: flags.f_to_kind(Kind::Int64)?.f_view(-1)?,
            median,
        })
    }
}

/// The mean of the median block of values in a random order: the lower one of two.
pub(crate) fn median_of_blocks(values: &[f64], partition: Partition) -> f64 {
    assert_eq!(values.len(), partition.samples, "values of a whole partition");
    let block = partition.block();
    let end = partition.blocks * block;
    let mut means: Vec<f64> = (0..partition.blocks)
        .map(|index| {
            let extra = (index < partition.extras()).then(|| values[end + index]);
            let values = values[index * block..][..block].iter().copied().chain(extra);
            let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
            sum / f64::from(count)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    means[partition.median()]
}

/// Draws chunks without replacement from a data set.
pub(crate) struct Chunks {
    /// 0 to N − 1 between draws.
    samples: Vec<usize>,
    swaps: Vec<usize>,
}

impl Chunks {
    pub(crate) fn new(samples: usize) -> Self {
        Self {
            samples: (0..samples).collect(),
            swaps: Vec::new(),
        }
    }

    /// `count` different samples, every ordered choice equally likely. It depends on the stream alone, and takes time in
    /// proportion to the chunk, not to the data set: Fisher and Yates's shuffle from the front, undone afterwards.
    pub(crate) fn draw(&mut self, mut stream: Stream, count: usize, mut take: impl FnMut(usize)) {
        self.swaps.clear();
        for index in 0..count {
            let other = index + stream.below((self.samples.len() - index) as u64) as usize;
            self.samples.swap(index, other);
            self.swaps.push(other);
            take(self.samples[index]);
        }
        for (index, other) in self.swaps.iter().enumerate().rev() {
            self.samples.swap(index, *other);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Blocks as lists of places, straight from the definition.
    fn blocks(samples: usize, block: usize) -> Vec<Vec<usize>> {
        let count = (samples / block).max(1);
        let size = samples / count;
        let mut blocks: Vec<Vec<usize>> = (0..count)
            .map(|index| (index * size..(index + 1) * size).collect())
            .collect();
        for place in count * size..samples {
            blocks[place - count * size].push(place);
        }
        blocks
    }

    /// Weight of each place, zero where it is not selected, and the median block's value.
    fn model(values: &[f32], block: usize, window: f64) -> (Vec<f32>, f32) {
        let blocks = blocks(values.len(), block);
        let mean = |places: &Vec<usize>| {
            places.iter().map(|place| values[*place]).sum::<f32>() / places.len() as f32
        };
        let mut ranked: Vec<&Vec<usize>> = blocks.iter().collect();
        ranked.sort_by(|left, right| mean(left).total_cmp(&mean(right)));
        let median = mean(ranked[(ranked.len() - 1) / 2]);
        let wanted = ((window * ranked.len() as f64).round() as usize).max(1);
        // Drop the highest, the lowest, the highest, … until as many are left as are wanted.
        let mut top = true;
        while ranked.len() > wanted {
            ranked.remove(if top { ranked.len() - 1 } else { 0 });
            top = !top;
        }
        let mut weights = vec![0.0; values.len()];
        for places in &ranked {
            for place in *places {
                weights[*place] = 1.0 / (ranked.len() * places.len()) as f32;
            }
        }
        (weights, median)
    }

    fn select(rows: &[&[f32]], block: usize, window: f64) -> (Vec<Vec<f32>>, Vec<f32>) {
        let samples = rows[0].len();
        let partition = Partition::new(samples, block, window);
        let blocks = Blocks::new(partition, rows.len(), Device::Cpu).unwrap();
        let values = Tensor::from_slice(&rows.concat()).view([rows.len() as i64, samples as i64]);
        let selection = blocks.select(&values).unwrap();
        let places = Vec::<i64>::try_from(selection.places).unwrap();
        let selected = Vec::<i64>::try_from(selection.selected).unwrap();
        let weights = Vec::<f32>::try_from(selection.weights.view(-1)).unwrap();
        assert_eq!(places.len(), rows.len() * partition.slots());
        let mut found = vec![vec![0.0; samples]; rows.len()];
        for (slot, ((place, selected), weight)) in places.iter().zip(selected).zip(weights).enumerate() {
            let place = usize::try_from(*place).unwrap();
            assert_eq!(
                place / samples,
                slot / partition.slots(),
                "a place of another policy's chunk"
            );
            assert_eq!(selected == 1, weight > 0.0);
            found[place / samples][place % samples] += weight;
        }
        (found, Vec::try_from(selection.median).unwrap())
    }

    #[test]
    fn the_middle_of_known_blocks_is_selected() {
        // Four blocks with means 3, 1, 2, 10: the lower median is 2; half of the blocks are those of 2 and 3.
        let values = [2.0, 4.0, 1.0, 1.0, 3.0, 1.0, 0.0, 20.0];
        assert_eq!(
            select(&[&values], 2, 0.0),
            (vec![vec![0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0]], vec![2.0])
        );
        assert_eq!(
            select(&[&values], 2, 0.5).0[0],
            [0.25, 0.25, 0.0, 0.0, 0.25, 0.25, 0.0, 0.0]
        );
    }

    #[test]
    fn blocks_of_blocks_and_one_more_hold_every_sample() {
        let partition = Partition::new(11, 3, 0.6);
        assert_eq!(
            (partition.blocks, partition.block(), partition.extras()),
            (3, 3, 2)
        );
        assert_eq!((partition.window, partition.slots()), (2, 8));
        // Fewer samples than a block: one block.
        let partition = Partition::new(2, 3, 1.0);
        assert_eq!(
            (partition.blocks, partition.block(), partition.extras()),
            (1, 2, 0)
        );
    }

    proptest! {
        #[test]
        fn selection_is_that_of_the_model(
            // Small whole numbers: sums are exact, and ties are many.
            values in prop::collection::vec(0..6_u8, 1..70),
            block in 1..8_usize,
            window in 0.0..=1.0,
        ) {
            let first: Vec<f32> = values.iter().map(|value| f32::from(*value)).collect();
            let second: Vec<f32> = first.iter().rev().map(|value| 5.0 - value).collect();
            let (weights, medians) = select(&[&first, &second], block, window);
            for (values, (weights, median)) in [first, second].iter().zip(weights.iter().zip(medians)) {
                let (expected, expected_median) = model(values, block, window);
                for (found, expected) in weights.iter().zip(expected) {
                    prop_assert!((found - expected).abs() < 1e-6);
                }
                prop_assert!((median - expected_median).abs() < 1e-6);
                let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
                let median = median_of_blocks(&values, Partition::new(values.len(), block, window));
                prop_assert!((median - f64::from(expected_median)).abs() < 1e-6);
                prop_assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }

        #[test]
        fn a_chunk_is_a_choice_whatever_was_drawn_before(
            seed: u64, samples in 1..200_usize, first: prop::sample::Index, second: prop::sample::Index,
        ) {
            let mut chunks = Chunks::new(samples);
            for (step, count) in [first, second].iter().map(|count| count.index(samples) + 1).enumerate() {
                let stream = Stream::new(seed, "test").child("chunk", step as u64);
                let mut found = Vec::new();
                chunks.draw(stream.clone(), count, |sample| found.push(sample));
                prop_assert_eq!(found, stream.clone().choose(samples, count));
            }
        }
    }
}
