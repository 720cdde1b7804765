use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use provenir_api::{Digest, Label};

use super::absent::explained;
use super::earlier::{Made, Past, Use, action_of_result, stage};
use super::place::Place;
use super::planned;
use super::reason::{
    Attempt, Change, Moment, Reason, SameAction, Second, Upstream, Why, discarded_on, moment,
};
use super::side::{Side, named};
use crate::exec::{Difference, Due, Standing, Survey, changed_inputs, differences};
use crate::plan::{CellIndex, Plan};
use crate::record::{Cells, FlawedRun, History, PastRun, Removals, RunId, RunStore};
use crate::store::{
    Action, ActionInput, ActionKey, MissReason, Owner, Store, StoreError, partials, standing,
};

/// Said of a result that a run had, in the short form.
const RESULT_GONE: &str = "its result is no longer in the store; no record says what removed it";
/// So many differences are told in the short form.
const BRIEF: usize = 3;
/// So many changed artifacts of a port are followed upstream; the others are counted.
const FOLLOWED: usize = 1000;
/// So far upstream changes are followed.
const DEEPEST: usize = 256;

/// Says why cells of a plan run.
pub struct Explainer<'a> {
    plan: &'a Plan,
    store: &'a Store,
    survey: &'a Survey<'a>,
    past: OnceCell<Past>,
    /// The action that each cell was when a run last had it, where the index knows.
    remembered: OnceCell<BTreeMap<String, ActionKey>>,
    /// Bytes of the checkpoints that actions can go on from.
    checkpoints: OnceCell<BTreeMap<ActionKey, u64>>,
    /// In which run the execution of what has no result was cut short.
    cut_short: OnceCell<BTreeMap<ActionKey, RunId>>,
    /// What is being executed, and by whom.
    claimed: OnceCell<BTreeMap<ActionKey, Owner>>,
    /// When commands took out what is gone.
    removals: OnceCell<Removals>,
    /// Where the cells of the plan stand.
    cells: OnceCell<Cells>,
}

impl<'a> Explainer<'a> {
    /// For a plan and where its cells stand. Records are read when they are first needed.
    pub fn new(plan: &'a Plan, store: &'a Store, survey: &'a Survey<'a>) -> Self {
        Self {
            plan,
            store,
            survey,
            past: OnceCell::new(),
            remembered: OnceCell::new(),
            checkpoints: OnceCell::new(),
            cut_short: OnceCell::new(),
            claimed: OnceCell::new(),
            removals: OnceCell::new(),
            cells: OnceCell::new(),
        }
    }

    fn past(&self) -> Result<&Past, StoreError> {
        if let Some(past) = self.past.get() {
            return Ok(past);
        }
        let past = Past::new(History::read(self.store.layout())?);
        Ok(self.past.get_or_init(|| past))
    }

    /// Runs whose records cannot be understood, of those that were read so far.
    pub fn flawed(&self) -> &[FlawedRun] {
        self.past.get().map_or(&[], |past| &past.history.flawed)
    }

    /// Why a cell that has to be executed is, in a phrase; `None` where it has not, or where that is not known yet.
    pub fn brief(&self, cell: CellIndex) -> Result<Option<String>, StoreError> {
        let Standing::Due { key, reason } = &self.survey.standings[cell] else {
            return Ok(None);
        };
        let told = match due(reason) {
            Some(Reason::Forced) if self.store.layout().result(key).is_file() => "forced".to_owned(),
            Some(Reason::Forced) => format!("{}; forced", self.brief_change(cell, *key)?),
            Some(Reason::Missing(object)) => {
                let discarded = self.discarded(key, Some(&object))?;
                format!(
                    "its artifact {} is missing from the store{}",
                    object.short(),
                    discarded.map_or_else(String::new, |time| format!(": {}", discarded_on(time)))
                )
            }
            Some(Reason::Damaged(object)) => format!("its artifact {} is damaged", object.short()),
            Some(_) => "its result in the store cannot be read".to_owned(),
            None => self.brief_change(cell, *key)?,
        };
        Ok(Some(match self.executor(key)? {
            Some(executor) => format!("{told}; {executor}"),
            None => told,
        }))
    }

