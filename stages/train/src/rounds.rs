use std::ops::Range;

/// How epochs are divided among rounds: trainings one after another, each from initial values anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// At least one.
    pub(crate) count: u64,
    /// Epochs of all.
    pub(crate) epochs: u64,
}

impl Rounds {
    /// The first epoch of a round; of as many as there are, the end.
    fn start(self, round: u64) -> u64 {
        round * self.epochs / self.count
    }

    /// The round that an epoch belongs to.
    fn of(self, epoch: u64) -> u64 {
        (0..self.count)
            .rev()
            .find(|round| self.start(*round) <= epoch)
            .unwrap_or(0)
    }

    /// The epochs of the round that an epoch belongs to.
    pub(crate) fn span(self, epoch: u64) -> Range<u64> {
        let round = self.of(epoch);
        self.start(round)..self.start(round + 1)
    }

    /// The round that begins with an epoch where another one comes before it.
    pub(crate) fn next(self, epoch: u64) -> Option<u64> {
        let round = self.of(epoch);
        (round > 0 && self.start(round) == epoch).then_some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_divide_the_epochs() {
        let rounds = Rounds { count: 3, epochs: 7 };
        let of: Vec<u64> = (0..7).map(|epoch| rounds.of(epoch)).collect();
        assert_eq!(of, [0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(
            [0, 2, 3, 6].map(|epoch| rounds.span(epoch)),
            [0..2, 2..4, 2..4, 4..7]
        );
        let next: Vec<Option<u64>> = (0..7).map(|epoch| rounds.next(epoch)).collect();
        assert_eq!(next, [None, None, Some(1), None, Some(2), None, None]);
        let one = Rounds { count: 1, epochs: 5 };
        assert!((0..5).all(|epoch| one.span(epoch) == (0..5) && one.next(epoch).is_none()));
    }
}
