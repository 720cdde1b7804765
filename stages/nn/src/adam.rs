mod processor;

use pulp::Arch;
use tch::{Kind, Tensor};

use self::processor::{Move, floats};
use crate::ensemble::{from_host, to_host};
use crate::{Ensemble, Gradient, NnError};

/// Adam's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamSettings {
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the mean square.
    pub epsilon: f64,
    /// Decoupled weight decay (Loshchilov and Hutter, 2019): before it moves, every parameter, weight or bias, is
    /// multiplied by 1 − rate · decay, beside the gradient and its means, as `torch.optim.AdamW` does.
    pub weight_decay: f64,
}

impl Default for AdamSettings {
    /// Those of the paper that introduced it, and of `torch.optim.Adam`; no decay.
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
        }
    }
}

/// Adam (Kingma and Ba, 2015) on the parameters of an ensemble, with a learning rate for each network and the gradient of
/// each network clipped by its global norm.
///
/// It shares the tensors of the ensemble and of the gradient that it was made with. LibTorch's own optimiser gives out no
/// state, clips nothing per network and takes one learning rate.
pub struct Adam {
    settings: AdamSettings,
    members: usize,
    /// Of all networks, `[K, P]`.
    parameters: Tensor,
    /// Gradients of all networks, `[K, P]`.
    gradient: Tensor,
    /// Mean of gradients, `[K, P]`.
    mean: Tensor,
    /// Mean of squared gradients, `[K, P]`.
    square: Tensor,
    backend: Backend,
    /// All that changes from step to step, `[C, K, 1]`, at a place that stays: two numbers that a step's moves are computed by, and,
    /// where weights decay, what is left of the parameters.
    constants: Tensor,
    /// The constants of steps to come, `[S, C, K, 1]`; `ahead` of them are still to be taken.
    announced: Tensor,
    ahead: usize,
    /// Norms of the gradients at the last step, `[K]`.
    norms: Tensor,
    steps: u64,
}

/// What computes a step.
enum Backend {
    /// With these instructions.
    Processor(Arch),
    /// LibTorch, which needs room for a number for each parameter.
    Accelerator { scratch: Tensor },
}

/// Means below these sizes become zero every so many steps. The means of a unit that no sample activates any more die out
/// geometrically, into subnormal numbers, on which a processor computes many times slower: a step took half as long again.
/// The movement they stand for is less than a rounding of any parameter, and far from subnormal numbers after the
/// decay of that many steps.
const LEAST_MEAN: f32 = 1e-30;
const LEAST_SQUARE: f32 = 1e-36;
const FLUSH_EVERY: u64 = 64;

impl Adam {
    /// For these networks and their gradient, before the first step.
    pub fn new(ensemble: &Ensemble, gradient: &Gradient, settings: AdamSettings) -> Result<Self, NnError> {
        Self::over(ensemble.flat(), gradient.flat(), settings)
    }