    /// Who executes an action now.
    fn executor(&self, key: &ActionKey) -> Result<Option<String>, StoreError> {
        let owner = self.claimed()?.get(key);
        Ok(owner.map(|owner| format!("process {} on {} executes it", owner.pid, owner.host)))
    }

    fn claimed(&self) -> Result<&BTreeMap<ActionKey, Owner>, StoreError> {
        if let Some(claimed) = self.claimed.get() {
            return Ok(claimed);
        }
        let claimed = standing(self.store.layout())?.into_iter().collect();
        Ok(self.claimed.get_or_init(|| claimed))
    }

    /// When a collection removed the result of an action, the last time before `before`.
    fn last_collected(
        &self,
        key: &ActionKey,
        before: Option<Timestamp>,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(last(self.removals()?.collected.get(key), before))
    }

    fn removals(&self) -> Result<&Removals, StoreError> {
        if let Some(known) = self.removals.get() {
            return Ok(known);
        }
        let read = RunStore::new(self.store.layout()).removals()?;
        Ok(self.removals.get_or_init(|| read))
    }

    /// When a verification took out the result of an action, or an object of it, the last time before `before`.
    fn last_discarded(
        &self,
        key: &ActionKey,
        object: Option<&Digest>,
        before: Option<Timestamp>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let removals = self.removals()?;
        Ok(match object {
            Some(object) => last(removals.objects.get(object), before),
            None => last(removals.results.get(key), before),
        })
    }

    /// When a verification took out what an action lacks: after the last run that had it.
    fn discarded(&self, key: &ActionKey, object: Option<&Digest>) -> Result<Option<Timestamp>, StoreError> {
        match self.last_discarded(key, object, None)? {
            Some(time) => self.since_last_use(key, time),
            None => Ok(None),
        }
    }

    /// When a collection removed the result of an action that has none: after the last run that had it.
    fn collected(&self, key: &ActionKey) -> Result<Option<Timestamp>, StoreError> {
        match self.last_collected(key, None)? {
            Some(time) => self.since_last_use(key, time),
            None => Ok(None),
        }
    }

    /// A time, where no run had the result of an action since.
    fn since_last_use(&self, key: &ActionKey, time: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let used = self.past()?.history.last_use(key).and_then(PastRun::started);
        Ok(Some(time).filter(|time| used.is_none_or(|used| *time > used)))
    }

    /// What action a cell was when a run last had it.
    fn last_action(&self, cell: &str) -> Result<Option<ActionKey>, StoreError> {
        let remembered = self.remembered.get_or_init(|| {
            let known = self.store.last_actions(self.plan.manifest.as_str());
            known.unwrap_or_default()
        });
        if !remembered.is_empty() {
            return Ok(remembered.get(cell).copied());
        }
        // The index may have been lost; the records were not.
        let uses = self.past()?.uses(&self.plan.manifest, cell, None);
        Ok(uses.first().map(|found| found.key))
    }

    fn checkpoints(&self) -> Result<&BTreeMap<ActionKey, u64>, StoreError> {
        if let Some(known) = self.checkpoints.get() {
            return Ok(known);
        }
        let partials = partials(self.store.layout())?.into_iter();
        let known = partials
            .filter(|partial| partial.size > 0)
            .map(|partial| (partial.key, partial.size))
            .collect();
        Ok(self.checkpoints.get_or_init(|| known))
    }

