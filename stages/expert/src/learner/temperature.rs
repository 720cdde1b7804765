use provenir_execution::coded;

/// The weight of the policy's entropy: fixed, or learned so that the entropy approaches minus the number of actions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Temperature {
    fixed: Option<f64>,
    target: f64,
    logarithm: f64,
    /// Adam's means.
    mean: f64,
    square: f64,
    steps: u64,
}

coded! { Temperature { fixed, target, logarithm, mean, square, steps } }

impl Temperature {
    /// Of a policy of so many actions; a learned one starts at 1.
    pub(super) fn new(fixed: Option<f64>, actions: usize) -> Self {
        Self {
            fixed,
            target: -(actions as f64),
            logarithm: 0.0,
            mean: 0.0,
            square: 0.0,
            steps: 0,
        }
    }

    pub(super) fn value(&self) -> f64 {
        self.fixed.unwrap_or_else(|| libm::exp(self.logarithm))
    }

    /// A step of Adam against the gradient of −log α · (log π + target) by log α.
    pub(super) fn step(&mut self, log_probability: f64, rate: f64) {
        const BETA1: f64 = 0.9;
        const BETA2: f64 = 0.999;
        const EPSILON: f64 = 1e-8;
        if self.fixed.is_some() {
            return;
        }
        let gradient = -(log_probability + self.target);
        self.steps += 1;
        self.mean += (1.0 - BETA1) * (gradient - self.mean);
        self.square += (1.0 - BETA2) * (gradient * gradient - self.square);
        let mean = self.mean / (1.0 - libm::pow(BETA1, self.steps as f64));
        let square = self.square / (1.0 - libm::pow(BETA2, self.steps as f64));
        self.logarithm -= rate * mean / (square.sqrt() + EPSILON);
    }

    pub(super) fn load(&mut self, saved: &Self) {
        self.clone_from(saved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_where_the_entropy_is_too_small_and_falls_where_it_is_too_large() {
        // An entropy of −3 is wanted, that is a mean log-probability of 3; Adam's first steps are as long as the rate.
        for (log_probability, expected) in [(5.0, 0.02_f64), (1.0, -0.02), (3.0, 0.0)] {
            let mut temperature = Temperature::new(None, 3);
            for _ in 0..2 {
                temperature.step(log_probability, 0.01);
            }
            assert!((temperature.value().ln() - expected).abs() < 1e-6);
        }
        let mut fixed = Temperature::new(Some(0.3), 3);
        fixed.step(9.0, 0.1);
        assert_eq!(fixed.value().to_bits(), 0.3_f64.to_bits());
    }
}
