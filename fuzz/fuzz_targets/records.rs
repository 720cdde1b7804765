//! The files of a store: everything that reads them says what it found, or why it found nothing.

#![no_main]

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use provenir::audit::verdicts;
use provenir::exec::Survey;
use provenir::lineage::{Explainer, FileOrigin, Focus, Graph, RunDifference};
use provenir::manifest::{Overrides, load};
use provenir::plan::Plan;
use provenir::provenance::{Licence, Provenance, Selection, Wanted, in_toto, openlineage, prov, ro_crate};
use provenir::record::RunStore;
use provenir::retention::{Keep, survey};
use provenir::store::{Catalogue, Store, StoreError, abandoned, partials, standing};
use provenir_fuzz::manifests::registry;
use provenir_fuzz::stores::{MANIFEST, Parts};
use provenir_fuzz::{harness, seeds};

fuzz_target!(
    init: harness::begin(seeds::stores),
    |data: &[u8]| harness::examine(|| {
        let parts = Parts::lay(data);
        let store = Store::open(parts.layout().root());
        // Each says what is wrong by itself; that none of them panics is what is examined.
        let _ = files(&store);
        let _ = history(&store);
        let _ = plans(&store);
    })
);

/// The plan of the manifest whose store it is.
fn plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let path = harness::folder().join("m.toml");
        fs_err::write(&path, MANIFEST).expect("a manifest can be written");
        load(&path, registry(), &Overrides::default()).unwrap_or_else(|problems| panic!("{problems}"))
    })
}

/// What looks at each kind of file.
fn files(store: &Store) -> Result<(), StoreError> {
    let layout = store.layout();
    let runs = RunStore::new(layout);
    for run in runs.runs()? {
        for flaw in [
            run.check().err(),
            run.head().err(),
            run.is_running().err(),
            run.failed_at().err(),
        ]
        .into_iter()
        .flatten()
        {
            assert!(!flaw.to_string().is_empty());
        }
        for execution in run.executions().into_iter().flatten() {
            // Whatever a record says, a log lies in its run's folder.
            if let Some(log) = execution.log() {
                assert!(log.starts_with(run.folder().join("logs")) && !log.as_str().contains(".."));
            }
        }
    }
    for found in [
        store.pins().err(),
        store.publications_complete().err(),
        standing(layout).err(),
        runs.latest(None).err(),
        runs.removals().err(),
    ] {
        assert!(found.is_none_or(|error| !error.to_string().is_empty()));
    }
    let _ = (
        verdicts(layout)?,
        partials(layout)?,
        abandoned(layout)?,
        store.publications()?,
    );
    let verification = store.verify(None)?;
    let catalogue = Catalogue::read(layout)?;
    // Those that are wrong about their objects can be read.
    assert!(verification.unreadable.len() >= catalogue.unreadable.len());
    for key in catalogue.results.keys() {
        let _ = (store.lookup(key)?, store.result(key)?, store.divergences(key)?);
    }
    Ok(())
}

/// What puts them together.
fn history(store: &Store) -> Result<(), StoreError> {
    let graph = Graph::read(store)?;
    for flawed in &graph.history().flawed {
        assert!(!flawed.reason().is_empty());
    }
    for key in graph.actions().collect::<Vec<_>>() {
        for cell in [None, graph.history().cell(&key)] {
            let focus = Focus {
                cell,
                ..Focus::action(key)
            };
            let lineage = graph.lineage(store, &focus);
            assert_eq!(lineage.node().map(|node| node.action), Some(key));
        }
        let selection = Selection::Results {
            of: vec![Wanted { key, cell: None }],
            output: None,
            title: "an action".to_owned(),
        };
        export(store, &graph, &selection)?;
    }
    let runs = &graph.history().runs;
    for run in runs {
        export(store, &graph, &Selection::Run(run.stored.id.clone()))?;
        for other in runs {
            let _ = RunDifference::of(store, graph.history(), registry(), run, other)?;
        }
    }
    let keep = Keep {
        runs: 1,
        grace: Duration::ZERO,
    };
    let _ = survey(store, keep)?;
    let path = harness::folder().join("m.toml");
    if path.exists() {
        let _ = FileOrigin::of(&path, store, &graph)?;
    }
    Ok(())
}

fn export(store: &Store, graph: &Graph, selection: &Selection) -> Result<(), StoreError> {
    let Ok(mut provenance) = Provenance::gather(graph, selection) else {
        return Ok(());
    };
    for file in provenance.artifacts.iter().map(|artifact| &artifact.file) {
        let stays = file.place.is_relative() && !file.place.components().any(|part| part.as_str() == "..");
        assert!(stays, "`{}` leaves the crate", file.place);
    }
    for file in provenance.sources.iter().map(|source| &source.file) {
        let stays = file.place.is_relative() && !file.place.components().any(|part| part.as_str() == "..");
        assert!(stays, "`{}` leaves the crate", file.place);
    }
    provenance.read_files(store.layout(), None)?;
    let _ = (in_toto(&provenance), prov(&provenance), openlineage(&provenance));
    for has_data in [false, true] {
        let _ = ro_crate(&provenance, &Licence::Unstated, has_data);
    }
    Ok(())
}

/// What holds a plan against them.
fn plans(store: &Store) -> Result<(), StoreError> {
    let plan = plan();
    let survey = Survey::take(plan, store, &BTreeSet::new())?;
    let explainer = Explainer::new(plan, store, &survey);
    for cell in 0..plan.cells.len() {
        let _ = explainer.brief(cell)?;
        let why = explainer.explain(cell)?;
        assert!(serde_json::to_string(&why).is_ok());
    }
    Ok(())
}