    /// What became of earlier attempts at an action that has no result.
    fn attempt(&self, key: &ActionKey) -> Result<Option<Attempt>, StoreError> {
        let checkpoint = self.checkpoints()?.get(key).copied();
        // What is under way is no earlier attempt.
        if self.claimed()?.contains_key(key) {
            return Ok(None);
        }
        let mut cut_short_in = self.cut_short()?.get(key).cloned();
        let mut failure = self.past()?.history.last_failure(key);
        // The last of both is told.
        if let (Some(cut), Some((failed, _))) = (&cut_short_in, failure) {
            if *cut > failed.stored.id {
                failure = None;
            } else {
                cut_short_in = None;
            }
        }
        if failure.is_none() && cut_short_in.is_none() && checkpoint.is_none() {
            return Ok(None);
        }
        Ok(Some(Attempt {
            failed_in: failure.map(|(run, _)| run.stored.id.clone()),
            message: failure.map(|(_, failed)| failed.message.clone()),
            tried: failure.and_then(|(_, failed)| failed.attempt),
            cut_short_in,
            checkpoint,
        }))
    }

    fn cut_short(&self) -> Result<&BTreeMap<ActionKey, RunId>, StoreError> {
        if let Some(known) = self.cut_short.get() {
            return Ok(known);
        }
        let found = self.past()?.history.cut_short();
        Ok(self.cut_short.get_or_init(|| found))
    }

    fn brief_change(&self, cell: CellIndex, key: ActionKey) -> Result<String, StoreError> {
        let name = self.plan.name(cell);
        let collected = self.collected(&key)?;
        let removed = match (self.discarded(&key, None)?, collected) {
            (Some(time), _) => Some(discarded_on(time)),
            (None, Some(time)) => Some(format!("`provenir gc` removed it on {}", moment(time))),
            (None, None) => None,
        };
        let gone = removed.map(|removed| format!("its result is no longer in the store: {removed}"));
        let Some(last) = self.last_action(&name)? else {
            if let Some(told) = gone {
                return Ok(told);
            }
            if self.past()?.history.last_use(&key).is_some() {
                return Ok(RESULT_GONE.to_owned());
            }
            if let Some(attempt) = self.attempt(&key)? {
                return Ok(attempt.to_string());
            }
            let failed = self.past()?.last_failure(&self.plan.manifest, &name, None);
            let Some((failed, old)) = failed else {
                return Ok(match self.brief_nearest(cell)? {
                    Some(nearest) => format!("never run; {nearest}"),
                    None => "never run".to_owned(),
                });
            };
            let run = &failed.run.stored.id;
            let found =
                self.differences(&Side::of(old, None), &self.side(&self.survey.action(cell)?, cell))?;
            return Ok(format!("failed in run {run}; since then {}", briefly(&found)));
        };
        if last == key {
            return Ok(gone.unwrap_or_else(|| RESULT_GONE.to_owned()));
        }
        let Some((old, place)) = self.recorded(&name, &last)? else {
            return Ok("changed since it last ran, of which no record says what it was".to_owned());
        };
        let new = self.survey.action(cell)?;
        let found = self.differences(&Side::of(&old, place), &self.side(&new, cell))?;
        let mut told = vec![briefly(&found)];
        told.extend(collected.map(|time| {
            format!(
                "`provenir gc` removed an earlier result of the same on {}",
                moment(time)
            )
        }));
        Ok(told.join("; "))
    }

    /// What is nearest to a cell that no run had, where few cells of its stage are so: many are a grid that grew.
    fn brief_nearest(&self, cell: CellIndex) -> Result<Option<String>, StoreError> {
        const FEW: usize = 3;
        let (past, name) = (self.past()?, self.plan.name(cell));
        let cells = self.plan.stage_of(cell).cells.clone();
        let due = cells.filter(|cell| matches!(self.survey.standings[*cell], Standing::Due { .. }));
        if past.history.runs.is_empty() || due.count() > FEW {
            return Ok(None);
        }
        let action = self.survey.action(cell)?;
        let nearest = past.nearest(self.store, &self.plan.manifest, &name, &action, None)?;
        let Some((found, old)) = nearest else {
            return Ok(None);
        };
        let differing = self.differences(&Side::of(&old, found.place()), &self.side(&action, cell))?;
        let whose = match found.run.manifest() {
            Some(manifest) if manifest != self.plan.manifest => {
                format!(" of {}", manifest.file_name().unwrap_or_default())
            }
            _ => String::new(),
        };
        Ok(Some(format!(
            "nearest is {}{whose}: {}",
            found.cell,
            briefly(&differing)
        )))
    }

