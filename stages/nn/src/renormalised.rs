use provenir_policy::Activation;
use tch::{Device, Kind, Tensor};

use crate::ensemble::{from_host, to_host};
use crate::{Ensemble, Gradient, NnError};

/// Added to variances.
const EPSILON: f64 = 1e-3;

/// Share of a batch in the running statistics.
const SHARE: f64 = 0.01;

/// Bounds of the corrections towards the running statistics: of the factor r and of the shift d.
const FACTOR: f64 = 3.0;
const SHIFT: f64 = 5.0;

/// Runs without corrections, until the running statistics mean something.
const WARM_UP: u64 = 100_000;

/// Running means and variances below these sizes become zero. Those of a unit that no sample activates any more die out
/// geometrically, into subnormal numbers, which the normalised input then consists of: products of matrices took three times
/// as long. What is lost is less than a rounding of anything that it is added to.
const LEAST_MEAN: f64 = 1e-30;
const LEAST_VARIANCE: f64 = 1e-36;

/// Passes through networks of which every layer's input is batch-renormalised (Ioffe 2017, algorithm 1), as in CrossQ
/// (Bhatt et al. 2024), whose constants these are.
///
/// An input x of a layer becomes (x − μ) / σ · r + d, with mean and deviation over the batch; the gradient flows through
/// these, not through r and d, which make it (x − μ′) / σ′ with the running statistics, within bounds. There is no scale and
/// no shift to learn: the linear layer that comes next has its own.
///
/// The loss is one of what the networks say of the first B of N samples. The gradient flows through the others, too: they
/// move the statistics.
pub struct Renormalised {
    activation: Activation,
    norms: Vec<Norm>,
    /// `[K, N, out]`
    output: Tensor,
    /// Gradients by what goes into each layer's activation, `[K, N, width]`, and by the first of the output, `[K, B, out]`.
    deltas: Vec<Tensor>,
    runs: u64,
}

/// Normalisation of one layer's input. Statistics are `[K, 1, width]`.
struct Norm {
    /// What comes in, `[K, N, width]`.
    raw: Tensor,
    /// What comes out.
    normal: Tensor,
    scratch: Tensor,
    running_mean: Tensor,
    running_variance: Tensor,
    /// r/σ of the last run.
    scale: Tensor,
    /// d of the last run.
    shift: Tensor,
    /// 1/σ of the last run.
    reciprocal: Tensor,
}

impl Norm {
    fn new(members: i64, rows: i64, width: i64, device: Device) -> Result<Self, NnError> {
        let zeros = |rows: i64| Tensor::f_zeros([members, rows, width], (Kind::Float, device));
        Ok(Self {
            raw: zeros(rows)?,
            normal: zeros(rows)?,
            scratch: zeros(rows)?,
            running_mean: zeros(1)?,
            running_variance: zeros(1)?.f_fill_(1.0)?,
            scale: zeros(1)?,
            shift: zeros(1)?,
            reciprocal: zeros(1)?,
        })
    }

    /// Normalises what came in, and lets the running statistics take note of it.
    fn run(&mut self, corrected: bool) -> Result<(), NnError> {
        let mean = self.raw.f_mean_dim([1_i64].as_slice(), true, Kind::Float)?;
        let _ = self.raw.f_sub_out(&self.normal, &mean)?;
        let variance =
            self.normal
                .f_square_out(&self.scratch)?
                .f_mean_dim([1_i64].as_slice(), true, Kind::Float)?;
        self.reciprocal = variance.f_add_scalar(EPSILON)?.f_rsqrt()?;
        if corrected {
            let running = self.running_variance.f_add_scalar(EPSILON)?.f_rsqrt()?;
            let factor = running.f_div(&self.reciprocal)?.f_clamp(1.0 / FACTOR, FACTOR)?;
            self.scale = self.reciprocal.f_mul(&factor)?;
            self.shift = mean
                .f_sub(&self.running_mean)?
                .f_mul(&running)?
                .f_clamp(-SHIFT, SHIFT)?;
            let _ = self
                .shift
                .f_addcmul_out(&self.normal, &self.normal, &self.scale)?;
        } else {
            self.scale = self.reciprocal.shallow_clone();
            let _ = self.shift.f_zero_()?;
            let _ = self.normal.f_mul_(&self.scale)?;
        }
        let _ = self.running_mean.f_lerp_(&mean, SHARE)?;
        let _ = self.running_variance.f_lerp_(&variance, SHARE)?;
        let _ = self.running_mean.f_abs()?.f_threshold_backward_grad_input(
            &self.running_mean,
            &self.running_mean,
            LEAST_MEAN,
        )?;
        let _ = self.running_variance.f_threshold_(LEAST_VARIANCE, 0.0)?;
        Ok(())
    }

