//! Policies as a table of tensors: one row per tensor and checkpoint.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `checkpoint` | u32 | number of the checkpoint, ascending |
//! | `name` | text | `layers.0.weight`, `layers.0.bias`, …, `action.low`, `action.high`, `observation.mean`, `observation.scale` |
//! | `shape` | list of u32 | `[outputs, inputs]` for weights, `[width]` otherwise |
//! | `values` | list of f32, may be missing | values, row by row |
//! | `values64` | list of f64, may be missing | values, row by row; mean and scale only |
//!
//! Exactly one of `values` and `values64` is set. What all checkpoints share is in the table's metadata.

use std::collections::BTreeMap;

use provenir_table::{Table, TableBuilder, TableError};

use crate::{About, ActionMap, Activation, Layer, Policy, PolicyError, Squash, Standardisation};

const ENVIRONMENT: &str = "environment";
const TIME_FEATURE: &str = "time_feature";
const METHOD: &str = "method";
const ACTIVATION: &str = "activation";
const ACTION_MAP: &str = "action_map";
const CLIP: &str = "observation_clip";

/// The checkpoints of one training: at least one, with ascending numbers, alike in all but their values.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySet {
    checkpoints: Vec<(u32, Policy)>,
}

impl PolicySet {
    /// These checkpoints, where they belong together.
    pub fn new(checkpoints: Vec<(u32, Policy)>) -> Result<Self, PolicyError> {
        let Some((_, first)) = checkpoints.first() else {
            return Err(PolicyError::new("it has no checkpoints"));
        };
        if let Some(pair) = checkpoints.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(PolicyError::new(format!(
                "checkpoint {} follows checkpoint {}",
                pair[1].0, pair[0].0
            )));
        }
        if let Some((number, _)) = checkpoints.iter().find(|(_, policy)| !alike(first, policy)) {
            return Err(PolicyError::new(format!(
                "checkpoint {number} has another shape, activation, action map or origin than the first"
            )));
        }
        Ok(Self { checkpoints })
    }

    /// One policy, as checkpoint 0.
    pub fn single(policy: Policy) -> Self {
        Self {
            checkpoints: vec![(0, policy)],
        }
    }

    /// All checkpoints, by ascending number.
    pub fn checkpoints(&self) -> &[(u32, Policy)] {
        &self.checkpoints
    }

    /// The checkpoint of a number.
    pub fn get(&self, number: u32) -> Option<&Policy> {
        let index = self
            .checkpoints
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        Some(&self.checkpoints[index].1)
    }

    /// The last checkpoint: the finished policy.
    pub fn last(&self) -> &Policy {
        &self.checkpoints[self.checkpoints.len() - 1].1
    }

    /// As a table of tensors.
    pub fn to_table(&self) -> Result<Table, TableError> {
        let mut rows = Rows::default();
        for (number, policy) in &self.checkpoints {
            rows.policy(*number, policy);
        }
        let policy = self.last();
        let about = policy.about();
        let mut builder = TableBuilder::new()
            .u32("checkpoint", rows.checkpoints)
            .utf8("name", rows.names)
            .list_u32("shape", rows.shapes)
            .optional_list_f32("values", rows.values)
            .optional_list_f64("values64", rows.values64)
            .metadata(ENVIRONMENT, &about.environment)
            .metadata(TIME_FEATURE, if about.time_feature { "true" } else { "false" })
            .metadata(METHOD, &about.method)
            .metadata(ACTIVATION, &policy.activation().to_string())
            .metadata(ACTION_MAP, &policy.action_map().squash.to_string());
        if let Some(clip) = policy
            .standardisation()
            .and_then(|standardisation| standardisation.clip)
        {
            // The shortest decimal that reads back as the same number.
            builder = builder.metadata(CLIP, &clip.to_string());
        }
        builder.build()
    }

    /// From a table of tensors, in any order of rows; everything in it is checked, and nothing in it is ignored.
    pub fn from_table(table: &Table) -> Result<Self, PolicyError> {
        let header = Header::from_table(table)?;
        let names = table.column_utf8("name")?;
        let shapes = table.column_list_u32("shape")?;
        let values = table.optional_list_f32("values")?;
        let values64 = table.optional_list_f64("values64")?;
        let mut checkpoints: BTreeMap<u32, Tensors<'_>> = BTreeMap::new();
        for (row, number) in table.column_u32("checkpoint")?.iter().enumerate() {
            let name = names[row];
            let values = match (values[row], values64[row]) {
                (Some(values), None) => Values::F32(values),
                (None, Some(values)) => Values::F64(values),
                _ => {
                    return Err(PolicyError::new(format!(
                        "the tensor `{}` of checkpoint {number} needs exactly one of `values` and `values64`",
                        short(name)
                    )));
                }
            };
            let tensor = Tensor {
                shape: shapes[row],
                values,
            };
            if checkpoints
                .entry(*number)
                .or_default()
                .0
                .insert(name, tensor)
                .is_some()
            {
                return Err(PolicyError::new(format!(
                    "checkpoint {number} has two tensors `{}`",
                    short(name)
                )));
            }
        }
        let checkpoints = checkpoints.into_iter().map(|(number, tensors)| {
            let policy = header.policy(tensors).map_err(|error| match error {
                PolicyError::Invalid(reason) => PolicyError::new(format!("checkpoint {number}: {reason}")),
                error @ PolicyError::Table(_) => error,
            })?;
            Ok((number, policy))
        });
        Self::new(checkpoints.collect::<Result<_, PolicyError>>()?)
    }
}

