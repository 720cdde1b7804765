//! Holds exports against the store: that every digest in them is of the bytes it is said of, that every reference leads to
//! something, and that they tell of every cell what its result says. Nothing here is taken from the code that exports.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::context::{Context, files};

/// What is told of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    kind: String,
    pub(crate) parameters: Value,
    /// Digests of the values of artifacts, and of the bytes of files from outside.
    pub(crate) inputs: BTreeSet<String>,
    /// BLAKE3 and SHA-256 of each output.
    pub(crate) outputs: BTreeSet<(String, Option<String>)>,
}

/// By action key.
pub(crate) type Cells = BTreeMap<String, Told>;

/// What is wrong with an export; empty where nothing is.
pub(crate) type Problems = Vec<String>;

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest
        .iter()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    }
}

/// What the results in the store say of the actions among these names of cells; all where none is named.
pub(crate) fn truth(context: &Context, keys: Option<&BTreeSet<String>>) -> Cells {
    let mut cells = Cells::new();
    for content in context.results().values() {
        let result: Value = serde_json::from_str(content).unwrap();
        let key = text(&result["key"]);
        if keys.is_some_and(|keys| !keys.contains(&key)) {
            continue;
        }
        let action = &result["action"];
        let inputs = list(&action["inputs"])
            .into_iter()
            .map(|input| text(&input["content"]));
        let sources = action["sources"].as_object().into_iter().flatten();
        let outputs = list(&result["outputs"]).into_iter().map(|output| {
            let object = text(&output["object"]);
            let path = context.path(&format!("cache/objects-v1/{}/{object}", &object[..2]));
            (object, fs_err::read(path).ok().map(|bytes| sha256(&bytes)))
        });
        let told = Told {
            kind: text(&action["kind"]),
            parameters: action["parameters"].clone(),
            inputs: inputs.chain(sources.map(|(_, digest)| text(digest))).collect(),
            outputs: outputs.collect(),
        };
        cells.insert(key, told);
    }
    cells
}

/// Every pair of digests that may be told of a file of the context: BLAKE3 → SHA-256, from the files themselves.
fn digests(context: &Context) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for path in files(&context.folder) {
        if let Ok(bytes) = fs_err::read(path) {
            digests.insert(Digest::of(&bytes).hex(), sha256(&bytes));
        }
    }
    digests
}

/// Every object in a document that has both digests, or one: checks them against the files.
fn check_digests(value: &Value, names: [&str; 2], known: &BTreeMap<String, String>, problems: &mut Problems) {
    match value {
        Value::Object(fields) => {
            if let Some(blake3) = fields.get(names[0]).and_then(Value::as_str) {
                let sha256 = fields.get(names[1]).and_then(Value::as_str);
                if sha256.is_some() && sha256 != known.get(blake3).map(String::as_str) {
                    problems.push(format!("the SHA-256 of {blake3} is not {sha256:?}"));
                }
                if sha256.is_none() && known.contains_key(blake3) {
                    problems.push(format!("{blake3} has no SHA-256, although it is there"));
                }
            }
            for inner in fields.values() {
                check_digests(inner, names, known, problems);
            }
        }
        Value::Array(list) => {
            for inner in list {
                check_digests(inner, names, known, problems);
            }
        }
        _ => {}
    }
}

/// Checks a crate, alone: its files against its metadata, both ways, and its references.
pub(crate) fn check_crate(folder: &Utf8Path) -> (Cells, Problems) {
    let mut problems = Problems::new();
    let metadata = fs_err::read_to_string(folder.join("ro-crate-metadata.json")).unwrap();
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let mut entities: BTreeMap<String, Value> = BTreeMap::new();
    for entity in list(&metadata["@graph"]) {
        if entities.insert(text(&entity["@id"]), entity.clone()).is_some() {
            problems.push(format!("{} is there twice", entity["@id"]));
        }
    }
    let is = |entity: &Value, class: &str| list(&entity["@type"]).contains(&Value::from(class));
    let mut described: BTreeSet<Utf8PathBuf> = BTreeSet::from(["ro-crate-metadata.json".into()]);
    for (id, entity) in &entities {
        for reference in references(entity) {
            // A specification is not described in the crate.
            let is_standard = reference == "https://w3id.org/ro/crate/1.1";
            if !entities.contains_key(&reference) && !is_standard {
                problems.push(format!("{id} refers to {reference}, which is nothing"));
            }
        }
        if is(entity, "File") {
            described.insert(id.into());
            let Ok(bytes) = fs_err::read(folder.join(id)) else {
                problems.push(format!("there is no file {id}"));
                continue;
            };
            if entity["sha256"] != sha256(&bytes).as_str() {
                problems.push(format!("the SHA-256 of {id} is not that of its bytes"));
            }
            if entity["blake3"] != Digest::of(&bytes).hex().as_str() {
                problems.push(format!("the BLAKE3 of {id} is not that of its bytes"));
            }
            if entity["contentSize"] != bytes.len().to_string().as_str() {
                problems.push(format!("the length of {id} is not that of its bytes"));
            }
        }
    }
    for path in files(folder) {
        let path = path.strip_prefix(folder).unwrap();
        if !described.contains(path) {
            problems.push(format!("{path} is not described"));
        }
    }
    // Every entity can be reached from the root, and everything that lies there is a part of it.
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open = vec!["./".to_owned(), "ro-crate-metadata.json".to_owned()];
    // What the engine did refers to all else, and is found by its type.
    let engine = |entity: &Value| is(entity, "ControlAction") || is(entity, "OrganizeAction");
    open.extend(
        entities
            .iter()
            .filter(|(_, entity)| engine(entity))
            .map(|(id, _)| id.clone()),
    );
    while let Some(id) = open.pop() {
        if reached.insert(id.clone())
            && let Some(entity) = entities.get(&id)
        {
            open.extend(references(entity));
        }
    }
    for id in entities.keys() {
        if !reached.contains(id) {
            problems.push(format!("{id} cannot be reached"));
        }
    }
    (crate_cells(&entities), problems)
}

fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("@id") => vec![text(&value["@id"])],
        Value::Object(fields) => fields.values().flat_map(references).collect(),
        Value::Array(list) => list.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn crate_cells(entities: &BTreeMap<String, Value>) -> Cells {
    let nothing = Value::Null;
    let follow = |value: &Value| -> Vec<&Value> {
        let ids = references(value);
        ids.iter()
            .map(|id| entities.get(id).unwrap_or(&nothing))
            .collect()
    };
    let mut cells = Cells::new();
    for entity in entities.values() {
        let Some(key) = entity["actionKey"].as_str() else {
            continue;
        };
        let mut told = Told {
            kind: text(&follow(&entity["instrument"])[0]["name"]),
            parameters: serde_json::json!({}),
            ..Told::default()
        };
        for object in follow(&entity["object"]) {
            if object["@type"] == "PropertyValue" {
                told.parameters[text(&object["name"])] = object["value"].clone();
            } else if let Some(content) = object["contentBlake3"].as_str() {
                told.inputs.insert(content.to_owned());
            } else {
                told.inputs.insert(text(&object["blake3"]));
            }
        }
        for result in follow(&entity["result"]) {
            let sha256 = result["sha256"].as_str().map(str::to_owned);
            told.outputs.insert((text(&result["blake3"]), sha256));
        }
        cells.insert(key.to_owned(), told);
    }
    cells
}

/// Checks PROV-JSON.
pub(crate) fn check_prov(context: &Context, document: &Value) -> (Cells, Problems) {
    /// Relations, and the sections that their ends must be in.
    const RELATIONS: [(&str, &[(&str, &str)]); 6] = [
        (
            "used",
            &[("prov:activity", "activity"), ("prov:entity", "entity")],
        ),
        (
            "wasGeneratedBy",
            &[("prov:entity", "entity"), ("prov:activity", "activity")],
        ),
        (
            "wasDerivedFrom",
            &[
                ("prov:generatedEntity", "entity"),
                ("prov:usedEntity", "entity"),
                ("prov:activity", "activity"),
            ],
        ),
        (
            "wasAssociatedWith",
            &[
                ("prov:activity", "activity"),
                ("prov:agent", "agent"),
                ("prov:plan", "entity"),
            ],
        ),
        (
            "wasInformedBy",
            &[("prov:informed", "activity"), ("prov:informant", "activity")],
        ),
        (
            "wasInfluencedBy",
            &[("prov:influencee", "entity"), ("prov:influencer", "activity")],
        ),
    ];
    let mut problems = Problems::new();
    let mut known = digests(context);
    // A manifest is in the document itself.
    for entity in document["entity"].as_object().unwrap().values() {
        if let Some(manifest) = entity["prov:value"].as_str() {
            known.insert(Digest::of(manifest.as_bytes()).hex(), sha256(manifest.as_bytes()));
        }
    }
    check_digests(
        document,
        ["provenir:blake3", "provenir:sha256"],
        &known,
        &mut problems,
    );
    let prefixes = document["prefix"].as_object().unwrap();
    for (section, records) in document.as_object().unwrap() {
        let ends = RELATIONS.iter().find(|(name, _)| name == section);
        if ends.is_none() && !["prefix", "entity", "activity", "agent"].contains(&section.as_str()) {
            problems.push(format!("{section} is not known here"));
        }
        for (id, record) in records.as_object().unwrap() {
            for (end, target) in ends.into_iter().flat_map(|(_, ends)| *ends) {
                let optional =
                    record[*end].is_null() && *end == "prov:activity" && section == "wasDerivedFrom";
                if !optional && document[*target][text(&record[*end])].is_null() {
                    problems.push(format!("{section} {id}: no {target} {}", record[*end]));
                }
            }
            let prefix = id.split(':').next().unwrap();
            if section != "prefix" && prefix != "_" && !prefixes.contains_key(prefix) {
                problems.push(format!("{id} has a prefix that is not declared"));
            }
        }
    }
    let mut generated = BTreeSet::new();
    for record in document["wasGeneratedBy"].as_object().into_iter().flatten() {
        if !generated.insert(text(&record.1["prov:entity"])) {
            problems.push(format!("{} was generated twice", record.1["prov:entity"]));
        }
    }
    (prov_cells(document), problems)
}

