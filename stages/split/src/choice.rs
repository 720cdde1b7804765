use std::collections::BTreeMap;

use provenir_random::Stream;

/// The rows of an episode, in the order of its steps.
pub(crate) type Rows = Vec<usize>;

/// The rows of every episode, episodes in a random order that depends on seed and episode numbers alone.
pub(crate) fn shuffled(episodes: &[u32], steps: &[u32], seed: u64) -> Vec<Rows> {
    let order = Stream::new(seed, "split").child("order", 0);
    let mut rows: BTreeMap<(u64, u32), Rows> = BTreeMap::new();
    for (row, episode) in episodes.iter().enumerate() {
        let place = (order.at(u64::from(*episode)), *episode);
        rows.entry(place).or_default().push(row);
    }
    let mut shuffled: Vec<Rows> = rows.into_values().collect();
    for rows in &mut shuffled {
        rows.sort_by_key(|row| steps[*row]);
    }
    shuffled
}

/// How many of these episodes, from the front, hold most nearly a share of all samples; the fewer, where two counts are
/// equally near; never all of them.
pub(crate) fn nearest(episodes: &[Rows], share: f64) -> usize {
    let total: usize = episodes.iter().map(Vec::len).sum();
    let wanted = share * total as f64;
    let mut best = (0, wanted);
    let mut held = 0;
    for (index, rows) in episodes.iter().enumerate().take(episodes.len().saturating_sub(1)) {
        held += rows.len();
        let distance = (held as f64 - wanted).abs();
        if distance < best.1 {
            best = (index + 1, distance);
        }
    }
    best.0
}

/// The first `samples` rows of these episodes, or all where there are fewer, and the last row of an episode that was
/// cut.
pub(crate) fn take(episodes: &[Rows], samples: usize) -> (Vec<usize>, Option<usize>) {
    let mut taken = Vec::new();
    for rows in episodes {
        let rest = samples - taken.len();
        if rest == 0 {
            break;
        }
        taken.extend_from_slice(&rows[..rest.min(rows.len())]);
        if rest < rows.len() {
            return (taken, Some(rows[rest - 1]));
        }
    }
    (taken, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episodes(lengths: &[usize]) -> Vec<Rows> {
        let mut row = 0;
        lengths
            .iter()
            .map(|length| {
                row += length;
                (row - length..row).collect()
            })
            .collect()
    }

    #[test]
    fn the_share_is_the_nearest_that_whole_episodes_allow() {
        let ten = episodes(&[10; 10]);
        for (share, expected) in [
            (0.0, 0),
            (0.1, 1),
            (0.14, 1),
            (0.15, 1),
            (0.16, 2),
            (0.9, 9),
            (0.049, 0),
        ] {
            assert_eq!(nearest(&ten, share), expected, "{share}");
        }
        // 5 and 105 of 110: a tenth is 11, and 5 is nearer.
        assert_eq!(nearest(&episodes(&[5, 100, 5]), 0.1), 1);
        assert_eq!(nearest(&episodes(&[100]), 0.1), 0);
        assert_eq!(nearest(&[], 0.1), 0);
        assert_eq!(nearest(&episodes(&[100]), 0.9), 0);
        assert_eq!(nearest(&episodes(&[1, 9]), 0.9), 1);
    }

    #[test]
    fn the_last_episode_is_cut_only_where_it_must_be() {
        let three = episodes(&[3, 3, 3]);
        assert_eq!(take(&three, 4), (vec![0, 1, 2, 3], Some(3)));
        assert_eq!(take(&three, 6), (vec![0, 1, 2, 3, 4, 5], None));
        assert_eq!(take(&three, 9), ((0..9).collect(), None));
        assert_eq!(take(&three, 100), ((0..9).collect(), None));
        assert_eq!(take(&three, 0), (Vec::new(), None));
    }

    #[test]
    fn every_order_of_episodes_is_equally_likely() {
        let mut counts: BTreeMap<Vec<Rows>, i32> = BTreeMap::new();
        for seed in 0..6000 {
            *counts.entry(shuffled(&[4, 9, 1], &[0, 0, 0], seed)).or_default() += 1;
        }
        // Each of six orders is expected 1000 times, with a standard deviation of 29.
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|count| (count - 1000).abs() < 175),
            "{counts:?}"
        );
    }

    #[test]
    fn episodes_may_be_scattered_over_the_rows() {
        let mut found = shuffled(&[0, 1, 0, 1, 0], &[2, 0, 0, 1, 1], 0);
        found.sort();
        assert_eq!(found, [vec![1, 3], vec![2, 4, 0]]);
    }
}