/// Whether two policies differ in values only.
fn alike(left: &Policy, right: &Policy) -> bool {
    let shape = |policy: &Policy| -> Vec<(usize, usize)> {
        policy
            .layers()
            .iter()
            .map(|layer| (layer.inputs(), layer.outputs()))
            .collect()
    };
    let clip = |policy: &Policy| {
        policy
            .standardisation()
            .map(|standardisation| standardisation.clip)
    };
    shape(left) == shape(right)
        && left.activation() == right.activation()
        && left.action_map().squash == right.action_map().squash
        && left.about() == right.about()
        && clip(left) == clip(right)
}

/// The columns of a table of tensors.
#[derive(Default)]
struct Rows {
    checkpoints: Vec<u32>,
    names: Vec<String>,
    shapes: Vec<Vec<u32>>,
    values: Vec<Option<Vec<f32>>>,
    values64: Vec<Option<Vec<f64>>>,
}

impl Rows {
    fn policy(&mut self, number: u32, policy: &Policy) {
        for (index, layer) in policy.layers().iter().enumerate() {
            let shape = [layer.outputs(), layer.inputs()];
            self.push(
                number,
                format!("layers.{index}.weight"),
                &shape,
                Values::F32(layer.weights()),
            );
            self.push(
                number,
                format!("layers.{index}.bias"),
                &shape[..1],
                Values::F32(layer.bias()),
            );
        }
        let map = policy.action_map();
        for (name, bound) in [("action.low", &map.low), ("action.high", &map.high)] {
            self.push(number, name.to_owned(), &[bound.len()], Values::F32(bound));
        }
        if let Some(Standardisation { mean, scale, .. }) = policy.standardisation() {
            for (name, values) in [("observation.mean", mean), ("observation.scale", scale)] {
                self.push(number, name.to_owned(), &[values.len()], Values::F64(values));
            }
        }
    }

    fn push(&mut self, number: u32, name: String, shape: &[usize], values: Values<'_>) {
        self.checkpoints.push(number);
        self.names.push(name);
        // Widths are bounded by `WIDTH_LIMIT`.
        self.shapes
            .push(shape.iter().map(|width| *width as u32).collect());
        let (single, double) = match values {
            Values::F32(values) => (Some(values.to_vec()), None),
            Values::F64(values) => (None, Some(values.to_vec())),
        };
        self.values.push(single);
        self.values64.push(double);
    }
}

/// What all checkpoints share.
struct Header {
    activation: Activation,
    squash: Squash,
    clip: Option<f64>,
    about: About,
}

