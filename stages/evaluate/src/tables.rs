use provenir_sim::Episode;
use provenir_table::{Table, TableBuilder, TableError};

use crate::Summary;

/// A checkpoint's results.
pub(crate) struct Evaluated {
    pub(crate) number: u32,
    pub(crate) episodes: Vec<Episode>,
    pub(crate) summary: Summary,
}

/// What both tables of results are made from.
pub(crate) struct Results<'a> {
    pub(crate) checkpoints: Vec<Evaluated>,
    /// The expert's mean return, where it is known.
    pub(crate) expert: Option<f64>,
    /// What was evaluated, for the tables' metadata.
    pub(crate) about: [(&'a str, String); 3],
}

impl Results<'_> {
    /// One row a checkpoint and episode.
    pub(crate) fn trials(&self) -> Result<Table, TableError> {
        let numbers = self
            .checkpoints
            .iter()
            .flat_map(|result| result.episodes.iter().map(|_| result.number));
        let trials = self
            .checkpoints
            .iter()
            .flat_map(|result| 0..result.episodes.len() as u32);
        self.builder()
            .u32("checkpoint", numbers.collect())
            .u32("trial", trials.collect())
            .f64("return", self.episodes(|episode| episode.total_reward))
            .u32("length", self.episodes(|episode| episode.length))
            .unit("steps")
            .bool("terminated", self.episodes(|episode| episode.terminated))
            .bool("truncated", self.episodes(|episode| episode.truncated))
            .f64(
                "discounted_return",
                self.episodes(|episode| episode.discounted_reward),
            )
            .optional_f64("share", self.episodes(|episode| self.share(episode.total_reward)))
            .build()
    }

    /// One row a checkpoint.
    pub(crate) fn summary(&self) -> Result<Table, TableError> {
        let column = |value: fn(&Summary) -> f64| self.column(|result| value(&result.summary));
        self.builder()
            .u32("checkpoint", self.column(|result| result.number))
            .u32("trials", self.column(|result| result.episodes.len() as u32))
            .f64("mean", column(|summary| summary.mean))
            .f64("std", column(|summary| summary.std))
            .f64("median", column(|summary| summary.median))
            .f64("iqm", column(|summary| summary.iqm))
            .f64("ci_low", column(|summary| summary.interval.0))
            .f64("ci_high", column(|summary| summary.interval.1))
            .f64("min", column(|summary| summary.min))
            .f64("max", column(|summary| summary.max))
            .f64(
                "length",
                self.column(|result| result.mean(|episode| f64::from(episode.length))),
            )
            .unit("steps")
            .u32("early_falls", self.column(Evaluated::falls))
            .f64("iqm_low", column(|summary| summary.iqm_interval.0))
            .f64("iqm_high", column(|summary| summary.iqm_interval.1))
            .f64(
                "discounted_mean",
                self.column(|result| result.mean(|episode| episode.discounted_reward)),
            )
            .optional_f64("share", self.column(|result| self.share(result.summary.mean)))
            .build()
    }

    fn share(&self, value: f64) -> Option<f64> {
        self.expert.map(|expert| value / expert)
    }

    fn column<T>(&self, value: impl Fn(&Evaluated) -> T) -> Vec<T> {
        self.checkpoints.iter().map(value).collect()
    }

    fn episodes<T>(&self, value: impl Fn(&Episode) -> T) -> Vec<T> {
        self.checkpoints
            .iter()
            .flat_map(|result| result.episodes.iter().map(&value))
            .collect()
    }

    fn builder(&self) -> TableBuilder {
        self.about
            .iter()
            .fold(TableBuilder::new(), |builder, (key, value)| {
                builder.metadata(key, value)
            })
    }
}

impl Evaluated {
    /// Episodes that ended before the time limit.
    fn falls(&self) -> u32 {
        self.episodes
            .iter()
            .map(|episode| u32::from(episode.terminated))
            .sum()
    }

    fn mean(&self, value: impl Fn(&Episode) -> f64) -> f64 {
        self.episodes.iter().map(value).sum::<f64>() / self.episodes.len() as f64
    }
}
