use provenir_policy::{Activation, PolicyError, printable};

use crate::archive::ArchiveError;
use crate::metadata::MetadataError;
use crate::network::NetworkError;
use crate::normalization::NormalizationError;
use crate::pickle::PickleError;
use crate::weights::WeightsError;

/// Why an agent could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The outer archive was refused.
    #[error("the agent's archive: {}", printable(.0))]
    Archive(#[from] ArchiveError),
    /// The archive is Stable Baselines 2's.
    #[error(
        "the agent's archive is one of Stable Baselines 2 (TensorFlow); those of Stable-Baselines3 are read"
    )]
    TensorFlow,
    /// The entry `policy.pth` was refused.
    #[error("`policy.pth` in the agent's archive: {}", printable(.0))]
    Network(#[from] NetworkError),
    /// The entry `data` was refused.
    #[error("`data` in the agent's archive: {}", printable(.0))]
    Metadata(#[from] MetadataError),
    /// The `VecNormalize` file was refused.
    #[error("the `VecNormalize` file: {}", printable(.0))]
    Normalization(#[from] NormalizationError),
    /// Statistics and network are not of one agent.
    #[error("the `VecNormalize` file describes {statistics} observations, the network reads {network}")]
    Mismatch {
        /// Length of the statistics.
        statistics: usize,
        /// Inputs of the network.
        network: usize,
    },
    /// The metadata does not tell the hidden layers' activation.
    #[error("the agent's archive does not tell the activation of its hidden layers")]
    UnknownActivation,
    /// An activation that policies do not have.
    #[error("the hidden layers' activation is `{}`; agents with ReLU or Tanh are read", printable(.0))]
    UnsupportedActivation(String),
    /// Its parts do not make a policy.
    #[error("the agent: {}", printable(.0))]
    Policy(#[from] PolicyError),
    /// What was asked for and what the archive says differ.
    #[error("the hidden layers' activation is {told} by the agent's archive, and was given as {given}")]
    Contradiction {
        /// By the archive.
        told: Activation,
        /// By the caller.
        given: Activation,
    },
}

impl Error {
    /// Whether it is the `VecNormalize` file that is at fault, rather than the archive.
    pub fn is_of_statistics(&self) -> bool {
        matches!(self, Self::Normalization(_))
    }

    /// What to do next, where that is known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::UnknownActivation => Some(
                "give the parameter `activation` (\"relu\" or \"tanh\"); it is in the settings of the training",
            ),
            Self::Contradiction { .. } => Some("leave the parameter `activation` out"),
            Self::Mismatch { .. } => Some("both files come from one training: check which belongs to which"),
            Self::Network(NetworkError::Weights(WeightsError::Legacy)) => {
                Some("load the agent with a current Stable-Baselines3 and save it again")
            }
            Self::Archive(ArchiveError::Zip(_) | ArchiveError::CutShort) => {
                Some("an agent is the .zip file that `model.save` writes; is the download complete?")
            }
            Self::Archive(ArchiveError::Missing(_)) => {
                Some("an agent is the .zip file that `model.save` of Stable-Baselines3 writes")
            }
            Self::Network(NetworkError::Weights(WeightsError::Pickle(PickleError::Forbidden(_))))
            | Self::Normalization(NormalizationError::Pickle(PickleError::Forbidden(_))) => Some(
                "take the file from somebody you trust; one that Stable-Baselines3 wrote asks for no such thing",
            ),
            Self::Normalization(NormalizationError::NoVecNormalize | NormalizationError::Pickle(_)) => {
                Some("the statistics are the .pkl file that `VecNormalize.save` writes")
            }
            Self::Archive(_) | Self::Network(_) | Self::Metadata(_) => Some(
                "an agent is the .zip that `model.save` of Stable-Baselines3 writes, with `data` and `policy.pth` in it: \
                 download it or save it again",
            ),
            Self::Normalization(_) => Some(
                "the statistics are the .pkl that `VecNormalize.save` writes: download it or save it again",
            ),
            Self::TensorFlow | Self::UnsupportedActivation(_) | Self::Policy(_) => Some(
                "give an agent of Stable-Baselines3 with a network of ReLU or Tanh layers, or a policy (.parquet)",
            ),
        }
    }
}
