//! The store: artifacts named by their bytes, results named by their action.
//!
//! ```text
//! cache/
//!   objects-v1/ab/abcd…            artifacts, read-only, named by the BLAKE3 of their bytes
//!   results-v1/ab/abcd….json       action key → outputs; knows neither clock nor host
//!   results-v1/ab/abcd….….divergence.json    a second, different result of the same action
//!   partial-v1/<action key>/       checkpoints of a running cell
//!   runs-v1/<time-ordered id>/     records of a run: see `record`
//!   claims-v1/<action key>         which process executes which action
//!   published-v1/<name>.json       which artifact was copied to which path
//!   pins-v1/<action key>.json      results that a person wants kept
//!   tmp/                           where files are written before they get their names
//!   index-v1.sqlite                derived and advisory
//! ```
//!
//! **Put, then commit.** Outputs are written and hashed below `tmp/`, made durable in batches, and renamed; a result is
//! written only when its objects are durable under their names. A crash, a kill or a full disk at any instant leaves
//! files below `tmp/` (removed by the next run), objects that no result names (removed by `gc`), or nothing.
//!
//! **First commit wins.** Names are given once. A second, different result of an action is kept as a divergence.
//!
//! **Invariants.** What has a final name is complete. An object's bytes never change. The index is never the only place
//! where something is known.

mod action;
mod catalogue;
mod claim;
mod commit;
mod durable;
mod error;
mod hash;
mod index;
mod layout;
mod lookup;
mod moved;
mod owner;
mod pin;
mod publish;
mod regular;
mod remove;
mod result;
mod row;
mod sources;
mod stamp;
mod sweep;
mod verify;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use camino::Utf8PathBuf;

pub use action::{Action, ActionInput, ActionKey};
pub use catalogue::{Catalogue, StoredObject, StoredResult, Unreadable};
pub use claim::{Claim, Claimed, Claims, LEASE, RENEWAL, standing};
pub use commit::{Commit, Outcome, Staged};
pub use error::StoreError;
pub use layout::Layout;
pub use lookup::{Committed, Lookup, MissReason};
pub use owner::{Liveness, Owner};
pub use pin::Pin;
pub(crate) use publish::copy_verified;
pub use publish::{Copied, Publication, Published, Publisher, Remains};
pub use remove::{Partial, Remover, partials};
pub use result::{ActionResult, Artifact};
pub use sweep::{Abandoned, Workspace, abandoned, sweep};
pub use verify::{Scope, Verification};

pub(crate) use durable::{append_lines, replace};
pub(crate) use error::FULL;
pub(crate) use hash::hash_file;
pub(crate) use regular::{Content, append, open as open_regular, read as read_regular};

/// An open store.
pub struct Store {
    layout: Layout,
    index: Mutex<index::Index>,
    workspace: OnceLock<Workspace>,
}

impl Store {
    /// Opens a store for reading, whether it exists or not. In a folder that is no store nothing is written, no index either.
    pub fn open(root: impl Into<Utf8PathBuf>) -> Self {
        let layout = Layout::new(root);
        Self {
            index: Mutex::new(if layout.is_store() {
                index::Index::open(&layout)
            } else {
                index::Index::none(&layout)
            }),
            workspace: OnceLock::new(),
            layout,
        }
    }

    /// Opens a store for writing; makes it where it does not exist.
    pub fn create(root: impl Into<Utf8PathBuf>) -> Result<Self, StoreError> {
        let root = root.into();
        Layout::new(&root).create()?;
        Ok(Self::open(root))
    }

    /// Where everything is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// This process's place for what is being written; made when first asked for.
    pub fn workspace(&self) -> Result<&Workspace, StoreError> {
        if let Some(workspace) = self.workspace.get() {
            return Ok(workspace);
        }
        let workspace = Workspace::create(&self.layout)?;
        // Where another thread was quicker, this one is removed again.
        Ok(self.workspace.get_or_init(|| workspace))
    }

    /// Every object, by name.
    pub fn objects(&self) -> Result<Vec<StoredObject>, StoreError> {
        catalogue::objects(&self.layout).map(|(objects, _)| objects)
    }

    /// Looks up many results at once.
    pub fn lookup_all<T>(&self, look: impl FnOnce() -> T) -> T {
        self.index().begin();
        let found = look();
        self.index().end();
        found
    }

    /// The actions that the cells of a manifest were when they were last had; `None` where there is no index to remember them.
    pub fn last_actions(&self, manifest: &str) -> Option<BTreeMap<String, ActionKey>> {
        self.index().cells(manifest)
    }

    /// Remembers which action a cell of a manifest is.
    pub fn remember_cell(&self, manifest: Arc<str>, cell: String, key: ActionKey) {
        self.index().remember_cell(manifest, cell, key);
    }

    /// Writes the index; to be called now and then, and at the end.
    pub fn flush(&self) {
        self.index().flush();
    }

    /// Whether the index can be used, and where it is.
    pub fn index_state(&self) -> (bool, Utf8PathBuf) {
        let mut index = self.index();
        (index.is_available(), index.path().to_owned())
    }

    fn index(&self) -> MutexGuard<'_, index::Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
