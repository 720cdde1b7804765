use std::collections::{BTreeMap, BTreeSet};

use crate::store::ActionKey;

/// Actions in an order in which each comes after those that it takes from; by name among those that may come next.
///
/// Two actions that only give on what they took may each be told as the other's origin, where nothing is known of the true
/// one: such a circle is cut at its first member by name.
pub(super) fn ordered(
    names: &BTreeMap<ActionKey, String>,
    takes: &BTreeMap<ActionKey, BTreeSet<ActionKey>>,
) -> Vec<ActionKey> {
    let mut waits: BTreeMap<ActionKey, usize> = BTreeMap::new();
    let mut feeds: BTreeMap<ActionKey, Vec<ActionKey>> = BTreeMap::new();
    let mut ready = BTreeSet::new();
    let mut open = BTreeSet::new();
    for (key, name) in names {
        let producers = takes.get(key).into_iter().flatten();
        let producers: Vec<&ActionKey> = producers
            .filter(|producer| names.contains_key(producer))
            .collect();
        for producer in &producers {
            feeds.entry(**producer).or_default().push(*key);
        }
        waits.insert(*key, producers.len());
        let place = (name.as_str(), *key);
        if producers.is_empty() {
            ready.insert(place);
        } else {
            open.insert(place);
        }
    }
    let mut order = Vec::with_capacity(names.len());
    while let Some(next) = ready.pop_first().or_else(|| open.pop_first()) {
        order.push(next.1);
        for consumer in feeds.remove(&next.1).unwrap_or_default() {
            let Some(count) = waits.get_mut(&consumer) else {
                continue;
            };
            *count -= 1;
            let place = (names[&consumer].as_str(), consumer);
            if *count == 0 && open.remove(&place) {
                ready.insert(place);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use provenir_api::Digest;

    fn key(name: &str) -> ActionKey {
        Digest::of(name.as_bytes()).hex().parse().unwrap()
    }

    fn order(wires: &[(&str, &str)]) -> Vec<String> {
        let mut names = BTreeMap::new();
        let mut takes: BTreeMap<ActionKey, BTreeSet<ActionKey>> = BTreeMap::new();
        for (producer, consumer) in wires {
            names.insert(key(producer), (*producer).to_owned());
            names.insert(key(consumer), (*consumer).to_owned());
            takes.entry(key(consumer)).or_default().insert(key(producer));
        }
        let order = ordered(&names, &takes);
        order.iter().map(|key| names[key].clone()).collect()
    }

    #[test]
    fn producers_come_first_and_names_decide_the_rest() {
        assert_eq!(order(&[("z", "a"), ("c", "a"), ("b", "z")]), ["b", "c", "z", "a"]);
    }

    #[test]
    fn circles_are_cut_and_nothing_is_lost() {
        assert_eq!(
            order(&[("b", "c"), ("c", "b"), ("c", "d"), ("a", "d")]),
            ["a", "b", "c", "d"]
        );
        assert_eq!(order(&[("x", "x")]), ["x"]);
    }
}
