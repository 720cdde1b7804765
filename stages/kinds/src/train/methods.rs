//! Settings of the methods, a table each. Only that of the chosen method matters.
//!
//! Throughout, A is the number of an action's components, r the difference between what a policy does and what was
//! shown, and e = ‖r‖²/A the squared error. Whatever a method assumes of the share of outliers is a parameter: nothing is
//! read from the data's mask.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Gaussian of the loss `nll`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Nll {
    /// Deviation of the actions about the policy's, or where it starts if it is learnt. The τ̂ of `rbc` is measured at it,
    /// too, whatever the loss.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 100.0))]
    pub sigma: f64,
    /// Whether a deviation of each component, the same in every state, is learnt beside the policy, by an Adam of its own.
    pub learned: bool,
    /// What a learnt deviation does not fall below: without a floor the likelihood of actions that are fitted exactly is
    /// unbounded.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 100.0))]
    pub floor: f64,
}

impl Default for Nll {
    fn default() -> Self {
        Self {
            sigma: 0.1,
            learned: false,
            floor: 0.01,
        }
    }
}

/// Settings of robust behaviour cloning (Liu, Tang, Li, Luo 2022, Definition 3.1 and Algorithm 1). At every step a chunk of the
/// samples is drawn and divided at random into ⌊chunk/block⌋ blocks; what is left over goes to the first ones, a sample each. A
/// block's value is ℓ(π) − ℓ(π′), or ℓ(π) alone: means over its samples of the `loss` of the policy π and of a challenger π′, which
/// has initial values and an Adam of its own. From the blocks around the median one, in the order of their values, the policy
/// learns by the mean of their ℓ(π), and the challenger by that of their ℓ(π′), which makes the difference large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rbc {
    /// What the blocks are ranked by.
    pub objective: Objective,
    /// The share of outliers to withstand; never read from the data. Sets `block` and `window` where they are not given.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 0.5))]
    pub assumed_epsilon: f64,
    /// Samples a block; ⌊1/(3 `assumed_epsilon`)⌋, between 1 and `block_max`, where it is not given.
    #[schemars(range(min = 1))]
    pub block: Option<u32>,
    /// Largest block that `assumed_epsilon` may set.
    #[schemars(range(min = 1))]
    pub block_max: u32,
    /// Samples drawn and divided into blocks at each step; 0 takes the whole data set, as Algorithm 1 does.
    pub chunk: u32,
    /// Share of the blocks, around the median one, that give the gradient. Where it is not given it is as wide as the
    /// assumption allows: a share (1 − `assumed_epsilon`)^`block` of the blocks is clean, the upper end of the window is
    /// put there, hence 2 (1 − `assumed_epsilon`)^`block` − 1, and the median block alone where that is not positive.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub window: Option<f64>,
    /// How many further steps the challenger of `min-max` takes against the finished policy before τ̂ is measured: the median
    /// over the blocks of one seeded partition of all samples of NLL(policy) − NLL(challenger), at the deviation `nll.sigma`.
    /// It is a lower estimate of the τ of the paper's Theorem 1, as good as the challenger is, and no certificate. 0 measures
    /// nothing.
    #[schemars(range(max = 1_000_000))]
    pub tau_steps: u32,
}

impl Rbc {
    /// Samples a block: as given, or ⌊1/(3 `assumed_epsilon`)⌋ between 1 and `block_max`.
    pub fn block_size(&self) -> u32 {
        self.block.unwrap_or_else(|| {
            // The quotient of two decimals that divide evenly (0.2 · 5/3, 1/(3 · 0.1)) may fall short by a rounding.
            let size = (1.0 / (3.0 * self.assumed_epsilon) + 1e-9).floor();
            size.clamp(1.0, f64::from(self.block_max)) as u32
        })
    }

    /// Share of the blocks that give the gradient: as given, or as wide as `assumed_epsilon` allows; 0 stands for the
    /// median block alone.
    pub fn window_share(&self) -> f64 {
        self.window.unwrap_or_else(|| {
            // A product, not a power: the C library has no say in it.
            let clean = (0..self.block_size()).fold(1.0, |clean, _| clean * (1.0 - self.assumed_epsilon));
            (2.0 * clean - 1.0).max(0.0)
        })
    }
}

impl Default for Rbc {
    fn default() -> Self {
        Self {
            objective: Objective::MinMax,
            assumed_epsilon: 0.2,
            block: None,
            block_max: 6,
            chunk: 960,
            window: None,
            tau_steps: 200,
        }
    }
}

