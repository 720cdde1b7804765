//! `lineage`: what an artifact was made from, and what was made from it.
//!
//! * `dot`: the graph for Graphviz.
//! * `freshness`: whether a file would be made the same today.
//! * `tree`: the graph in words.

mod dot;
mod freshness;
mod tree;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use serde_json::json;

use super::arguments::{LineageArguments, LineageFormat};
use super::digest::{self, Beginning, Name};
use super::error::{CommandError, Exit};
use super::measure::count;
use super::selector::{self, Selector, no_file};
use super::standing::absent;
use super::{Edition, environment, session, terminal};
use crate::exec::{Standing, Survey};
use crate::lineage::{Condition, FileOrigin, Focus, Graph, SourceName, cells_of_plan};
use crate::record::Cells;
use crate::store::{ActionKey, Layout, Publication, Store};
use freshness::Told;

/// What is traced, and what is said of it before its lineage.
struct Traced {
    what: What,
    head: Vec<String>,
    /// What a program is told of a file.
    file: Option<serde_json::Value>,
}

/// Said of a cell that is told as the manifest wires it now.
const REWIRED: &str = "as the manifest wires it now; when it was computed, it was made from others that gave the same (`provenir lineage` of the action tells)\n\n";

/// What is traced.
enum What {
    /// An action, as any cell that is it.
    Action(ActionKey),
    /// A cell; where it is one of a plan, with that plan's.
    Cell {
        key: ActionKey,
        name: String,
        plan: Option<Cells>,
    },
    /// A file that was taken, by its path.
    Source(Utf8PathBuf),
    /// The same by its content.
    SourceContent(Digest),
}

