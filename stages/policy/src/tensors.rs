//! A policy as named tensors, whatever file they are in.
//!
//! `layers.0.weight` `[outputs, inputs]`, or `[groups, outputs / groups, inputs / groups]` where there are several groups,
//! `layers.0.bias` `[outputs]`, …, `action.low`, `action.high` `[actions]`: f32;
//! `observation.mean`, `observation.scale` `[inputs]`, where observations are standardised: f64.

use std::collections::BTreeMap;

use crate::header::Header;
use crate::{ActionMap, Layer, Policy, PolicyError, Standardisation};

const LOW: &str = "action.low";
const HIGH: &str = "action.high";
const MEAN: &str = "observation.mean";
const SCALE: &str = "observation.scale";

/// A tensor's values, row by row.
#[derive(Clone, Copy)]
pub(crate) enum Values<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
}

pub(crate) struct Tensor<'a> {
    pub(crate) shape: &'a [u32],
    pub(crate) values: Values<'a>,
}

/// Whether a tensor of that name holds f64.
pub(crate) fn is_double(name: &str) -> bool {
    matches!(name, MEAN | SCALE)
}

/// Calls `each` with name, shape and values of a policy's tensors, in the order of its layers.
pub(crate) fn visit(policy: &Policy, mut each: impl FnMut(String, &[u32], Values<'_>)) {
    // Widths are bounded by `WIDTH_LIMIT`.
    for (index, layer) in policy.layers().iter().enumerate() {
        let groups = layer.groups();
        let shape = [groups, layer.outputs() / groups, layer.inputs() / groups].map(|width| width as u32);
        each(
            format!("layers.{index}.weight"),
            if groups == 1 { &shape[1..] } else { &shape },
            Values::F32(layer.weights()),
        );
        each(
            format!("layers.{index}.bias"),
            &[layer.outputs() as u32],
            Values::F32(layer.bias()),
        );
    }
    let map = policy.action_map();
    for (name, bound) in [(LOW, &map.low), (HIGH, &map.high)] {
        each(name.to_owned(), &[bound.len() as u32], Values::F32(bound));
    }
    if let Some(Standardisation { mean, scale, .. }) = policy.standardisation() {
        for (name, values) in [(MEAN, mean), (SCALE, scale)] {
            each(name.to_owned(), &[values.len() as u32], Values::F64(values));
        }
    }
}

/// The tensors of one checkpoint that were not used yet.
#[derive(Default)]
pub(crate) struct Tensors<'a>(BTreeMap<&'a str, Tensor<'a>>);

impl<'a> Tensors<'a> {
    /// Adds a tensor; whether it is the first of its name.
    pub(crate) fn insert(&mut self, name: &'a str, tensor: Tensor<'a>) -> bool {
        self.0.insert(name, tensor).is_none()
    }

    /// The policy that they make; none of them is left over.
    pub(crate) fn into_policy(mut self, header: &Header) -> Result<Policy, PolicyError> {
        let mut layers = Vec::new();
        while self.has(&format!("layers.{}.weight", layers.len())) {
            let index = layers.len();
            let (shape, weights) = self.single(&format!("layers.{index}.weight"))?;
            let (bias_shape, bias) = self.single(&format!("layers.{index}.bias"))?;
            let groups = match shape {
                [_, _] => 1,
                [groups, _, _] if *groups > 1 => *groups as usize,
                _ => 0,
            };
            let ([.., outputs, inputs], [width], 1..) = (shape, bias_shape, groups) else {
                return Err(PolicyError::new(format!(
                    "layer {index} has weights of shape {shape:?} and biases of shape {bias_shape:?}"
                )));
            };
            // Products of two numbers of 32 bits.
            let (inputs, outputs) = (groups * *inputs as usize, groups * *outputs as usize);
            if *width as usize != outputs {
                return Err(PolicyError::new(format!(
                    "layer {index} has {width} biases for {outputs} outputs"
                )));
            }
            layers.push(Layer::grouped(
                groups,
                inputs,
                outputs,
                weights.to_vec(),
                bias.to_vec(),
            )?);
        }
        let action_map = ActionMap {
            squash: header.squash,
            low: self.single(LOW)?.1.to_vec(),
            high: self.single(HIGH)?.1.to_vec(),
        };
        let standardisation = if self.has(MEAN) || self.has(SCALE) {
            Some(Standardisation {
                mean: self.double(MEAN)?.to_vec(),
                scale: self.double(SCALE)?.to_vec(),
                clip: header.clip,
            })
        } else if header.clip.is_some() {
            return Err(PolicyError::new(
                "it clips observations that it does not standardise",
            ));
        } else {
            None
        };
        if let Some(name) = self.0.keys().next() {
            return Err(PolicyError::new(format!(
                "no use for the tensor `{}`",
                short(name)
            )));
        }
        Policy::new(
            layers,
            header.activation,
            standardisation,
            action_map,
            header.about.clone(),
        )
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Shape and values of a tensor of f32; the values are as many as the shape says.
    fn single(&mut self, name: &str) -> Result<(&'a [u32], &'a [f32]), PolicyError> {
        let Tensor { shape, values } = self.take(name)?;
        match values {
            Values::F32(values) => Ok((shape, sized(name, shape, values)?)),
            Values::F64(_) => Err(PolicyError::new(format!(
                "the tensor `{name}` belongs in `values`"
            ))),
        }
    }

    fn double(&mut self, name: &str) -> Result<&'a [f64], PolicyError> {
        let Tensor { shape, values } = self.take(name)?;
        match values {
            Values::F64(values) => sized(name, shape, values),
            Values::F32(_) => Err(PolicyError::new(format!(
                "the tensor `{name}` belongs in `values64`"
            ))),
        }
    }

    fn take(&mut self, name: &str) -> Result<Tensor<'a>, PolicyError> {
        self.0
            .remove(name)
            .ok_or_else(|| PolicyError::new(format!("the tensor `{name}` is missing")))
    }
}

fn sized<'a, T>(name: &str, shape: &[u32], values: &'a [T]) -> Result<&'a [T], PolicyError> {
    let count = shape
        .iter()
        .try_fold(1_u64, |count, width| count.checked_mul(u64::from(*width)));
    if shape.is_empty() || shape.len() > 3 || count != Some(values.len() as u64) {
        return Err(PolicyError::new(format!(
            "the tensor `{name}` has {} values and a shape of {} entries that does not fit them",
            values.len(),
            shape.len()
        )));
    }
    Ok(values)
}

/// A text from a file as a message may show it: printable and short.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(60).flat_map(char::escape_debug).collect()
}

/// What is wrong with a file, which may quote it, as a message may show it: printable, and not long.
pub fn printable(flaw: &impl ToString) -> String {
    let mut told = String::new();
    for letter in flaw.to_string().chars().take(300) {
        if letter.is_control() {
            told.extend(letter.escape_debug());
        } else {
            told.push(letter);
        }
    }
    told
}