/// What blocks are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The loss of the policy less that of a challenger that is trained to make it large (Definition 3.1).
    MinMax,
    /// The loss of the policy alone.
    Direct,
}

/// Settings of behaviour cloning from noisy demonstrations: rounds of weighted least squares, each from initial values
/// anew. The weight of a sample is the density of its action under the policy of the round before, computed as a logarithm
/// and brought to mean 1 over all samples: log w = −A e/(2σ²) and a constant, with e the squared error, averaged over the A
/// components of an action. The policy is Gaussian; its deviation is the likeliest one, σ² = Σ w e / Σ w under the round's weights
/// w, but for a floor (Liu, Tang, Li, Luo 2022; Sasaki and Yamashina 2021).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NoisyBc {
    /// Which of the two methods of that name.
    pub form: NoisyForm,
    /// Networks of the published form.
    #[schemars(range(min = 2, max = 64))]
    pub members: u32,
    /// How often the policy is learnt; the epochs are divided evenly among the rounds, and a schedule of the step size runs
    /// in each. The first weighs all samples the same.
    #[schemars(range(min = 1, max = 1000))]
    pub rounds: u32,
    /// What the deviation does not fall below. It says what still counts as clean: a sample that the round before fitted
    /// worse than by a few of these loses its weight, whether it is an outlier or not yet learnt, and the rounds after
    /// cannot win it back. Well above the error of a network that is still learning, well below an outlier's.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 100.0))]
    pub sigma_floor: f64,
}

impl Default for NoisyBc {
    fn default() -> Self {
        Self {
            form: NoisyForm::Paper,
            members: 5,
            rounds: 5,
            sigma_floor: 0.3,
        }
    }
}

/// The two forms of behaviour cloning from noisy demonstrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoisyForm {
    /// As Liu, Tang, Li and Luo (2022) describe it: one network, which learns from all samples.
    Paper,
    /// As Sasaki and Yamashina (2021) published it: `members` networks learn from disjoint parts of the samples, the density
    /// is the mean of theirs, and what acts is the mean of their actions.
    Published,
}

/// Settings of the trimmed loss (Shen and Sanghavi 2019, ITLM): least squares on the share of the samples that the policy
/// fits best, chosen again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trimmed {
    /// The share of outliers to withstand; never read from the data.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub assumed_epsilon: f64,
    /// How much more is left out, as a share of all samples.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub margin: f64,
    /// The share of the samples that gives the gradient; 1 − `assumed_epsilon` − `margin` where it is not given.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub keep: Option<f64>,
    /// What the samples are chosen from.
    pub among: Among,
}

impl Trimmed {
    /// The share of the samples that gives the gradient.
    pub fn share(&self) -> f64 {
        self.keep.unwrap_or(1.0 - self.assumed_epsilon - self.margin)
    }
}

impl Default for Trimmed {
    fn default() -> Self {
        Self {
            assumed_epsilon: 0.2,
            margin: 0.05,
            keep: None,
            among: Among::Batch,
        }
    }
}

/// What samples are chosen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Among {
    /// At every step, from its minibatch.
    Batch,
    /// At the start of every epoch after the first, from all samples, as the original rounds do.
    Epoch,
}

/// Settings of the contaminated likelihood: the negative log-likelihood of (1 − ε) N(a; π(s), σ²I) + ε 2^−A, a uniform
/// density on [−1, 1]^A beside the Gaussian (Banfield and Raftery 1993 for clusters). Its gradient is that of least squares
/// where every sample counts by its responsibility: the probability that it came from the Gaussian. At the start of every
/// epoch σ is fitted by expectation–maximisation (Dempster, Laird and Rubin 1977) to the residuals of up to 4,096 samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mixture {
    /// ε, or where its fit starts; never read from the data's mask.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub assumed_epsilon: f64,
    /// Whether ε is fitted, too.
    pub learn_epsilon: bool,
    /// What σ does not fall below. It says what still counts as clean: with a floor far below the error of a network that is
    /// still learning, σ shrinks to what is fitted already, and the rest is never learnt. Well below an outlier's error.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 100.0))]
    pub sigma_floor: f64,
}

impl Default for Mixture {
    fn default() -> Self {
        Self {
            assumed_epsilon: 0.2,
            learn_epsilon: false,
            sigma_floor: 0.3,
        }
    }
}