    /// For rows of parameters and their gradient, `[K, P]` both.
    pub(crate) fn over(
        parameters: &Tensor,
        gradient: &Tensor,
        settings: AdamSettings,
    ) -> Result<Self, NnError> {
        let (members, _) = parameters.size2()?;
        let device = parameters.device();
        let backend = if device.is_cuda() {
            let scratch = parameters.f_zeros_like()?;
            Backend::Accelerator { scratch }
        } else {
            Backend::Processor(Arch::new())
        };
        let decays = settings.weight_decay > 0.0;
        let count = if decays { 3 } else { 2 };
        let constants = Tensor::f_zeros([count, members, 1], (Kind::Float, device))?;
        Ok(Self {
            settings,
            members: members as usize,
            backend,
            constants,
            announced: Tensor::new(),
            ahead: 0,
            norms: Tensor::f_zeros([members], (Kind::Float, device))?,
            mean: parameters.f_zeros_like()?,
            square: parameters.f_zeros_like()?,
            parameters: parameters.shallow_clone(),
            gradient: gradient.shallow_clone(),
            steps: 0,
        })
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Moves the parameters by one step along the gradient; gives the norm of each network's
    /// gradient before clipping, `[K]`.
    ///
    /// `rates` holds a learning rate for each network; a network whose rate is 0 stays where it is. `clip` is the largest
    /// norm that is not scaled down.
    ///
    /// With m and v the two means and t the number of the step, a parameter moves by
    /// −rate · m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε). That is computed as −c · m / (√v + d) on a processor, and as m / (c √v + d) on a
    /// GPU, which takes the fewest passes over memory that LibTorch's operations allow; c and d depend on step and network alone.
    pub fn step(&mut self, rates: &[f64], clip: Option<f64>) -> Result<Tensor, NnError> {
        self.prepare(rates)?;
        self.apply(clip)?;
        self.settle()?;
        let mut norms = self.norms.f_zeros_like()?;
        norms.f_copy_(&self.norms)?;
        Ok(norms)
    }

    /// The first part of a step: what it needs of numbers that change from step to step.
    ///
    /// [`Adam::apply`] can then be repeated by a GPU ([`crate::Repeated`]), and [`Adam::settle`] comes last.
    pub fn prepare(&mut self, rates: &[f64]) -> Result<(), NnError> {
        self.announce(&[rates])?;
        self.advance()
    }

    /// Brings to the device what steps to come need of numbers that change from step to step, so that none of them waits for
    /// the host: learning rates of each network, step after step. Steps that were announced before and not taken are
    /// forgotten.
    pub fn announce<R: AsRef<[f64]>>(&mut self, rates: &[R]) -> Result<(), NnError> {
        let AdamSettings {
            beta1,
            beta2,
            epsilon,
            weight_decay,
        } = self.settings;
        let mut values: Vec<f32> = Vec::with_capacity(rates.len() * self.constants.numel());
        for (step, rates) in (self.steps + 1..).zip(rates) {
            let rates = rates.as_ref();
            assert_eq!(rates.len(), self.members, "a learning rate for each network");
            let bias1 = 1.0 - libm::pow(beta1, step as f64);
            let bias2_root = (1.0 - libm::pow(beta2, step as f64)).sqrt();
            let each = rates.iter();
            match self.backend {
                Backend::Processor(_) => {
                    values.extend(each.map(|rate| (rate * bias2_root / bias1) as f32));
                    values.extend(rates.iter().map(|_| (epsilon * bias2_root) as f32));
                }
                Backend::Accelerator { .. } => {
                    // Without a rate every quotient by the second one is 0, whatever the first: but for 0 · ∞.
                    let slope = |rate: f64| {
                        if rate > 0.0 {
                            -(bias1 / bias2_root) / rate
                        } else {
                            -1.0
                        }
                    };
                    values.extend(each.map(|rate| slope(*rate) as f32));
                    values.extend(rates.iter().map(|rate| (-(bias1 * epsilon) / rate) as f32));
                }
            }
            if weight_decay > 0.0 {
                values.extend(rates.iter().map(|rate| (1.0 - rate * weight_decay) as f32));
            }
        }
        let (count, members, _) = self.constants.size3()?;
        self.announced = Tensor::f_from_slice(&values)?
            .f_view([rates.len() as i64, count, members, 1])?
            .f_to_device(self.constants.device())?;
        self.ahead = rates.len();
        Ok(())
    }

    /// The first part of a step that was announced: as [`Adam::prepare`], but from the device.
    ///
    /// # Panics
    ///
    /// Where none is left.
    pub fn advance(&mut self) -> Result<(), NnError> {
        assert!(self.ahead > 0, "a step that was announced");
        let announced = self.announced.size()[0];
        let place = announced - self.ahead as i64;
        self.constants.f_copy_(&self.announced.f_get(place)?)?;
        self.ahead -= 1;
        self.steps += 1;
        Ok(())
    }

    /// Norms of each network's gradient at the last step, before clipping, `[K]`: always the same tensor.
    pub fn norms(&self) -> &Tensor {
        &self.norms
    }

    /// The second part of a step: moves the parameters.
    pub fn apply(&mut self, clip: Option<f64>) -> Result<(), NnError> {
        match &self.backend {
            Backend::Processor(arch) => {
                self.apply_on_processor(*arch, clip);
                Ok(())
            }
            Backend::Accelerator { scratch } => self.apply_on_accelerator(&scratch.shallow_clone(), clip),
        }
    }

    #[expect(unsafe_code, reason = "the numbers of tensors are written without LibTorch")]
    fn apply_on_processor(&mut self, arch: Arch, clip: Option<f64>) {
        let length = self.parameters.size()[1] as usize;
        let AdamSettings { beta1, beta2, .. } = self.settings;
        let shares = [(1.0 - beta1) as f32, (1.0 - beta2) as f32];
        // SAFETY: six tensors that were made as such, none a view of another, and LibTorch is not called below.
        let [constants, parameters, gradients, means, squares, norms] = unsafe {
            [
                floats(&mut self.constants),
                floats(&mut self.parameters),
                floats(&mut self.gradient),
                floats(&mut self.mean),
                floats(&mut self.square),
                floats(&mut self.norms),
            ]
        };
        let parameters = parameters.chunks_exact_mut(length);
        let means = means
            .chunks_exact_mut(length)
            .zip(squares.chunks_exact_mut(length));
        let networks = parameters.zip(gradients.chunks_exact(length)).zip(means);
        for (network, ((parameters, gradient), (mean, square))) in networks.enumerate() {
            let norm = processor::norm(arch, gradient);
            norms[network] = norm as f32;
            Move {
                parameters,
                gradient,
                mean,
                square,
                // As `torch.nn.utils.clip_grad_norm_`: the constant keeps the quotient finite.
                scale: clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0) as f32),
                shares,
                rate: constants[network],
                epsilon: constants[self.members + network],
                kept: constants.get(2 * self.members + network).copied().unwrap_or(1.0),
            }
            .take(arch);
        }
    }

    fn apply_on_accelerator(&mut self, scratch: &Tensor, clip: Option<f64>) -> Result<(), NnError> {
        let AdamSettings { beta1, beta2, .. } = self.settings;
        let Self {
            parameters,
            gradient,
            mean,
            square,
            constants,
            ..
        } = self;
        let norms = gradient.f_norm_scalaropt_dim(2.0, 1, true)?;
        if let Some(clip) = clip {
            let scale = norms
                .f_add_scalar(1e-6)?
                .f_reciprocal()?
                .f_mul_scalar(clip)?
                .f_clamp_max(1.0)?;
            let _ = gradient.f_mul_out(scratch, &scale)?;
            let _ = mean.f_lerp_(scratch, 1.0 - beta1)?;
            let _ = scratch.shallow_clone().f_square_()?;
        } else {
            let _ = mean.f_lerp_(gradient, 1.0 - beta1)?;
            let _ = gradient.f_square_out(scratch)?;
        }
        let _ = square.f_lerp_(scratch, 1.0 - beta2)?;
        let _ = square.f_sqrt_out(scratch)?;
        let (slope, offset) = (constants.f_get(0)?, constants.f_get(1)?);
        let _ = offset.f_addcmul_out(scratch, scratch, &slope)?;
        if constants.size()[0] > 2 {
            let _ = parameters.f_mul_(&constants.f_get(2)?)?;
        }
        let _ = parameters.f_addcdiv_(mean, scratch)?;
        self.norms.f_copy_(&norms.f_squeeze_dim(1)?)?;
        Ok(())
    }

    /// The last part of a step: every so many steps, what is next to nothing becomes nothing.
    #[expect(unsafe_code, reason = "the numbers of tensors are written without LibTorch")]
    pub fn settle(&mut self) -> Result<(), NnError> {
        if !self.steps.is_multiple_of(FLUSH_EVERY) {
            return Ok(());
        }
        match &mut self.backend {
            Backend::Processor(arch) => {
                // SAFETY: two tensors that were made as such, and LibTorch is not called meanwhile.
                let (means, squares) = unsafe { (floats(&mut self.mean), floats(&mut self.square)) };
                processor::flush(*arch, means, LEAST_MEAN);
                processor::flush(*arch, squares, LEAST_SQUARE);
            }
            Backend::Accelerator { scratch } => {
                let mean = &mut self.mean;
                let _ = mean.f_abs_out(scratch)?;
                let _ = scratch.f_threshold_backward_grad_input(mean, mean, f64::from(LEAST_MEAN))?;
                let _ = self.square.f_threshold_(f64::from(LEAST_SQUARE), 0.0)?;
            }
        }
        Ok(())
    }

    /// Forgets everything: the next step is the first.
    pub fn reset(&mut self) -> Result<(), NnError> {
        let _ = self.mean.f_zero_()?;
        let _ = self.square.f_zero_()?;
        (self.steps, self.ahead) = (0, 0);
        Ok(())
    }

    /// The two means, network after network, and the number of steps: what [`Adam::load`] takes back.
    pub fn save(&self) -> Result<(Vec<f32>, Vec<f32>, u64), NnError> {
        Ok((to_host(&self.mean)?, to_host(&self.square)?, self.steps))
    }

    /// Takes back what [`Adam::save`] gave.
    pub fn load(&mut self, mean: &[f32], square: &[f32], steps: u64) -> Result<(), NnError> {
        from_host(&mut self.mean, mean, "Adam's means")?;
        from_host(&mut self.square, square, "Adam's mean squares")?;
        (self.steps, self.ahead) = (steps, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use provenir_policy::Activation;
    use provenir_random::Stream;
    use serde::Deserialize;
    use tch::Device;

    use super::*;
    use crate::Shape;
    use crate::testing::{Learner, bits, normal, shape, streams};

    /// What `scripts/record_adam.py` recorded of PyTorch's Adam and its gradient clipping.
    #[derive(Deserialize)]
    struct Recorded {
        learning_rate: f64,
        clip: Option<f64>,
        activation: String,
        inputs: Vec<f32>,
        targets: Vec<f32>,
        initial: Vec<Vec<f32>>,
        norms: Vec<f32>,
        first: Vec<Vec<f32>>,
        last: Vec<Vec<f32>>,
    }

    const RECORDED: &str = include_str!("../tests/adam.json");
    const WIDTHS: [usize; 4] = [4, 8, 6, 3];
    const ROWS: usize = 16;

    fn recorded_shape(activation: Activation) -> Shape {
        shape(WIDTHS[0], &WIDTHS[1..3], WIDTHS[3], activation)
    }

    /// Weights are recorded as PyTorch keeps them, `[outputs, inputs]`, weight and bias in turn.
    fn set(learner: &Learner, tensors: &[Vec<f32>]) {
        for ((weight, bias), tensors) in learner.ensemble.layers().zip(tensors.chunks(2)) {
            let (_, inputs, outputs) = weight.size3().unwrap();
            let transposed = Tensor::from_slice(&tensors[0]).view([outputs, inputs]).tr();
            weight.shallow_clone().copy_(&transposed.unsqueeze(0));
            bias.shallow_clone()
                .copy_(&Tensor::from_slice(&tensors[1]).view([1, 1, outputs]));
        }
    }

    /// To a millionth.
    fn assert_are(learner: &Learner, tensors: &[Vec<f32>]) {
        let layers = learner.ensemble.member(0).unwrap();
        assert_eq!(2 * layers.len(), tensors.len());
        for (layer, expected) in layers.iter().zip(tensors.chunks(2)) {
            let found = layer.weights().iter().chain(layer.bias());
            for (found, expected) in found.zip(expected[0].iter().chain(&expected[1])) {
                assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
            }
        }
    }

    #[test]
    fn one_and_a_hundred_steps_are_those_of_pytorch() {
        let recorded: Vec<Recorded> = serde_json::from_str(RECORDED).unwrap();
        assert_eq!(recorded.len(), 3);
        for run in recorded {
            let activation = run.activation.parse().unwrap();
            let mut learner = Learner::new(&recorded_shape(activation), &streams(&[0]), ROWS).unwrap();
            set(&learner, &run.initial);
            let input = Tensor::from_slice(&run.inputs).view([1, ROWS as i64, WIDTHS[0] as i64]);
            let target = Tensor::from_slice(&run.targets).view([1, ROWS as i64, WIDTHS[3] as i64]);
            assert_eq!(run.norms.len(), 100);
            for (step, norm) in run.norms.into_iter().enumerate() {
                let _ = learner.differentiate(&input, &target).unwrap();
                let found = learner.adam.step(&[run.learning_rate], run.clip).unwrap();
                let found = found.double_value(&[0]);
                assert!((found / f64::from(norm) - 1.0).abs() < 1e-4, "{found} for {norm}");
                match step {
                    0 => assert_are(&learner, &run.first),
                    99 => assert_are(&learner, &run.last),
                    _ => {}
                }
            }
        }
    }

    /// The plain formula in double precision, for gradients that are given.
    struct Reference {
        mean: Vec<f64>,
        square: Vec<f64>,
        parameters: Vec<f64>,
    }

    impl Reference {
        fn step(&mut self, step: i32, gradient: &[f64], rate: f64, clip: Option<f64>, decay: f64) {
            let AdamSettings {
                beta1,
                beta2,
                epsilon,
                ..
            } = AdamSettings::default();
            let norm = gradient.iter().map(|value| value * value).sum::<f64>().sqrt();
            let scale = clip.map_or(1.0, |clip| (clip / norm).min(1.0));
            for (index, gradient) in gradient.iter().enumerate() {
                let gradient = gradient * scale;
                self.mean[index] = beta1 * self.mean[index] + (1.0 - beta1) * gradient;
                self.square[index] = beta2 * self.square[index] + (1.0 - beta2) * gradient * gradient;
                let mean = self.mean[index] / (1.0 - beta1.powi(step));
                let square = self.square[index] / (1.0 - beta2.powi(step));
                self.parameters[index] *= 1.0 - rate * decay;
                self.parameters[index] -= rate * mean / (square.sqrt() + epsilon);
            }
        }
    }

    #[test]
    fn announced_steps_are_those_that_are_prepared_one_by_one() {
        let shape = shape(5, &[9], 2, Activation::Relu);
        let settings = AdamSettings {
            weight_decay: 0.2,
            ..AdamSettings::default()
        };
        let learner = || {
            let mut learner = Learner::new(&shape, &streams(&[0, 1]), 8).unwrap();
            learner.adam = Adam::new(&learner.ensemble, &learner.gradient, settings).unwrap();
            learner
        };
        let (mut singly, mut ahead) = (learner(), learner());
        let (input, target) = (normal(1, &[2, 8, 5]), normal(2, &[2, 8, 2]));
        let rates: Vec<[f64; 2]> = (1..=6_i32).map(|step| [1e-3 / f64::from(step), 2e-3]).collect();
        for (step, rates_of_step) in rates.iter().enumerate() {
            let _ = singly.differentiate(&input, &target).unwrap();
            let norms = singly.adam.step(rates_of_step, Some(0.1)).unwrap();
            let _ = ahead.differentiate(&input, &target).unwrap();
            // In two parts; what is announced beyond them is forgotten.
            match step {
                0 => ahead.adam.announce(&rates[..5]).unwrap(),
                4 => ahead.adam.announce(&rates[4..]).unwrap(),
                _ => {}
            }
            ahead.adam.advance().unwrap();
            ahead.adam.apply(Some(0.1)).unwrap();
            ahead.adam.settle().unwrap();
            assert_eq!(bits(ahead.adam.norms()), bits(&norms));
        }
        assert_eq!(bits(ahead.ensemble.flat()), bits(singly.ensemble.flat()));
        assert_eq!(ahead.adam.steps(), 6);
    }

    #[test]
    #[should_panic(expected = "a step that was announced")]
    fn a_step_that_was_not_announced_is_not_taken() {
        let mut learner = Learner::new(&shape(2, &[], 1, Activation::Relu), &streams(&[0]), 2).unwrap();
        learner.adam.announce(&[[1e-3]]).unwrap();
        learner.adam.reset().unwrap();
        let _ = learner.adam.advance();
    }

    #[test]
    fn each_network_has_its_own_rate_and_its_own_norm() {
        for decay in [0.0, 0.3] {
            for accelerated in [false, true] {
                follow_the_formula(decay, accelerated);
            }
        }
    }

    /// What an accelerator is told: LibTorch's operations are the same on any device.
    fn accelerated(adam: &Adam) -> Backend {
        let scratch = adam.parameters.zeros_like();
        Backend::Accelerator { scratch }
    }

    fn follow_the_formula(decay: f64, is_accelerated: bool) {
        let shape = shape(90, &[300, 150], 7, Activation::Relu);
        let rates = [1e-3, 0.0, 3e-2];
        let mut learner = Learner::new(&shape, &streams(&[0, 1, 2]), 1).unwrap();
        let settings = AdamSettings {
            weight_decay: decay,
            ..AdamSettings::default()
        };
        learner.adam = Adam::new(&learner.ensemble, &learner.gradient, settings).unwrap();
        if is_accelerated {
            learner.adam.backend = accelerated(&learner.adam);
        }
        let initial = to_host(learner.ensemble.flat()).unwrap();
        let length = initial.len() / 3;
        let mut references: Vec<Reference> = initial
            .chunks(length)
            .map(|row| Reference {
                mean: vec![0.0; length],
                square: vec![0.0; length],
                parameters: row.iter().map(|value| f64::from(*value)).collect(),
            })
            .collect();
        let mut stream = Stream::new(8, "gradients");
        for step in 1..=20 {
            // The first network's gradient is clipped in some steps and not in others, the last one's in none.
            let size = [1e-2 / f64::from(step), 1.0, 1e-4];
            let gradient: Vec<f32> = (0..3 * length)
                .map(|index| (stream.normal() * size[index / length]) as f32)
                // Some never have any.
                .enumerate()
                .map(|(index, value)| if index % 7 == 0 { 0.0 } else { value })
                .collect();
            from_host(
                &mut learner.gradient.flat().shallow_clone(),
                &gradient,
                "gradient",
            )
            .unwrap();
            let norms = learner.adam.step(&rates, Some(1.0)).unwrap();
            for (member, (reference, row)) in references.iter_mut().zip(gradient.chunks(length)).enumerate() {
                let row: Vec<f64> = row.iter().map(|value| f64::from(*value)).collect();
                let norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
                assert!((norms.double_value(&[member as i64]) / norm - 1.0).abs() < 1e-5);
                reference.step(step, &row, rates[member], Some(1.0), decay);
            }
        }
        let found = to_host(learner.ensemble.flat()).unwrap();
        assert_eq!(found[length..2 * length], initial[length..2 * length]);
        for ((reference, found), rate) in references.iter().zip(found.chunks(length)).zip(rates) {
            for (found, expected) in found.iter().zip(&reference.parameters) {
                // Twenty steps of at most about the rate each, at single precision.
                let bound = 20.0 * rate * 1e-5 + 1e-7;
                assert!(
                    (f64::from(*found) - expected).abs() <= bound,
                    "{found} for {expected}"
                );
            }
        }
    }

    #[test]
    fn what_an_accelerator_is_told_does_what_a_processor_does() {
        let shape = shape(9, &[30], 4, Activation::Tanh);
        let (input, target) = (normal(1, &[2, 20, 9]), normal(2, &[2, 20, 4]));
        for (decay, clip) in [(0.0, None), (0.1, Some(0.05)), (0.0, Some(1e6))] {
            let settings = AdamSettings {
                weight_decay: decay,
                ..AdamSettings::default()
            };
            let train = |is_accelerated: bool| {
                let mut learner = Learner::new(&shape, &streams(&[0, 1]), 20).unwrap();
                learner.adam = Adam::new(&learner.ensemble, &learner.gradient, settings).unwrap();
                if is_accelerated {
                    learner.adam.backend = accelerated(&learner.adam);
                }
                let norms: Vec<f64> = (0..2 * FLUSH_EVERY)
                    .flat_map(|_| {
                        let _ = learner.differentiate(&input, &target).unwrap();
                        let norms = learner.adam.step(&[1e-3, 3e-3], clip).unwrap();
                        Vec::<f64>::try_from(norms.to_kind(Kind::Double)).unwrap()
                    })
                    .collect();
                (
                    norms,
                    learner.adam.save().unwrap(),
                    learner.ensemble.save().unwrap(),
                )
            };
            let (processor, accelerator) = (train(false), train(true));
            let near = |left: f64, right: f64| (left - right).abs() <= 1e-4 * right.abs() + 1e-6;
            let floats = |left: &[f32], right: &[f32]| {
                let mut pairs = left.iter().zip(right);
                assert!(pairs.all(|(left, right)| near(f64::from(*left), f64::from(*right))));
            };
            let mut norms = processor.0.iter().zip(&accelerator.0);
            assert!(norms.all(|(left, right)| near(*left, *right)));
            floats(&processor.1.0, &accelerator.1.0);
            floats(&processor.1.1, &accelerator.1.1);
            floats(&processor.2, &accelerator.2);
            assert_eq!(processor.1.2, accelerator.1.2);
        }
    }

    #[test]
    fn means_that_die_out_never_become_subnormal() {
        let shape = shape(3, &[4], 2, Activation::Relu);
        let mut learner = Learner::new(&shape, &streams(&[0]), 1).unwrap();
        let length = to_host(learner.gradient.flat()).unwrap().len();
        let mut gradient = learner.gradient.flat().shallow_clone();
        from_host(&mut gradient, &vec![-1e-3; length], "gradient").unwrap();
        let _ = learner.adam.step(&[1e-3], None).unwrap();
        from_host(&mut gradient, &vec![0.0; length], "gradient").unwrap();
        for _ in 0..2000 {
            let _ = learner.adam.step(&[1e-3], None).unwrap();
            let mean = to_host(&learner.adam.mean).unwrap();
            assert!(mean.iter().all(|value| *value == 0.0 || value.is_normal()));
        }
        // The mean is gone, the mean square, 1e-9 · 0.999^2000, is not.
        let (mean, square, _) = learner.adam.save().unwrap();
        assert!(mean.iter().all(|value| *value == 0.0));
        let expected = 1e-9 * 0.999_f64.powi(2000);
        assert!(
            square
                .iter()
                .all(|value| (f64::from(*value) / expected - 1.0).abs() < 1e-4)
        );
    }

    #[test]
    fn an_interrupted_run_continues_to_the_same_bits() {
        let shape = shape(5, &[20], 2, Activation::Relu);
        let (input, target) = (normal(1, &[2, 30, 5]), normal(2, &[2, 30, 2]));
        let run = |learner: &mut Learner, steps: u32| {
            for _ in 0..steps {
                let _ = learner.differentiate(&input, &target).unwrap();
                let _ = learner.adam.step(&[1e-2, 1e-3], Some(0.1)).unwrap();
            }
        };
        let mut whole = Learner::new(&shape, &streams(&[0, 1]), 30).unwrap();
        run(&mut whole, 12);
        let mut first = Learner::new(&shape, &streams(&[0, 1]), 30).unwrap();
        run(&mut first, 5);
        let mut second = Learner::new(&shape, &streams(&[7, 8]), 30).unwrap();
        second.ensemble.load(&first.ensemble.save().unwrap()).unwrap();
        let (mean, square, steps) = first.adam.save().unwrap();
        second.adam.load(&mean, &square, steps).unwrap();
        run(&mut second, 7);
        assert_eq!(bits(second.ensemble.flat()), bits(whole.ensemble.flat()));
        assert_eq!(second.adam.steps(), 12);
        // Begun again: from initial values, without memory of what was before.
        second.ensemble.reinitialise(&streams(&[0, 1])).unwrap();
        second.adam.reset().unwrap();
        run(&mut second, 12);
        assert_eq!(bits(second.ensemble.flat()), bits(whole.ensemble.flat()));
        assert!(second.adam.load(&mean[1..], &square, steps).is_err());
        assert_eq!(whole.ensemble.device(), Device::Cpu);
    }
}