    /// What a cell of the plan was, and where it stood, when a run last had it as an action.
    fn recorded(
        &self,
        name: &str,
        last: &ActionKey,
    ) -> Result<Option<(Action, Option<Place<'_>>)>, StoreError> {
        let old = match action_of_result(self.store, last)? {
            Some(old) => Some(old),
            None => self.past()?.action(self.store, last)?,
        };
        let Some(old) = old else {
            return Ok(None);
        };
        // Where the cell stood matters for source files alone; without any, no record is read.
        let place = if old.sources.is_empty() {
            None
        } else {
            self.past()?.place(&self.plan.manifest, name, last)
        };
        Ok(Some((old, place)))
    }

    /// What changed already, in a phrase, of a cell that waits for others; `None` where nothing did, or nothing is recorded.
    pub fn own_change(&self, cell: CellIndex) -> Result<Option<String>, StoreError> {
        let Standing::Unknown { .. } = self.survey.standings[cell] else {
            return Ok(None);
        };
        let name = self.plan.name(cell);
        let Some(last) = self.last_action(&name)? else {
            return Ok(None);
        };
        let Some((old, place)) = self.recorded(&name, &last)? else {
            return Ok(None);
        };
        let found = self.as_far_as_known(cell, old, place, |old, new| self.differences(old, new))?;
        Ok((!found.is_empty()).then(|| briefly(&found)))
    }

    /// Why a cell runs, or, where its result is there, why it ran when it was computed.
    pub fn explain(&self, cell: CellIndex) -> Result<Why, StoreError> {
        match &self.survey.standings[cell] {
            Standing::Cached(result) => self.computed(cell, result.key()),
            Standing::Due { key, reason } => self.due(cell, *key, reason),
            Standing::Unknown { .. } => self.waiting(cell),
        }
    }

    fn due(&self, cell: CellIndex, key: ActionKey, reason: &Due) -> Result<Why, StoreError> {
        let name = self.plan.name(cell);
        let past = self.past()?;
        if let Some(reason) = due(reason) {
            let computed = past.history.kept(&key).next();
            let discarded = match &reason {
                Reason::Missing(object) => self.discarded(&key, Some(object))?,
                _ => None,
            };
            return Ok(Why {
                discarded,
                computed: computed.map(|(run, executed)| Moment::at(run, executed)),
                ..Why::bare(name, Some(key), reason)
            });
        }
        let new = self.survey.action(cell)?;
        let earlier = past.uses(&self.plan.manifest, &name, None);
        Ok(Why {
            attempt: self.attempt(&key)?,
            executor: self.executor(&key)?,
            collected: self.collected(&key)?,
            discarded: self.discarded(&key, None)?,
            ..self.since(
                name,
                key,
                &self.side(&new, cell),
                (earlier.first().copied(), None),
            )?
        })
    }