    /// From the gradient by what came out to that by what came in, in place.
    ///
    /// With z = (x − μ) / σ and sums over the N samples: `r/σ (g − Σg / N − z Σ(g z) / N)`, which is written by what came
    /// out, x̂ = r z + d, as `r/σ g − (x̂ − d) Σ(g (x̂ − d)) / (N r σ) − r/σ Σg / N`.
    fn back(&self, gradient: &mut Tensor) -> Result<(), NnError> {
        let rows = self.raw.size()[1] as f64;
        let sum = gradient.f_sum_dim_intlist([1_i64].as_slice(), true, Kind::Float)?;
        let product = gradient
            .f_mul_out(&self.scratch, &self.normal)?
            .f_sum_dim_intlist([1_i64].as_slice(), true, Kind::Float)?
            .f_sub(&sum.f_mul(&self.shift)?)?;
        // 1/(r σ) is 1/σ² over r/σ.
        let slope = product
            .f_mul(&self.reciprocal.f_square()?)?
            .f_div(&self.scale)?
            .f_div_scalar(-rows)?;
        let offset = sum
            .f_mul(&self.scale)?
            .f_div_scalar(-rows)?
            .f_sub(&slope.f_mul(&self.shift)?)?;
        let _ = offset.f_addcmul_out(gradient, gradient, &self.scale)?;
        let _ = gradient.f_addcmul_(&self.normal, &slope)?;
        Ok(())
    }
}

impl Renormalised {
    /// Buffers for `rows` samples a network, with a loss of the first `judged` of them; running statistics of a standard normal.
    pub fn new(ensemble: &Ensemble, rows: usize, judged: usize) -> Result<Self, NnError> {
        let (shape, members, device) = (ensemble.shape(), ensemble.members() as i64, ensemble.device());
        let buffer = |rows: usize, width: usize| {
            Tensor::f_zeros([members, rows as i64, width as i64], (Kind::Float, device))
        };
        Ok(Self {
            activation: shape.activation,
            norms: std::iter::once(&shape.inputs)
                .chain(&shape.hidden)
                .map(|width| Norm::new(members, rows as i64, *width as i64, device))
                .collect::<Result<_, _>>()?,
            output: buffer(rows, shape.outputs)?,
            deltas: shape
                .hidden
                .iter()
                .map(|width| buffer(rows, *width))
                .chain([buffer(judged, shape.outputs)])
                .collect::<Result<_, _>>()?,
            runs: 0,
        })
    }

    /// The input, `[K, N, in]`: to be filled before [`Renormalised::run`], which [`Renormalised::prepare`] comes before.
    pub fn input(&self) -> &Tensor {
        &self.norms[0].raw
    }

    /// The output of the last run, `[K, N, out]`.
    pub fn output(&self) -> &Tensor {
        &self.output
    }

    /// The gradient of the loss by the output for the first samples, `[K, B, out]`: to be filled before
    /// [`Renormalised::back`].
    pub fn delta(&self) -> &Tensor {
        &self.deltas[self.deltas.len() - 1]
    }

    /// Counts a run that is about to begin, and gives whether it will be corrected, in which runs differ.
    pub fn prepare(&mut self) -> bool {
        self.runs += 1;
        self.corrected()
    }

