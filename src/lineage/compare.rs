use std::collections::{BTreeMap, BTreeSet, VecDeque};

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;
use serde_json::Value;

use super::absent::explained;
use super::earlier::Use;
use super::shortfall::{Shortfall, Shortfalls, Which};
use super::side::{Side, named};
use crate::exec::{Difference, differences, value_differences};
use crate::record::{History, PastRun, RunFile};
use crate::registry::Registry;
use crate::store::{ActionKey, Artifact, Store, StoreError};

/// What differs between two runs.
#[derive(Debug, Serialize)]
pub struct RunDifference {
    /// Values of the resolved manifests: axes, parameters, wiring.
    pub manifest: Vec<Difference>,
    /// Program, host, repository, numeric platform: name, before, after.
    pub environment: Vec<(String, Option<String>, Option<String>)>,
    /// Cells whose action or artifacts differ, by name, in the order of the plans.
    pub cells: IndexMap<String, CellDifference>,
    /// How many cells both had with the same artifacts, under whatever name.
    pub same: usize,
}

/// What differs of a cell between two runs.
#[derive(Debug, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum CellDifference {
    /// Only the first run had it.
    Removed {
        /// Why it failed there, where it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// Only the second run had it.
    Added {
        /// Why it failed there, where it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// One of the runs has no result of it, or none has of what was renamed.
    Unfinished {
        /// Which.
        run: Which,
        /// Why; of both runs, in the second.
        #[serde(flatten)]
        shortfall: Shortfall,
        /// What it was named in the first run, where that is the same action under another name.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<String>,
    },
    /// It is what another cell was in the first run, which the second does not have: the same action under another name.
    Renamed {
        /// What it was named in the first run.
        old: String,
    },
    /// Another action gave the same artifacts.
    Action {
        /// Before.
        old: ActionKey,
        /// After.
        new: ActionKey,
        /// What differs in it.
        differences: Vec<Difference>,
    },
    /// It gave something else.
    Artifacts {
        /// Before.
        old: ActionKey,
        /// After.
        new: ActionKey,
        /// What differs in its action; nothing where only what it took or gave does.
        differences: Vec<Difference>,
        /// Outputs with other values: before, after.
        outputs: Vec<(Artifact, Artifact)>,
    },
    /// What it gave is not known any more in one of the runs.
    Unknown {
        /// Before.
        old: ActionKey,
        /// After.
        new: ActionKey,
    },
}

impl RunDifference {
    /// Compares two runs of a store.
    pub fn of(
        store: &Store,
        history: &History,
        registry: &Registry,
        old: &PastRun,
        new: &PastRun,
    ) -> Result<Self, StoreError> {
        let resolved = |run: &PastRun| run.head.as_ref().map(|head| folded(&head.resolved));
        let manifest = match (resolved(old), resolved(new)) {
            (Some(old), Some(new)) => value_differences(&old, &new),
            _ => Vec::new(),
        };
        let results = |run: &PastRun| -> BTreeMap<String, ActionKey> {
            run.results().map(|(cell, key)| (cell.to_owned(), key)).collect()
        };
        let (before, after) = (results(old), results(new));
        let mut difference = Self {
            manifest,
            environment: environment(old, new),
            cells: IndexMap::new(),
            same: 0,
        };
        let shortfalls = (Shortfalls::of(old)?, Shortfalls::of(new)?);
        let known = (known(&before, &shortfalls.0), known(&after, &shortfalls.1));
        let names = renamed(&known.0, &known.1);
        let gone: BTreeSet<&str> = names.values().copied().collect();
        for name in names_of((old, &shortfalls.0), (new, &shortfalls.1)) {
            if gone.contains(name) {
                continue;
            }
            let earlier = names.get(name).copied();
            let renamed = earlier.map(ToOwned::to_owned);
            let earlier = earlier.unwrap_or(name);
            let without = (|| shortfalls.0.find(earlier), || shortfalls.1.find(name));
            let unfinished = |run, shortfall| CellDifference::Unfinished {
                run,
                shortfall,
                old: renamed.clone(),
            };
            let found = match (before.get(earlier), after.get(name), &renamed) {
                (Some(_), Some(_), Some(earlier)) => {
                    difference.same += 1;
                    CellDifference::Renamed { old: earlier.clone() }
                }
                (Some(old_key), Some(new_key), None) => {
                    let outputs = (
                        outputs(store, history, (old, name), old_key)?,
                        outputs(store, history, (new, name), new_key)?,
                    );
                    let used = |run, key: &ActionKey| Use {
                        run,
                        cell: name,
                        key: *key,
                    };
                    let uses = (used(old, old_key), used(new, new_key));
                    let Some(found) = compare(store, history, registry, uses, outputs)? else {
                        difference.same += 1;
                        continue;
                    };
                    found
                }
                (Some(_), None, _) => match without.1() {
                    Some(shortfall) => unfinished(Which::Second, shortfall),
                    None => CellDifference::Removed { failed: None },
                },
                (None, Some(_), _) => match without.0() {
                    Some(shortfall) => unfinished(Which::First, shortfall),
                    None => CellDifference::Added { failed: None },
                },
                (None, None, _) => match (without.0(), without.1()) {
                    (Some(_), Some(shortfall)) if renamed.is_some() => unfinished(Which::Both, shortfall),
                    (Some(Shortfall::Failed { message }), None) => CellDifference::Removed {
                        failed: Some(message),
                    },
                    (None, Some(Shortfall::Failed { message })) => CellDifference::Added {
                        failed: Some(message),
                    },
                    // Neither run has a result of it.
                    _ => continue,
                },
            };
            difference.cells.insert(name.to_owned(), found);
        }
        Ok(difference)
    }
}

/// The cells that a run has a result of, or that failed in it, with their actions.
fn known(results: &BTreeMap<String, ActionKey>, shortfalls: &Shortfalls<'_>) -> BTreeMap<String, ActionKey> {
    let failed = shortfalls.failed.iter();
    let failed = failed.map(|(cell, failed)| ((*cell).to_owned(), failed.key));
    results.clone().into_iter().chain(failed).collect()
}

/// The names of the cells of two runs, each once, in the order of the plans; where those that failed would stand there is
/// not recorded.
fn names_of<'a>(
    (old, before): (&'a PastRun, &Shortfalls<'a>),
    (new, after): (&'a PastRun, &Shortfalls<'a>),
) -> IndexSet<&'a str> {
    let mut names: IndexSet<&str> = merged(&old.order(), &new.order()).into_iter().collect();
    names.extend(before.failed.keys().chain(after.failed.keys()).copied());
    names
}

