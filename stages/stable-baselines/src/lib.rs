//! Reads the agents that Stable-Baselines3 saves, without executing anything in them.
//!
//! An agent is a zip archive (`model.save`): `data` is JSON, `policy.pth` another zip archive with the network. Its
//! observations may be standardised by the statistics of a separate pickle (`VecNormalize.save`). Those pickles are
//! programs in the hands of their author; `pickle` reads them as data.
//!
//! Agents of PPO, A2C, SAC, TQC, TD3 and DDPG are read, with and without gSDE: the policy returned is their deterministic
//! action. What an archive tells of the training is among the policy's notes.
//!
//! Invariants: nothing in a file runs; memory and time are bounded by constants and by the file's length; every
//! malformed file is an error.

mod agent;
mod archive;
mod error;
mod metadata;
mod network;
mod normalization;
mod pickle;
mod weights;

pub use agent::{Agent, read};
pub use archive::ArchiveError;
pub use error::Error;
pub use metadata::MetadataError;
pub use network::NetworkError;
pub use normalization::NormalizationError;
pub use pickle::PickleError;
pub use weights::WeightsError;
