use provenir_nn::{Adam, AdamSettings, Ensemble, Forward, Gradient, NnError, Shape};
use provenir_policy::{Activation, Squash};
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

use super::{Saved, host};

/// Bounds of the logarithm of the deviation that a network gives, as in the code of the paper on SAC.
const LOG_STD: (f64, f64) = (-20.0, 2.0);

/// Bound of the means with gSDE, as in Stable-Baselines3.
const MEAN_BOUND: f32 = 2.0;

/// Added to the variance with gSDE.
const EPSILON: f64 = 1e-6;

/// How far actions spread about their means.
pub(super) enum Spread {
    /// Behind the means the network gives the logarithms of the deviations.
    Head,
    /// By a random linear function of φ, that is what goes into the network's last layer: gSDE (Raffin et al. 2021). Its
    /// weights are independent and normal about 0; the logarithms of their deviations are learned.
    StateDependent(Box<Functions>),
}

/// The distribution of random functions, and those in use.
pub(super) struct Functions {
    /// The logarithms, `[1, width, A]`, as a network of one layer whose bias is never used.
    pub(super) logarithms: Ensemble,
    pub(super) gradient: Gradient,
    adam: Adam,
    /// A standard normal number for every weight of every row's function, `[rows, width, A]`, and what they were drawn from.
    drawn: Option<(Stream, Vec<f32>)>,
}

/// Means and deviations of the actions, `[B, A]`.
pub(super) struct Gaussian {
    pub(super) mean: Tensor,
    pub(super) deviation: Tensor,
    pub(super) log_deviation: Tensor,
    /// 1 where what is clamped (the logarithms of a head, the means with gSDE) is within its bounds, else 0.
    free: Tensor,
}

impl Spread {
    /// For a network whose last layer has `width` inputs; `gsde` is the logarithm at the start.
    pub(super) fn new(
        gsde: Option<f64>,
        width: usize,
        action: usize,
        adam: AdamSettings,
        device: Device,
    ) -> Result<Self, NnError> {
        let Some(logarithm) = gsde else {
            return Ok(Self::Head);
        };
        let shape = Shape {
            inputs: width,
            hidden: Vec::new(),
            outputs: action,
            activation: Activation::Relu,
        };
        let logarithms = Ensemble::constant(&shape, 1, logarithm as f32, device)?;
        let gradient = logarithms.gradient()?;
        Ok(Self::StateDependent(Box::new(Functions {
            adam: Adam::new(&logarithms, &gradient, adam)?,
            gradient,
            logarithms,
            drawn: None,
        })))
    }

    /// What the network has said.
    pub(super) fn gaussian(&self, forward: &Forward, action: usize) -> Result<Gaussian, NnError> {
        let (output, action) = (forward.output().f_get(0)?, action as i64);
        let Self::StateDependent(functions) = self else {
            let raw = output.f_narrow(1, action, action)?;
            let log_deviation = raw.f_clamp(LOG_STD.0, LOG_STD.1)?;
            return Ok(Gaussian {
                mean: output.f_narrow(1, 0, action)?,
                deviation: log_deviation.f_exp()?,
                free: raw.f_eq_tensor(&log_deviation)?.f_to_kind(Kind::Float)?,
                log_deviation,
            });
        };
        let bound = f64::from(MEAN_BOUND);
        let mean = output.f_clamp(-bound, bound)?;
        let variance = forward
            .features()
            .f_get(0)?
            .f_square()?
            .f_matmul(&functions.variances()?)?
            .f_add_scalar(EPSILON)?;
        Ok(Gaussian {
            free: output.f_eq_tensor(&mean)?.f_to_kind(Kind::Float)?,
            mean,
            deviation: variance.f_sqrt()?,
            log_deviation: variance.f_log()?.f_mul_scalar(0.5)?,
        })
    }

    /// From the gradient by means and logarithms of deviations, `[B, A]`, to that by what the network gives, into `delta`
    /// (`[B, outputs]`), and to that by φ where deviations come from it, `[1, B, width]`.
    pub(super) fn differentiate(
        &mut self,
        gaussian: &Gaussian,
        forward: &Forward,
        (by_mean, by_log_deviation): (&Tensor, &Tensor),
        delta: &mut Tensor,
    ) -> Result<Option<Tensor>, NnError> {
        let Gaussian { deviation, free, .. } = gaussian;
        let action = by_mean.size()[1];
        let Self::StateDependent(functions) = self else {
            delta.f_narrow(1, 0, action)?.f_copy_(by_mean)?;
            delta
                .f_narrow(1, action, action)?
                .f_copy_(&by_log_deviation.f_mul(free)?)?;
            return Ok(None);
        };
        delta.f_copy_(&by_mean.f_mul(free)?)?;
        // The variance is Σ φ² exp(2 s) with the logarithms s; that of the deviation is half its own.
        let by_variance = by_log_deviation
            .f_div(&deviation.f_square()?)?
            .f_mul_scalar(0.5)?;
        let (features, variances) = (forward.features().f_get(0)?, functions.variances()?);
        let by_logarithms = features
            .f_square()?
            .f_tr()?
            .f_matmul(&by_variance)?
            .f_mul(&variances)?
            .f_mul_scalar(2.0)?;
        for (weight, _) in functions.gradient.layers() {
            weight.f_get(0)?.f_copy_(&by_logarithms)?;
        }
        let by_features = by_variance
            .f_matmul(&variances.f_tr()?)?
            .f_mul(&features)?
            .f_mul_scalar(2.0)?;
        Ok(Some(by_features.f_unsqueeze(0)?))
    }