/// Cells that only the second run has and that are an action which a cell had that only the first run has: the name of that
/// one, by theirs. Of several cells that are one action, each is paired once, in the order of the names.
fn renamed<'a>(
    before: &'a BTreeMap<String, ActionKey>,
    after: &'a BTreeMap<String, ActionKey>,
) -> BTreeMap<&'a str, &'a str> {
    let mut gone: BTreeMap<ActionKey, VecDeque<&str>> = BTreeMap::new();
    for (name, key) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
        gone.entry(*key).or_default().push_back(name);
    }
    let come = after.iter().filter(|(name, _)| !before.contains_key(*name));
    come.filter_map(|(name, key)| Some((name.as_str(), gone.get_mut(key)?.pop_front()?)))
        .collect()
}

/// The names of two plans, each once, in the order of the second; what only the first has follows what it follows there.
fn merged<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<&'a str> {
    let places: BTreeMap<&str, usize> = new
        .iter()
        .enumerate()
        .map(|(place, name)| (*name, place + 1))
        .collect();
    let mut gone: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut after = 0;
    for name in old {
        match places.get(name) {
            Some(place) => after = *place,
            None => gone.entry(after).or_default().push(name),
        }
    }
    let mut names = gone.remove(&0).unwrap_or_default();
    for (name, place) in new.iter().zip(1..) {
        names.push(name);
        names.extend(gone.remove(&place).unwrap_or_default());
    }
    names
}

/// A resolved manifest with the overrides that hold everywhere, as the command line and profiles make them, folded into
/// the parameters that they replace.
fn folded(resolved: &Value) -> Value {
    let mut resolved = resolved.clone();
    let stages = resolved.get_mut("stages").and_then(Value::as_object_mut);
    for stage in stages.into_iter().flat_map(|stages| stages.values_mut()) {
        let Some(overrides) = stage.get("override").and_then(Value::as_array).cloned() else {
            continue;
        };
        let (everywhere, rest): (Vec<Value>, Vec<Value>) = overrides.into_iter().partition(|found| {
            found
                .get("where")
                .and_then(Value::as_object)
                .is_some_and(serde_json::Map::is_empty)
        });
        for found in everywhere {
            if let Some(params) = found.get("params") {
                lay(&mut stage["params"], params);
            }
        }
        match stage.as_object_mut() {
            Some(stage) if rest.is_empty() => {
                stage.remove("override");
            }
            _ => stage["override"] = Value::Array(rest),
        }
    }
    resolved
}

/// Lays a value over another: tables key by key.
fn lay(base: &mut Value, over: &Value) {
    let Value::Object(over) = over else {
        base.clone_from(over);
        return;
    };
    if !base.is_object() {
        *base = Value::Object(serde_json::Map::new());
    }
    for (name, value) in over {
        lay(&mut base[name.as_str()], value);
    }
}