fn prov_cells(document: &Value) -> Cells {
    let mut cells = Cells::new();
    for (id, activity) in document["activity"].as_object().unwrap() {
        let Some(key) = activity["provenir:actionKey"].as_str() else {
            continue;
        };
        let mut told = Told {
            kind: text(&activity["provenir:kind"]),
            parameters: serde_json::json!({}),
            ..Told::default()
        };
        for (name, value) in activity.as_object().unwrap() {
            if let Some(name) = name.strip_prefix("provenir:parameter.") {
                told.parameters[name] = value.clone();
            }
        }
        let relations = |section: &str| -> Vec<Value> {
            let records = document[section].as_object().into_iter().flatten();
            let mine = records.filter(|(_, record)| record["prov:activity"] == id.as_str());
            mine.map(|(_, record)| document["entity"][text(&record["prov:entity"])].clone())
                .collect()
        };
        for entity in relations("used") {
            let content = entity["provenir:contentBlake3"].as_str();
            told.inputs
                .insert(content.map_or_else(|| text(&entity["provenir:blake3"]), str::to_owned));
        }
        for entity in relations("wasGeneratedBy") {
            let sha256 = entity["provenir:sha256"].as_str().map(str::to_owned);
            told.outputs.insert((text(&entity["provenir:blake3"]), sha256));
        }
        cells.insert(key.to_owned(), told);
    }
    cells
}

/// What a dataset of OpenLineage is known by: namespace, name and version.
fn dataset(dataset: &Value) -> (String, String, String) {
    let version = text(&dataset["facets"]["version"]["datasetVersion"]);
    (text(&dataset["namespace"]), text(&dataset["name"]), version)
}

/// Checks OpenLineage events.
pub(crate) fn check_openlineage(context: &Context, text_: &str) -> (Cells, Problems) {
    let mut problems = Problems::new();
    let events: Vec<Value> = text_
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let known = digests(context);
    let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut given: BTreeSet<(String, String, String)> = BTreeSet::new();
    let mut cells = Cells::new();
    let mut last = String::new();
    for event in &events {
        let time = text(&event["eventTime"]);
        if time < last {
            problems.push(format!("{time} comes after {last}"));
        }
        last = time;
        for facet in list(&event["inputs"]).iter().chain(&list(&event["outputs"])) {
            check_digests(
                &facet["facets"]["provenir_artifact"],
                ["blake3", "sha256"],
                &known,
                &mut problems,
            );
        }
        let mut taken = BTreeSet::new();
        for input in list(&event["inputs"]) {
            let name = dataset(&input);
            if !taken.insert(name.clone()) {
                problems.push(format!("the input {name:?} is there twice"));
            }
            let is_outside =
                name.0 == "file" || name.1.starts_with("content/") || name.1.starts_with("source/");
            if !is_outside && !given.contains(&name) {
                problems.push(format!("the input {name:?} was not given by anything before"));
            }
        }
        given.extend(list(&event["outputs"]).iter().map(dataset));
        if !event["run"]["facets"]["errorMessage"].is_null() && event["eventType"] != "FAIL" {
            problems.push(format!("{} tells of an error", event["eventType"]));
        }
        if let Some(run) = event["run"]["runId"].as_str() {
            states
                .entry(run.to_owned())
                .or_default()
                .push(text(&event["eventType"]));
        }
        let action = &event["job"]["facets"]["provenir_action"];
        if action.is_null() || event["eventType"] == "START" {
            continue;
        }
        let mut told = Told {
            kind: text(&action["kind"]),
            parameters: action["parameters"].clone(),
            ..Told::default()
        };
        for input in list(&event["inputs"]) {
            let artifact = &input["facets"]["provenir_artifact"];
            let content = artifact["content"].as_str();
            told.inputs
                .insert(content.map_or_else(|| text(&artifact["digests"]["blake3"]), str::to_owned));
        }
        for output in list(&event["outputs"]) {
            let digests = &output["facets"]["provenir_artifact"]["digests"];
            let sha256 = digests["sha256"].as_str().map(str::to_owned);
            told.outputs.insert((text(&digests["blake3"]), sha256));
        }
        cells.insert(text(&action["action"]), told);
    }
    for (run, states) in &states {
        if !matches!(&states[..], [start, end] if start == "START" && ["COMPLETE", "FAIL", "ABORT"].contains(&end.as_str()))
        {
            problems.push(format!("the run {run} goes {states:?}"));
        }
    }
    for event in &events {
        let parent = &event["run"]["facets"]["parent"];
        let reused = list(&event["run"]["facets"]["provenir_reused"]["cells"]);
        let named = reused
            .iter()
            .map(|cell| &cell["runId"])
            .filter(|run| !run.is_null());
        for run in named.chain((!parent.is_null()).then(|| &parent["run"]["runId"])) {
            if !states.contains_key(&text(run)) {
                problems.push(format!("there is no run {run}"));
            }
        }
        if !parent.is_null() {
            let job = &parent["job"];
            let is_there = |event: &Value| {
                event["job"]["namespace"] == job["namespace"] && event["job"]["name"] == job["name"]
            };
            if !events.iter().any(is_there) {
                problems.push(format!("there is no job {job}"));
            }
        }
    }
    (cells, problems)
}

