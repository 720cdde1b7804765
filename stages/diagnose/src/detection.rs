use provenir_execution::Failure;
use provenir_table::{Table, TableBuilder, TableError};

/// What a method thinks of a sample, and the truth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    /// In [0, 1].
    pub(crate) trust: f64,
    pub(crate) corrupted: bool,
}

/// One way of dividing samples into distrusted and trusted ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    /// The largest trust among the distrusted.
    pub(crate) trust: f64,
    pub(crate) distrusted: u64,
    /// How many of those are corrupted.
    pub(crate) found: u64,
}

impl Cut {
    pub(crate) fn precision(self) -> f64 {
        self.found as f64 / self.distrusted as f64
    }
}

/// Trust as a detector of corrupted samples: the lower it is, the more likely is a sample taken for corrupted.
#[derive(Debug)]
pub(crate) struct Detection {
    /// One for each value that trust has, ascending.
    pub(crate) cuts: Vec<Cut>,
    /// Corrupted samples in all.
    pub(crate) corrupted: u64,
}

impl Detection {
    pub(crate) fn of(mut judged: Vec<Judged>) -> Self {
        judged.sort_by(|left, right| left.trust.total_cmp(&right.trust));
        let mut cuts: Vec<Cut> = Vec::new();
        let (mut distrusted, mut found) = (0, 0);
        for sample in &judged {
            distrusted += 1;
            found += u64::from(sample.corrupted);
            let cut = Cut {
                trust: sample.trust,
                distrusted,
                found,
            };
            match cuts.last_mut() {
                Some(last) if last.trust.total_cmp(&cut.trust).is_eq() => *last = cut,
                _ => cuts.push(cut),
            }
        }
        Self {
            cuts,
            corrupted: found,
        }
    }

    /// Precision and recall where those below a threshold are distrusted.
    pub(crate) fn at(&self, threshold: f64) -> (Option<f64>, Option<f64>) {
        let below = self.cuts.partition_point(|cut| cut.trust < threshold);
        match below.checked_sub(1).map(|last| self.cuts[last]) {
            Some(cut) => (Some(cut.precision()), self.recall(cut)),
            None => (None, (self.corrupted > 0).then_some(0.0)),
        }
    }

    fn recall(&self, cut: Cut) -> Option<f64> {
        (self.corrupted > 0).then(|| cut.found as f64 / self.corrupted as f64)
    }

    /// Σ (Rₙ − Rₙ₋₁) Pₙ over all cuts from the least trust on, without interpolation: what scikit-learn's
    /// `average_precision_score` is.
    pub(crate) fn average_precision(&self) -> Option<f64> {
        let mut before = 0;
        let sum: f64 = self
            .cuts
            .iter()
            .map(|cut| {
                let gained = (cut.found - before) as f64;
                before = cut.found;
                gained * cut.precision()
            })
            .sum();
        (self.corrupted > 0).then(|| sum / self.corrupted as f64)
    }

    /// One row per cut.
    pub(crate) fn table(&self) -> Result<Table, TableError> {
        TableBuilder::new()
            .f64("trust", self.cuts.iter().map(|cut| cut.trust).collect())
            .u64("distrusted", self.cuts.iter().map(|cut| cut.distrusted).collect())
            .f64("precision", self.cuts.iter().map(|cut| cut.precision()).collect())
            .optional_f64("recall", self.cuts.iter().map(|cut| self.recall(*cut)).collect())
            .build()
    }
}

/// What a method left of its trust, one entry a row of its table.
#[derive(Debug)]
pub(crate) struct Trust {
    /// In [0, 1]; missing where a sample was never looked at.
    pub(crate) trust: Vec<Option<f64>>,
    /// How much of the gradients a sample gave: how often it was drawn, times its trust, which is how often a method that selects
    /// selected it, and the weight that another gave it. Where draws are not counted, its trust alone.
    pub(crate) weight: Vec<f64>,
}