fn compare(
    store: &Store,
    history: &History,
    registry: &Registry,
    (old_use, new_use): (Use<'_>, Use<'_>),
    outputs: (Option<Vec<Artifact>>, Option<Vec<Artifact>>),
) -> Result<Option<CellDifference>, StoreError> {
    let (old, new) = (old_use.key, new_use.key);
    let (Some(before), Some(after)) = outputs else {
        return Ok((old != new).then_some(CellDifference::Unknown { old, new }));
    };
    let differing: Vec<(Artifact, Artifact)> = before
        .into_iter()
        .filter_map(|before| {
            let after = after.iter().find(|after| after.port == before.port)?;
            (after.content != before.content).then(|| (before, after.clone()))
        })
        .collect();
    if differing.is_empty() && old == new {
        return Ok(None);
    }
    let differences = match (action(store, history, &old)?, action(store, history, &new)?) {
        (Some(old), Some(new)) => {
            let kind = registry.get(&new.kind).map(|kind| &**kind);
            let found = explained(differences(&old, &new), kind, &old, &new);
            let (old, new) = (Side::of(&old, old_use.place()), Side::of(&new, new_use.place()));
            named(found, history, &old, &new)
        }
        _ => Vec::new(),
    };
    if differing.is_empty() {
        return Ok(Some(CellDifference::Action {
            old,
            new,
            differences,
        }));
    }
    Ok(Some(CellDifference::Artifacts {
        old,
        new,
        differences,
        outputs: differing,
    }))
}

fn action(
    store: &Store,
    history: &History,
    key: &ActionKey,
) -> Result<Option<crate::store::Action>, StoreError> {
    let recorded = history
        .executions(key)
        .find_map(|(_, executed)| executed.action.clone());
    match recorded {
        Some(action) => Ok(Some(action)),
        None => super::earlier::action_of_result(store, key),
    }
}

/// What an action gave in a run: what that run recorded, or another, or the store has.
fn outputs(
    store: &Store,
    history: &History,
    (run, cell): (&PastRun, &str),
    key: &ActionKey,
) -> Result<Option<Vec<Artifact>>, StoreError> {
    // What was kept beside the result that counts is what that very cell gave, and no other had.
    let mut executed = run.executed.iter().filter(|executed| executed.key == *key);
    let own = executed.find(|executed| executed.cell == cell);
    let counted = || history.counted(key, &run.stored.id).map(|(_, executed)| executed);
    if let Some(executed) = own.or_else(counted) {
        return Ok(Some(executed.outputs.clone()));
    }
    match store.result(key) {
        Ok(result) => Ok(result.map(|result| result.outputs)),
        Err(StoreError::Malformed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn environment(old: &PastRun, new: &PastRun) -> Vec<(String, Option<String>, Option<String>)> {
    let (mut before, mut after) = (described(old), described(new));
    // A run that executed nothing had no numeric platform, which is no difference.
    if !old.executed.is_empty() && !new.executed.is_empty() {
        before.extend(platforms(old));
        after.extend(platforms(new));
    }
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name));
    differing
        .map(|name| (name.clone(), before.get(name).cloned(), after.get(name).cloned()))
        .collect()
}

/// A run's environment by name, without the numeric platform.
fn described(run: &PastRun) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if let Some(RunFile {
        manifest,
        command,
        program,
        host,
        git,
        ..
    }) = &run.head
    {
        // The program may have been called by another path.
        let arguments = command.iter().skip(1).cloned().collect::<Vec<_>>().join(" ");
        for (name, value) in [
            ("arguments", arguments),
            ("host", host.name.clone()),
            ("host architecture", host.architecture.clone()),
            ("host cores", host.cores.to_string()),
            ("host memory (MiB)", host.memory.to_string()),
            ("host system", host.system.clone()),
            ("manifest", manifest.to_string()),
            ("program build", program.build.clone()),
            ("program version", program.version.clone()),
        ] {
            found.insert(name.to_owned(), value);
        }
        if let Some(git) = git {
            found.insert("git".to_owned(), git.to_string());
        }
    }
    found
}

/// The numeric platform of what a run executed, by name.
fn platforms(run: &PastRun) -> BTreeMap<String, String> {
    let platforms = run.executed.iter().flat_map(|executed| &executed.platform);
    platforms
        .map(|(name, value)| (format!("platform {name}"), value.clone()))
        .collect()
}

/// A value, or that there is none.
pub fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_one_plan_has_stays_where_it_was() {
        assert_eq!(
            merged(&["z", "a", "b", "x", "c", "y"], &["a", "n", "b", "c"]),
            ["z", "a", "n", "b", "x", "c", "y"]
        );
        assert_eq!(merged(&[], &["b", "a"]), ["b", "a"]);
        assert_eq!(merged(&["b", "a"], &[]), ["b", "a"]);
    }

    #[test]
    fn what_holds_everywhere_is_shown_as_a_parameter() {
        let resolved = json!({ "stages": {
            "plain": { "kind": "noop" },
            "set": {
                "params": { "value": 1, "deep": { "a": 1, "b": 2 } },
                "override": [
                    { "where": { "a": 1 }, "params": { "value": 5 } },
                    { "where": {}, "params": { "value": 2, "deep": { "a": 3 } } },
                ],
            },
            "new": { "override": [{ "where": {}, "params": { "value": 2 } }] },
        } });
        assert_eq!(
            folded(&resolved),
            json!({ "stages": {
                "plain": { "kind": "noop" },
                "set": {
                    "params": { "value": 2, "deep": { "a": 3, "b": 2 } },
                    "override": [{ "where": { "a": 1 }, "params": { "value": 5 } }],
                },
                "new": { "params": { "value": 2 } },
            } })
        );
    }
}
