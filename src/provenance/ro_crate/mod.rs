//! RO-Crate metadata: Provenance Run Crate 0.5 (<https://w3id.org/ro/wfrun/provenance/0.5>), which extends Workflow Run Crate
//! 0.5, Process Run Crate 0.5, Workflow RO-Crate 1.0 and RO-Crate 1.1 (<https://w3id.org/ro/crate/1.1>).
//!
//! * `graph`: the flat list of entities, each with its identifier once.
//! * `workflow`: what could be run: the manifest, its steps, tools and their parameters ("prospective provenance").
//! * `actions`: what was run: of the run, of each cell, and what the engine did ("retrospective provenance").
//! * `data`: the files.
//!
//! A manifest is the `ComputationalWorkflow`, a stage a `HowToStep`, a kind in its revisions the tool that a step is a work example
//! of, an execution of a cell a `CreateAction`. What RO-Crate has no word for is said in terms of our own, which the context
//! declares, as RO-Crate 1.1 allows (section "Extending RO-Crate").

mod actions;
mod data;
mod graph;
mod workflow;

use serde_json::{Value, json};

use self::graph::{Graph, reference, several};
use super::identity::{HOME, TERMS, offset_time};
use super::model::Provenance;

/// The file of the metadata (RO-Crate 1.1, section "RO-Crate Metadata File").
pub const METADATA: &str = "ro-crate-metadata.json";

/// The file of the manifest.
pub const MANIFEST: &str = "manifest.toml";

/// What others may do with a crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Licence {
    /// Nobody said.
    Unstated,
    /// A URL.
    Url(String),
}

/// The profiles that a crate conforms to: URI, name, version.
const PROFILES: [(&str, &str, &str); 4] = [
    (
        "https://w3id.org/ro/wfrun/process/0.5",
        "Process Run Crate",
        "0.5",
    ),
    (
        "https://w3id.org/ro/wfrun/workflow/0.5",
        "Workflow Run Crate",
        "0.5",
    ),
    (
        "https://w3id.org/ro/wfrun/provenance/0.5",
        "Provenance Run Crate",
        "0.5",
    ),
    (
        "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
        "Workflow RO-Crate",
        "1.0",
    ),
];

/// The metadata of a crate, whose files lie at their places if `has_data`; otherwise it describes them only.
pub fn ro_crate(provenance: &Provenance, licence: &Licence, has_data: bool) -> Value {
    let mut graph = Graph::default();
    let crate_ = Crate { provenance, has_data };
    graph.add(json!({
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": reference("./"),
        "conformsTo": [reference("https://w3id.org/ro/crate/1.1"), reference(PROFILES[3].0)],
    }));
    let run = provenance.run();
    let mut root = json!({
        "@id": "./",
        "@type": "Dataset",
        "name": format!("{}: {}", run.pipeline, provenance.title),
        "description": description(provenance),
        "datePublished": offset_time(run.ended),
        "license": reference(licence.id()),
        "conformsTo": several(PROFILES.iter().map(|(id, ..)| (*id).to_owned())),
        "mainEntity": reference(MANIFEST),
    });
    let parts = crate_.add_data(&mut graph);
    root["hasPart"] = several(parts);
    crate_.add_workflow(&mut graph);
    root["mentions"] = several(crate_.add_actions(&mut graph));
    graph.add(root);
    for (id, name, version) in PROFILES {
        graph.add(json!({ "@id": id, "@type": "CreativeWork", "name": name, "version": version }));
    }
    graph.add(licence.entity());
    json!({
        "@context": [
            "https://w3id.org/ro/crate/1.1/context",
            "https://w3id.org/ro/terms/workflow-run/context",
            terms(),
        ],
        "@graph": graph.entities(),
    })
}

/// A crate that is being written.
struct Crate<'a> {
    provenance: &'a Provenance,
    has_data: bool,
}

/// Terms that RO-Crate does not have.
fn terms() -> Value {
    let names = [
        "blake3",
        "contentBlake3",
        "actionKey",
        "rows",
        "volatile",
        "publishedAs",
        "takenFrom",
    ];
    names
        .into_iter()
        .map(|name| (name.to_owned(), Value::from(format!("{TERMS}{name}"))))
        .collect::<serde_json::Map<String, Value>>()
        .into()
}

fn description(provenance: &Provenance) -> String {
    let run = provenance.run();
    let about = match run.resolved["pipeline"]["description"].as_str() {
        Some(about) => format!("{}. ", about.trim_end_matches('.')),
        None => String::new(),
    };
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    format!(
        "{about}How it came to be, {}: {}, {}, {} from outside; computed by Provenir ({HOME}) {}, build {}.",
        provenance.title,
        count(provenance.cells.len(), "cell"),
        count(provenance.artifacts.len(), "artifact"),
        count(provenance.sources.len(), "file"),
        run.program.version,
        run.program.build,
    )
}

impl Licence {
    fn id(&self) -> &str {
        match self {
            Self::Unstated => "#licence",
            Self::Url(url) => url,
        }
    }

    fn entity(&self) -> Value {
        match self {
            Self::Unstated => json!({
                "@id": self.id(),
                "@type": "CreativeWork",
                "name": "No licence stated",
                "description": "Whoever exported this crate did not state under which licence it may be used.",
            }),
            Self::Url(url) => json!({ "@id": url, "@type": "CreativeWork", "name": url, "url": url }),
        }
    }
}
