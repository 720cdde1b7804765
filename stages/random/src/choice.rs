use crate::Stream;

impl Stream {
    /// Puts a slice into uniformly random order: Fisher–Yates from the front.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        let count = values.len();
        self.shuffle_front(values, count);
    }

    /// The whole numbers below `count` in uniformly random order.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        self.choose(count, count)
    }

    /// `chosen` distinct whole numbers below `count`, every ordered choice equally likely, **in random order**: sort
    /// them where order matters.
    ///
    /// Choices are nested: from one position of one stream, a smaller choice is the beginning of a larger one.
    ///
    /// # Panics
    ///
    /// Where `chosen` exceeds `count`.
    pub fn choose(&mut self, count: usize, chosen: usize) -> Vec<usize> {
        assert!(
            chosen <= count,
            "{chosen} distinct values cannot be chosen from {count}"
        );
        let mut values: Vec<usize> = (0..count).collect();
        self.shuffle_front(&mut values, chosen);
        values.truncate(chosen);
        values
    }

    fn shuffle_front<T>(&mut self, values: &mut [T], chosen: usize) {
        for index in 0..chosen.min(values.len().saturating_sub(1)) {
            let rest = (values.len() - index) as u64;
            values.swap(index, index + self.below(rest) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_ordered_choice_is_equally_likely() {
        let mut stream = Stream::new(4, "choice");
        let mut counts: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for _ in 0..60_000 {
            *counts.entry(stream.choose(5, 3)).or_default() += 1;
        }
        assert_eq!(counts.len(), 60);
        // Each is expected 1000 times, with a standard deviation of 31.
        assert!(counts.values().all(|count| count.abs_diff(1000) < 190));
    }

    proptest! {
        #[test]
        fn a_permutation_holds_every_number_once(seed: u64, count in 0..500_usize) {
            let mut values = Stream::new(seed, "permutation").permutation(count);
            let mut shuffled: Vec<usize> = (0..count).collect();
            Stream::new(seed, "permutation").shuffle(&mut shuffled);
            prop_assert_eq!(&values, &shuffled);
            values.sort_unstable();
            prop_assert!(values.into_iter().eq(0..count));
        }

        #[test]
        fn choices_are_nested(seed: u64, count in 0..300_usize, first: prop::sample::Index, second: prop::sample::Index) {
            let (first, second) = (first.index(count + 1), second.index(count + 1));
            let (small, large) = (first.min(second), first.max(second));
            let small = Stream::new(seed, "choice").choose(count, small);
            let large = Stream::new(seed, "choice").choose(count, large);
            prop_assert_eq!(&small[..], &large[..small.len()]);
        }
    }
}
