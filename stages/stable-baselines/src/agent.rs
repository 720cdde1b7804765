use provenir_policy::{About, ActionMap, Activation, Policy, Standardisation};

use crate::archive::{Archive, ArchiveError};
use crate::error::Error;
use crate::metadata::{Metadata, Told};
use crate::network::{self, Family, NetworkError};
use crate::normalization::{self, Normalization};
use crate::weights::Weights;

/// The longest entry `data` that is read; it holds settings, not weights.
const METADATA: u64 = 8 << 20;
const NETWORK: u64 = 128 << 20;
const VERSION: u64 = 64;

/// An agent's files, and what they do not tell.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    /// The archive that `model.save` wrote.
    pub archive: &'a [u8],
    /// What `VecNormalize.save` wrote, for an agent that was trained with it.
    pub statistics: Option<&'a [u8]>,
    /// Activation of the hidden layers, for an archive that does not tell.
    pub activation: Option<Activation>,
    /// The environment in which the agent acts.
    pub environment: &'a str,
    /// Whether its observations end with the share of the episode's time that is left.
    pub time_feature: bool,
}

/// Reads an agent: the policy is its deterministic action.
pub fn read(agent: &Agent<'_>) -> Result<Policy, Error> {
    let mut archive = Archive::open(agent.archive)?;
    if archive.names().any(|name| name == "parameter_list") {
        return Err(Error::TensorFlow);
    }
    let network = archive.read("policy.pth", NETWORK)?;
    let mut weights = Weights::open(&network).map_err(NetworkError::from)?;
    let family = Family::of(&weights)?;
    let layers = network::layers(&mut weights, family)?;
    let metadata = Metadata::read(&archive.read("data", METADATA)?, family)?;
    let activation = decide(metadata.activation(family), agent.activation)?;
    let normalization = agent.statistics.map(normalization::read).transpose()?.flatten();
    let (inputs, actions) = (layers[0].inputs(), layers[layers.len() - 1].outputs());
    if let Some(normalization) = &normalization
        && normalization.mean.len() != inputs
    {
        return Err(Error::Mismatch {
            statistics: normalization.mean.len(),
            network: inputs,
        });
    }
    let (low, high) = metadata.bounds(actions)?;
    let mut notes = metadata.notes();
    notes.insert("source".to_owned(), source(&mut archive)?);
    let policy = Policy::new(
        layers,
        activation,
        normalization.map(standardisation),
        ActionMap {
            squash: metadata.squash(family),
            low,
            high,
        },
        About {
            environment: agent.environment.to_owned(),
            time_feature: agent.time_feature,
            method: metadata.method(family).to_owned(),
            notes,
        },
    );
    Ok(policy?)
}

/// The program that wrote the archive.
fn source(archive: &mut Archive<'_>) -> Result<String, ArchiveError> {
    let version = match archive.read("_stable_baselines3_version", VERSION) {
        Ok(version) => version,
        // Archives before version 0.7 do not say.
        Err(ArchiveError::Missing(_)) => return Ok("Stable-Baselines3".to_owned()),
        Err(error) => return Err(error),
    };
    let version: String = String::from_utf8_lossy(version.trim_ascii())
        .chars()
        .flat_map(char::escape_debug)
        .collect();
    Ok(format!("Stable-Baselines3 {version}"))
}

fn standardisation(normalization: Normalization) -> Standardisation {
    let Normalization {
        mean,
        variance,
        epsilon,
        clip,
    } = normalization;
    Standardisation {
        mean,
        scale: variance
            .into_iter()
            .map(|variance| (variance + epsilon).sqrt())
            .collect(),
        clip: clip.is_finite().then_some(clip),
    }
}

fn decide(told: Told, given: Option<Activation>) -> Result<Activation, Error> {
    let told = match told {
        Told::Activation(told) => told,
        Told::Other(name) => return Err(Error::UnsupportedActivation(name)),
        Told::Nothing => return given.ok_or(Error::UnknownActivation),
    };
    match given {
        Some(given) if given != told => Err(Error::Contradiction { told, given }),
        _ => Ok(told),
    }
}
