//! Artifacts that arrive at a port: which changed, which came, and which are gone.

use std::collections::{BTreeMap, BTreeSet};

use provenir_api::{Digest, Label};

use super::Difference;
use crate::store::{Action, ActionInput};

/// Artifacts at a port, by gathered labels and source.
type Port<'a> = BTreeMap<(&'a BTreeMap<String, Label>, &'a str), Digest>;

fn by_port(inputs: &[ActionInput]) -> BTreeMap<&str, Port<'_>> {
    let mut ports: BTreeMap<&str, Port<'_>> = BTreeMap::new();
    for input in inputs {
        let place = (&input.gathered, input.source.as_str());
        ports.entry(&input.port).or_default().insert(place, input.content);
    }
    ports
}

/// The artifacts at a port that have the same labels and source in both actions and another content: their positions among
/// the inputs of each, by labels and source.
pub(crate) fn changed_inputs(old: &Action, new: &Action, port: &str) -> Vec<(usize, usize)> {
    let places = |action: &'_ Action| -> BTreeMap<(BTreeMap<String, Label>, String), usize> {
        let inputs = action.inputs.iter().enumerate();
        inputs
            .filter(|(_, input)| input.port == port)
            .map(|(number, input)| ((input.gathered.clone(), input.source.clone()), number))
            .collect()
    };
    let before = places(old);
    let pairs = places(new)
        .into_iter()
        .filter_map(|(place, now)| Some((*before.get(&place)?, now)));
    pairs
        .filter(|(before, now)| old.inputs[*before].content != new.inputs[*now].content)
        .collect()
}

/// Adds what differs between the artifacts that arrive at ports.
pub(super) fn compare_inputs(old: &[ActionInput], new: &[ActionInput], found: &mut Vec<Difference>) {
    let (old, new) = (by_port(old), by_port(new));
    let ports: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    for port in ports {
        let mut old = old.get(port).cloned().unwrap_or_default();
        let new = &new.get(port).cloned().unwrap_or_default();
        let takes_one = is_single(&old) && is_single(new);
        let renamed = rename(&mut old, new);
        let old = &old;
        let added = new.keys().filter(|place| !old.contains_key(*place)).count();
        let removed = old.keys().filter(|place| !new.contains_key(*place)).count();
        let changed = new
            .iter()
            .filter(|(place, content)| old.get(*place).is_some_and(|old| old != *content))
            .count();
        if added + removed + changed > 0 || !renamed.is_empty() {
            found.push(Difference::Input {
                port: port.to_owned(),
                changed,
                added,
                removed,
                gained: if takes_one { Vec::new() } else { terms(new, old) },
                lost: if takes_one { Vec::new() } else { terms(old, new) },
                renamed,
            });
        }
    }
}

/// Whether a port takes one artifact, as far as its artifacts tell.
fn is_single(port: &Port<'_>) -> bool {
    port.keys().all(|(labels, _)| labels.is_empty()) && port.len() < 2
}

/// Gives what is the same but for the name by which the consumer knows it (that of a member of a union is its own only as long
/// as there are others) the name that it has now: the names before and now.
fn rename<'a>(old: &mut Port<'a>, new: &Port<'a>) -> Vec<(String, String)> {
    let sources = |port: &Port<'a>| -> BTreeSet<&'a str> { port.keys().map(|(_, source)| *source).collect() };
    let (before, after) = (sources(old), sources(new));
    let mut renamed = BTreeSet::new();
    let gone: Vec<_> = old
        .keys()
        .copied()
        .filter(|place| !new.contains_key(place))
        .collect();
    for place @ (labels, source) in gone {
        let content = old[&place];
        let same = |(now, found): &(&(&BTreeMap<String, Label>, &str), &Digest)| {
            now.0 == labels && **found == content && !old.contains_key(*now)
        };
        let Some((now, _)) = new.iter().find(same) else {
            continue;
        };
        let now = *now;
        renamed.insert((source, now.1));
        old.remove(&place);
        old.insert(now, content);
    }
    // What else that member gave has its new name, too, and is compared with what it gives by that.
    for (was, now) in &renamed {
        if after.contains(was) || before.contains(now) {
            continue;
        }
        let others: Vec<_> = old
            .keys()
            .copied()
            .filter(|(_, source)| source == was)
            .filter_map(|place| {
                let mut counterparts = new.keys().copied();
                Some((
                    place,
                    counterparts.find(|found| found.0 == place.0 && found.1 == *now)?,
                ))
            })
            .collect();
        for (place, counterpart) in others {
            if let Some(content) = old.remove(&place) {
                old.insert(counterpart, content);
            }
        }
    }
    let names = renamed.into_iter();
    names.map(|(was, now)| (was.to_owned(), now.to_owned())).collect()
}

