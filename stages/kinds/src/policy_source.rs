use provenir_api::port::TableSchema;
use provenir_api::{Problem, SourceFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PolicyFormat;

/// A hidden layer's activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(0, x)
    Relu,
    /// Hyperbolic tangent.
    Tanh,
}

/// Where a stage that acts has its policy from: a file that a parameter names, or the port of the same name.
#[derive(Clone, Copy, Debug)]
pub struct PolicySource<'a> {
    /// What parameter and port are called: `policy`, `expert`.
    pub name: &'static str,
    /// JSON pointer of the parameter.
    pub pointer: &'static str,
    /// The file, where one is named.
    pub file: Option<&'a SourceFile>,
    /// The `VecNormalize` statistics of a Stable-Baselines3 agent, where they are given.
    pub normalization: Option<&'a SourceFile>,
    /// Activation of the agent's hidden layers, where it is given.
    pub activation: Option<Activation>,
    /// Whether the agent reads the time feature, where it is given.
    pub time_feature: Option<bool>,
}

impl PolicySource<'_> {
    /// JSON pointer of the parameter that names the statistics, in every kind.
    pub const NORMALIZATION: &'static str = "/normalization";

    /// What is wrong with these parameters, whatever is wired.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let format = self.file.map(|file| PolicyFormat::of(file.path()));
        // A name without an end, as objects of a store have, says nothing: the file itself does, when it is read.
        if let (Some(file), Some(None)) = (self.file, format)
            && file.path().extension().is_some()
        {
            problems.push(
                Problem::new(
                    self.pointer,
                    format!("`{}` is neither a policy nor an archive", file.path()),
                )
                .help("a policy ends in .parquet or .safetensors, a Stable-Baselines3 archive in .zip"),
            );
        }
        let may_be_archive = matches!(format, Some(Some(PolicyFormat::Archive) | None));
        for (given, pointer) in [
            (self.normalization.is_some(), Self::NORMALIZATION),
            (self.activation.is_some(), "/activation"),
        ] {
            if given && !may_be_archive {
                let message = format!(
                    "`{}` belongs to a Stable-Baselines3 archive (.zip) named by `{}`",
                    &pointer[1..],
                    self.name
                );
                problems.push(Problem::new(pointer, message).beside([self.pointer]));
            }
        }
        problems
    }

    /// What is wrong with these parameters given what is wired.
    pub(crate) fn check(&self, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        let name = self.name;
        match (self.file, wired.iter().any(|(port, _)| *port == name)) {
            (Some(_), true) => vec![
                Problem::new(
                    self.pointer,
                    format!("the {name} is both named by a parameter and wired to the port `{name}`"),
                )
                .help("keep one of the two"),
            ],
            (None, false) => vec![Problem::new("", format!("the {name} is missing")).help(format!(
                "wire a stage's policy to the port `{name}` (`inputs = {{ {name} = \"STAGE\" }}`), or name a file with the \
                 parameter `{name}`"
            ))],
            _ => Vec::new(),
        }
    }
}
