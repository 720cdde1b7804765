use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A simulated task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Environment {
    /// PyBullet's `HopperBulletEnv-v0`.
    Hopper,
}

impl Environment {
    /// The name used in manifests and in the metadata of tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hopper => "hopper",
        }
    }
}
