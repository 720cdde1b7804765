use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use provenir_api::Digest;

use super::graph::{Graph, Node};
use super::place::{NodeId, Place};
use super::source::SourceFile;
use crate::plan::{CellIndex, RememberedSources};
use crate::record::Cells;
use crate::store::{ActionKey, Store};

/// What is traced.
#[derive(Clone, Copy)]
pub struct Focus<'a> {
    /// The action.
    pub action: ActionKey,
    /// The cell that is meant; absent where any that is this action is.
    pub cell: Option<&'a str>,
    /// The cells of the plan whose wires are followed; absent where those are that its results were computed by.
    pub cells: Option<&'a Cells>,
}

impl Focus<'_> {
    /// An action, as any cell that is it.
    pub fn action(action: ActionKey) -> Self {
        Self {
            action,
            cell: None,
            cells: None,
        }
    }
}

/// What names a source file.
#[derive(Clone, Copy)]
pub enum SourceName<'a> {
    /// Its absolute path.
    Path(&'a Utf8Path),
    /// The digest of its bytes when it was taken.
    Content(Digest),
}

/// A cell with all that it was made from, directly or not, and all that was made from it; or all that was made from a file.
#[derive(Default)]
pub struct Lineage {
    /// The cell; absent where it is a file.
    pub focus: Option<NodeId>,
    /// All of them, itself included.
    pub nodes: BTreeMap<NodeId, Node>,
    /// Whether some of it, when it was computed, took from others, which gave the same.
    pub rewired: bool,
    /// What took something of it.
    pub takers: BTreeSet<NodeId>,
    /// What took something of each of those, and so on.
    pub consumers: BTreeMap<NodeId, BTreeSet<NodeId>>,
}

impl Lineage {
    /// The cell itself.
    pub fn node(&self) -> Option<&Node> {
        self.nodes.get(self.focus.as_ref()?)
    }

    fn look(mut self, store: &Store) -> Self {
        let nodes = self.nodes.values_mut();
        SourceFile::look(nodes.flat_map(|node| node.sources.values_mut()), store);
        self
    }
}

impl Graph {
    /// The lineage of a cell. Source files are looked at: whether they are as they were taken.
    pub fn lineage(&self, store: &Store, focus: &Focus<'_>) -> Lineage {
        let (place, _) = self.wired(&focus.action, focus.cell, focus.cells, None);
        let mut lineage = Lineage::default();
        let Some(node) = self.node(&focus.action, place) else {
            return lineage;
        };
        let id = node.id();
        self.trace_up(&mut lineage, id.clone(), place, focus.cells);
        // Of an action of the past, as the latest run that had it was wired.
        let mut runs = self.history().runs.iter().map(|run| &run.cells);
        let then = runs.find(|cells| !cells.of(&focus.action).is_empty());
        let edges = Edges::of(self, focus.cells.or(then));
        let takers = edges.consumers(self, &id, focus.cell.is_none());
        lineage.takers = self.trace_down(&mut lineage, &edges, takers);
        lineage.focus = Some(id);
        lineage.look(store)
    }

    /// What was made from a source file.
    pub fn lineage_of_source(&self, store: &Store, file: &SourceName<'_>) -> Lineage {
        let mut lineage = Lineage::default();
        let edges = Edges::of(self, None);
        lineage.takers = self.trace_down(&mut lineage, &edges, self.takers(file).into_iter());
        lineage.look(store)
    }

