use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use super::graph::{Graph, Node};
use super::place::{NodeId, Place};
use super::source::SourceFile;
use crate::plan::CellIndex;
use crate::record::Cells;
use crate::store::{ActionKey, Store};

/// What is traced.
#[derive(Clone, Copy)]
pub struct Focus<'a> {
    /// The action.
    pub action: ActionKey,
    /// The cell that is meant; absent where any that is this action is.
    pub cell: Option<&'a str>,
    /// The cells among which it is looked for first: those of a plan, or of a run.
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

/// A cell with all that it was made from, directly or not, and all that was made from it; or all that was made from a file.
#[derive(Default)]
pub struct Lineage {
    /// The cell; absent where it is a file.
    pub focus: Option<NodeId>,
    /// All of them, itself included.
    pub nodes: BTreeMap<NodeId, Node>,
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
        let place = match focus.cell {
            Some(cell) => self.find(cell, &focus.action, focus.cells),
            None => self.place(&focus.action),
        };
        let mut lineage = Lineage::default();
        let Some(node) = self.node(&focus.action, place) else {
            return lineage;
        };
        let id = node.id();
        self.trace_up(&mut lineage, id.clone(), place);
        let edges = Edges::of(self, focus.cells);
        let takers = edges.consumers(self, &id, focus.cell.is_none());
        lineage.takers = self.trace_down(&mut lineage, &edges, takers);
        lineage.focus = Some(id);
        lineage.look(store)
    }

    /// What was made from a source file, by its absolute path.
    pub fn lineage_of_source(&self, store: &Store, path: &Utf8Path) -> Lineage {
        let mut lineage = Lineage::default();
        let edges = Edges::of(self, None);
        lineage.takers = self.trace_down(&mut lineage, &edges, self.takers(path).into_iter());
        lineage.look(store)
    }

    /// The cells that took a source file, by its absolute path.
    pub fn takers(&self, path: &Utf8Path) -> Vec<(ActionKey, Option<Place<'_>>)> {
        let mut takers = Vec::new();
        for key in self.actions() {
            if self.action(&key).is_none_or(|action| action.sources.is_empty()) {
                continue;
            }
            let takes = |place: &Option<Place<'_>>| {
                let sources = self.node(&key, *place).map(|node| node.sources);
                let mut sources = sources.iter().flat_map(BTreeMap::values);
                sources.any(|source| source.path.as_deref() == Some(path))
            };
            let places = self.places(&key).filter(takes);
            takers.extend(places.map(|place| (key, place)));
        }
        takers
    }

    /// Where a cell of this name stands that is this action: among `first`, or else in the latest run that has it; or else
    /// another cell that is the same.
    pub fn find<'a>(&'a self, cell: &str, key: &ActionKey, first: Option<&'a Cells>) -> Option<Place<'a>> {
        let runs = self.history().runs.iter().map(|run| &run.cells);
        let found = first.into_iter().chain(runs).find_map(|cells| {
            let position = cells.find(cell, key)?;
            Some(Place { cells, position }).filter(|place| place.wires().is_some())
        });
        found.or_else(|| self.place(key))
    }

    /// Adds a cell, and what it was made from.
    fn trace_up<'a>(&'a self, lineage: &mut Lineage, id: NodeId, place: Option<Place<'a>>) {
        let mut open = vec![(id, place)];
        while let Some((id, place)) = open.pop() {
            if lineage.nodes.contains_key(&id) {
                continue;
            }
            let Some(node) = self.node(&id.action, place) else {
                continue;
            };
            for from in node.inputs.iter().filter_map(|link| link.from.clone()) {
                let cells = place.map(|place| place.cells);
                let place = from
                    .cell
                    .as_ref()
                    .and_then(|cell| self.find(cell, &from.action, cells));
                open.push((from, place));
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
        for (key, cells) in own.chain(others) {
            for position in cells.of(key) {
                let place = Place {
                    cells,
                    position: *position,
                };
                for wire in place.wires().unwrap_or_default() {
                    if let Some(producer) = cells.get(wire.0).and_then(|cell| cell.key) {
                        let takers = by_producer.entry(producer).or_default();
                        takers.push((*key, place, wire.0));
                    }
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