    fn corrected(&self) -> bool {
        self.runs > WARM_UP
    }

    /// Computes the output of every network for the input; the running statistics take note of it.
    pub fn run(&mut self, ensemble: &Ensemble) -> Result<(), NnError> {
        let corrected = self.corrected();
        for (depth, (weight, bias)) in ensemble.layers().enumerate() {
            self.norms[depth].run(corrected)?;
            let output = self.norms.get(depth + 1).map_or(&self.output, |norm| &norm.raw);
            let mut output = bias.f_baddbmm_out(output, &self.norms[depth].normal, weight)?;
            if depth + 1 < self.norms.len() {
                let _ = match self.activation {
                    Activation::Relu => output.f_relu_()?,
                    Activation::Tanh => output.f_tanh_()?,
                };
            }
        }
        Ok(())
    }

    /// Computes the gradient of the loss by all parameters; overwrites `gradient`.
    pub fn back(&mut self, ensemble: &Ensemble, gradient: &mut Gradient) -> Result<(), NnError> {
        let layers = ensemble.layers().zip(gradient.layers()).enumerate().rev();
        for (depth, ((weight, _), (weight_gradient, bias_gradient))) in layers {
            let (norm, delta) = (&self.norms[depth], &self.deltas[depth]);
            let first = |tensor: &Tensor| tensor.f_narrow(1, 0, delta.size()[1]);
            let normal = first(&norm.normal)?.f_transpose(1, 2)?;
            let _ = normal.f_bmm_out(weight_gradient, delta)?;
            let _ = delta.f_sum_intlist_out(bias_gradient, 1, true, Kind::Float)?;
            if depth == 0 {
                continue;
            }
            let mut below = self.deltas[depth - 1].shallow_clone();
            if depth + 1 == self.deltas.len() {
                let _ = below.f_zero_()?;
            }
            let _ = delta.f_bmm_out(&first(&below)?, &weight.f_transpose(1, 2)?)?;
            norm.back(&mut below)?;
            let _ = match self.activation {
                Activation::Relu => norm.raw.f_threshold_backward_grad_input(&below, &below, 0.0)?,
                Activation::Tanh => Tensor::f_tanh_backward_grad_input(&below, &below, &norm.raw)?,
            };
        }
        Ok(())
    }

    /// Writes networks without normalisation that compute what these do with the running statistics.
    pub fn fold(&self, ensemble: &Ensemble, into: &mut Ensemble) -> Result<(), NnError> {
        let layers = ensemble.layers().zip(into.layers());
        for (norm, ((weight, bias), (folded_weight, folded_bias))) in self.norms.iter().zip(layers) {
            let reciprocal = norm.running_variance.f_add_scalar(EPSILON)?.f_rsqrt()?;
            let _ = weight.f_mul_out(folded_weight, &reciprocal.f_transpose(1, 2)?)?;
            let _ = bias.f_baddbmm_out(folded_bias, &norm.running_mean.f_neg()?, folded_weight)?;
        }
        Ok(())
    }

    /// The running statistics, of each layer's input the means and then the variances, and the number of runs: what
    /// [`Renormalised::load`] takes back.
    pub fn save(&self) -> Result<(Vec<f32>, u64), NnError> {
        let mut values = Vec::new();
        for norm in &self.norms {
            values.extend(to_host(&norm.running_mean)?);
            values.extend(to_host(&norm.running_variance)?);
        }
        Ok((values, self.runs))
    }

    /// Takes back what [`Renormalised::save`] gave.
    pub fn load(&mut self, statistics: &[f32], runs: u64) -> Result<(), NnError> {
        const WHAT: &str = "statistics of layers";
        let tensors = || {
            self.norms
                .iter()
                .flat_map(|norm| [&norm.running_mean, &norm.running_variance])
        };
        let expected = tensors().map(Tensor::numel).sum();
        if statistics.len() != expected {
            return Err(NnError::Length {
                what: WHAT,
                expected,
                found: statistics.len(),
            });
        }
        let mut rest = statistics;
        for tensor in tensors() {
            let (values, behind) = rest.split_at(tensor.numel());
            from_host(&mut tensor.shallow_clone(), values, WHAT)?;
            rest = behind;
        }
        self.runs = runs;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bits, normal, shape, streams};
    use crate::{Forward, device};

