//! Manifests written from the grammar: what is right expands to the same cells whatever the order in which it is written, and
//! what is recorded of it expands to them once more.

#![no_main]

use std::collections::BTreeSet;

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use provenir::manifest::Overrides;
use provenir_fuzz::manifests::{Request, check, told};
use provenir_fuzz::{grammar, harness, seeds};

fuzz_target!(
    init: harness::begin(seeds::choices),
    |data: &[u8]| harness::examine(|| {
        let Ok((text, overrides)) = grammar::pipeline(&mut Unstructured::new(data)) else { return };
        let request = |manifest: String, overrides: &Overrides| Request {
            manifest: manifest.into_bytes(),
            base: Vec::new(),
            overrides: overrides.clone(),
        };
        let Some(first) = request(text.forwards(), &overrides).load() else { return };
        check(&first);
        let Some(second) = request(text.backwards(), &overrides).load() else { return };
        check(&second);
        let (Ok(plan), Ok(other)) = (&first, &second) else {
            // A list of problems may be cut where there are many, and what follows from a mistake is told at its first place; that
            // there is a mistake does not depend on the order.
            assert_eq!(first.is_ok(), second.is_ok(), "\n{}", text.forwards());
            return;
        };
        let cells = told(plan);
        assert_eq!(cells, told(other), "\n{}", text.forwards());
        let resolved = toml::to_string(&plan.resolved).expect("what is recorded is TOML");
        let only = Overrides { only: overrides.only.clone(), ..Overrides::default() };
        if let Some(again) = request(resolved.clone(), &only).load() {
            let again = again.unwrap_or_else(|problems| panic!("{problems}\n{}\n{resolved}", text.forwards()));
            assert_eq!(cells, told(&again), "\n{}\n{resolved}", text.forwards());
        }
        // A part that is closed under "needs" is a plan.
        let some: BTreeSet<usize> = (0..plan.cells.len()).filter(|cell| cell % 3 == 1).collect();
        let closed = plan.with_ancestors(&some);
        assert!(some.is_subset(&closed));
        let (part, whence) = plan.part(&closed);
        assert_eq!(part.cells.len(), closed.len());
        for (index, whole) in whence.iter().enumerate() {
            assert_eq!(part.name(index), plan.name(*whole));
        }
    })
);
