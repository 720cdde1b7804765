//! Demonstrations: one row per transition, the observation before and the action taken.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `sample` | u64 | identity of the transition, stable through corruption and splitting |
//! | `episode` | u32 | episode it belongs to |
//! | `step` | u32 | steps taken in that episode before it |
//! | `observation` | fixed-size list of f32 | what the policy saw |
//! | `action` | fixed-size list of f32 | what it did |
//! | `reward` | f32 | what came of it |
//! | `terminated` | bool | whether the episode ended with this transition by its own rules |
//! | `truncated` | bool | whether it was cut after this transition |

use std::collections::BTreeMap;

use crate::{Matrix, Table, TableBuilder, TableError};

const ENVIRONMENT: &str = "environment";
const TIME_FEATURE: &str = "time_feature";
const EXPERT: &str = "expert";

/// A table of demonstrations. All columns are of one length; values are finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Demonstrations {
    /// Identity of each transition.
    pub sample: Vec<u64>,
    /// Episode of each transition.
    pub episode: Vec<u32>,
    /// Steps taken in that episode before.
    pub step: Vec<u32>,
    /// Observations.
    pub observation: Matrix,
    /// Actions.
    pub action: Matrix,
    /// Rewards.
    pub reward: Vec<f32>,
    /// Whether the episode ended by its own rules.
    pub terminated: Vec<bool>,
    /// Whether the episode was cut.
    pub truncated: Vec<bool>,
    /// Where they come from.
    pub about: About,
}

/// Where demonstrations come from; held in the table's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Name of the environment.
    pub environment: String,
    /// Whether the last entry of an observation is the share of the episode's time that is left.
    pub time_feature: bool,
    /// Who acted, for people.
    pub expert: String,
    /// Further entries, kept as they are.
    pub notes: BTreeMap<String, String>,
}

impl Demonstrations {
    /// Number of transitions.
    pub fn rows(&self) -> usize {
        self.sample.len()
    }

    /// The transitions at these indices, in this order.
    ///
    /// # Panics
    ///
    /// Where there is no such transition.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        fn pick<T: Copy>(values: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().map(|row| values[*row]).collect()
        }
        Self {
            sample: pick(&self.sample, rows),
            episode: pick(&self.episode, rows),
            step: pick(&self.step, rows),
            observation: self.observation.select(rows),
            action: self.action.select(rows),
            reward: pick(&self.reward, rows),
            terminated: pick(&self.terminated, rows),
            truncated: pick(&self.truncated, rows),
            about: self.about.clone(),
        }
    }

    /// As a table; fails where columns differ in length.
    pub fn into_table(self) -> Result<Table, TableError> {
        let mut builder = TableBuilder::new();
        // First, so that what the fields say is what counts.
        for (key, value) in &self.about.notes {
            builder = builder.metadata(key, value);
        }
        builder
            .u64("sample", self.sample)
            .u32("episode", self.episode)
            .u32("step", self.step)
            .matrix("observation", self.observation)
            .matrix("action", self.action)
            .f32("reward", self.reward)
            .bool("terminated", self.terminated)
            .bool("truncated", self.truncated)
            .metadata(ENVIRONMENT, &self.about.environment)
            .metadata(
                TIME_FEATURE,
                if self.about.time_feature { "true" } else { "false" },
            )
            .metadata(EXPERT, &self.about.expert)
            .build()
    }

    /// From a table, which may have further columns; fails where a column is missing, of another type, or holds
    /// values that are missing or not finite.
    pub fn from_table(table: &Table) -> Result<Self, TableError> {
        let matrix = |name: &str| {
            let (width, values) = table.column_fixed_list_f32(name)?;
            Matrix::new(width, finite(name, width, values)?.to_vec())
        };
        Ok(Self {
            sample: table.column_u64("sample")?.to_vec(),
            episode: table.column_u32("episode")?.to_vec(),
            step: table.column_u32("step")?.to_vec(),
            observation: matrix("observation")?,
            action: matrix("action")?,
            reward: finite("reward", 1, table.column_f32("reward")?)?.to_vec(),
            terminated: table.column_bool("terminated")?,
            truncated: table.column_bool("truncated")?,
            about: About::from_table(table)?,
        })
    }
}

impl About {
    fn from_table(table: &Table) -> Result<Self, TableError> {
        let mut notes: BTreeMap<String, String> = table
            .metadata()
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut take = |key: &str| {
            notes.remove(key).ok_or_else(|| TableError::Metadata {
                key: key.to_owned(),
                problem: "is missing".to_owned(),
            })
        };
        let environment = take(ENVIRONMENT)?;
        let expert = take(EXPERT)?;
        let time_feature = match take(TIME_FEATURE)?.as_str() {
            "true" => true,
            "false" => false,
            other => {
                return Err(TableError::Metadata {
                    key: TIME_FEATURE.to_owned(),
                    problem: format!(
                        "is `true` or `false`, not `{}`",
                        other.chars().take(40).collect::<String>()
                    ),
                });
            }
        };
        Ok(Self {
            environment,
            time_feature,
            expert,
            notes,
        })
    }
}

fn finite<'a>(name: &str, width: usize, values: &'a [f32]) -> Result<&'a [f32], TableError> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(values),
        Some(index) => Err(TableError::Invalid(format!(
            "column `{name}` holds {} in row {}, which is not a finite number",
            values[index],
            index / width
        ))),
    }
}
