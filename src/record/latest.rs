use std::collections::BTreeMap;

use camino::Utf8Path;
use jiff::Timestamp;
use serde::Deserialize;

use super::RunId;
use super::model::is_render;
use super::read::{FlawedRun, RunStore, StoredRun, each_line};
use crate::store::StoreError;

/// The run that a person who says "the last one" means.
#[derive(Debug)]
pub struct Latest {
    /// The run.
    pub run: StoredRun,
    /// When a later run found nothing to do and the same results; absent where there was none.
    pub repeated: Option<Timestamp>,
}

/// When a run was, for comparison with others: when it began, or was last repeated.
type When = (String, Option<Timestamp>);

impl RunStore {
    /// The latest run of a manifest, of any or of one: where that executed nothing and found what a recorded run had, that
    /// one. A render is no run of a manifest, and is the latest only of any, where there is nothing else. Runs that cannot
    /// be understood are passed over, and come second.
    pub fn latest(
        &self,
        manifest: Option<&Utf8Path>,
    ) -> Result<(Option<Latest>, Vec<FlawedRun>), StoreError> {
        let repeats = self.repeats()?;
        let mut runs: Vec<(When, StoredRun)> = self
            .runs()?
            .into_iter()
            .map(|run| {
                let began = run.id.as_str().to_owned();
                let when = match repeats.get(&run.id) {
                    Some((id, time)) => (id.clone().max(began), Some(*time)),
                    None => (began, None),
                };
                (when, run)
            })
            .collect();
        runs.sort_by(|(left, _), (right, _)| right.cmp(left));
        let mut flawed = Vec::new();
        let mut render = None;
        for ((_, repeated), run) in runs {
            let head = match run.check().and_then(|()| run.head()) {
                Ok(head) => head,
                Err(error) => {
                    flawed.push(FlawedRun { run, error });
                    continue;
                }
            };
            let is_meant = match (&head, manifest) {
                (Some(head), Some(manifest)) => head.manifest == manifest,
                (head, wanted) => head.is_some() || wanted.is_none(),
            };
            let latest = Latest { run, repeated };
            match head {
                Some(head) if is_render(&head.command) && manifest.is_none() => {
                    render.get_or_insert(latest);
                }
                _ if is_meant => return Ok((Some(latest), flawed)),
                _ => {}
            }
        }
        Ok((render, flawed))
    }

    /// When runs were last repeated by runs that found nothing to do: what those would be named, and the time. Lines that cannot
    /// be understood say nothing.
    fn repeats(&self) -> Result<BTreeMap<RunId, (String, Timestamp)>, StoreError> {
        /// What matters of a line.
        #[derive(Deserialize)]
        struct Line {
            /// Absent in earlier records.
            id: Option<RunId>,
            time: Timestamp,
            repeats: Option<RunId>,
        }
        let mut repeats: BTreeMap<RunId, (String, Timestamp)> = BTreeMap::new();
        each_line(&self.noops(), |line| {
            if let Ok(Line {
                id,
                time,
                repeats: Some(run),
            }) = serde_json::from_slice(line)
            {
                let id = id.map_or_else(|| RunId::moment(time), |id| id.as_str().to_owned());
                repeats
                    .entry(run)
                    .and_modify(|latest: &mut (String, Timestamp)| {
                        if *latest.0 < *id {
                            *latest = (id.clone(), time);
                        }
                    })
                    .or_insert_with(|| (id.clone(), time));
            }
            Ok(())
        })?;
        Ok(repeats)
    }
}