    /// The cells that took a source file.
    pub fn takers(&self, file: &SourceName<'_>) -> Vec<(ActionKey, Option<Place<'_>>)> {
        let mut takers = Vec::new();
        for key in self.actions() {
            let Some(action) = self.action(&key).filter(|action| !action.sources.is_empty()) else {
                continue;
            };
            let takes = |place: &Option<Place<'_>>| {
                let sources = self.sources(&key, action, *place);
                sources.values().any(|source| match file {
                    SourceName::Path(path) => source.path.as_deref() == Some(*path),
                    SourceName::Content(content) => source.content == *content,
                })
            };
            let places = self.places(&key).filter(takes);
            takers.extend(places.map(|place| (key, place)));
        }
        takers
    }

    /// What every source file held when a run last took it.
    pub fn remembered_sources(&self) -> RememberedSources {
        let mut remembered = RememberedSources::new();
        for cells in self.history().runs.iter().map(|run| &run.cells) {
            for (position, cell) in cells.iter() {
                let action = cell.key.and_then(|key| self.action(&key));
                for (pointer, content) in action.iter().flat_map(|action| &action.sources) {
                    if let Some(path) = cells.source(position, pointer) {
                        remembered.entry(path).or_insert(*content);
                    }
                }
            }
        }
        remembered
    }

    /// Where a cell of this name stands that is this action: among `first`, or else in the latest run that has it; or else
    /// another cell that is the same.
    pub fn find<'a>(&'a self, cell: &str, key: &ActionKey, first: Option<&'a Cells>) -> Option<Place<'a>> {
        let runs = self.history().runs.iter().map(|run| &run.cells);
        let mut all = first.into_iter().chain(runs);
        let found = all.find_map(|cells| Place::of(cells, key, [Some(cell)]));
        found.or_else(|| self.place(key))
    }

    /// Where a cell stands whose wires are to be followed, and whether it took from others when it was computed: of a plan, as
    /// that wires it, and else as it was wired then. What took from the same then as it would today is called what it is
    /// called today. `beside` are the cells among which it was met.
    fn wired<'a>(
        &'a self,
        key: &ActionKey,
        cell: Option<&str>,
        plan: Option<&'a Cells>,
        beside: Option<&'a Cells>,
    ) -> (Option<Place<'a>>, bool) {
        let latest = match cell {
            Some(cell) => self.find(cell, key, plan.or(beside)),
            None => self.place(key),
        };
        let Some(then) = self.place_as_computed(key, cell) else {
            return (latest, false);
        };
        let is_same = latest.is_some_and(|latest| latest.makers() == then.makers());
        match plan {
            Some(_) => (latest, !is_same),
            None if is_same => (latest, false),
            None => (Some(then), false),
        }
    }

    /// Adds a cell, and what it was made from.
    fn trace_up<'a>(
        &'a self,
        lineage: &mut Lineage,
        id: NodeId,
        place: Option<Place<'a>>,
        plan: Option<&'a Cells>,
    ) {
        let mut open = vec![(id, place)];
        while let Some((id, place)) = open.pop() {
            if lineage.nodes.contains_key(&id) {
                continue;
            }
            let Some(mut node) = self.node(&id.action, place) else {
                continue;
            };
            let (_, rewired) = self.wired(&id.action, id.cell.as_deref(), plan, None);
            lineage.rewired |= rewired;
            for from in node.inputs.iter_mut().filter_map(|link| link.from.as_mut()) {
                let beside = place.map(|place| place.cells);
                let (place, _) = self.wired(&from.action, from.cell.as_deref(), plan, beside);
                if let Some(place) = place {
                    from.cell = Some(place.name().to_owned());
                }
                open.push((from.clone(), place));
            }
            lineage.nodes.insert(id, node);
        }
    }

    /// Adds cells, and what was made from them. Says which they are.
    fn trace_down<'a>(
        &'a self,
        lineage: &mut Lineage,
        edges: &Edges<'a>,
        cells: impl Iterator<Item = (ActionKey, Option<Place<'a>>)>,
    ) -> BTreeSet<NodeId> {
        let add = |lineage: &mut Lineage, (key, place): (ActionKey, Option<Place<'a>>)| {
            let node = self.node(&key, place)?;
            let id = node.id();
            lineage.nodes.entry(id.clone()).or_insert(node);
            Some(id)
        };
        let found: BTreeSet<NodeId> = cells.filter_map(|cell| add(lineage, cell)).collect();
        let mut open: Vec<NodeId> = found.iter().cloned().collect();
        while let Some(id) = open.pop() {
            if lineage.consumers.contains_key(&id) {
                continue;
            }
            let takers = edges.consumers(self, &id, false);
            let takers: BTreeSet<NodeId> = takers.filter_map(|cell| add(lineage, cell)).collect();
            open.extend(takers.iter().cloned());
            lineage.consumers.insert(id, takers);
        }
        found
    }
}

/// Where the cells of an action stand.
fn places<'a>(cells: &'a Cells, key: &ActionKey) -> Vec<(ActionKey, Place<'a>)> {
    let positions = cells.of(key).iter().copied();
    positions
        .map(|position| (*key, Place { cells, position }))
        .collect()
}

/// What was wired to what: of each action what the first cells tell that have it, and else the latest run.
struct Edges<'a> {
    /// By action that something was taken of: the cell that took it, and which one it was taken of.
    by_producer: BTreeMap<ActionKey, Vec<(ActionKey, Place<'a>, CellIndex)>>,
    first: Option<&'a Cells>,
}

impl<'a> Edges<'a> {
    fn of(graph: &'a Graph, first: Option<&'a Cells>) -> Self {
        let mut by_producer: BTreeMap<ActionKey, Vec<(ActionKey, Place<'a>, CellIndex)>> = BTreeMap::new();
        let own = first
            .into_iter()
            .flat_map(|cells| cells.actions().map(move |key| (key, cells)));
        let others = graph
            .telling()
            .filter(|(key, _)| first.is_none_or(|first| first.of(key).is_empty()));
        let own = own.flat_map(|(key, cells)| places(cells, key));
        let others = others.flat_map(|(key, cells)| {
            // What it was computed from may be others, which gave the same.
            let latest = places(cells, key);
            let then = graph.place_as_computed(key, None);
            let makers: BTreeSet<_> = latest.iter().map(|(_, place)| place.makers()).collect();
            let then = then.filter(|then| !makers.contains(&then.makers()));
            latest.into_iter().chain(then.map(|then| (*key, then)))
        });
        for (key, place) in own.chain(others) {
            for wire in place.wires().unwrap_or_default() {
                if let Some(producer) = place.cells.get(wire.0).and_then(|cell| cell.key) {
                    let takers = by_producer.entry(producer).or_default();
                    takers.push((key, place, wire.0));
                }
            }
        }
        Self { by_producer, first }
    }

    /// What took something of a cell: of this one, where the cells tell that the taker stands among, and else of any that is
    /// the same action.
    fn consumers(
        &self,
        graph: &'a Graph,
        id: &NodeId,
        any: bool,
    ) -> impl Iterator<Item = (ActionKey, Option<Place<'a>>)> {
        let is_meant = move |cells: &Cells, producer: CellIndex| {
            let Some(name) = id.cell.as_deref().filter(|_| !any) else {
                return true;
            };
            match cells.find(name, &id.action) {
                Some(position) => position == producer,
                None => true,
            }
        };
        let wired = self.by_producer.get(&id.action).into_iter().flatten();
        let wired = wired
            .filter(move |(_, place, producer)| is_meant(place.cells, *producer))
            .map(|(key, place, _)| (*key, Some(*place)));
        let by_content = graph.consumers_by_content(&id.action).into_iter();
        let by_content = by_content
            .filter(|key| self.first.is_none_or(|first| first.of(key).is_empty()))
            .map(|key| (key, None));
        wired.chain(by_content)
    }
}