/// What tells the artifacts of one side that the other does not have: values of one axis where those say it all, or else
/// members of the union, or else the labels of each.
fn terms(own: &Port<'_>, other: &Port<'_>) -> Vec<String> {
    type Place<'a> = (&'a BTreeMap<String, Label>, &'a str);
    let alone: BTreeSet<&Place<'_>> = own.keys().filter(|place| !other.contains_key(*place)).collect();
    let axes: BTreeSet<&String> = alone.iter().flat_map(|(labels, _)| labels.keys()).collect();
    let by_axis = axes.into_iter().filter_map(|axis| {
        let values = |port: &Port<'_>| -> BTreeSet<Label> {
            port.keys()
                .filter_map(|(labels, _)| labels.get(axis).cloned())
                .collect()
        };
        let values: BTreeSet<Label> = values(own).difference(&values(other)).cloned().collect();
        let tells = own.keys().all(|place| {
            let is_told = place.0.get(axis).is_some_and(|value| values.contains(value));
            is_told == alone.contains(place)
        });
        tells.then(|| {
            values
                .iter()
                .map(|value| format!("{axis}={value}"))
                .collect::<Vec<_>>()
        })
    });
    if let Some(terms) = by_axis.min_by_key(Vec::len) {
        return terms;
    }
    let sources = |port: &Port<'_>| -> BTreeSet<String> {
        port.keys().map(|(_, source)| (*source).to_owned()).collect()
    };
    let (members, others) = (sources(own), sources(other));
    let gone: Vec<String> = members.difference(&others).cloned().collect();
    if own
        .keys()
        .all(|place| gone.iter().any(|source| source == place.1) == alone.contains(place))
    {
        return gone;
    }
    let is_union = members.union(&others).count() > 1;
    alone
        .into_iter()
        .map(|(labels, source)| {
            let labels: Vec<String> = labels
                .iter()
                .map(|(axis, value)| format!("{axis}={value}"))
                .collect();
            match (labels.is_empty(), is_union) {
                (true, _) => (*source).to_owned(),
                (false, true) => format!("{source}[{}]", labels.join(", ")),
                (false, false) => format!("[{}]", labels.join(", ")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(old: &[ActionInput], new: &[ActionInput]) -> Vec<String> {
        let mut found = Vec::new();
        compare_inputs(old, new, &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_member_by_another_name_is_compared_with_itself() {
        let input = |source: &str, seed: i64, content: &[u8]| ActionInput {
            port: "many".into(),
            gathered: BTreeMap::from([("seed".to_owned(), Label::Integer(seed))]),
            source: source.into(),
            content: Digest::of(content),
        };
        let old = [input("many", 1, b"a"), input("many", 2, b"b")];
        let new = [
            input("mid", 1, b"a"),
            input("mid", 2, b"other"),
            input("src", 1, b"c"),
        ];
        assert_eq!(
            told(&old, &new),
            ["input many changed (1 artifact), also collects src, many is called mid now"]
        );
    }

    #[test]
    fn what_is_collected_no_more_is_told_by_axis_or_member_or_each() {
        let place = |source: &str, labels: &[(&str, i64)]| ActionInput {
            port: "many".into(),
            gathered: labels
                .iter()
                .map(|(axis, value)| ((*axis).to_owned(), Label::Integer(*value)))
                .collect(),
            source: source.into(),
            content: Digest::of(b"x"),
        };
        let grid = |seeds: &[i64], sizes: &[i64], source: &str| -> Vec<ActionInput> {
            let places = seeds
                .iter()
                .flat_map(|seed| sizes.iter().map(move |size| (seed, size)));
            places
                .map(|(seed, size)| place(source, &[("seed", *seed), ("size", *size)]))
                .collect()
        };
        let full = grid(&[1, 2, 3], &[10, 20], "many");
        assert_eq!(
            told(&full, &grid(&[1, 2], &[10, 20], "many")),
            ["input many no longer collects seed=3"]
        );
        assert_eq!(
            told(&grid(&[1, 2, 3], &[20], "many"), &full),
            ["input many also collects size=10"]
        );
        let mut holed = grid(&[1, 2, 3], &[10, 20], "many");
        holed.remove(2);
        assert_eq!(
            told(&full, &holed),
            ["input many no longer collects [seed=2, size=10]"]
        );
        let union = |sources: &[&str]| -> Vec<ActionInput> {
            let members = sources.iter();
            members.flat_map(|source| grid(&[1, 2], &[10], source)).collect()
        };
        assert_eq!(
            told(&union(&["left", "right"]), &union(&["left"])),
            ["input many no longer collects right"]
        );
        assert_eq!(told(&[place("many", &[])], &[]), ["input many removed"]);
        let many: Vec<i64> = (1..=9).collect();
        assert_eq!(
            told(&grid(&many, &[10], "many"), &grid(&[9], &[10], "many")),
            ["input many no longer collects seed=1, seed=2, seed=3, seed=4, seed=5, seed=6 and 2 more"]
        );
    }
}