/// Settings of robust losses of the residual's length q = √e, with e the squared error, averaged over the A components of an action
/// (e = ‖r‖²/A with r the difference between what the policy does and what was shown), beyond a scale c = `tuning` · 1.4826 · MAD. The median absolute
/// deviation is that of the components of the residuals of up to 4,096 samples about 0, measured at the start of every epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RobustLoss {
    /// Which loss.
    pub loss: RobustKind,
    /// c in proportion to the scale of the data. Where it is not given: 1.345 for `huber` and 2.985 for `welsch`, with which
    /// they are 95 % efficient on Gaussian residuals of one component; 0.1 for `norm`; 1 for `student-t`.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1000.0))]
    pub tuning: Option<f64>,
    /// The scale of the data, where it is to be this and not to be measured.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 100.0))]
    pub scale: Option<f64>,
    /// What a measured scale does not fall below.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 100.0))]
    pub scale_floor: f64,
    /// Degrees of freedom of `student-t`.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1000.0))]
    pub freedom: f64,
}

impl RobustLoss {
    /// c in proportion to the scale of the data.
    pub fn tuning(&self) -> f64 {
        self.tuning.unwrap_or(match self.loss {
            RobustKind::Huber => 1.345,
            RobustKind::Norm => 0.1,
            RobustKind::StudentT => 1.0,
            RobustKind::Welsch => 2.985,
        })
    }
}

impl Default for RobustLoss {
    fn default() -> Self {
        Self {
            loss: RobustKind::Huber,
            tuning: None,
            scale: None,
            scale_floor: 0.01,
            freedom: 2.0,
        }
    }
}

/// Losses that grow more slowly than the squared error. All are e + o(e) near 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RobustKind {
    /// e where q ≤ c, else c (2q − c) (Huber 1964).
    Huber,
    /// 2c (√(e + c²) − c): the length of the residual, rounded off at 0.
    Norm,
    /// The negative log-likelihood of a multivariate t distribution with ν = `freedom`, brought to slope 1 at 0:
    /// (νc²/A) log(1 + ‖r‖²/(νc²)), with ‖r‖² = A e.
    StudentT,
    /// 2c² (1 − exp(−e/(2c²))) (Welsch; correntropy).
    Welsch,
}

/// Settings of co-teaching (Han et al. 2018): two networks with initial values of their own; at every step each chooses the
/// samples of the minibatch that it fits best, and the other one learns from these. The first is the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoTeaching {
    /// The share of samples that is left out once the ramp is over, the share of outliers to withstand; never read from the
    /// data.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub assumed_epsilon: f64,
    /// Epochs in which the share that is left out grows from 0, linearly.
    #[schemars(range(max = 1_000_000))]
    pub ramp: u32,
}

impl Default for CoTeaching {
    fn default() -> Self {
        Self {
            assumed_epsilon: 0.2,
            ramp: 10,
        }
    }
}

/// Settings of filtering before cloning: a part of the epochs judges the samples, the worst are left out, and `bc` learns
/// from the others, from initial values, with a schedule of its own. Until then the policy does nothing of use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// What judges.
    pub by: FilterBy,
    /// The share of samples that is left out, the share of outliers to withstand; never read from the data.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub assumed_epsilon: f64,
    /// The share of the epochs in which samples are judged.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub judging: f64,
    /// Parts of the data of `cross-fit`.
    #[schemars(range(min = 2, max = 64))]
    pub folds: u32,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            by: FilterBy::CrossFit,
            assumed_epsilon: 0.2,
            judging: 0.5,
            folds: 5,
        }
    }
}

/// What judges the samples of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilterBy {
    /// The squared error of a sample under a network that learnt from the other parts of the data: what was memorised does
    /// not count.
    CrossFit,
    /// How often `rbc`, with its settings, selected a sample when it had drawn it.
    Rbc,
}

/// Settings of the range filter, the control that any study needs: `bc` on the samples whose actions lie within a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RangeFilter {
    /// The largest component that an action may have, either way. The default takes out actions at ±1 and next to nothing else:
    /// what comes out of tanh does not get there, and the experts that ship stay below 0.9999. The most that one of
    /// Stable-Baselines3's SAC with gSDE can do is tanh 2 = 0.96403: its mean is clipped to ±2 before it is squashed.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub bound: f64,
}

impl Default for RangeFilter {
    fn default() -> Self {
        Self { bound: 0.9999 }
    }
}
