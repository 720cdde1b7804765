//! The network of an agent's actor, out of its state dict.

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
    #[error("it holds an agent of {0}; agents of PPO, A2C, SAC, TQC, TD3 and DDPG are read")]
    Algorithm(&'static str),
    /// A network that reads something other than a vector.
    #[error("it holds an agent of `{0}`; agents of `MlpPolicy`, whose observations are vectors, are read")]
    Extractor(&'static str),
    /// A tensor whose part in the network is not known, so that leaving it out might change what the agent does.
    #[error("it holds the tensor `{0}`, which the networks of an `MlpPolicy` do not have")]
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

/// Algorithms whose agents are built alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// PPO, A2C, TRPO: `action_net(policy_net(x))`.
    OnPolicy,
    /// SAC, TQC: `tanh(mu(latent_pi(x)))`; with gSDE, `mu` ends in a `Hardtanh`.
    Stochastic {
        /// Whether it does.
        clips_mean: bool,
    },
    /// TD3, DDPG: `tanh(mu(x))`, where `mu` is the whole network.
    Deterministic,
}

impl Family {
    /// The family of a state dict.
    pub(crate) fn of(weights: &Weights<'_>) -> Result<Self, NetworkError> {
        let has = |prefix: &str| weights.names().any(|name| name.starts_with(prefix));
        for (prefix, algorithm) in OTHERS {
            if has(prefix) {
                return Err(NetworkError::Algorithm(algorithm));
            }
        }
        // A network without hidden layers has no `latent_pi`; only a stochastic actor has a deviation.
        Ok(if has("actor.latent_pi.") || has("actor.log_std") {
            Self::Stochastic {
                clips_mean: has("actor.mu.0."),
            }
        } else if has("actor.mu.") {
            Self::Deterministic
        } else {
            Self::OnPolicy
        })
    }

    /// The linear layers from observation to action are those of these `Sequential`s, then this one.
    fn parts(self) -> (&'static [&'static str], Option<&'static str>) {
        match self {
            Self::OnPolicy => (
                &["mlp_extractor.shared_net", "mlp_extractor.policy_net"],
                Some("action_net"),
            ),
            Self::Stochastic { clips_mean: true } => (&["actor.latent_pi"], Some("actor.mu.0")),
            Self::Stochastic { clips_mean: false } => (&["actor.latent_pi"], Some("actor.mu")),
            Self::Deterministic => (&["actor.mu"], None),
        }
    }

    /// Whether a tensor has no influence on the mean action: it is of exploration, of a value, or of a target.
    fn is_aside(self, name: &str) -> bool {
        const DEVIATION: [&str; 3] = ["log_std", "log_std.weight", "log_std.bias"];
        match self {
            Self::OnPolicy => {
                let values = name.strip_prefix("mlp_extractor.value_net.");
                matches!(name, "log_std" | "value_net.weight" | "value_net.bias")
                    || name.starts_with("sde_features_extractor.")
                    || values.is_some_and(is_linear)
            }
            Self::Stochastic { .. } => {
                let deviation = name.strip_prefix("actor.");
                deviation.is_some_and(|name| {
                    DEVIATION.contains(&name) || name.starts_with("sde_features_extractor.")
                }) || is_of_critic(name)
            }
            Self::Deterministic => name.starts_with("actor_target.") || is_of_critic(name),
        }
    }
}

const OTHERS: [(&str, &str); 5] = [
    ("q_net.", "DQN"),
    ("quantile_net.", "QR-DQN"),
    ("lstm_actor.", "RecurrentPPO"),
    ("actor.latent_pi.0.ra_mean", "CrossQ"),
    ("action_net.0.", "ARS"),
];

fn is_of_critic(name: &str) -> bool {
    name.starts_with("critic.") || name.starts_with("critic_target.")
}

/// Whether the rest of a name is that of a linear layer in a `Sequential`: `4.weight`.
fn is_linear(rest: &str) -> bool {
    rest.split_once('.')
        .is_some_and(|(index, kind)| index.parse::<u32>().is_ok() && matches!(kind, "weight" | "bias"))
}

/// The layers from observation to action, the last one linear: what the agent does without exploration, but for what
/// becomes of the last layer's output.
pub(crate) fn layers(weights: &mut Weights<'_>, family: Family) -> Result<Vec<Layer>, NetworkError> {
    let (sequentials, last) = family.parts();
    let mut names = Vec::new();
    for part in sequentials {
        // A `Sequential` numbers its linear layers and the activations between them.
        let layers = (0..)
            .step_by(2)
            .map(|index: u32| format!("{part}.{index}"))
            .take_while(|name| weights.shape(&format!("{name}.weight")).is_some());
        names.extend(layers);
    }
    names.extend(last.map(str::to_owned));
    check_names(weights, family, &names)?;
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

/// That every tensor is of a layer or aside: one that is numbered out of turn would be left out.
fn check_names(weights: &Weights<'_>, family: Family, layers: &[String]) -> Result<(), NetworkError> {
    let is_used = |name: &str| {
        let parts = name.rsplit_once('.');
        parts.is_some_and(|(layer, kind)| {
            matches!(kind, "weight" | "bias") && layers.iter().any(|used| used == layer)
        })
    };
    let mut unknown = weights
        .names()
        .filter(|name| !is_used(name) && !family.is_aside(name));
    let Some(name) = unknown.next() else {
        return Ok(());
    };
    Err(if name.contains("features_extractor.cnn.") {
        NetworkError::Extractor("CnnPolicy")
    } else if name.contains("features_extractor.extractors.") {
        NetworkError::Extractor("MultiInputPolicy")
    } else {
        NetworkError::Unknown(name.chars().take(120).flat_map(char::escape_debug).collect())
    })
}
