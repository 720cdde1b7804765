use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use provenir_api::Digest;
use serde::Serialize;

use super::Recorder;
use super::lines::line;
use crate::exec::Summary;
use crate::record::RunId;
use crate::record::model::is_render;
use crate::record::read::RunStore;
use crate::store::append_lines;

/// A line of the file of runs that executed nothing.
#[derive(Serialize)]
struct Noop<'a> {
    /// The name that it would have as a run with records: tells its place among those.
    id: &'a RunId,
    time: Timestamp,
    pipeline: &'a str,
    manifest: &'a Utf8Path,
    cells: usize,
    seconds: f64,
    build: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    published: &'a [Utf8PathBuf],
    /// The run that had the same: the latest of the manifest. None for what no manifest has.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<RunId>,
}

impl Recorder<'_> {
    /// What [`OutcomeFile::state`] is to be.
    pub(super) fn state(&self) -> io::Result<Option<Digest>> {
        if self.keys.len() < self.plan.cells.len() {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        serde_json::to_writer(&mut hasher, &self.plan.resolved)?;
        for (cell, key) in &self.keys {
            hasher.update(format!("\n{} {}", key.hex(), self.plan.name(*cell)).as_bytes());
        }
        Ok(Some(hasher.finalize().into()))
    }

    /// The latest run of the manifest, where it had what this one has.
    fn repeated(&self) -> io::Result<Option<RunId>> {
        /// So many runs of other manifests are looked through; after more, this one is written down once more.
        const MOST: usize = 500;
        let Some(state) = self.state()? else {
            return Ok(None);
        };
        let runs = RunStore::new(self.store.layout())
            .runs()
            .map_err(io::Error::other)?;
        let latest = runs.into_iter().take(MOST).find(|run| {
            let head = run.head().ok().flatten();
            head.is_some_and(|head| head.manifest == self.plan.manifest)
        });
        Ok(latest
            .filter(|run| {
                let outcome = run.outcome().ok().flatten();
                outcome.is_some_and(|outcome| outcome.state == Some(state))
            })
            .map(|run| run.id))
    }

    /// Writes down a run that executed nothing: in a line where the latest run of the manifest had the same, and else as
    /// every other, so that it can be compared and its results are kept.
    pub(super) fn note(&mut self, summary: &Summary, published: &[Utf8PathBuf]) -> io::Result<()> {
        let is_render = is_render(&self.request.command);
        let repeats = if is_render { None } else { self.repeated()? };
        if !is_render && repeats.is_none() {
            self.begin()?;
            return self.finish(summary, published);
        }
        fs_err::create_dir_all(self.store.layout().runs())?;
        let noop = Noop {
            id: &self.request.id,
            time: self.started,
            pipeline: &self.plan.pipeline,
            manifest: &self.plan.manifest,
            cells: summary.reused,
            seconds: summary.seconds,
            build: &self.request.program.build,
            published: &self.restored,
            repeats,
        };
        let path = RunStore::new(self.store.layout()).noops();
        append_lines(&path, &line(&noop)?).map(drop)
    }
}