/// `lineage`.
pub(super) fn lineage(edition: &Edition, arguments: &LineageArguments) -> Result<Exit, CommandError> {
    let layout = layout(arguments)?;
    let store = Store::open(layout.root());
    let graph = Graph::read(&store)?;
    session::warn_of_flawed(&graph.history().flawed);
    let traced = find(edition, arguments, &store, &graph)?;
    let lineage = match &traced.what {
        What::Action(action) => graph.lineage(&store, &Focus::action(*action)),
        What::Cell { key, name, plan } => {
            let focus = Focus {
                action: *key,
                cell: Some(name),
                cells: plan.as_ref(),
            };
            graph.lineage(&store, &focus)
        }
        What::Source(path) => graph.lineage_of_source(&store, &SourceName::Path(path)),
        What::SourceContent(content) => graph.lineage_of_source(&store, &SourceName::Content(*content)),
    };
    let format = if arguments.json {
        LineageFormat::Json
    } else {
        arguments.format
    };
    let text = match format {
        LineageFormat::Text => {
            let mut text = traced
                .head
                .iter()
                .fold(String::new(), |text, line| text + line + "\n");
            if lineage.rewired {
                text.push_str(REWIRED);
            }
            text.push_str(&tree::text(&lineage));
            text
        }
        LineageFormat::Dot => dot::text(&lineage),
        LineageFormat::Json => {
            let list: Vec<_> = lineage.nodes.values().collect();
            let value = json!({
                "focus": lineage.focus.as_ref().map(|focus| focus.action),
                "cell": lineage.focus.as_ref().and_then(|focus| focus.cell.as_ref()),
                "rewired": lineage.rewired,
                "file": traced.file,
                "nodes": list,
            });
            let text = serde_json::to_string_pretty(&value).map_err(std::io::Error::from)?;
            format!("{text}\n")
        }
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// The store that is meant; for a file, where there is none from the manifest's folder upwards, the nearest from its own.
fn layout(arguments: &LineageArguments) -> Result<Layout, CommandError> {
    let layout = digest::store(&arguments.manifest)?;
    let path = environment::working_folder()?.join(&arguments.what);
    if !layout.root().is_dir()
        && arguments.manifest.store.cache.is_none()
        && path.is_file()
        && let Some(root) = path.canonicalize_utf8().ok().and_then(|path| Layout::find(&path))
    {
        return Ok(Layout::new(root));
    }
    Ok(layout)
}

fn find(
    edition: &Edition,
    arguments: &LineageArguments,
    store: &Store,
    graph: &Graph,
) -> Result<Traced, CommandError> {
    let text = arguments.what.as_str();
    let is_file = fs_err::metadata(text).is_ok_and(|metadata| metadata.is_file());
    if !is_file && let Some(gone) = trace_gone_source(text, graph)? {
        return Ok(gone);
    }
    if selector::is_path(text) || is_file {
        if !is_file {
            return Err(no_file(text));
        }
        return trace_file(edition, arguments, store, graph);
    }
    if let Some(beginning) = Beginning::parse(text)
        && !session::names_stage(edition, &arguments.manifest, text)
    {
        return trace_digest(&beginning, store, graph);
    }
    trace_cell(edition, arguments, store, graph)
}

fn trace_digest(beginning: &Beginning<'_>, store: &Store, graph: &Graph) -> Result<Traced, CommandError> {
    let mut head = Vec::new();
    let key = match beginning.name(store.layout())? {
        Some(Name::Action(key)) => Some(key),
        Some(Name::Object(object)) => {
            let makers = graph.makers(&object);
            if makers.is_empty()
                && let Some((key, second)) = graph.second(&object)
            {
                return Ok(Traced {
                    head: vec![format!("{second}; this is the lineage of that one\n")],
                    what: What::Action(key),
                    file: None,
                });
            }
            if makers.is_empty() {
                return Err(CommandError::request(format!(
                    "no result names object {}: nothing is known of where it comes from",
                    object.short()
                ))
                .help("`provenir gc` removes objects that no result names"));
            }
            if let [first, others @ ..] = &makers[..]
                && !others.is_empty()
            {
                let name = |key: &ActionKey| graph.history().name(key);
                head.push(format!(
                    "{} gave this object: this is the lineage of `{}`; it was also made by {}\n",
                    count(makers.len(), "action"),
                    name(first),
                    others
                        .iter()
                        .map(|key| format!("`{}`", name(key)))
                        .collect::<Vec<_>>()
                        .join(", ")
                ));
            }
            makers.first().copied()
        }
        // What is not in the store any more may be in its records.
        None => {
            let found: Vec<ActionKey> = graph
                .actions()
                .filter(|key| {
                    let mut outputs = graph.outputs(key).iter();
                    let is_meant = |digest: &Digest| beginning.begins(&digest.hex());
                    beginning.begins(&key.hex())
                        || outputs.any(|artifact| is_meant(&artifact.object) || is_meant(&artifact.content))
                })
                .collect();
            let sources = graph.sources_taken().into_iter();
            let mut sources = sources.filter(|source| beginning.begins(&source.hex()));
            if let (Some(content), None, true) = (sources.next(), sources.next(), found.is_empty()) {
                return Ok(Traced {
                    head: vec![format!("a source file, content {}\n", content.short())],
                    what: What::SourceContent(content),
                    file: None,
                });
            }
            if found.len() > 1 {
                let names: Vec<String> = found.iter().map(ActionKey::hex).collect();
                return Err(beginning.ambiguous(names.iter().map(String::as_str)));
            }
            found.first().copied()
        }
    };
    let Some(key) = key else {
        return Err(beginning.unknown(store.layout()));
    };
    Ok(Traced {
        what: What::Action(key),
        head,
        file: None,
    })
}

fn trace_cell(
    edition: &Edition,
    arguments: &LineageArguments,
    store: &Store,
    graph: &Graph,
) -> Result<Traced, CommandError> {
    let (selector, rest) = Selector::parse(&arguments.what)?;
    if !rest.is_empty() && !rest.starts_with('.') {
        return Err(CommandError::request(format!(
            "`{rest}` is not an output; write `.port`"
        )));
    }
    let plan = session::plan_with(edition, &arguments.manifest, &arguments.what)?;
    selector.neither(&arguments.what, rest, &plan)?;
    let cell = selector.cell(&plan)?;
    let name = plan.name(cell);
    let survey = Survey::take(&plan, store, &std::collections::BTreeSet::new())?;
    if let Standing::Cached(result) = &survey.standings[cell] {
        return Ok(Traced {
            what: What::Cell {
                key: result.key(),
                name,
                plan: Some(cells_of_plan(&plan, &survey)),
            },
            head: Vec::new(),
            file: None,
        });
    }
    let runs = graph.history().runs.iter();
    let earlier = runs
        .filter(|run| run.manifest() == Some(&plan.manifest))
        .find_map(|run| {
            let (_, key) = run.results().filter(|(found, _)| *found == name).last()?;
            graph.knows(&key).then_some(key)
        });
    match earlier {
        Some(key) => Ok(Traced {
            head: vec![format!(
                "{}; this is the lineage of its last result (`provenir why` tells more)\n",
                absent(&plan, store, &survey, cell)
            )],
            what: What::Cell {
                key,
                name,
                plan: None,
            },
            file: None,
        }),
        None => Err(CommandError::request(format!("`{name}` has no result yet"))
            .help("`provenir run` computes it; then its lineage can be told")),
    }
}

/// What was made from a source file that is not there any more.
fn trace_gone_source(text: &str, graph: &Graph) -> Result<Option<Traced>, CommandError> {
    let path = session::absolute(Utf8Path::new(text))?;
    if graph.takers(&SourceName::Path(&path)).is_empty() {
        return Ok(None);
    }
    Ok(Some(Traced {
        head: vec![
            format!(
                "`{}` is a source file, and is not there any more",
                session::short(&path)
            ),
            String::new(),
        ],
        file: Some(json!({ "path": path, "object": null })),
        what: What::Source(path),
    }))
}

/// What a source file is, and what was made from it: by its path, or, of a copy of one, by its content.
fn trace_source(path: &Utf8Path, origin: &FileOrigin, graph: &Graph) -> Traced {
    let shown = session::short(path);
    let content = origin.object;
    let by_path = graph.takers(&SourceName::Path(path));
    let by_content = graph.takers(&SourceName::Content(content));
    let mut head = Vec::new();
    if by_path.is_empty() {
        head.push(format!(
            "`{shown}` has the bytes of a source file, content {}",
            content.short()
        ));
    } else if by_path
        .iter()
        .all(|(key, _)| by_content.iter().all(|(other, _)| other != key))
    {
        head.push(format!(
            "`{shown}` is a source file, and has changed since it was taken: its content now is {}",
            content.short()
        ));
    } else {
        head.push(format!("`{shown}` is a source file, content {}", content.short()));
    }
    let otherwise: Vec<String> = by_path
        .iter()
        .filter(|(key, _)| !by_content.iter().any(|(other, _)| other == key))
        .map(|(key, _)| format!("{} (action {})", graph.history().name(key), key.short()))
        .collect();
    if !by_path.is_empty() && otherwise.len() < by_path.len() && !otherwise.is_empty() {
        head.push(format!(
            "with another content than now it was taken by {}",
            tree::listed(&otherwise)
        ));
    }
    if let Some(key) = &origin.key {
        head.push(format!(
            "what {} gave has the same bytes",
            graph.history().name(key)
        ));
    }
    head.push(String::new());
    Traced {
        head,
        file: Some(json!({ "path": path, "object": content.to_string() })),
        what: if by_path.is_empty() {
            What::SourceContent(content)
        } else {
            What::Source(path.to_owned())
        },
    }
}

fn trace_file(
    edition: &Edition,
    arguments: &LineageArguments,
    store: &Store,
    graph: &Graph,
) -> Result<Traced, CommandError> {
    let path = session::published_file(store, Utf8Path::new(&arguments.what))?;
    let origin = FileOrigin::of(&path, store, graph)?;
    let shown = session::short(&path);
    let mut head = Vec::new();
    if origin.is_source {
        return Ok(trace_source(&path, &origin, graph));
    }
    match (origin.condition, &origin.key) {
        (Condition::Altered, _) => head.push(format!(
            "`{shown}` was altered since Provenir made it; what follows is of the original"
        )),
        (Condition::AsMade, _) => head.push(format!("`{shown}` is as Provenir made it")),
        (Condition::Sealed, _) => head.push(format!("`{shown}` has a seal of Provenir that fits its content")),
        (Condition::SealedOtherwise, _) => head.push(format!(
            "`{shown}` has a seal that fits, but not the bytes that the store has of the action that it names: it was changed and sealed again, or computed elsewhere; what follows is of the store's"
        )),
        (Condition::Unknown, Some(_)) => head.push(format!(
            "`{shown}` has the bytes of object {}; nothing tells that Provenir put them there",
            origin.object.short()
        )),
        (Condition::Unknown, None) => {}
    }
    if let Some(identity) = &origin.identity {
        head.push(format!(
            "the file says: drawn by action {}, from data {}",
            identity.action_key.chars().take(12).collect::<String>(),
            identity.data.short()
        ));
    }
    let has_its_name = |other: &Publication| {
        let key = origin.key.as_ref();
        key.is_some_and(|key| graph.history().name(key) == other.cell)
    };
    if let Some(other) = &origin.in_place_of
        && !has_its_name(other)
    {
        head.push(format!(
            "it lies where output {} of {} was published",
            other.port, other.cell
        ));
    }
    let Some(key) = origin.key else {
        return Err(CommandError::request(format!(
            "`{shown}` does not say where it comes from, and the store `{}` does not know it",
            session::short(store.layout().root())
        ))
        .help("figures (SVG, PNG, PDF, GIF) carry their origin; `--cache` names another store"));
    };
    if !graph.knows(&key) {
        for line in head {
            terminal::say(&line);
        }
        return Err(CommandError::request(format!(
            "the store `{}` has neither result nor record of action {}",
            session::short(store.layout().root()),
            key.short()
        ))
        .help("`--cache` or PROVENIR_CACHE names the store of whoever made the file"));
    }
    let freshness = Told::of(edition, arguments, &path, &origin, &key, store, graph)?;
    head.push(freshness.text);
    head.push(String::new());
    Ok(Traced {
        what: match &origin.published {
            Some(published) => What::Cell {
                key,
                name: published.cell.clone(),
                plan: None,
            },
            None => What::Action(key),
        },
        head,
        file: Some(json!({
            "path": path,
            "object": origin.object.to_string(),
            "data": origin.identity.as_ref().map(|identity| identity.data.to_string()),
            "altered": origin.condition.altered(),
            "in_place_of": origin.in_place_of.as_ref().map(|other| json!({
                "cell": other.cell, "output": other.port, "action": other.key,
            })),
            "manifest": freshness.manifest,
            "arguments": freshness.arguments,
            "stale": freshness.stale,
        })),
    })
}

/// Inputs by port, in the order of the ports.
fn by_port(node: &crate::lineage::Node) -> BTreeMap<&str, Vec<&crate::lineage::Link>> {
    let mut ports: BTreeMap<&str, Vec<&crate::lineage::Link>> = BTreeMap::new();
    for link in &node.inputs {
        ports.entry(&link.port).or_default().push(link);
    }
    ports
}
