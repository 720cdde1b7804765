//! The network of a PPO or A2C agent, out of its state dict.

use provenir_policy::{Layer, PolicyError};

use crate::weights::{Weights, WeightsError};

/// Why a state dict was refused.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A tensor was refused.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A layer that no policy has: too wide, or with weights that are not finite.
    #[error(transparent)]
    Layer(#[from] PolicyError),
    /// Another algorithm's agent.
    #[error("it holds an agent of {0}; agents of PPO and A2C are read")]
    Algorithm(&'static str),
    /// A tensor whose part in the network is not known, so that leaving it out might change what the agent does.
    #[error("it holds the tensor `{0}`, which the networks of PPO's and A2C's `MlpPolicy` do not have")]
    Unknown(String),
    /// Shapes that do not fit together.
    #[error("the tensor `{tensor}` has the shape {found:?}, but {why}")]
    Shape {
        /// Which.
        tensor: String,
        /// Its shape.
        found: Vec<u64>,
        /// Why that is wrong.
        why: String,
    },
}

/// The layers from observation to action, the last one linear: what the agent does without exploration.
pub(crate) fn layers(weights: &mut Weights<'_>) -> Result<Vec<Layer>, NetworkError> {
    check_names(weights)?;
    let mut names = Vec::new();
    for part in ["mlp_extractor.shared_net", "mlp_extractor.policy_net"] {
        // A `Sequential` numbers its linear layers and the activations between them.
        let layers = (0..)
            .step_by(2)
            .map(|index: u32| format!("{part}.{index}"))
            .take_while(|name| weights.shape(&format!("{name}.weight")).is_some());
        names.extend(layers);
    }
    names.push("action_net".to_owned());
    check_all_used(weights, &names)?;
    let mut layers: Vec<Layer> = Vec::with_capacity(names.len());
    for name in names {
        let inputs = layers.last().map(|layer| layer.outputs() as u64);
        layers.push(layer(weights, &name, inputs)?);
    }
    Ok(layers)
}

/// The layer of that name, with as many inputs as the one before has outputs.
fn layer(weights: &mut Weights<'_>, name: &str, expected: Option<u64>) -> Result<Layer, NetworkError> {
    let [weight, bias] = ["weight", "bias"].map(|part| format!("{name}.{part}"));
    let shape = |tensor: &str| match weights.shape(tensor) {
        Some(shape) => Ok(shape.to_vec()),
        None => Err(WeightsError::Missing(tensor.to_owned())),
    };
    let (found, biases) = (shape(&weight)?, shape(&bias)?);
    let [outputs, inputs] = found[..] else {
        return Err(misfit(weight, found, "it should have two dimensions".to_owned()));
    };
    if let Some(expected) = expected.filter(|expected| *expected != inputs) {
        return Err(misfit(
            weight,
            found,
            format!("the layer before has {expected} outputs"),
        ));
    }
    if biases != [outputs] {
        return Err(misfit(
            bias,
            biases,
            format!("the weights are for {outputs} outputs"),
        ));
    }
    let (weights, biases) = (weights.tensor(&weight)?, weights.tensor(&bias)?);
    Ok(Layer::new(inputs as usize, outputs as usize, weights, biases)?)
}

fn misfit(tensor: String, found: Vec<u64>, why: String) -> NetworkError {
    NetworkError::Shape { tensor, found, why }
}

fn check_names(weights: &Weights<'_>) -> Result<(), NetworkError> {
    for name in weights.names() {
        if let Some(algorithm) = other_algorithm(name) {
            return Err(NetworkError::Algorithm(algorithm));
        }
    }
    match weights.names().find(|name| !is_known(name)) {
        Some(name) => Err(unknown(name)),
        None => Ok(()),
    }
}

/// A layer that is numbered out of turn would be left out.
fn check_all_used(weights: &Weights<'_>, layers: &[String]) -> Result<(), NetworkError> {
    let on_the_way = |name: &str| {
        name.starts_with("mlp_extractor.shared_net.") || name.starts_with("mlp_extractor.policy_net.")
    };
    let used = |name: &str| {
        name.rsplit_once('.')
            .is_some_and(|(layer, _)| layers.iter().any(|used| used == layer))
    };
    match weights.names().find(|name| on_the_way(name) && !used(name)) {
        Some(name) => Err(unknown(name)),
        None => Ok(()),
    }
}

fn unknown(name: &str) -> NetworkError {
    NetworkError::Unknown(name.chars().take(120).flat_map(char::escape_debug).collect())
}

fn other_algorithm(name: &str) -> Option<&'static str> {
    const PREFIXES: [(&str, &str); 5] = [
        ("actor.latent_pi.", "SAC or TQC"),
        ("actor.mu.", "TD3 or DDPG"),
        ("q_net.", "DQN"),
        ("quantile_net.", "QR-DQN"),
        ("lstm_actor.", "RecurrentPPO"),
    ];
    PREFIXES
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map(|(_, algorithm)| *algorithm)
}

/// Whether a tensor is of an `MlpPolicy`: on the way from observation to mean action, or without influence on it
/// (exploration, value).
fn is_known(name: &str) -> bool {
    const EXPLORATION: &str = "sde_features_extractor.";
    let numbered = |part: &str| {
        let rest = name.strip_prefix(part).and_then(|rest| rest.split_once('.'));
        rest.is_some_and(|(index, kind)| index.parse::<u32>().is_ok() && matches!(kind, "weight" | "bias"))
    };
    matches!(
        name,
        "log_std" | "action_net.weight" | "action_net.bias" | "value_net.weight" | "value_net.bias"
    ) || name.starts_with(EXPLORATION)
        || ["shared_net", "policy_net", "value_net"]
            .iter()
            .any(|net| numbered(&format!("mlp_extractor.{net}.")))
}