impl Trust {
    /// From the column `trust` where there is one, else selections a draw.
    pub(crate) fn from_table(table: &Table) -> Result<Self, Failure> {
        let counts = |name: &str| {
            let has = table.has_column(name);
            has.then(|| table.column_u64(name)).transpose()
        };
        let drawn = counts("drawn")?;
        let trust: Vec<Option<f64>> = if table.has_column("trust") {
            table.column_numbers("trust")?
        } else if let (Some(drawn), Some(selected)) = (drawn, counts("selected")?) {
            let share =
                |(selected, drawn): (&u64, &u64)| (*drawn > 0).then(|| *selected as f64 / *drawn as f64);
            selected.iter().zip(drawn).map(share).collect()
        } else {
            return Err(Failure::stage(
                "what arrives at `trust` has neither a column `trust` nor `drawn` and `selected`",
            ));
        };
        if let Some(trust) = trust.iter().flatten().find(|trust| !(0.0..=1.0).contains(*trust)) {
            return Err(Failure::stage(format!(
                "a sample's trust is {trust}; it must be from 0 to 1"
            )));
        }
        let weight = trust.iter().enumerate().map(|(row, trust)| {
            let drawn = drawn.map_or(1.0, |drawn| drawn[row] as f64);
            drawn * trust.unwrap_or(0.0)
        });
        let weight = weight.collect();
        Ok(Self { trust, weight })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(samples: &[(f64, bool)]) -> Vec<Judged> {
        samples
            .iter()
            .map(|(trust, corrupted)| Judged {
                trust: *trust,
                corrupted: *corrupted,
            })
            .collect()
    }

    /// The example of scikit-learn's documentation of `average_precision_score`: truth 0 0 1 1, scores .1 .4 .35 .8, 0.83….
    #[test]
    fn average_precision_is_that_of_the_textbook() {
        let detection = Detection::of(judged(&[(0.9, false), (0.6, false), (0.65, true), (0.2, true)]));
        let expected = 0.5 * 1.0 + 0.5 * (2.0 / 3.0);
        assert!((detection.average_precision().unwrap() - expected).abs() < 1e-15);
        // All alike: chance.
        let detection = Detection::of(judged(&[(0.5, false), (0.5, true), (0.5, false), (0.5, false)]));
        assert_eq!(detection.average_precision(), Some(0.25));
        assert_eq!(detection.at(0.5), (None, Some(0.0)));
        assert_eq!(detection.at(0.6), (Some(0.25), Some(1.0)));
        let clean = Detection::of(judged(&[(0.5, false), (0.1, false)]));
        assert_eq!(
            (clean.average_precision(), clean.at(0.2)),
            (None, (Some(0.0), None))
        );
        let nothing = Detection::of(Vec::new());
        assert_eq!(
            (nothing.average_precision(), nothing.at(0.5)),
            (None, (None, None))
        );
    }

    proptest! {
        /// Against sums over all samples for each threshold.
        #[test]
        fn cuts_are_what_counting_gives(
            samples in prop::collection::vec(((0_u32..=8).prop_map(|eighth| f64::from(eighth) / 8.0), any::<bool>()), 0..40),
            threshold in 0.0..=1.0,
        ) {
            let detection = Detection::of(judged(&samples));
            let count = |test: &dyn Fn(f64, bool) -> bool| {
                samples.iter().filter(|(trust, corrupted)| test(*trust, *corrupted)).count() as f64
            };
            let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
            let all = count(&|_, corrupted| corrupted);
            let found = count(&|trust, corrupted| corrupted && trust < threshold);
            let below = count(&|trust, _| trust < threshold);
            prop_assert_eq!(detection.at(threshold), (ratio(found, below), ratio(found, all)));
            let mut expected = 0.0;
            for eighth in 0..=8 {
                let cut = f64::from(eighth) / 8.0;
                let up_to = count(&|trust, _| trust <= cut);
                let gained = count(&|trust, corrupted| corrupted && trust.to_bits() == cut.to_bits());
                if gained > 0.0 {
                    expected += gained / all * count(&|trust, corrupted| corrupted && trust <= cut) / up_to;
                }
            }
            match detection.average_precision() {
                Some(found) => prop_assert!((found - expected).abs() < 1e-12),
                None => prop_assert!(all < 0.5),
            }
            let mut values: Vec<f64> = samples.iter().map(|(trust, _)| *trust).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            prop_assert!(detection.cuts.iter().map(|cut| cut.trust).eq(values));
        }
    }
}
