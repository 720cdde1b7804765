//! `VecNormalize` files: the statistics by which an agent's observations were standardised.

use std::borrow::Cow;

use crate::pickle::{self, Global, Id, Object, Pickle, PickleError, Value};

/// How an agent's observations are standardised:
/// `clip((observation − mean) / √(variance + epsilon), −clip, clip)`, in double precision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Normalization {
    pub(crate) mean: Vec<f64>,
    pub(crate) variance: Vec<f64>,
    pub(crate) epsilon: f64,
    pub(crate) clip: f64,
}

/// Why a `VecNormalize` file was refused.
#[derive(Debug, thiserror::Error)]
pub enum NormalizationError {
    /// The pickle was refused.
    #[error(transparent)]
    Pickle(#[from] PickleError),
    /// It holds something else.
    #[error("it does not hold a `VecNormalize`")]
    NoVecNormalize,
    /// An attribute is absent or is not what it should be.
    #[error("`{name}` is not {wanted}")]
    Attribute {
        /// Which.
        name: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// The observations are a dict of several.
    #[error("its observations are a dict; observations that are one vector are read")]
    DictObservation,
}

const VECTOR: &str = "a vector of finite little-endian float64";

/// Reads a `VecNormalize` file; `None` where it leaves observations alone.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Normalization>, NormalizationError> {
    let pickle = pickle::parse(bytes)?;
    let object = pickle
        .object(pickle.root())
        .filter(|object| object.class == Global::VecNormalize)
        .ok_or(NormalizationError::NoVecNormalize)?;
    let wrong = |name, wanted| NormalizationError::Attribute { name, wanted };
    let attribute = |name| pickle.attribute(object, name);
    match attribute("norm_obs").map(|id| pickle.value(id)) {
        Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => return Ok(None),
        _ => return Err(wrong("norm_obs", "a truth value")),
    }
    let statistics = attribute("obs_rms").ok_or(wrong("obs_rms", "there"))?;
    if pickle.entries(statistics).is_some() {
        return Err(NormalizationError::DictObservation);
    }
    let statistics = pickle
        .object(statistics)
        .filter(|object| object.class == Global::RunningMeanStd)
        .ok_or(wrong("obs_rms", "a `RunningMeanStd`"))?;
    let vector = |name| vector(&pickle, pickle.attribute(statistics, name)?);
    let number = |name| number(&pickle, attribute(name)?);
    let mean = vector("mean").filter(|mean| mean.iter().all(|value| value.is_finite()));
    let mean = mean.ok_or(wrong("obs_rms.mean", VECTOR))?;
    let epsilon = number("epsilon").filter(|epsilon| epsilon.is_finite() && *epsilon >= 0.0);
    let epsilon = epsilon.ok_or(wrong("epsilon", "a number of at least 0"))?;
    let clip = number("clip_obs")
        .filter(|clip| *clip > 0.0)
        .ok_or(wrong("clip_obs", "a number above 0"))?;
    let variance = vector("var").filter(|variance| variance.iter().all(|value| value.is_finite()));
    let variance = variance.ok_or(wrong("obs_rms.var", VECTOR))?;
    if variance.len() != mean.len() {
        return Err(wrong("obs_rms.var", "as long as `obs_rms.mean`"));
    }
    if !variance.iter().all(|variance| variance + epsilon > 0.0) {
        return Err(wrong("obs_rms.var", "above `-epsilon` everywhere"));
    }
    Ok(Some(Normalization {
        mean,
        variance,
        epsilon,
        clip,
    }))
}

/// A number: Python's own or numpy's scalar.
fn number(pickle: &Pickle<'_>, id: Id) -> Option<f64> {
    match pickle.value(id) {
        Value::Float(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        Value::Object(object) if object.class == Global::NumpyScalar => {
            let [dtype, bytes] = pickle.tuple(object.arguments)? else {
                return None;
            };
            is_float64(pickle, *dtype)?;
            let bytes = bytes_of(pickle, *bytes)?;
            Some(f64::from_le_bytes(bytes.as_ref().try_into().ok()?))
        }
        _ => None,
    }
}

/// A numpy array of one dimension and type `<f8`.
fn vector(pickle: &Pickle<'_>, id: Id) -> Option<Vec<f64>> {
    let object = pickle.object(id)?;
    let (shape, dtype, bytes) = match object.class {
        Global::Reconstruct => match pickle.tuple(object.state?)? {
            // version, shape, dtype, whether in Fortran order, data
            [_, shape, dtype, _, bytes] => (*shape, *dtype, *bytes),
            _ => return None,
        },
        Global::FromBuffer => match pickle.tuple(object.arguments)? {
            [bytes, dtype, shape, _order] => (*shape, *dtype, *bytes),
            _ => return None,
        },
        _ => return None,
    };
    is_float64(pickle, dtype)?;
    let bytes = bytes_of(pickle, bytes)?;
    let (values, rest) = bytes.as_chunks::<8>();
    let shape = pickle.sizes(shape)?;
    (rest.is_empty() && shape == [values.len() as u64])
        .then(|| values.iter().map(|value| f64::from_le_bytes(*value)).collect())
}

/// Whether a dtype is little-endian double precision; `None` where it is not.
fn is_float64(pickle: &Pickle<'_>, id: Id) -> Option<()> {
    let object = pickle.object(id)?;
    let code = pickle.text(*pickle.tuple(object.arguments)?.first()?)?;
    // version, byte order, and what structured types need
    let order = pickle.text(*pickle.tuple(object.state?)?.get(1)?)?;
    (object.class == Global::Dtype && code == "f8" && order == "<").then_some(())
}

/// Bytes, also where protocol 2 writes them as `_codecs.encode(text, "latin1")`.
fn bytes_of<'a>(pickle: &Pickle<'a>, id: Id) -> Option<Cow<'a, [u8]>> {
    match pickle.value(id) {
        Value::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        Value::Object(object) => encoded(pickle, object).map(Cow::Owned),
        _ => None,
    }
}

fn encoded(pickle: &Pickle<'_>, object: &Object) -> Option<Vec<u8>> {
    let [text, codec] = pickle.tuple(object.arguments)? else {
        return None;
    };
    if object.class != Global::Encode || !matches!(pickle.text(*codec)?, "latin1" | "latin-1") {
        return None;
    }
    pickle
        .text(*text)?
        .chars()
        .map(|character| u8::try_from(character).ok())
        .collect()
}