impl Header {
    fn from_table(table: &Table) -> Result<Self, PolicyError> {
        let text = |key: &str| {
            table
                .metadata()
                .get(key)
                .map(String::as_str)
                .ok_or_else(|| TableError::Metadata {
                    key: key.to_owned(),
                    problem: "is missing".to_owned(),
                })
        };
        let wrong = |key: &str, wanted: &str, found: &str| TableError::Metadata {
            key: key.to_owned(),
            problem: format!("is {wanted}, not `{}`", short(found)),
        };
        let time_feature = match text(TIME_FEATURE)? {
            "true" => true,
            "false" => false,
            other => return Err(wrong(TIME_FEATURE, "`true` or `false`", other).into()),
        };
        let clip = match table.metadata().get(CLIP) {
            None => None,
            Some(clip) => Some(clip.parse().map_err(|_| wrong(CLIP, "a number", clip))?),
        };
        Ok(Self {
            activation: text(ACTIVATION)?.parse()?,
            squash: text(ACTION_MAP)?.parse()?,
            clip,
            about: About {
                environment: text(ENVIRONMENT)?.to_owned(),
                time_feature,
                method: text(METHOD)?.to_owned(),
            },
        })
    }

    fn policy(&self, mut tensors: Tensors<'_>) -> Result<Policy, PolicyError> {
        let mut layers = Vec::new();
        while tensors.has(&format!("layers.{}.weight", layers.len())) {
            let index = layers.len();
            let (shape, weights) = tensors.single(&format!("layers.{index}.weight"))?;
            let (bias_shape, bias) = tensors.single(&format!("layers.{index}.bias"))?;
            let ([outputs, inputs], [width]) = (shape, bias_shape) else {
                return Err(PolicyError::new(format!(
                    "layer {index} has weights of shape {shape:?} and biases of shape {bias_shape:?}"
                )));
            };
            if width != outputs {
                return Err(PolicyError::new(format!(
                    "layer {index} has {width} biases for {outputs} outputs"
                )));
            }
            layers.push(Layer::new(
                *inputs as usize,
                *outputs as usize,
                weights.to_vec(),
                bias.to_vec(),
            )?);
        }
        let action_map = ActionMap {
            squash: self.squash,
            low: tensors.single("action.low")?.1.to_vec(),
            high: tensors.single("action.high")?.1.to_vec(),
        };
        let standardisation = if tensors.has("observation.mean") || tensors.has("observation.scale") {
            Some(Standardisation {
                mean: tensors.double("observation.mean")?.to_vec(),
                scale: tensors.double("observation.scale")?.to_vec(),
                clip: self.clip,
            })
        } else if self.clip.is_some() {
            return Err(PolicyError::new(
                "it clips observations that it does not standardise",
            ));
        } else {
            None
        };
        tensors.finish()?;
        Policy::new(
            layers,
            self.activation,
            standardisation,
            action_map,
            self.about.clone(),
        )
    }
}

#[derive(Clone, Copy)]
enum Values<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
}

struct Tensor<'a> {
    shape: &'a [u32],
    values: Values<'a>,
}

/// The tensors of one checkpoint that were not used yet.
#[derive(Default)]
struct Tensors<'a>(BTreeMap<&'a str, Tensor<'a>>);

impl<'a> Tensors<'a> {
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

    fn finish(self) -> Result<(), PolicyError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(PolicyError::new(format!(
                "no use for the tensor `{}`",
                short(name)
            ))),
        }
    }
}

fn sized<'a, T>(name: &str, shape: &[u32], values: &'a [T]) -> Result<&'a [T], PolicyError> {
    let count = shape
        .iter()
        .try_fold(1_u64, |count, width| count.checked_mul(u64::from(*width)));
    if shape.is_empty() || shape.len() > 2 || count != Some(values.len() as u64) {
        return Err(PolicyError::new(format!(
            "the tensor `{name}` has {} values and a shape of {} entries that does not fit them",
            values.len(),
            shape.len()
        )));
    }
    Ok(values)
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}