    const MEMBERS: i64 = 2;
    const ROWS: usize = 24;
    const JUDGED: usize = 10;

    struct Case {
        ensemble: Ensemble,
        passes: Renormalised,
    }

    /// Networks, and an input that is far from standard normal.
    fn case(activation: Activation) -> Case {
        device::set_threads(1);
        let shape = shape(5, &[9, 7], 3, activation);
        let ensemble = Ensemble::initial(&shape, &streams(&[0, 1]), Device::Cpu).unwrap();
        let passes = Renormalised::new(&ensemble, ROWS, JUDGED).unwrap();
        let input = normal(3, &[MEMBERS, ROWS as i64, 5]) * 3.0 + normal(4, &[1, 1, 5]);
        passes.input().shallow_clone().copy_(&input);
        Case { ensemble, passes }
    }

    /// Statistics of other data, so different that some corrections reach their bounds, after the warm-up.
    fn warm(passes: &mut Renormalised) {
        let count = passes.save().unwrap().0.len();
        let statistics: Vec<f32> = Vec::try_from(normal(5, &[count as i64]).square() * 0.5 + 0.01).unwrap();
        passes.load(&statistics, WARM_UP).unwrap();
    }

    /// Algorithm 1 as it is written, recorded by LibTorch.
    fn recorded(case: &Case, corrected: bool) -> (Tensor, Vec<[Tensor; 2]>) {
        let leaf = |tensor: &Tensor| tensor.copy().set_requires_grad(true);
        let leaves: Vec<[Tensor; 2]> = case
            .ensemble
            .layers()
            .map(|(weight, bias)| [leaf(weight), leaf(bias)])
            .collect();
        let mut values = case.passes.input().copy();
        for (depth, ([weight, bias], norm)) in leaves.iter().zip(&case.passes.norms).enumerate() {
            let mean = values.mean_dim(1, true, None);
            let deviation = (values.var_dim(1, false, true) + EPSILON).sqrt();
            values = (&values - &mean) / &deviation;
            if corrected {
                let running = (&norm.running_variance + EPSILON).sqrt();
                let factor = (&deviation / &running).clamp(1.0 / 3.0, 3.0).detach();
                let shift = ((&mean - &norm.running_mean) / &running)
                    .clamp(-5.0, 5.0)
                    .detach();
                if depth > 0 {
                    assert!(shift.abs().max().double_value(&[]) > 1e-2);
                }
                values = values * factor + shift;
            }
            values = values.matmul(weight) + bias;
            if depth + 1 < leaves.len() {
                values = match case.ensemble.shape().activation {
                    Activation::Relu => values.relu(),
                    Activation::Tanh => values.tanh(),
                };
            }
        }
        (values, leaves)
    }

    fn close(left: &Tensor, right: &Tensor) -> bool {
        let scale = right.abs().max().double_value(&[]);
        left.size() == right.size() && (left - right).abs().max().double_value(&[]) < 1e-5 * scale.max(1e-3)
    }

    #[test]
    fn outputs_and_gradients_are_those_of_recorded_differentiation() {
        for activation in [Activation::Relu, Activation::Tanh] {
            for corrected in [false, true] {
                let mut case = case(activation);
                if corrected {
                    warm(&mut case.passes);
                }
                let (output, leaves) = recorded(&case, corrected);
                let slope = normal(6, &[MEMBERS, JUDGED as i64, 3]);
                (output.narrow(1, 0, JUDGED as i64) * &slope).sum(None).backward();
                let mut gradient = case.ensemble.gradient().unwrap();
                case.passes.prepare();
                case.passes.run(&case.ensemble).unwrap();
                assert!(close(case.passes.output(), &output.detach()));
                case.passes.delta().shallow_clone().copy_(&slope);
                case.passes.back(&case.ensemble, &mut gradient).unwrap();
                for ((weight, bias), [weight_leaf, bias_leaf]) in gradient.layers().zip(&leaves) {
                    assert!(weight_leaf.grad().abs().max().double_value(&[]) > 1e-3);
                    assert!(close(weight, &weight_leaf.grad()));
                    assert!(close(bias, &bias_leaf.grad()));
                }
            }
        }
    }