    /// What comes before a step of that rate.
    pub(super) fn prepare(&mut self, rate: f64) -> Result<(), NnError> {
        self.adam().map_or(Ok(()), |adam| adam.prepare(&[rate]))
    }

    /// A step against the gradient of the last differentiation, of what is learned here.
    pub(super) fn step(&mut self) -> Result<(), NnError> {
        self.adam().map_or(Ok(()), |adam| adam.apply(None))
    }

    /// What comes after a step.
    pub(super) fn settle(&mut self) -> Result<(), NnError> {
        self.adam().map_or(Ok(()), Adam::settle)
    }

    fn adam(&mut self) -> Option<&mut Adam> {
        match self {
            Self::Head => None,
            Self::StateDependent(functions) => Some(&mut functions.adam),
        }
    }

    /// Draws an action for every row of what the network has said, before it is squashed.
    pub(super) fn draw(
        &mut self,
        forward: &Forward,
        action: usize,
        mut noise: Stream,
    ) -> Result<Vec<f64>, NnError> {
        let output = host(forward.output())?;
        let Self::StateDependent(functions) = self else {
            let mut drawn = Vec::with_capacity(output.len() / 2);
            for row in output.chunks_exact(2 * action) {
                let (means, logarithms) = row.split_at(action);
                for (mean, logarithm) in means.iter().zip(logarithms) {
                    let deviation = libm::exp(f64::from(*logarithm).clamp(LOG_STD.0, LOG_STD.1));
                    drawn.push(f64::from(*mean) + deviation * noise.normal());
                }
            }
            return Ok(drawn);
        };
        let mut drawn: Vec<f64> = output
            .iter()
            .map(|mean| f64::from(mean.clamp(-MEAN_BOUND, MEAN_BOUND)))
            .collect();
        let deviations: Vec<f64> = host(&functions.variances()?)?
            .iter()
            .map(|variance| f64::from(*variance).sqrt())
            .collect();
        let features = host(forward.features())?;
        let width = deviations.len() / action;
        let rows = drawn.chunks_exact_mut(action).zip(features.chunks_exact(width));
        let weights = functions.drawn(forward.rows(), noise);
        for ((drawn, features), weights) in rows.zip(weights.chunks_exact(deviations.len())) {
            let terms = weights.chunks_exact(action).zip(deviations.chunks_exact(action));
            for (feature, (weights, deviations)) in features.iter().zip(terms) {
                for ((drawn, weight), deviation) in drawn.iter_mut().zip(weights).zip(deviations) {
                    *drawn += f64::from(*feature) * f64::from(*weight) * deviation;
                }
            }
        }
        Ok(drawn)
    }

    /// How the means become actions.
    pub(super) fn squash(&self) -> Squash {
        match self {
            Self::Head => Squash::Tanh,
            Self::StateDependent(_) => Squash::ClippedTanh { bound: MEAN_BOUND },
        }
    }

    /// What is learned here.
    pub(super) fn save(&self) -> Result<Option<Saved>, NnError> {
        match self {
            Self::Head => Ok(None),
            Self::StateDependent(functions) => Saved::of(&functions.logarithms, &functions.adam).map(Some),
        }
    }

    /// Takes back what [`Spread::save`] gave.
    pub(super) fn load(&mut self, saved: Option<&Saved>) -> Result<(), NnError> {
        match (self, saved) {
            (Self::Head, None) => Ok(()),
            (Self::StateDependent(functions), Some(saved)) => {
                saved.load(&mut functions.logarithms, &mut functions.adam)
            }
            _ => Err(super::unreadable("an actor's deviations")),
        }
    }
}

impl Functions {
    /// Of the weights, `[width, A]`.
    fn variances(&self) -> Result<Tensor, NnError> {
        let mut layers = self.logarithms.layers();
        let (weight, _) = layers.next().expect("it has one layer");
        Ok(weight.f_get(0)?.f_mul_scalar(2.0)?.f_exp()?)
    }

    /// The functions that this stream stands for.
    fn drawn(&mut self, rows: usize, noise: Stream) -> &[f32] {
        let count = rows * self.logarithms.shape().inputs * self.logarithms.shape().outputs;
        let drawn = match self.drawn.take() {
            Some(drawn) if drawn.0 == noise && drawn.1.len() == count => drawn,
            _ => {
                let mut stream = noise.clone();
                let numbers = (0..count).map(|_| stream.normal() as f32).collect();
                (noise, numbers)
            }
        };
        &self.drawn.insert(drawn).1
    }
}
