//! What is trained, and what it costs.

use std::error::Error;

use provenir_kinds::train::TrainParameters;
use serde_json::json;

/// Ant's: observed values with the time feature, and actions.
pub(crate) const WIDTHS: (usize, usize) = (29, 8);

/// Samples of a minibatch, of a chunk, and of its window (60 % of it in blocks of one).
const BATCH: usize = 256;
const CHUNK: usize = 960;
const WINDOW: f64 = 0.6;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bc,
    /// `rbc` with a challenger.
    MinMax,
    /// `rbc` without.
    Direct,
    NoisyBc,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Bc, Self::MinMax, Self::Direct, Self::NoisyBc];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bc => "bc",
            Self::MinMax => "rbc min-max",
            Self::Direct => "rbc direct",
            Self::NoisyBc => "noisy-bc",
        }
    }

    fn is_rbc(self) -> bool {
        matches!(self, Self::MinMax | Self::Direct)
    }
}

/// How large everything is.
pub(crate) struct Size {
    pub(crate) device: String,
    pub(crate) is_tiny: bool,
    pub(crate) hidden: Vec<usize>,
    /// Policies of the groups in the tables.
    pub(crate) policies: [usize; 2],
    /// Different data sets of a group, at most: the reference's are those of 4 robots, each as it was recorded and in 8 corruptions.
    pub(crate) sets: usize,
    pub(crate) table_samples: usize,
    pub(crate) table_epochs: usize,
    /// What the workload's numbers of samples, policies and epochs are divided by.
    pub(crate) shrunk: [usize; 3],
}

impl Size {
    pub(crate) fn new(device: &str, is_tiny: bool) -> Self {
        let (hidden, policies, sets, table_samples, table_epochs, shrunk) = if is_tiny {
            (vec![16; 3], [3, 5], 4, 2_000, 6, [20, 8, 2])
        } else {
            (vec![500; 3], [36, 144], 36, 60_000, 6, [1, 1, 1])
        };
        Self {
            device: device.to_owned(),
            is_tiny,
            hidden,
            policies,
            sets,
            table_samples,
            table_epochs,
            shrunk,
        }
    }
}

/// A group of policies that are trained together.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) kind: Kind,
    pub(crate) samples: usize,
    pub(crate) policies: usize,
    pub(crate) epochs: usize,
    /// Whether an epoch of `rbc` has as many steps as one of `bc`.
    parity: bool,
    rounds: usize,
}

impl Task {
    pub(crate) fn new(kind: Kind, samples: usize, policies: usize, epochs: usize, parity: bool) -> Self {
        Self {
            kind,
            samples,
            policies,
            epochs,
            parity,
            rounds: 5.min(epochs),
        }
    }

    /// With so many rounds of Noisy BC.
    pub(crate) fn with_rounds(self, rounds: usize) -> Self {
        Self { rounds, ..self }
    }

    fn batch(&self) -> usize {
        if self.kind.is_rbc() && !self.parity {
            CHUNK
        } else {
            BATCH
        }
    }

    /// Gradient steps an epoch.
    pub(crate) fn steps(&self) -> usize {
        self.samples.div_ceil(self.batch())
    }

    pub(crate) fn all_steps(&self) -> usize {
        self.steps() * self.epochs
    }

    /// Floating-point operations of a step that are of use, all policies together. With P the multiplications of a network
    /// for one sample (Σ of products of adjacent widths) and P₁ those of its first layer: a pass forward is 2 P a sample, the
    /// gradient by the weights 2 P, the gradient by the layers' inputs 2 (P − P₁), since nobody asks for that by
    /// the first one's.
    ///
    /// bc and noisy-bc: B (6 P − 2 P₁). rbc: the chunk forward, the window back: 2 P n + w (4 P − 2 P₁), twice with a
    /// challenger. The reference counted the window's pass forward a second time, 2 P w, and P₁ as P: of its 49 and 44
    /// TFLOP/s for min–max and direct, 39 and 35 are of use.
    pub(crate) fn flop_per_step(&self, size: &Size) -> f64 {
        let (observation, action) = WIDTHS;
        let widths: Vec<usize> = std::iter::once(observation)
            .chain(size.hidden.iter().copied())
            .chain([action])
            .collect();
        let all: usize = widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let (all, first) = (all as f64, (widths[0] * widths[1]) as f64);
        let (chunk, batch) = (CHUNK.min(self.samples) as f64, BATCH.min(self.samples) as f64);
        let rbc = 2.0 * all * chunk + WINDOW * chunk * (4.0 * all - 2.0 * first);
        let each = match self.kind {
            Kind::Bc | Kind::NoisyBc => batch * (6.0 * all - 2.0 * first),
            Kind::MinMax => 2.0 * rbc,
            Kind::Direct => rbc,
        };
        each * self.policies as f64
    }

    /// What a pipeline would give `train`, but for the seed.
    pub(crate) fn parameters(&self, size: &Size) -> Result<TrainParameters, Box<dyn Error>> {
        let method = match self.kind {
            Kind::Bc => "bc",
            Kind::MinMax | Kind::Direct => "rbc",
            Kind::NoisyBc => "noisy-bc",
        };
        let objective = if self.kind == Kind::Direct {
            "direct"
        } else {
            "min-max"
        };
        Ok(serde_json::from_value(json!({
            "method": method,
            "rbc": {
                "objective": objective, "block": 1, "window": WINDOW, "chunk": CHUNK,
                // The reference measures none.
                "tau_steps": 0,
            },
            "noisy_bc": { "rounds": self.rounds },
            "hidden": size.hidden, "epochs": self.epochs, "batch": self.batch(),
            "learning_rate": 7.5e-4, "gradient_clip": 0.1,
            "device": size.device, "precision": "tf32",
        }))?)
    }
}
