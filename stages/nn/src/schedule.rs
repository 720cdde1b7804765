/// How the learning rate changes over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// Not at all.
    Constant,
    /// Linearly, step by step, from the whole at the first step to this share of it at the last.
    Linear {
        /// Share of the initial rate at the last step.
        last: f64,
    },
    /// Along half a period of a cosine, from the whole at the first step to this share of it at the last (Loshchilov and
    /// Hutter, 2017, without restarts).
    Cosine {
        /// Share of the initial rate at the last step.
        last: f64,
    },
}

impl Schedule {
    /// The share of the initial rate at a step, counted from 0, of `steps` in all.
    pub fn share(self, step: u64, steps: u64) -> f64 {
        let done = step as f64 / steps.saturating_sub(1).max(1) as f64;
        match self {
            Self::Constant => 1.0,
            Self::Linear { last } => 1.0 + (last - 1.0) * done,
            Self::Cosine { last } => {
                last + (1.0 - last) * 0.5 * (1.0 + libm::cos(std::f64::consts::PI * done))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_schedule_starts_at_one_and_ends_at_its_last_share() {
        let schedule = Schedule::Linear { last: 0.25 };
        let share = |schedule: Schedule, step, steps| schedule.share(step, steps).to_bits();
        for (step, expected) in (0..).zip([1.0_f64, 0.75, 0.5, 0.25]) {
            assert_eq!(share(schedule, step, 4), expected.to_bits());
        }
        assert_eq!(share(schedule, 0, 1), 1.0_f64.to_bits());
        assert_eq!(share(Schedule::Constant, 7, 9), 1.0_f64.to_bits());
    }

    #[test]
    fn a_cosine_schedule_is_flat_at_both_ends_and_halfway_in_the_middle() {
        let schedule = Schedule::Cosine { last: 0.2 };
        // At thirds of the way the cosine is ±1/2.
        for (step, expected) in [(0, 1.0), (2, 0.8), (3, 0.6), (4, 0.4), (6, 0.2)] {
            assert!((schedule.share(step, 7) - expected).abs() < 1e-12);
        }
        assert!((schedule.share(0, 1) - 1.0).abs() < 1e-12);
    }
}