/// Checks an in-toto statement.
pub(crate) fn check_statement(context: &Context, statement: &Value) -> (Cells, Problems) {
    let mut problems = Problems::new();
    let known = digests(context);
    let predicate = &statement["predicate"];
    let parts = &predicate["buildDefinition"]["internalParameters"]["cells"];
    check_digests(parts, ["blake3", "sha256"], &known, &mut problems);
    check_digests(&statement["subject"], ["blake3", "sha256"], &known, &mut problems);
    check_digests(
        &predicate["runDetails"],
        ["blake3", "sha256"],
        &known,
        &mut problems,
    );
    let dependencies = list(&predicate["buildDefinition"]["resolvedDependencies"]);
    for dependency in dependencies
        .iter()
        .filter(|found| found["annotations"]["role"] == "source")
    {
        check_digests(dependency, ["blake3", "sha256"], &known, &mut problems);
    }
    let mut cells = Cells::new();
    let mut given: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for cell in list(parts) {
        let key = text(&cell["actionKey"]);
        let mut told = Told {
            kind: text(&cell["kind"]),
            parameters: cell["parameters"].clone(),
            ..Told::default()
        };
        for input in list(&cell["inputs"]) {
            told.inputs.insert(text(&input["contentBlake3"]));
            let from = (text(&input["from"]["actionKey"]), text(&input["from"]["port"]));
            match given.get(&from) {
                Some(digest) if *digest == input["digest"] => {}
                Some(_) => problems.push(format!(
                    "{} takes something else than {from:?} gave",
                    cell["name"]
                )),
                None => problems.push(format!("{} takes from {from:?}, which is nothing", cell["name"])),
            }
        }
        told.inputs.extend(
            list(&cell["sources"])
                .iter()
                .map(|source| text(&source["digest"]["blake3"])),
        );
        for output in list(&cell["outputs"]) {
            let digest = &output["digest"];
            all.insert(text(&digest["blake3"]));
            told.outputs.insert((
                text(&digest["blake3"]),
                digest["sha256"].as_str().map(str::to_owned),
            ));
            given.insert((key.clone(), text(&output["port"])), digest.clone());
        }
        cells.insert(key, told);
    }
    let subjects = list(&statement["subject"]);
    let byproducts = list(&predicate["runDetails"]["byproducts"]);
    let all_names = subjects.iter().chain(&byproducts);
    let names: BTreeSet<String> = all_names.map(|found| text(&found["name"])).collect();
    if names.len() != subjects.len() + byproducts.len() {
        problems.push("two subjects or by-products have one name".to_owned());
    }
    let digests = |descriptors: &[Value]| -> BTreeSet<String> {
        let digests = descriptors.iter().map(|found| text(&found["digest"]["blake3"]));
        digests.collect()
    };
    let (of_subjects, of_byproducts) = (digests(&subjects), digests(&byproducts));
    if of_byproducts.len() != byproducts.len() || !of_subjects.is_disjoint(&of_byproducts) {
        problems.push("an artifact is by-product twice, or subject, too".to_owned());
    }
    if of_subjects
        .union(&of_byproducts)
        .cloned()
        .collect::<BTreeSet<_>>()
        != all
    {
        problems.push("subjects and by-products are not what the cells gave".to_owned());
    }
    (cells, problems)
}
