use std::io::{ErrorKind, Read};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::{Digest, FigureIdentity};

use super::graph::Graph;
use super::side::Side;
use super::trace::SourceName;
use super::why::Explainer;
use crate::exec::{Standing, Survey};
use crate::plan::{CellIndex, Plan, normal};
use crate::store::{ActionKey, Committed, Publication, Store, StoreError};

/// Longest file that is looked into for what it says of itself.
const LONGEST: u64 = 256 << 20;

/// What a file says, and what a store says of it.
#[derive(Clone, Debug)]
pub struct FileOrigin {
    /// BLAKE3 of its bytes.
    pub object: Digest,
    /// What it says of itself; absent where it says nothing.
    pub identity: Option<FigureIdentity>,
    /// Whether it was changed since it was made.
    pub condition: Condition,
    /// The action that made it, where it or the store tells, or that gave the same bytes.
    pub key: Option<ActionKey>,
    /// The note of its publication, where it is a published copy of what that action gave.
    pub published: Option<Publication>,
    /// The note of what was published where the file lies, where that is a copy of what another action gave.
    pub in_place_of: Option<Publication>,
    /// Whether it was not made, but taken: a source file.
    pub is_source: bool,
}

/// Whether a file is as it was made, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The store has, or had, the same bytes.
    AsMade,
    /// Its seal fits; the store knows of no such file that the action gave which it names. Seals tell of accidents: whoever changes a file can
    /// seal it again.
    Sealed,
    /// Its seal fits, but of the action that it names the store has, or had, other bytes.
    SealedOtherwise,
    /// It was changed.
    Altered,
    /// Neither it nor the store can tell.
    Unknown,
}

impl Condition {
    /// Whether it was changed, where that is known.
    pub fn altered(self) -> Option<bool> {
        match self {
            Self::AsMade | Self::Sealed => Some(false),
            Self::Altered => Some(true),
            Self::SealedOtherwise | Self::Unknown => None,
        }
    }
}

impl FileOrigin {
    /// Looks at a file.
    pub fn of(path: &Utf8Path, store: &Store, graph: &Graph) -> Result<Self, StoreError> {
        let failed = || StoreError::io("cannot read the file");
        let mut bytes = Vec::new();
        fs_err::File::open(path)
            .map_err(failed())?
            .take(LONGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(failed())?;
        if bytes.len() as u64 > LONGEST {
            let error = std::io::Error::new(
                ErrorKind::FileTooLarge,
                format!("`{path}` holds more than {LONGEST} bytes"),
            );
            return Err(failed()(error));
        }
        let object = Digest::of(&bytes);
        let identity = FigureIdentity::read(&bytes);
        let publication = store.publication(path)?;
        let makers = graph.makers(&object);
        let told = identity
            .as_ref()
            .and_then(|identity| identity.action_key.parse::<ActionKey>().ok());
        let published = publication.as_ref().map(|publication| publication.key);
        let taken = graph.sources_taken();
        let is_known = |key: &ActionKey| {
            let mut outputs = graph.outputs(key).iter();
            outputs.any(|artifact| path.extension() == Some(&artifact.extension))
        };
        let condition = match (&identity, &publication) {
            // Bytes that something took, too, need not be those that something gave.
            (None, None) if makers.is_empty() || taken.contains(&object) => Condition::Unknown,
            _ if !makers.is_empty() => Condition::AsMade,
            (_, Some(publication)) if publication.object == object => Condition::AsMade,
            (Some(_), _) if !FigureIdentity::is_unaltered(&bytes) => Condition::Altered,
            (Some(_), Some(publication)) if told == Some(publication.key) => Condition::Altered,
            (Some(_), _) if told.as_ref().is_some_and(is_known) => Condition::SealedOtherwise,
            (Some(_), _) => Condition::Sealed,
            (None, Some(_)) => Condition::Altered,
            (None, None) => Condition::Unknown,
        };
        let is_made = identity.is_some() || publication.is_some();
        // The bytes themselves come first: two copies may have been swapped. Of several actions that gave the same bytes,
        // the one that it was published for.
        let by_bytes = makers
            .iter()
            .find(|key| Some(**key) == published)
            .or_else(|| makers.first());
        let key = told.or_else(|| by_bytes.copied()).or(published);
        Ok(Self {
            object,
            key,
            identity,
            condition,
            published: publication
                .clone()
                .filter(|publication| Some(publication.key) == key),
            in_place_of: publication.filter(|publication| key.is_some_and(|key| publication.key != key)),
            is_source: !is_made
                && (taken.contains(&object) && makers.is_empty()
                    || !graph.takers(&SourceName::Path(&normal(path))).is_empty()),
        })
    }
}

/// Whether a file is what a manifest would make today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It is.
    Current {
        /// The cell.
        cell: String,
    },
    /// It is not, or, where today's result is not in the store, another action would make it.
    Stale {
        /// The cell.
        cell: String,
        /// What differs, in phrases.
        differences: Vec<String>,
        /// Whether today's result is in the store, and is another; only the copy is old.
        computed: bool,
        /// Where the manifest publishes today's result, absolute: there, or elsewhere, or nowhere.
        published_as: Option<Utf8PathBuf>,
    },
    /// It depends on cells that have to run first.
    Unknown {
        /// The cell.
        cell: String,
        /// One of those.
        producer: String,
    },
    /// No cell of the manifest makes it.
    NotThere,
}