    /// Compares with an earlier use of the cell, or with the nearest action of the kind; of that only with those of runs before
    /// one, where it is given.
    fn since(
        &self,
        name: String,
        key: ActionKey,
        new: &Side<'_>,
        (earlier, before): (Option<Use<'_>>, Option<&PastRun>),
    ) -> Result<Why, StoreError> {
        let past = self.past()?;
        if let Some(found) = earlier {
            let since = Some(Moment::of(found));
            if found.key == key {
                return Ok(Why {
                    since,
                    ..Why::bare(name, Some(key), Reason::ResultGone)
                });
            }
            return Ok(match past.action(self.store, &found.key)? {
                None => Why {
                    since,
                    ..Why::bare(name, Some(key), Reason::Unrecorded)
                },
                Some(old) => Why {
                    since,
                    changes: self.all_changes(&Side::of(&old, found.place()), new)?,
                    ..Why::bare(name, Some(key), Reason::Changed)
                },
            });
        }
        if let Some(found) = past.use_of(&key, before) {
            return Ok(Why {
                since: Some(Moment::of(found)),
                ..Why::bare(name, Some(key), Reason::ResultGone)
            });
        }
        if let Some((failed, old)) = past.last_failure(&self.plan.manifest, &name, before)
            && failed.key != key
        {
            return Ok(Why {
                since: Some(Moment::of(failed)),
                failed: true,
                changes: self.all_changes(&Side::of(old, None), new)?,
                ..Why::bare(name, Some(key), Reason::Changed)
            });
        }
        let nearest = past.nearest(self.store, &self.plan.manifest, &name, new.action, before)?;
        Ok(match nearest {
            None => Why::bare(name, Some(key), Reason::NeverRun),
            Some((found, old)) => Why {
                since: Some(Moment::of(found)),
                changes: self.all_changes(&Side::of(&old, found.place()), new)?,
                ..Why::bare(name, Some(key), Reason::New)
            },
        })
    }

    /// Why a cell whose result is there was executed.
    fn computed(&self, cell: CellIndex, key: ActionKey) -> Result<Why, StoreError> {
        let name = self.plan.name(cell);
        let past = self.past()?;
        let Some((run, executed)) = past.history.kept(&key).next() else {
            return Ok(Why {
                up_to_date: true,
                seconds: Second::of(self.store, &past.history, &key)?,
                ..Why::bare(name, Some(key), Reason::UpToDate)
            });
        };
        let computed = Some(Moment::at(run, executed));
        let manifest = run.manifest().unwrap_or(&self.plan.manifest);
        // Of several cells that were this action there, the one that is asked for.
        let as_cell = match run.cells.find(&name, &key) {
            Some(_) => name.as_str(),
            None => executed.cell.as_str(),
        };
        let then = Use {
            run,
            cell: as_cell,
            key,
        };
        let earlier = past.uses(manifest, as_cell, Some(run));
        let flaw = executed.reason.as_ref().and_then(due);
        let mut why = match (past.action(self.store, &key)?, earlier.first()) {
            // What was wrong with its result is the reason, whatever the cell was in between.
            _ if flaw.as_ref().is_some_and(|flaw| *flaw != Reason::Forced) => Why {
                since: earlier
                    .iter()
                    .find(|found| found.key == key)
                    .copied()
                    .map(Moment::of),
                ..Why::bare(name, Some(key), Reason::Repeated)
            },
            (None, _) => Why::bare(name, Some(key), Reason::Unrecorded),
            (Some(new), found) => {
                let new = Side::of(&new, then.place());
                self.since(name.clone(), key, &new, (found.copied(), Some(run)))?
            }
        };
        // A collection before an earlier run of the same explains nothing of this one.
        let since = why.since.as_ref().and_then(|moment| moment.time);
        let collected = self.last_collected(&key, Some(executed.started))?;
        why.collected = collected.filter(|time| since.is_none_or(|since| *time > since));
        let lacking = match &flaw {
            Some(Reason::Missing(object)) => Some(object),
            _ => None,
        };
        let discarded = self.last_discarded(&key, lacking, Some(executed.started))?;
        why.discarded = discarded.filter(|time| since.is_none_or(|since| *time > since));
        why.computed = computed;
        why.up_to_date = true;
        why.seconds = Second::of(self.store, &past.history, &key)?;
        if matches!(why.reason, Reason::ResultGone | Reason::Repeated) {
            why.reason = match (flaw, &executed.reason) {
                (Some(flaw), _) => flaw,
                (None, Some(_)) => Reason::ResultGone,
                (None, None) => Reason::Repeated,
            };
        }
        Ok(why)
    }

    /// A cell whose key is not known yet: what of it differs already, and why the cells run that it waits for.
    fn waiting(&self, cell: CellIndex) -> Result<Why, StoreError> {
        let name = self.plan.name(cell);
        let past = self.past()?;
        let mut why = Why::bare(name.clone(), None, Reason::Waits);
        if let Some(found) = past.uses(&self.plan.manifest, &name, None).first()
            && let Some(old) = past.action(self.store, &found.key)?
        {
            why.since = Some(Moment::of(*found));
            why.changes =
                self.as_far_as_known(cell, old, found.place(), |old, new| self.all_changes(old, new))?;
        }
        for root in self.roots(cell) {
            if let Standing::Due { key, reason } = &self.survey.standings[root] {
                why.waits.push(self.due(root, *key, reason)?);
            }
        }
        Ok(why)
    }

    /// The inputs of a cell whose producers have to run first.
    fn unknown_inputs(&self, cell: CellIndex) -> impl Iterator<Item = InputPlace> {
        let inputs = self.plan.cells[cell].inputs.iter();
        let unknown = inputs.filter(|input| !self.is_cached(input.producer));
        unknown.map(|input| {
            let gathered = input.gathered.iter();
            let gathered = gathered.map(|(axis, label)| (axis.to_string(), label.clone()));
            (
                input.port.to_owned(),
                gathered.collect(),
                input.source.to_string(),
            )
        })
    }

    fn is_cached(&self, cell: CellIndex) -> bool {
        matches!(self.survey.standings[cell], Standing::Cached(_))
    }

    /// The action of a cell as far as it is known, with the positions of its inputs among all of the cell. Of inputs whose
    /// content is not known those are there that an old action did not have: that they come is known.
    fn expected(&self, cell: CellIndex, old: &Action) -> Result<(Action, BTreeSet<usize>), StoreError> {
        let mut action = self.survey.known(cell)?;
        let before: BTreeSet<_> = old.inputs.iter().map(place).collect();
        let mut known = std::mem::take(&mut action.inputs).into_iter();
        let mut unknown = self.unknown_inputs(cell);
        let mut there = BTreeSet::new();
        for (number, input) in self.plan.cells[cell].inputs.iter().enumerate() {
            if self.is_cached(input.producer) {
                action.inputs.extend(known.next());
                there.insert(number);
            } else if let Some(place) = unknown.next()
                && !before.contains(&place)
            {
                let (port, gathered, source) = place;
                action.inputs.push(ActionInput {
                    port,
                    gathered,
                    source,
                    content: Digest::of(b"not known yet"),
                });
                there.insert(number);
            }
        }
        Ok((action, there))
    }

    /// What of a cell that waits for others differs already from an old action of its own.
    pub(super) fn own_differences(
        &self,
        cell: CellIndex,
        old: Action,
    ) -> Result<Vec<Difference>, StoreError> {
        self.as_far_as_known(cell, old, None, |old, new| self.differences(old, new))
    }

    /// Compares an old action with what a cell that waits for others is to be, without the inputs of both of which nothing is
    /// known yet.
    fn as_far_as_known<T>(
        &self,
        cell: CellIndex,
        mut old: Action,
        old_place: Option<Place<'_>>,
        compare: impl FnOnce(&Side<'_>, &Side<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (new, there) = self.expected(cell, &old)?;
        let unknown: BTreeSet<_> = self.unknown_inputs(cell).collect();
        let inputs = old.inputs.iter().enumerate();
        let kept = inputs.filter(|(_, input)| !unknown.contains(&place(input)));
        let kept: BTreeSet<usize> = kept.map(|(number, _)| number).collect();
        old.inputs.retain(|input| !unknown.contains(&place(input)));
        compare(
            &Side::part(&old, old_place, |number| kept.contains(&number)),
            &Side::part(&new, Some(self.place(cell)), |number| there.contains(&number)),
        )
    }

    /// The cells upstream of one whose keys are known and that have to run, in the plan's order.
    fn roots(&self, cell: CellIndex) -> BTreeSet<CellIndex> {
        let mut roots = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![cell];
        while let Some(cell) = open.pop() {
            if !seen.insert(cell) {
                continue;
            }
            match &self.survey.standings[cell] {
                Standing::Cached(_) => {}
                Standing::Due { .. } => {
                    roots.insert(cell);
                }
                Standing::Unknown { .. } => {
                    open.extend(self.plan.cells[cell].inputs.iter().map(|input| input.producer));
                }
            }
        }
        roots
    }

    /// Where a cell of the plan stands.
    fn place(&self, position: CellIndex) -> Place<'_> {
        let cells = self.cells.get_or_init(|| planned::cells(self.plan, self.survey));
        Place { cells, position }
    }

    /// A cell of the plan, which is this action.
    pub(super) fn side<'s>(&'s self, action: &'s Action, cell: CellIndex) -> Side<'s> {
        Side::of(action, Some(self.place(cell)))
    }

    /// What differs between two actions.
    pub(super) fn differences(&self, old: &Side<'_>, new: &Side<'_>) -> Result<Vec<Difference>, StoreError> {
        let mut stages = self.plan.stages.iter();
        let kind = stages.find(|stage| stage.kind.name() == new.action.kind);
        let found = differences(old.action, new.action);
        let found = explained(found, kind.map(|stage| &*stage.kind), old.action, new.action);
        let is_source = |found: &Difference| matches!(found, Difference::Source { .. });
        if !found.iter().any(is_source) {
            return Ok(found);
        }
        Ok(named(found, &self.past()?.history, old, new))
    }

    fn all_changes(&self, old: &Side<'_>, new: &Side<'_>) -> Result<Vec<Change>, StoreError> {
        self.changes(old, new, 0, &mut Seen::new())
    }

    /// What differs between two actions, and where changed artifacts come from.
    fn changes(
        &self,
        old: &Side<'_>,
        new: &Side<'_>,
        depth: usize,
        seen: &mut Seen,
    ) -> Result<Vec<Change>, StoreError> {
        let mut changes = Vec::new();
        for difference in self.differences(old, new)? {
            let mut upstream = Vec::new();
            let mut more = 0;
            if let Difference::Input { port, .. } = &difference
                && depth < DEEPEST
            {
                for (before, now) in changed_inputs(old.action, new.action, port) {
                    let before = Taken::of(old, before);
                    let now = Taken::of(new, now);
                    if upstream.len() == FOLLOWED {
                        more += 1;
                    } else {
                        upstream.push(self.upstream(before, now, depth + 1, seen)?);
                    }
                }
            }
            let unfollowed = depth == DEEPEST && matches!(difference, Difference::Input { .. });
            changes.push(Change {
                difference,
                upstream,
                more,
                unfollowed,
            });
        }
        Ok(changes)
    }

    fn upstream(
        &self,
        old: Taken<'_>,
        new: Taken<'_>,
        depth: usize,
        seen: &mut Seen,
    ) -> Result<Upstream, StoreError> {
        let past = self.past()?;
        let (before, now) = if let (Some(before), Some(now)) = (old.maker(), new.maker()) {
            (Some(before), Some(now))
        } else {
            // Records that do not tell what was wired to what: what gave such values, and is alike, has to do.
            let (before, now) = past.makers(&old.content, &new.content);
            (before.map(Maker::executed), now.map(Maker::executed))
        };
        let mut upstream = Upstream {
            cell: now
                .as_ref()
                .or(before.as_ref())
                .map(|maker| maker.cell.to_owned()),
            was: match (&before, &now) {
                (Some(before), Some(now)) if before.cell != now.cell => Some(before.cell.to_owned()),
                _ => None,
            },
            old: old.content,
            new: new.content,
            changes: Vec::new(),
            same_action: None,
            again: None,
            rewired: matches!((&before, &now), (Some(before), Some(now)) if before.is_another_stage(now)),
            told_before: !seen.insert((old.id(), new.id())),
        };
        if upstream.told_before {
            return Ok(upstream);
        }
        if let (Some(before), Some(now)) = (before, now) {
            if before.key == now.key {
                let given = past.history.executions(&now.key).find_map(|(_, executed)| {
                    let mut outputs = executed.outputs.iter();
                    let given = outputs.find(|artifact| artifact.content == new.content)?;
                    Some((executed, given))
                });
                upstream.same_action = Some(match given {
                    Some((_, artifact)) if artifact.volatile => SameAction::Measured,
                    _ => SameAction::Diverged,
                });
                let cause = given.and_then(|(executed, _)| executed.reason.as_ref());
                upstream.again = cause.map(|cause| due(cause).unwrap_or(Reason::ResultGone));
            }
            let actions = (
                past.action(self.store, &before.key)?,
                past.action(self.store, &now.key)?,
            );
            if let (Some(old), Some(new)) = actions {
                let (old, new) = (Side::of(&old, before.place), Side::of(&new, now.place));
                upstream.changes = self.changes(&old, &new, depth, seen)?;
            }
        }
        Ok(upstream)
    }
}

/// Pairs of artifacts whose origin was told: of each the content, and the cell that it came from, by its position.
type Seen = BTreeSet<((Digest, Option<CellIndex>), (Digest, Option<CellIndex>))>;

/// An artifact that an action takes.
#[derive(Clone, Copy)]
struct Taken<'a> {
    content: Digest,
    origin: Option<Place<'a>>,
}