    #[test]
    fn running_statistics_approach_those_of_the_batch() {
        let Case { ensemble, mut passes } = case(Activation::Relu);
        for _ in 0..150 {
            passes.prepare();
            passes.run(&ensemble).unwrap();
        }
        // What is left of the start after n runs is 0.99ⁿ of it.
        let left = 0.99_f64.powi(150);
        for norm in &passes.norms {
            let mean = norm.raw.mean_dim(1, true, None);
            assert!(close(&norm.running_mean, &(mean * (1.0 - left))));
            let variance = norm.raw.var_dim(1, false, true);
            assert!(close(&norm.running_variance, &(variance * (1.0 - left) + left)));
        }
    }

    #[test]
    fn statistics_that_die_out_never_become_subnormal() {
        let Case { ensemble, mut passes } = case(Activation::Relu);
        warm(&mut passes);
        // Units of the first hidden layer that nothing activates.
        for (_, bias) in ensemble.layers().take(1) {
            let _ = bias.shallow_clone().fill_(-1e3);
        }
        for _ in 0..12_000 {
            passes.prepare();
            passes.run(&ensemble).unwrap();
        }
        let normal = |values: &[f32]| values.iter().all(|value| *value == 0.0 || value.is_normal());
        assert!(normal(&passes.save().unwrap().0));
        assert!(passes.norms[1].normal.abs().max().double_value(&[]) < 1e-25);
        assert!(normal(&to_host(&passes.norms[1].normal).unwrap()));
        assert!(
            to_host(&passes.norms[1].running_mean)
                .unwrap()
                .iter()
                .all(|mean| *mean == 0.0)
        );
    }

    #[test]
    fn folded_networks_use_the_running_statistics() {
        let Case { ensemble, mut passes } = case(Activation::Relu);
        warm(&mut passes);
        let mut folded = Ensemble::initial(ensemble.shape(), &streams(&[2, 3]), Device::Cpu).unwrap();
        passes.fold(&ensemble, &mut folded).unwrap();
        let mut forward = Forward::new(&folded, ROWS).unwrap();
        forward.input().shallow_clone().copy_(passes.input());
        forward.run(&folded).unwrap();
        let mut values = passes.input().copy();
        for (depth, ((weight, bias), norm)) in ensemble.layers().zip(&passes.norms).enumerate() {
            values = (values - &norm.running_mean) / (&norm.running_variance + EPSILON).sqrt();
            values = values.matmul(weight) + bias;
            if depth < 2 {
                values = values.relu();
            }
        }
        assert!(close(forward.output(), &values));
    }

    #[test]
    fn saved_statistics_come_back_and_others_are_refused() {
        let Case { ensemble, mut passes } = case(Activation::Relu);
        let other = case(Activation::Relu).passes;
        warm(&mut passes);
        passes.prepare();
        passes.run(&ensemble).unwrap();
        let (statistics, runs) = passes.save().unwrap();
        let mut again = other;
        assert_ne!(again.save().unwrap().0, statistics);
        again.load(&statistics, runs).unwrap();
        assert_eq!(again.save().unwrap(), (statistics.clone(), WARM_UP + 1));
        passes.prepare();
        passes.run(&ensemble).unwrap();
        again.prepare();
        again.run(&ensemble).unwrap();
        assert_eq!(bits(passes.output()), bits(again.output()));
        let error = again.load(&statistics[1..], 0).unwrap_err().to_string();
        assert_eq!(error, "statistics of layers: 84 values are needed, 83 were given");
    }
}