impl Freshness {
    /// Compares a file with what a plan gives: by its content where the store has today's result, and else by the action.
    /// `path` is where the file is, absolute; `object` is the digest of its bytes, `key` the action that made it.
    pub fn of(
        path: &Utf8Path,
        object: &Digest,
        key: &ActionKey,
        graph: &Graph,
        plan: &Plan,
        store: &Store,
    ) -> Result<Self, StoreError> {
        let survey = Survey::take(plan, store, &std::collections::BTreeSet::new())?;
        let is_it = |cell: &CellIndex| match &survey.standings[*cell] {
            Standing::Cached(result) => result.key() == *key,
            Standing::Due { key: due, .. } => due == key,
            Standing::Unknown { .. } => false,
        };
        let counterpart = counterpart(path, key, graph, plan);
        // Of several cells that are this action, the one that publishes there.
        let mut same = counterpart.into_iter().chain(0..plan.cells.len()).filter(is_it);
        // What was published there may be another file than this one.
        let published = store.publication(path)?.filter(|published| published.key == *key);
        if let Some(cell) = same.next() {
            let name = plan.name(cell);
            return Ok(match &survey.standings[cell] {
                Standing::Cached(today)
                    if published.is_some() && !is_among(today, object, published.as_ref()) =>
                {
                    Self::Stale {
                        cell: name,
                        differences: vec!["the same action gave something else since".to_owned()],
                        computed: true,
                        published_as: published_as(path, plan, cell),
                    }
                }
                _ => Self::Current { cell: name },
            });
        }
        let Some(cell) = counterpart else {
            return Ok(Self::NotThere);
        };
        let name = plan.name(cell);
        if let Standing::Unknown { producer } = &survey.standings[cell] {
            let explainer = Explainer::new(plan, store, &survey);
            let own = match graph.action(key) {
                Some(old) => explainer.own_differences(cell, old.clone())?,
                None => Vec::new(),
            };
            if !own.is_empty() {
                return Ok(Self::Stale {
                    cell: name,
                    differences: own.iter().map(ToString::to_string).collect(),
                    computed: false,
                    published_as: published_as(path, plan, cell),
                });
            }
            return Ok(Self::Unknown {
                cell: name,
                producer: plan.name(*producer),
            });
        }
        if let Standing::Cached(today) = &survey.standings[cell]
            && is_among(today, object, published.as_ref())
        {
            return Ok(Self::Current { cell: name });
        }
        let explainer = Explainer::new(plan, store, &survey);
        let mut told: Vec<String> = match graph.action(key) {
            Some(old) => {
                let place = graph.find(&name, key, None);
                explainer
                    .differences(
                        &Side::of(old, place),
                        &explainer.side(&survey.action(cell)?, cell),
                    )?
                    .iter()
                    .map(ToString::to_string)
                    .collect()
            }
            None => Vec::new(),
        };
        if told.is_empty() {
            told.extend(explainer.brief(cell)?);
        }
        Ok(Self::Stale {
            cell: name,
            differences: told,
            computed: matches!(survey.standings[cell], Standing::Cached(_)),
            published_as: published_as(path, plan, cell),
        })
    }
}

/// Where a cell publishes what a file shows: at its path, or else a file of the same kind, or any.
fn published_as(path: &Utf8Path, plan: &Plan, cell: CellIndex) -> Option<Utf8PathBuf> {
    let copies = plan.cells[cell].publish.iter();
    let copies = copies.map(|publish| normal(&plan.folder.join(&publish.path)));
    copies.max_by_key(|copy| (copy == path, copy.extension() == path.extension()))
}

/// Whether a file is among what an action gave: by its bytes, or, where it was altered by hand, by what was published there.
fn is_among(result: &Committed, object: &Digest, publication: Option<&Publication>) -> bool {
    result.outputs().iter().any(|artifact| {
        let is_published = publication.is_some_and(|published| {
            published.port == artifact.port && published.content == artifact.content
        });
        artifact.object == *object || is_published
    })
}

/// The cell that makes what a file was: the one that publishes there, or the one of the name that its action had.
fn counterpart(path: &Utf8Path, key: &ActionKey, graph: &Graph, plan: &Plan) -> Option<CellIndex> {
    let publishes = |cell: CellIndex| {
        plan.cells[cell]
            .publish
            .iter()
            .any(|publish| plan.folder.join(&publish.path) == path)
    };
    let named = |cell: CellIndex| graph.history().cell(key) == Some(plan.name(cell).as_str());
    let mut cells = 0..plan.cells.len();
    cells
        .clone()
        .find(|cell| publishes(*cell))
        .or_else(|| cells.find(|cell| named(*cell)))
}