impl<'a> Taken<'a> {
    fn of(side: &Side<'a>, input: usize) -> Self {
        Self {
            content: side.input(input).content,
            origin: side.origin(input),
        }
    }

    fn id(self) -> (Digest, Option<CellIndex>) {
        (self.content, self.origin.map(|origin| origin.position))
    }

    fn maker(self) -> Option<Maker<'a>> {
        let place = self.origin?;
        Some(Maker {
            cell: place.name(),
            key: place.cells.get(place.position)?.key?,
            place: Some(place),
        })
    }
}

/// A cell that gave an artifact.
struct Maker<'a> {
    cell: &'a str,
    key: ActionKey,
    place: Option<Place<'a>>,
}

impl<'a> Maker<'a> {
    /// Whether another is of another stage, and not of the same by another name: of a stage that was renamed neither name is in
    /// the other's plan.
    fn is_another_stage(&self, other: &Self) -> bool {
        let (own, others) = (stage(self.cell), stage(other.cell));
        let has = |maker: &Self, stage| maker.place.is_none_or(|place| place.cells.has_stage(stage));
        own != others && (has(self, others) || has(other, own))
    }

    fn executed((run, executed): Made<'a>) -> Self {
        let made = Use {
            run,
            cell: &executed.cell,
            key: executed.key,
        };
        Self {
            cell: made.cell,
            key: made.key,
            place: made.place(),
        }
    }
}

