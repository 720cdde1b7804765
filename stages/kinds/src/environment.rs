use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A simulated task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Environment {
    /// PyBullet's `HopperBulletEnv-v0`.
    Hopper,
    /// PyBullet's `Walker2DBulletEnv-v0`.
    #[serde(rename = "walker2d")]
    Walker2D,
    /// PyBullet's `HalfCheetahBulletEnv-v0`.
    HalfCheetah,
    /// PyBullet's `AntBulletEnv-v0`.
    Ant,
}

impl Environment {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hopper, Self::Walker2D, Self::HalfCheetah, Self::Ant];

    /// The name used in manifests and in the metadata of tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hopper => "hopper",
            Self::Walker2D => "walker2d",
            Self::HalfCheetah => "half-cheetah",
            Self::Ant => "ant",
        }
    }

    /// Numbers in an observation, without the time feature.
    pub const fn observation_width(self) -> usize {
        match self {
            Self::Hopper => 15,
            Self::Walker2D => 22,
            Self::HalfCheetah => 26,
            Self::Ant => 28,
        }
    }

    /// Numbers in an action.
    pub const fn action_width(self) -> usize {
        match self {
            Self::Hopper => 3,
            Self::Walker2D | Self::HalfCheetah => 6,
            Self::Ant => 8,
        }
    }
}