/// Differences in a phrase.
fn briefly(found: &[Difference]) -> String {
    let mut told: Vec<String> = found.iter().take(BRIEF).map(ToString::to_string).collect();
    if found.len() > BRIEF {
        told.push(format!("{} more", found.len() - BRIEF));
    }
    told.join("; ")
}

/// The last of some times before `before`.
fn last(times: Option<&Vec<Timestamp>>, before: Option<Timestamp>) -> Option<Timestamp> {
    let times = times.into_iter().flatten().copied();
    times
        .filter(|time| before.is_none_or(|before| *time < before))
        .max()
}

/// The reason that the survey itself has; `None` where the key is another than before.
fn due(reason: &Due) -> Option<Reason> {
    Some(match reason {
        Due::Forced => Reason::Forced,
        Due::Miss(MissReason::Missing(object)) => Reason::Missing(*object),
        Due::Miss(MissReason::Damaged(object)) => Reason::Damaged(*object),
        Due::Miss(MissReason::Unreadable) => Reason::Unreadable,
        Due::Miss(MissReason::NoResult) => return None,
    })
}

/// Port, values of gathered axes, and source of an input.
type InputPlace = (String, BTreeMap<String, Label>, String);

fn place(input: &ActionInput) -> InputPlace {
    (input.port.clone(), input.gathered.clone(), input.source.clone())
}
